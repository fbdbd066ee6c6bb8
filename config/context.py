"""What every page may read."""

from django.conf import settings
from django.http import HttpRequest

from config.theme import theme_of


def site(request: HttpRequest) -> dict[str, object]:
    """`demo`: pages say that the machines are invented. `theme`: light, dark or auto. `verifies_addresses`: whether a
    new email address must be confirmed, so that pages may speak of it."""
    verifies = settings.ACCOUNT_EMAIL_VERIFICATION != "none"
    return {"demo": settings.DEMO, "theme": theme_of(request), "verifies_addresses": verifies}
