"""What every page may read."""

from django.conf import settings
from django.http import HttpRequest

from config.theme import theme_of


def site(request: HttpRequest) -> dict[str, object]:
    """`demo`: pages say that the machines are invented. `theme`: light, dark or auto."""
    return {"demo": settings.DEMO, "theme": theme_of(request)}
