"""The catalog's sentences for templates."""

from django import template

from catalog import wording
from catalog.models import Machine

register = template.Library()


@register.filter
def memory(machine: Machine) -> str:
    """`{{ machine|memory }}` -> "24 GB nominal (datasheet) = 22.35 GiB counted"."""
    return wording.memory(machine)


@register.filter
def provenance(machine: Machine) -> str:
    return wording.provenance(machine)


@register.filter
def lots(machine: Machine) -> str:
    return wording.lots(machine)


@register.simple_tag
def community_sentence() -> str:
    return wording.COMMUNITY_SENTENCE
