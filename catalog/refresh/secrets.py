"""The secrets of feeds: read where they are sent, and sealed anew after a change of SECRET_KEY."""

from catalog.models import Provider
from catalog.outgoing import Refused
from catalog.sealing import FEEDS, SecretUnreadable


def secret_of(provider: Provider) -> str:
    """Raises: Refused when it cannot be read any more: without it the feed is not asked."""
    try:
        return provider.feed_secret
    except SecretUnreadable:
        said = "The secret of the feed cannot be read: it was sealed with another SECRET_KEY. Write it again."
        raise Refused("secret_unreadable", said) from None


def seal_anew() -> int:
    """What an old SECRET_KEY sealed is sealed with the present one while both are known; how many were."""
    renewed = 0
    kept = Provider.objects.exclude(sealed_secret="").order_by("pk").values_list("pk", "sealed_secret")
    for pk, sealed in list(kept):
        if anew := FEEDS.sealed_anew(sealed):
            # Conditional: a secret that was written meanwhile stays.
            renewed += Provider.objects.filter(pk=pk, sealed_secret=sealed).update(sealed_secret=anew)
    return renewed
