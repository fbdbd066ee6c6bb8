"""Load the catalog's seed files: GPUs, providers, machines and options."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog import seeding


class Command(BaseCommand):
    help = "Load the catalog's seed files. Safe to run twice; free lots of machines that are there are never touched."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--only-new", action="store_true", help="Add what is missing; leave what is there as staff made it."
        )
        parser.add_argument("--directory", type=Path, default=seeding.SEEDS, help="Where the seed files are.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = seeding.load(options["directory"], only_new=options["only_new"])
        except seeding.SeedError as error:
            raise CommandError(f"Nothing was loaded.\n{error}") from error
        for line in report.lines():
            self.stdout.write(line)
