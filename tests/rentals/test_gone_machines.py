"""Machines that left their lists: forgotten after a month, unless somebody ever ordered one."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from catalog.models import FeedAbsence, FeedQuestion, Machine, Provider
from catalog.questions import MOST_QUESTIONS
from catalog.refresh.forgetting import forget_unasked_questions
from rentals.endings import end_due_orders
from rentals.gone_machines import forget_gone_machines
from rentals.invariants import violations
from rentals.models import Order
from tests.catalog.feeding import START, Clock, fed_provider, feed, machine_of, row
from tests.factories import make_machine, make_order
from tests.tenancy import as_in_production

pytestmark = pytest.mark.django_db

MONTH = timedelta(days=30)


@pytest.fixture
def aspen(gpu: Any) -> Provider:
    return fed_provider()


def forget(now: datetime) -> int:
    """As the worker's own role, which sees no order of its own accord."""
    with as_in_production():
        return forget_gone_machines(now)


def test_a_machine_that_went_is_forgotten_after_a_month(aspen: Provider, gpu: Any) -> None:
    declared = make_machine(provider=aspen, gpu=gpu, name="Declared", online=False)
    feed(aspen, [row(1), row(2), row(3)])
    clock = Clock(START + timedelta(days=1))
    feed(aspen, [row(1), row(2, rentable=False)], clock)
    assert machine_of(3).gone_since == clock.now
    # Seen again and again without it: it went when it went.
    feed(aspen, [row(1), row(2, rentable=False)], Clock(clock.now + timedelta(days=20)))
    assert forget(clock.now + MONTH) == 0
    assert forget(clock.now + MONTH + timedelta(seconds=1)) == 1
    # What its list still has stays, to rent or not, and so does what no list ever had.
    assert {machine.external_id for machine in Machine.objects.all()} == {"offer-1", "offer-2", None}
    assert Machine.objects.filter(pk=declared.pk).exists()
    assert not Machine.history.filter(external_id="offer-3").exists()


def test_a_machine_that_comes_back_is_gone_no_more(aspen: Provider) -> None:
    feed(aspen, [row(1), row(2)])
    feed(aspen, [row(1)])
    pk = machine_of(2).pk
    feed(aspen, [row(1), row(2, rentable=False)])
    assert machine_of(2).gone_since is None
    feed(aspen, [row(1)])
    feed(aspen, [row(1), row(2)])
    assert forget(START + 2 * MONTH) == 0
    assert (machine_of(2).pk, machine_of(2).gone_since) == (pk, None)


def test_a_machine_that_was_off_line_before_it_went_is_forgotten_too(aspen: Provider) -> None:
    feed(aspen, [row(1), row(2, rentable=False)])
    run = feed(aspen, [row(1)])
    assert (machine_of(2).gone_since, run.gone) == (START, 0)
    assert forget(START + 2 * MONTH) == 1


def test_what_was_ever_ordered_is_kept_whoever_ordered_it(aspen: Provider, acme: Any, globex: Any) -> None:
    feed(aspen, [row(number) for number in range(1, 6)])
    for organization, number in ((acme, 1), (globex, 2)):
        make_order(organization, machine_of(number), placement={"now": START})
    clock = Clock(START + timedelta(days=8))
    end_due_orders(clock.now)
    feed(aspen, [row(4), row(5), row(6)], clock)
    assert Machine.objects.filter(gone_since=clock.now).count() == 3
    assert forget(clock.now + 2 * MONTH) == 1
    assert Order.objects.filter(machine__isnull=False).count() == 2
    assert not Machine.objects.filter(external_id="offer-3").exists()
    assert not violations()


def test_a_machine_that_staff_took_off_the_pages_does_not_come_back_to_them_by_being_away(aspen: Provider) -> None:
    feed(aspen, [row(1), row(2)])
    Machine.objects.filter(external_id="offer-2").update(listed=False)
    feed(aspen, [row(1)])
    assert forget(START + 2 * MONTH) == 0
    feed(aspen, [row(1), row(2)])
    assert (machine_of(2).online, machine_of(2).listed) == (True, False)


def test_what_lists_said_of_a_machine_is_forgotten_with_it_and_what_people_decided_is_not(
    aspen: Provider, admin_user: Any
) -> None:
    feed(aspen, [row(1), row(2)])
    changed = machine_of(2)
    changed._history_user, changed._change_reason = admin_user, "Looked at."  # type: ignore[attr-defined]
    changed.save()
    feed(aspen, [row(1), row(2, gpu_memory_mib=20000)])
    feed(aspen, [row(1)])
    assert Machine.history.count() == 2
    assert forget(START + 2 * MONTH) == 1
    assert [entry.history_change_reason for entry in Machine.history.all()] == ["Looked at."]


def test_many_are_forgotten_in_several_chunks(aspen: Provider, monkeypatch: Any) -> None:
    monkeypatch.setattr("rentals.gone_machines.CHUNK", 4)
    feed(aspen, [row(number) for number in range(19)])
    feed(aspen, [row(number) for number in range(9, 19)])
    FeedAbsence.objects.create(machine=machine_of(0), since=START)
    assert forget(START + 2 * MONTH) == 9
    assert Machine.objects.count() == 10


def test_a_provider_whose_list_is_no_longer_read_loses_nothing(aspen: Provider) -> None:
    feed(aspen, [row(1), row(2)])
    feed(aspen, [row(1)])
    Provider.objects.update(feed_url="", feed_format="")
    assert forget(START + 2 * MONTH) == 0


# --- Questions ---


def test_a_provider_has_no_more_open_questions_than_a_list_may_ask(aspen: Provider) -> None:
    clock = Clock()
    for turn in range(3):
        names = [row(f"{turn}-{number}", gpu=f"Odd {turn} {number}") for number in range(MOST_QUESTIONS // 2 + 1)]
        feed(aspen, [row(1), row(2), *names], clock)
        clock.forward(minutes=1)
    assert FeedQuestion.objects.filter(resolved_at=None).count() == MOST_QUESTIONS
    # Those of the newest list are all among them.
    assert FeedQuestion.objects.filter(count=1).count() == MOST_QUESTIONS // 2 + 1


def test_a_question_that_no_list_asks_any_more_is_forgotten_after_a_month(aspen: Provider) -> None:
    feed(aspen, [row(1), row(2, gpu="Frobnicator"), row(3, gpu="Thingamajig")])
    FeedQuestion.objects.filter(raw="Thingamajig").update(resolved_at=START)
    assert forget_unasked_questions(START + 2 * MONTH) == 0
    feed(aspen, [row(1)], Clock(START + timedelta(minutes=1)))
    feed(aspen, [row(1), row(2)], Clock(START + timedelta(minutes=2)))
    assert forget_unasked_questions(START + MONTH) == 0
    assert forget_unasked_questions(START + MONTH + timedelta(minutes=1)) == 1
    assert FeedQuestion.objects.get().raw == "Thingamajig"
