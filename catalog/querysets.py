"""Which machines: every rule about a set of machines is a named method here."""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.db import models
from django.db.models import Q

FRESH_FOR = timedelta(minutes=5)


def is_current(now: datetime) -> Q:
    """Machines whose listing is true now: reported rentable, and by a feed that is fresh; declared ones never age."""
    return Q(online=True) & (Q(provider__feed_url="") | Q(provider__refreshed_at__gt=now - FRESH_FOR))


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
        """Listed, current, and with at least `lots` free."""
        return self.listed().filter(is_current(now), free_lots__gte=lots)

    def in_countries(self, codes: Collection[str]) -> "MachineQuerySet":
        """Inside the countries; a machine of unknown location is inside none."""
        return self.filter(country__in=codes)
