"""Compare the rules of sizing with readings that others published."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from sizing.observed import report
from sizing.observed.reading import SAMPLE, MalformedObservations, read
from sizing.observed.summary import summarize


class Command(BaseCommand):
    help = "Compare the sizing engine with published readings of memory; needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "file", nargs="?", type=Path, default=SAMPLE, metavar="FILE", help="Observations; the project's sample."
        )
        parser.add_argument("--json", action="store_true", help="Print the figures as JSON.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            observations = read(options["file"])
        except MalformedObservations as error:
            raise CommandError(str(error)) from error
        summary = summarize(observations)
        if options["json"]:
            self.stdout.write(json.dumps(report.document(summary), indent=2, ensure_ascii=False))
        else:
            self.stdout.write(report.text(summary, options["file"].name))
