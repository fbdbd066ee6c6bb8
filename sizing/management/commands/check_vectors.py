"""Check the engine against the conformance vectors, the project's own or those of files that are named."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from sizing.conformance.check import check
from sizing.conformance.vectors import MalformedVectors, load, own_files


class Command(BaseCommand):
    help = "Check the sizing engine against the conformance vectors; needs no database."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="Instead of the project's own files.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            files = load(options["files"] or own_files())
        except MalformedVectors as error:
            raise CommandError(str(error)) from error
        failures = []
        for file in files:
            results = [check(vector) for vector in file.vectors]
            failed = [result for result in results if not result.passed]
            verdict = f"{len(failed)} differ" if failed else "pass"
            self.stdout.write(f"{file.name:<18} {len(results):>4} vectors  {verdict}")
            failures += [f"{file.name}, {result.vector.id}, {result.differences[0]}" for result in failed]
        if failures:
            more = f"\nand {len(failures) - 1} more vectors differ." if len(failures) > 1 else ""
            raise CommandError(failures[0] + more)
        self.stdout.write(f"All {sum(len(file.vectors) for file in files)} vectors pass.")
