"""What every page may read."""

from django.conf import settings
from django.http import HttpRequest


def site(request: HttpRequest) -> dict[str, object]:
    """`demo`: this process runs the demo; pages then say that its machines are invented."""
    return {"demo": settings.DEMO}
