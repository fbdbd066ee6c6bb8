"""Providers and machines: what can be rented, from whom and for how much."""

import re
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import F, IntegerField, Q
from django.db.models.functions import Cast
from simple_history.models import HistoricalRecords

from catalog import countries, outgoing, pricing, units
from catalog.digest import Digest, cents
from catalog.models.gpus import Gpu, slug_validator
from catalog.querysets import FRESH_FOR, MachineQuerySet
from catalog.sealing import FEEDS
from catalog.visible import name_to_see
from catalog.web_addresses import web_address

if TYPE_CHECKING:
    from catalog.models.feeds import FeedAbsence

# The shortest leaves a run time to end before the next is due; the longest still has a run in the time a list is fresh.
SHORTEST_INTERVAL_SECONDS = 30
LONGEST_INTERVAL_SECONDS = 240
# An address that names a feed which ships with Berth (catalog/feeds/demo.py) instead of a place on the network.
DEMO_FEED = "demo:"


def known_country(code: str) -> None:
    """Raises: ValidationError for what is no ISO 3166-1 alpha-2 code; `EU` is a word of the filters, not a place."""
    if code not in countries.names():
        raise ValidationError(
            "“%(code)s” is not a country code (ISO 3166-1 alpha-2, such as DE).", "unknown_country", {"code": code}
        )


# What to do about an address that is refused by its spelling alone.
_FIXES = {
    "address_not_public": "Give the public address of the list; for development OUTGOING_ALLOWED names host and port.",
    "url_scheme": f"Feeds that ship with Berth are written {DEMO_FEED} and their name.",
    "url_host": "Write it whole, such as https://provider.example/list.",
    "url_invalid": "Write it whole, such as https://provider.example/list.",
    "url_userinfo": "Give the password as the secret.",
}


def feed_address(address: str) -> None:
    """What a name leads to is looked at by each refresh.

    Raises: ValidationError for what a refresh would never fetch.
    """
    if re.fullmatch(rf"{DEMO_FEED}[a-z0-9-]+", address):
        return
    try:
        outgoing.parse(address)
    except outgoing.Refused as refused:
        raise ValidationError(f"{refused.detail} {_FIXES.get(refused.code, '')}".strip(), refused.code) from None


class Tier(models.TextChoices):
    SECURE = "secure", "Secure"
    COMMUNITY = "community", "Community"


class MemorySource(models.TextChoices):
    DATA_CENTER = "data_center", "Data center"
    DATASHEET = "datasheet", "Datasheet"
    PROVIDER_REPORT = "provider_report", "Provider report"


class MemoryUnit(models.TextChoices):
    """The unit in which a memory figure was stated, so that pages and forms show it as it was given."""

    GIB = "GiB", "GiB (2^30 bytes)"
    GB = "GB", "GB (10^9 bytes)"
    MIB = "MiB", "MiB (2^20 bytes)"
    BYTES = "bytes", "bytes"


class Availability(models.TextChoices):
    """Whether a lot can be had now, and when not, why."""

    AVAILABLE = "available", "Available now"
    OUT_OF_STOCK = "out_of_stock", "Out of stock"
    OFF_LINE = "off_line", "Off-line"
    UNCONFIRMED = "unconfirmed", "Not confirmed lately"


class Provider(models.Model):
    """Who operates machines. Without a feed its machines are declared by the operator and never age."""

    slug = models.CharField(max_length=64, unique=True, validators=[slug_validator])
    name = models.CharField(max_length=120, unique=True, validators=[name_to_see])
    website = models.URLField(blank=True, validators=[web_address])
    invented = models.BooleanField(
        default=False, help_text="A demo provider: its machines do not exist, and pages say so."
    )
    feed_format = models.CharField(max_length=40, blank=True)
    feed_url = models.CharField("feed address", blank=True, max_length=500, validators=[feed_address])
    sealed_secret = models.CharField(
        max_length=1000, blank=True, editable=False, help_text="The feed's secret, sealed: see `feed_secret`."
    )
    feed_interval_seconds = models.PositiveSmallIntegerField(
        "seconds between refreshes",
        default=60,
        validators=[MinValueValidator(SHORTEST_INTERVAL_SECONDS), MaxValueValidator(LONGEST_INTERVAL_SECONDS)],
    )
    refreshed_at = models.DateTimeField(
        "last good refresh", null=True, blank=True, editable=False, help_text="Set by a refresh that was accepted."
    )

    # A secret that was replaced must not live on in the history; when a list was read is no decision of anybody.
    history = HistoricalRecords(excluded_fields=["sealed_secret", "refreshed_at"])

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(feed_url="", feed_format="") | (~Q(feed_url="") & ~Q(feed_format="")),
                name="provider_feed_has_address_and_format",
                violation_error_message="A feed needs both a format and an address.",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def has_feed(self) -> bool:
        return bool(self.feed_url)

    @property
    def feed_secret(self) -> str:
        """What is sent to the feed as a bearer token; empty when there is none. Read where it is sent, never shown.

        Raises: SecretUnreadable when SECRET_KEY is another than the one that sealed it.
        """
        return FEEDS.unseal(self.sealed_secret) if self.sealed_secret else ""

    @feed_secret.setter
    def feed_secret(self, secret: str) -> None:
        self.sealed_secret = FEEDS.seal(secret) if secret else ""


