"""Searches that an organization keeps: saved from a result page, asked again, and told of when a machine appears."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.http import QueryDict
from django.utils.dateparse import parse_datetime

from catalog.links import page_url
from catalog.visible import is_plain_line
from rentals.askers import Asker, check_may_order_here, made_by, record_act
from rentals.documents import instant
from rentals.errors import InvalidSearch, SearchThere, TooManySearches
from rentals.mail import send_after_commit
from rentals.models import Membership, Organization, SavedSearch
from rentals.models.searches import MAX_QUERY, MAX_SEARCH_NAME
from rentals.models.webhooks import EventKind
from rentals.one_by_one import alone
from rentals.own_models import shapes_of
from rentals.policies import limits_of, permits_ordering, policy_of
from rentals.tenants import Across, across_tenants, tenant
from rentals.webhooks_events import publish
from sizing.answers import HardLimits, Question
from sizing.documents import candidate_document
from sizing.forms import InvalidInput, question_from
from sizing.matching import recommended_among, recommended_ids
from sizing.permalinks import canonical_query

if TYPE_CHECKING:
    from sizing.answers import Candidate

MAX_SEARCHES = 20
CHECK_EVERY = timedelta(minutes=2)
# A machine that was away for less has not appeared anew: a list that was late for a moment is no news.
GONE_FOR = timedelta(minutes=10)
# How many of those that appeared at once are told of in full; the others are counted.
MOST_TOLD = 10
AT_ONCE = 100


def save_search(asker: Asker, *, name: str, query: str, now: datetime) -> SavedSearch:
    """The search, kept. What answers it now is no news; what appears later is.

    Raises: NotPermitted, InvalidSearch, SearchThere, TooManySearches.
    """
    name = " ".join(name.split())
    if len(name) > MAX_SEARCH_NAME or not is_plain_line(name):
        raise InvalidSearch("name", f"Name the search in 1 to {MAX_SEARCH_NAME} printable characters.")
    with transaction.atomic():
        # Held, so that two at once neither pass the limit nor take one name.
        organization = Organization.objects.select_for_update().get(pk=asker.organization_id)
        check_may_keep(asker, now=now)
        mine = SavedSearch.objects.for_organization(organization)
        if there := mine.filter(name=name).select_related("organization").first():
            raise SearchThere(there)
        if mine.count() >= MAX_SEARCHES:
            raise TooManySearches(MAX_SEARCHES)
        question = _question(organization, query)
        answering = recommended_ids(question, now=now, limits=_limits(organization, now))
        search = SavedSearch.objects.create(
            organization=organization,
            name=name,
            query=_stored(question),
            created_at=now,
            known=_Known(answering, {}).document(),
            machines=len(answering),
            checked_at=now,
            **made_by(asker),
        )
        record_act(asker, organization, "saved_search.added", at=now, object_id=search.pk, name=name)
    return search


def delete_search(asker: Asker, search_id: int, *, now: datetime) -> SavedSearch:
    """Raises: NotPermitted, SavedSearch.DoesNotExist."""
    with transaction.atomic():
        check_may_keep(asker, now=now)
        search = SavedSearch.objects.for_organization(asker.organization).select_for_update().get(pk=search_id)
        record_act(asker, asker.organization, "saved_search.deleted", at=now, object_id=search.pk, name=search.name)
        SavedSearch.objects.filter(pk=search.pk).delete()
    return search


def result_url(search: SavedSearch) -> str:
    """The page with the answer."""
    return f"{page_url('organization-launch-result', search.organization.slug)}?{search.query}"


def check_saved_searches(now: datetime) -> int:
    """Ask again what has not been asked for `CHECK_EVERY`; for how many searches a machine appeared."""
    due = SavedSearch.objects.filter(checked_at__lte=now - CHECK_EVERY).order_by("checked_at", "id")
    with across_tenants(Across.SAVED_SEARCHES):
        waiting = list(due.values_list("organization", "pk", "checked_at")[:AT_ONCE])
    found = 0
    for organization_id, pk, before in waiting:
        with alone("The saved search %s could not be asked; it is asked again in its turn.", pk):
            found += _check(organization_id, pk, before, now)
    return found


@dataclass(frozen=True)
class _Known:
    """The machines that answer a search, and those that did not long ago, with the moment they were missed."""

    there: set[int]
    gone: dict[int, datetime]

    @classmethod
    def of(cls, document: dict[str, Any]) -> _Known:
        moments = {int(pk): parse_datetime(moment) for pk, moment in document.get("gone", {}).items()}
        return cls(set(document.get("there", ())), {pk: moment for pk, moment in moments.items() if moment})

    def document(self) -> dict[str, Any]:
        return {"there": sorted(self.there), "gone": {str(pk): instant(at) for pk, at in sorted(self.gone.items())}}

    def next(self, there: set[int], now: datetime) -> _Known:
        gone = {pk: at for pk, at in self.gone.items() if at > now - GONE_FOR}
        gone |= dict.fromkeys(self.there, now)
        return _Known(there, {pk: at for pk, at in gone.items() if pk not in there})

    def appeared(self, there: set[int], now: datetime) -> set[int]:
        return there - self.there - {pk for pk, at in self.gone.items() if at > now - GONE_FOR}


def _check(organization_id: int, pk: int, before: datetime, now: datetime) -> bool:
    # Claimed by one conditional update, and committed: who comes second asks nothing, and a search that fails waits.
    with tenant(organization_id):
        if not SavedSearch.objects.filter(pk=pk, checked_at=before).update(checked_at=now):
            return False
    with tenant(organization_id), transaction.atomic():
        search = SavedSearch.objects.select_related("organization", "created_by").filter(pk=pk).first()
        if search is None:
            return False
        limits = _limits(search.organization, now)
        try:
            question = _question(search.organization, search.query)
        except InvalidSearch as error:
            SavedSearch.objects.filter(pk=pk).update(problem=error.message[:300])
            return False
        there = recommended_ids(question, now=now, limits=limits)
        known = _Known.of(search.known)
        appeared = known.appeared(there, now)
        changed: dict[str, Any] = {"machines": len(there), "problem": ""}
        if (after := known.next(there, now)) != known:
            changed["known"] = after.document()
        if appeared:
            changed["found_at"] = now
        # The claim is still ours, or another process asks already and tells.
        if not SavedSearch.objects.filter(pk=pk, checked_at=now).update(**changed) or not appeared:
            return False
        told = recommended_among(question, sorted(appeared), now=now, limits=limits)[:MOST_TOLD]
        _tell(search, question, told, len(appeared), now)
    return True


def _tell(search: SavedSearch, question: Question, told: tuple[Candidate, ...], appeared: int, now: datetime) -> None:
    def data() -> dict[str, Any]:
        return {
            "search": {"id": search.pk, "name": search.name, "query": search.query},
            "appeared_count": appeared,
            "appeared": [candidate_document(candidate, question) for candidate in told],
        }

    url = result_url(search)
    publish(search.organization, EventKind.MACHINE_AVAILABLE, data, now=now, html_url=url)
    person = search.created_by
    member = Membership.objects.for_organization(search.organization).filter(user=person).first()
    if person is None or not person.email or not person.is_active:
        return
    if not permits_ordering(member, policy_of(search.organization)):
        return
    context = {
        "search": search,
        "organization": search.organization,
        "told": told,
        "more": appeared - len(told),
        "days": question.preferences.term_days,
        "link": url,
        "searches_link": page_url("saved-searches", search.organization.slug),
    }
    send_after_commit(
        to=person.email,
        subject=f"Available now: {search.name}",
        template="rentals/mail/machine_available.txt",
        context=context,
    )


def _question(organization: Organization, query: str) -> Question:
    try:
        return question_from(QueryDict(query), own_models=shapes_of(organization))
    except InvalidInput as invalid:
        raise InvalidSearch(None, invalid.errors[0].detail) from None


def _stored(question: Question) -> str:
    query = canonical_query(question)
    if len(query) > MAX_QUERY:
        raise InvalidSearch(None, "This question is too long to be kept. Keep its model with the organization first.")
    return query


def _limits(organization: Organization, now: datetime) -> HardLimits:
    return limits_of(policy_of(organization), organization, now=now)


def check_may_keep(asker: Asker, *, now: datetime) -> None:
    """Whether who asks saves and deletes searches: who may order what is found.

    Raises: NotPermitted, PolicyViolation, KeyNotAccepted.
    """
    refusal = "Only members who may order keep searches. Ask an owner or admin."
    check_may_order_here(asker, asker.organization, refusal, now=now)
