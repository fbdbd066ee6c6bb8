"""Pages that have no parameters say so: an address that asks for something else is not answered as if it had not."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse

from catalog.quoting import shown

View = Callable[..., HttpResponse]
_MOST_NAMED = 5


def without_parameters(view: View) -> View:
    """The view, refused with a 400 that names what the address has too much."""

    @wraps(view)
    def plain(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.GET:
            names = ", ".join(f"“{shown(name)}”" for name in list(request.GET)[:_MOST_NAMED])
            raise BadRequest(f"This page has no parameters, and its address has {names}. Leave out what follows “?”.")
        return view(request, *args, **kwargs)

    return plain
