"""Refresh providers' machines from their feeds by hand, and print what each run did."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from catalog.feeds.offers import MOST_BYTES
from catalog.models import FeedRun, Provider
from catalog.refresh import Busy, refresh_provider

_COUNTS = ("offers", "new", "changed", "unchanged", "gone", "rented", "skipped", "rejected", "merged")
_PRINTED_REJECTIONS = 20


class Command(BaseCommand):
    help = (
        "Refresh the machines of every provider with a feed, or of one; from its address, or from a file in the "
        "provider's format. Does not wait until a refresh is due. Fails when a list could not be applied."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--provider", metavar="SLUG", help="Only this provider.")
        parser.add_argument("--file", type=Path, metavar="PATH", help="Read the list from a file; needs --provider.")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["file"] and not options["provider"]:
            raise CommandError("Say whose list the file is: --provider SLUG.")
        providers = _providers(options["provider"])
        body = _body(options["file"]) if options["file"] else None
        failed = [provider.slug for provider in providers if not self._refresh(provider, body)]
        if failed:
            raise CommandError(f"Not applied: {', '.join(failed)}.")

    def _refresh(self, provider: Provider, body: bytes | None) -> bool:
        self.stdout.write(f"{provider} ({provider.slug}), format {provider.feed_format}")
        try:
            run = refresh_provider(provider.pk, body=body)
        except Busy as busy:
            self.stdout.write(f"  {busy}")
            return False
        self._print(run)
        return run.outcome == FeedRun.Outcome.OK

    def _print(self, run: FeedRun) -> None:
        seconds = run.duration.total_seconds() if run.duration else 0
        self.stdout.write(
            f"  {run.get_outcome_display()}: {run.seen:,} rows in {seconds:.1f} s, {run.wire_bytes:,} bytes"
        )
        if run.detail:
            self.stdout.write(f"  {run.detail}")
        self.stdout.write("  " + ", ".join(f"{getattr(run, name):,} {name}" for name in _COUNTS))
        for rejection in run.rejections.all()[:_PRINTED_REJECTIONS]:
            offer = f" ({rejection.external_id})" if rejection.external_id else ""
            self.stdout.write(f"  row {rejection.row}{offer}: {rejection.code}: {rejection.detail}")
        if run.rejected > _PRINTED_REJECTIONS:
            self.stdout.write(f"  and {run.rejected - _PRINTED_REJECTIONS:,} more rejected rows")


def _providers(slug: str | None) -> list[Provider]:
    fed = Provider.objects.exclude(feed_url="").order_by("slug")
    if slug is None:
        if not fed:
            raise CommandError("No provider has a feed. Give one a format and an address in the admin.")
        return list(fed)
    known = ", ".join(provider.slug for provider in fed) or "none"
    provider = Provider.objects.filter(slug=slug).first()
    if provider is None:
        raise CommandError(f"There is no provider “{slug}”. Those with a feed: {known}.")
    if not provider.has_feed:
        raise CommandError(f"{provider} has no feed: give it a format and an address first. Those with one: {known}.")
    return [provider]


def _body(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            body = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise CommandError(f"The file cannot be read: {error}") from error
    if len(body) > MOST_BYTES:
        raise CommandError(f"The file is longer than {MOST_BYTES // 2**20} MiB, which no list may be.")
    return body
