"""Every address of the console, read from the URL resolver: a new one is found on the day it is added."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.urls.resolvers import RegexPattern

_PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Address:
    """A pattern of the resolver. `name` carries its namespace; what has no name is called by its route."""

    name: str
    route: str
    named: bool
    parameters: tuple[str, ...]
    positional: int = 0

    @property
    def admin_model(self) -> str:
        """`app_model` of an address of the administration that is about one model; else nothing."""
        parts = self.route.split("/")
        if parts[0] == "admin" and len(parts) > 3 and parts[2] in apps.all_models.get(parts[1], ()):
            return f"{parts[1]}_{parts[2]}"
        return ""

    def path(self, values: dict[str, object]) -> str:
        """The address filled in. Unnamed ones and Django's regular expressions are filled by hand."""
        missing = set(self.parameters) - set(values)
        assert not missing, f"Say in tests/sweep/world.py (values_of) how to fill {missing} of {self.name}."
        chosen = {name: values[name] for name in self.parameters}
        if self.positional:
            return reverse(self.name, args=[values["object_id"], values["history_id"]][: self.positional])
        if self.named:
            return reverse(self.name, kwargs=chosen)
        return "/" + _PARAMETER.sub(lambda match: str(chosen[match[1]]), self.route)


@cache
def all_addresses() -> tuple[Address, ...]:
    return tuple(_walk(get_resolver(), "", "", ()))


def _walk(resolver: URLResolver, route: str, namespace: str, parameters: tuple[str, ...]) -> Iterator[Address]:
    for pattern in resolver.url_patterns:
        here = route + str(pattern.pattern)
        names, positional = _parameters(pattern)
        if isinstance(pattern, URLResolver):
            inside = f"{namespace}{pattern.namespace}:" if pattern.namespace else namespace
            yield from _walk(pattern, here, inside, parameters + names)
        else:
            called = f"{namespace}{pattern.name}" if pattern.name else here
            yield Address(called, here, bool(pattern.name), parameters + names, positional)


def _parameters(pattern: URLPattern | URLResolver) -> tuple[tuple[str, ...], int]:
    read = pattern.pattern
    if isinstance(read, RegexPattern):
        return tuple(read.regex.groupindex), read.regex.groups - len(read.regex.groupindex)
    return tuple(read.converters), 0
