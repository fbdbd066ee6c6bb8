"""Which machines: every rule about a set of machines is a named method here."""

from collections.abc import Collection
from datetime import datetime, timedelta
from decimal import Decimal

from django.apps import apps
from django.db import models
from django.db.models import Case, F, Q, When
from django.db.models.functions import Coalesce, Greatest
from django.db.models.lookups import GreaterThanOrEqual

FRESH_FOR = timedelta(minutes=5)


def is_current(now: datetime) -> Q:
    """Machines whose listing is true now: reported rentable, by a feed that is fresh; declared ones never age.

    A machine under rent is not written to when its list does not have it any more: its absence says so instead.
    """
    # A subquery and no join: what is absent is little, and it is looked up once for all machines of a query.
    absent = apps.get_model("catalog", "FeedAbsence").objects.exclude(why="fewer").values("machine")
    return Q(online=True) & has_current_list(now, "provider__") & (Q(provider__feed_url="") | ~Q(pk__in=absent))


def has_current_list(now: datetime, of: str = "") -> Q:
    """Providers whose list was read lately, and those without one, whose machines the operator declares.

    `of` leads to the provider from the rows that are asked.
    """
    return Q(**{f"{of}feed_url": ""}) | Q(**{f"{of}refreshed_at__gt": now - FRESH_FOR})


def lots_to_sell() -> Case:
    """The free lots of a machine, less those that the list of its provider does not offer while others are rented."""
    offered = Greatest(F("free_lots") - Coalesce(F("feed_absence__lots"), 0), 0)
    return Case(When(provider__feed_url="", then=F("free_lots")), default=offered, output_field=models.IntegerField())


def has_to_sell(lots: int) -> Q:
    """Machines of which so many lots can be ordered."""
    return Q(free_lots__gte=lots) & Q(GreaterThanOrEqual(lots_to_sell(), lots))


def offers_term(days: int) -> Q:
    """Machines that are sold for a term of `days`."""
    sold = Q(max_term_days__isnull=True) | Q(max_term_days__gte=days)
    if days == 3:
        sold &= Q(price_3_days_usd__isnull=False)
    return sold


class MachineQuerySet(models.QuerySet):
    def listed(self) -> "MachineQuerySet":
        return self.filter(listed=True)

    def available(self, *, lots: int = 1, now: datetime) -> "MachineQuerySet":
        """Listed, current, and with at least `lots` to sell."""
        return self.listed().filter(is_current(now), has_to_sell(lots))

    def in_countries(self, codes: Collection[str]) -> "MachineQuerySet":
        """Inside the countries; a machine of unknown location is inside none."""
        return self.filter(country__in=codes)

    def sold_for(self, days: int) -> "MachineQuerySet":
        return self.filter(offers_term(days))

    def with_memory(self, least_bytes: int) -> "MachineQuerySet":
        """At least so many bytes per GPU as the machine states them; no tolerance, and unknown is never enough."""
        return self.filter(gpu_memory_bytes__gte=least_bytes)

    def of_memory_class(self, least_gb: int) -> "MachineQuerySet":
        """GPUs of a class, the round number on their datasheet: a "24 GB" card is one, whatever its driver reports."""
        return self.filter(gpu__memory_gb_nominal__gte=least_gb)

    def at_most(self, usd: Decimal, *, days: int) -> "MachineQuerySet":
        """A package price for the term, per lot, not above `usd`."""
        return self.filter(**{f"price_{days}_days_usd__lte": usd})

    def cheapest_first(self, days: int, *, reverse: bool = False) -> "MachineQuerySet":
        """By what is paid for a lot and the term, however many GPUs it has; ties by id, so that pages are stable."""
        price = F(f"price_{days}_days_usd")
        return self.order_by(price.desc() if reverse else price.asc(), "id")

    def most_memory_first(self, days: int) -> "MachineQuerySet":
        """By memory per GPU, unknown last; then cheapest."""
        return self.order_by(F("gpu_memory_bytes").desc(nulls_last=True), f"price_{days}_days_usd", "id")

    def with_facts(self) -> "MachineQuerySet":
        """With the rows that a page about machines names, and what its availability rests on."""
        return self.select_related("gpu", "provider", "feed_absence")
