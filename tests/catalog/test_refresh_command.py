"""`manage.py refresh_providers`: one refresh by hand, printed, with an exit code to rely on."""

from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from catalog.models import FeedRun, Machine
from catalog.refresh import demo, refresh_provider
from catalog.refresh.turns import take
from tests.catalog.feeding import START, body, fed_provider, row
from tests.factories import make_provider

pytestmark = pytest.mark.django_db


def run_command(**options: Any) -> str:
    out = StringIO()
    call_command("refresh_providers", stdout=out, **options)
    return out.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "offers.json"


def test_a_file_is_refreshed_from_and_the_run_is_printed(gpu: Any, file: Path) -> None:
    fed_provider()
    file.write_bytes(body([row(1), row(2, hourly_usd="0"), row(3)]))
    text = run_command(provider="aspen", file=file)
    assert "Aspen (aspen), format berth" in text
    assert "Applied: 3 rows in" in text
    assert "2 offers, 2 new, 0 changed" in text
    assert "1 rejected" in text
    assert "  row 2 (offer-2): " in text
    assert Machine.objects.count() == 2
    assert "0 new, 0 changed, 2 unchanged" in run_command(provider="aspen", file=file)


def test_many_rejections_are_counted_and_the_first_are_printed(gpu: Any, file: Path) -> None:
    fed_provider()
    file.write_bytes(body([row(0), *(row(number, hourly_usd="0") for number in range(1, 31))]))
    text = run_command(provider="aspen", file=file)
    assert text.count("\n  row ") == 20
    assert "and 10 more rejected rows" in text


def test_every_provider_with_a_feed_is_refreshed_and_the_failing_ones_are_named(gpu: Any) -> None:
    fed_provider("real", feed_url="http://127.0.0.1:9/")
    fed_provider("demo", feed_url="demo:willow", invented=True)
    make_provider("declared")
    out = StringIO()
    with pytest.raises(CommandError, match=r"^Not applied: real\.$"):
        call_command("refresh_providers", stdout=out)
    assert "Not fetched" in out.getvalue()
    assert FeedRun.objects.count() == 2


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"provider": "nobody"}, "There is no provider “nobody”. Those with a feed: aspen."),
        ({"provider": "declared"}, "has no feed: give it a format and an address first."),
        ({"file": "offers.json"}, "Say whose list the file is: --provider SLUG."),
        ({"provider": "aspen", "file": "/nowhere/offers.json"}, "The file cannot be read: "),
        ({"provider": "aspen", "file": "/"}, "The file cannot be read: "),
    ],
)
def test_what_cannot_be_done_says_what_to_fix(options: dict[str, Any], said: str) -> None:
    fed_provider()
    make_provider("declared")
    if "file" in options:
        options = {**options, "file": Path(options["file"])}
    with pytest.raises(CommandError) as error:
        run_command(**options)
    assert said in str(error.value)
    assert not FeedRun.objects.exists()


def test_without_any_feed_it_says_so() -> None:
    with pytest.raises(CommandError, match="No provider has a feed"):
        run_command()


def test_a_list_that_is_not_applied_is_a_failure(gpu: Any, file: Path) -> None:
    fed_provider()
    file.write_bytes(b"<html>")
    with pytest.raises(CommandError, match="Not applied: aspen"):
        run_command(provider="aspen", file=file)


def test_a_provider_that_is_being_refreshed_is_left_to_it(gpu: Any, file: Path) -> None:
    take(fed_provider(), timezone.now())
    file.write_bytes(body([row(1)]))
    out = StringIO()
    with pytest.raises(CommandError, match="Not applied: aspen"):
        call_command("refresh_providers", stdout=out, provider="aspen", file=file)
    assert "Another refresh of this provider is running until" in out.getvalue()


# --- The demo feeds ---


@pytest.mark.parametrize("name", demo.FEEDS)
def test_a_demo_feed_is_the_same_all_minute_and_moves_with_time(name: str) -> None:
    bodies = [demo.body(name, START + timedelta(minutes=minute)) for minute in range(60)]
    assert demo.body(name, START + timedelta(seconds=59)) == bodies[0]
    assert 10 < len(set(bodies)) <= 60


@pytest.mark.parametrize("name", demo.FEEDS)
def test_a_demo_feed_is_never_taken_for_an_accident(name: str) -> None:
    call_command("load_catalog", stdout=StringIO())
    provider = fed_provider(feed_url=f"demo:{name}", invented=True)
    gone = new = changed = 0
    for minute in range(0, 120, 3):
        now = START + timedelta(minutes=minute)
        run = refresh_provider(provider.pk, clock=lambda now=now: now)
        assert (run.outcome, run.rejected) == ("ok", 0)
        gone, new, changed = gone + run.gone, new + run.new, changed + run.changed
        assert (
            Machine.objects.available(now=now).filter(provider=provider).count() * 2
            >= Machine.objects.filter(provider=provider).count()
        )
    assert gone > 5
    assert changed > 5
    assert new > 5
    assert not provider.feed_questions.filter(kind="gpu").exists()


def test_the_demo_refreshes_its_lists_and_keeps_what_is_declared(db: None) -> None:
    call_command("load_catalog", stdout=StringIO())
    before = Machine.objects.available(now=timezone.now()).count()
    text = run_command()
    assert "demo-list-willow" in text
    assert Machine.objects.available(now=timezone.now()).count() > before + 15
    stale = timezone.now() + timedelta(minutes=6)
    assert Machine.objects.available(now=stale).count() == before > 100
