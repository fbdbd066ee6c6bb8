"""Filters for memory and money, so that no template does arithmetic."""

from decimal import Decimal

from django import template

from catalog.units import gib_text

register = template.Library()


@register.filter
def gib(size_bytes: int) -> str:
    """`{{ bytes|gib }}` -> "19.55 GiB"."""
    return gib_text(size_bytes)


@register.filter
def usd(amount: Decimal) -> str:
    """`{{ amount|usd }}` -> "$1,110.00"; four decimals stay four (prices per hour)."""
    return f"${amount:,}"
