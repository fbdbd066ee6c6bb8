"""Addresses in full, for whoever is not on a page: mails, programs, other sites."""

from django.conf import settings
from django.urls import reverse


def page_url(name: str, *arguments: object) -> str:
    """The address of the page with this name among the URLs."""
    return f"{settings.SITE_URL}{reverse(name, args=arguments)}"
