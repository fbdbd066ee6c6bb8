"""Django's `migrate`, as the role that owns the tables where DATABASE_OWNER_URL names one."""

from django.conf import settings
from django.core.management.base import CommandParser
from django.core.management.commands import migrate


class Command(migrate.Command):
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        if "owner" in settings.DATABASES:
            parser.set_defaults(database="owner")