class Machine(models.Model):
    """A listing one can rent; `lots` alike machines of `gpu_count` equal GPUs each. One lot is the unit of sale.

    Staff edit it; `free_lots` is changed by orders alone. Memory is bytes per GPU; null means unknown, and an unknown
    memory is never recommended.
    """

    name = models.CharField(max_length=160, validators=[name_to_see])
    provider = models.ForeignKey(Provider, on_delete=models.PROTECT, related_name="machines")
    external_id = models.CharField(
        max_length=120, null=True, blank=True, editable=False, help_text="The provider's own name of the offer."
    )
    gpu = models.ForeignKey(Gpu, on_delete=models.PROTECT, related_name="machines")
    gpu_count = models.PositiveSmallIntegerField(default=1, validators=[MinValueValidator(1), MaxValueValidator(16)])
    tier = models.CharField(max_length=12, choices=Tier)
    country = models.CharField(
        max_length=2,
        null=True,
        blank=True,
        validators=[known_country],
        help_text="ISO 3166-1 alpha-2; empty when the location is unknown.",
    )
    place_raw = models.CharField("place as its provider wrote it", max_length=200, blank=True, editable=False)
    host = models.CharField(
        max_length=200, blank=True, editable=False, help_text="The provider's name of the computer this is (a part of)."
    )
    host_gpus = models.TextField(
        blank=True,
        editable=False,
        help_text="Which GPUs of it, as the provider counts them; empty when it did not say.",
    )
    gpu_memory_bytes = models.PositiveBigIntegerField(
        "memory per GPU (bytes)", null=True, blank=True, help_text="Empty when it is unknown: never recommended then."
    )
    memory_unit = models.CharField(max_length=5, choices=MemoryUnit, default=MemoryUnit.BYTES)
    memory_source = models.CharField(max_length=16, choices=MemorySource, blank=True)
    interruptible = models.BooleanField(default=False, help_text="The provider may stop it during the term.")
    max_term_days = models.PositiveSmallIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    lots = models.PositiveIntegerField(default=1, validators=[MinValueValidator(1)])
    free_lots = models.PositiveIntegerField(default=1)
    listed = models.BooleanField(default=True, help_text="Unlisted machines are nowhere on the pages.")
    online = models.BooleanField(default=True, help_text="Reported rentable by its provider, or declared so by staff.")
    gone_since = models.DateTimeField(
        null=True,
        blank=True,
        editable=False,
        help_text="When its list was first without it; empty: it is in it.",
    )
    hourly_usd = models.DecimalField(max_digits=12, decimal_places=6)
    price_3_days_usd = models.DecimalField(
        max_digits=12, decimal_places=2, null=True, blank=True, help_text="Empty: no trial term."
    )
    price_7_days_usd = models.DecimalField(max_digits=12, decimal_places=2)
    price_30_days_usd = models.DecimalField(max_digits=12, decimal_places=2)
    updated_at = models.DateTimeField(auto_now=True)
    # Everything of the row that decides an answer or is told in one (catalog/version.py); a test holds it complete.
    answers_digest = models.GeneratedField(
        expression=Digest(
            "id",
            "provider",
            "gpu",
            "gpu_count",
            "tier",
            "country",
            "gpu_memory_bytes",
            "memory_unit",
            "memory_source",
            Cast("interruptible", IntegerField()),
            "max_term_days",
            "lots",
            "free_lots",
            Cast("online", IntegerField()),
            cents("price_3_days_usd"),
            cents("price_7_days_usd"),
            cents("price_30_days_usd"),
            "name",
        ),
        output_field=models.BigIntegerField(),
        db_persist=True,
    )

    objects = MachineQuerySet.as_manager()
    history = HistoricalRecords(
        excluded_fields=["free_lots", "gone_since", "host", "host_gpus", "updated_at", "answers_digest"]
    )

    class Meta:
        ordering = ["name", "id"]
        constraints = [
            models.UniqueConstraint(fields=["provider", "name"], name="machine_name_once_per_provider"),
            models.UniqueConstraint(fields=["provider", "external_id"], name="machine_external_id_once_per_provider"),
            models.CheckConstraint(
                condition=Q(lots__gte=1),
                name="machine_has_a_lot",
                violation_error_message="A machine has at least one lot.",
            ),
            models.CheckConstraint(
                condition=Q(free_lots__gte=0) & Q(free_lots__lte=F("lots")),
                name="machine_free_lots_within_lots",
                violation_error_message="Free lots must lie between 0 and the number of lots.",
            ),
            models.CheckConstraint(
                condition=~Q(tier=Tier.COMMUNITY) | Q(lots=1),
                name="machine_community_is_one_lot",
                violation_error_message="A Community machine is one lot.",
            ),
            models.CheckConstraint(
                condition=Q(gpu_count__gte=1) & Q(gpu_count__lte=16),
                name="machine_gpu_count_1_to_16",
                violation_error_message="A machine has 1 to 16 GPUs.",
            ),
            models.CheckConstraint(
                condition=Q(gpu_memory_bytes__isnull=True, memory_source="")
                # "IS NOT NULL" is needed: NULL > 0 is unknown, and a check lets the unknown pass.
                | (Q(gpu_memory_bytes__isnull=False, gpu_memory_bytes__gt=0) & ~Q(memory_source="")),
                name="machine_memory_has_a_source",
                violation_error_message="A memory figure needs its source, and a source needs its figure.",
            ),
            models.CheckConstraint(
                condition=Q(memory_source="")
                | Q(tier=Tier.COMMUNITY, memory_source=MemorySource.PROVIDER_REPORT)
                | Q(tier=Tier.SECURE, memory_source__in=[MemorySource.DATA_CENTER, MemorySource.DATASHEET]),
                name="machine_memory_source_matches_tier",
                violation_error_message=(
                    "Community memory is a provider's report; Secure memory is a data center's or a datasheet's."
                ),
            ),
            models.CheckConstraint(
                condition=Q(hourly_usd__gt=0)
                & Q(price_7_days_usd__gt=0)
                & Q(price_30_days_usd__gt=0)
                & (Q(price_3_days_usd__isnull=True) | Q(price_3_days_usd__gt=0)),
                name="machine_prices_positive",
                violation_error_message="Prices must be above 0.",
            ),
            models.CheckConstraint(
                condition=Q(tier__in=Tier.values) & (Q(country__isnull=True) | ~Q(country="")),
                name="machine_tier_and_country_known_words",
                violation_error_message="The tier is Secure or Community; an unknown country is empty.",
            ),
            models.CheckConstraint(
                condition=Q(max_term_days__isnull=True) | Q(max_term_days__gte=1),
                name="machine_max_term_at_least_a_day",
                violation_error_message="The longest term is a day or more; leave it empty when there is none.",
            ),
        ]
        indexes = [
            models.Index(
                fields=["gpu_count", "gpu_memory_bytes", "tier", "price_7_days_usd", "id"], name="machine_fit_week"
            ),
            models.Index(
                fields=["gpu_count", "gpu_memory_bytes", "tier", "price_30_days_usd", "id"], name="machine_fit_month"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def cards(self) -> int:
        """All GPUs of the listing: lots times GPUs per lot."""
        return self.lots * self.gpu_count

    @property
    def memory_figure(self) -> Decimal | None:
        """The memory per GPU in the unit it was stated in, or None when it is unknown."""
        if self.gpu_memory_bytes is None:
            return None
        return units.to_figure(self.gpu_memory_bytes, self.memory_unit)

    @property
    def country_name(self) -> str:
        """The country in words; an unknown one is a sentence, never an empty cell."""
        if self.country is None:
            return "Location unknown"
        return countries.names().get(self.country, self.country)

    def availability(self, now: datetime) -> Availability:
        """Whether a lot can be had at `now`: the same rule for one row as `available()` is for the table."""
        if not self.online:
            return Availability.OFF_LINE
        if self.provider.has_feed and not self._is_confirmed(now):
            return Availability.UNCONFIRMED
        return Availability.AVAILABLE if self.lots_to_sell else Availability.OUT_OF_STOCK

    def _is_confirmed(self, now: datetime) -> bool:
        refreshed_at, absence = self.provider.refreshed_at, self.absence
        return refreshed_at is not None and refreshed_at > now - FRESH_FOR and not (absence and absence.is_whole)

    @property
    def absence(self) -> "FeedAbsence | None":
        """What the last list of its provider did not offer of it, while it is under rent."""
        return getattr(self, "feed_absence", None) if self.provider.has_feed else None

    @property
    def withheld_lots(self) -> int:
        """Lots that are not to be sold though nobody rents them from us, because their provider's list has fewer."""
        return self.absence.lots if self.absence else 0

    @property
    def lots_to_sell(self) -> int:
        """Free lots that can be ordered: the same rule for one row as `catalog.querysets.lots_to_sell`."""
        return max(self.free_lots - self.withheld_lots, 0)

    def package_usd(self, days: int) -> Decimal | None:
        """The price of one lot for a term of `days`, or None when the machine is not sold for that term."""
        if self.max_term_days is not None and days > self.max_term_days:
            return None
        return {3: self.price_3_days_usd, 7: self.price_7_days_usd, 30: self.price_30_days_usd}.get(days)

    def package(self, days: int) -> pricing.Package | None:
        """One lot for a term of `days` with its price, or None when the machine is not sold for that term."""
        price = self.package_usd(days)
        return None if price is None else pricing.Package(days, price)

    @property
    def packages(self) -> list[pricing.Package]:
        """Every term the machine is sold for, shortest first."""
        return [package for days in pricing.TERMS_DAYS if (package := self.package(days))]
