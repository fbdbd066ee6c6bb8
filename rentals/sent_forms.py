"""A form that comes twice acts once: a double click, a reload, the same page sent again from the browser's history.

Each form is shown with a key of its own. The key is written in the transaction of the act, so a refusal leaves it free.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.shortcuts import redirect

from catalog.templatetags.forms import FORM_KEY
from rentals.errors import RentalError
from rentals.models import SentForm
from rentals.models.sent_forms import MAX_MADE
from rentals.ordering import digest_of
from rentals.scoping import TenantRequest

_KEY = re.compile(r"\A[0-9a-f-]{36}\Z")
_NO_CONTENT = ("csrfmiddlewaretoken", FORM_KEY)


class SentBefore(RentalError):
    """This form made something already. `same`: it came again as it was; else it was filled in anew meanwhile."""

    def __init__(self, stored: SentForm, *, same: bool) -> None:
        self.made = f"{stored.made} already, at {stored.made_at:%H:%M:%S} UTC."
        super().__init__(
            f"This form was sent before: {self.made} Nothing was made now; send it again if you want both."
        )
        self.same = same


@dataclass
class Sending:
    """What the act made, as the beginning of a sentence: “The key nightly was made”."""

    made: str = ""


@contextmanager
def acting_once(request: TenantRequest, *, now: datetime) -> Iterator[Sending]:
    """The transaction of the act that a form asks for. A request without a form's key acts as often as it comes.

    Raises: SentBefore.
    """
    key, sending = request.POST.get(FORM_KEY, ""), Sending()
    if not _KEY.match(key):
        yield sending
        return
    with transaction.atomic():
        row = _claim(request, key, now)
        yield sending
        SentForm.objects.filter(pk=row.pk).update(made=sending.made[:MAX_MADE])


def told_again(request: TenantRequest, before: SentBefore, page: str, more: str = "") -> HttpResponse:
    """Back to the page with what was made the first time; a secret that was shown then is not shown again."""
    messages.info(request, f"{before.made} The form came twice, and nothing was made again. {more}".strip())
    return redirect(page, request.organization.slug)


def _claim(request: TenantRequest, key: str, now: datetime) -> SentForm:
    """The key's row. Where another request writes the same, this waits for its end."""
    sent = _digest(request)
    try:
        with transaction.atomic():
            return SentForm.objects.create(organization=request.organization, key=key, sent=sent, made_at=now)
    except IntegrityError as error:
        stored = SentForm.objects.for_organization(request.organization).get(key=key)
        raise SentBefore(stored, same=stored.sent == sent) from error


def _digest(request: TenantRequest) -> str:
    typed = [(name, values) for name, values in request.POST.lists() if name not in _NO_CONTENT]
    files = [(name, file.name, file.size) for name, listed in request.FILES.lists() for file in listed]
    return digest_of([request.path, typed, files])
