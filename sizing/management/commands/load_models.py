"""Load the seed file of AI models."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from catalog.seeding import SeedError
from sizing import seeding


class Command(BaseCommand):
    help = "Load the seed file of AI models. Safe to run twice."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--only-new", action="store_true", help="Add what is missing; leave what is there as staff made it."
        )
        parser.add_argument("--file", type=Path, default=seeding.MODELS, help="Where the seed file is.")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            counts = seeding.load(options["file"], only_new=options["only_new"])
        except SeedError as error:
            raise CommandError(f"Nothing was loaded.\n{error}") from error
        self.stdout.write(
            f"AI models: {counts['created']} created, {counts['updated']} updated, {counts['unchanged']} unchanged"
        )
