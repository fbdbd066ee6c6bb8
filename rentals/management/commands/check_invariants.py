"""`manage.py check_invariants`: no lot oversold or lost, one order a key, terms exact, totals right, tenants apart."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from rentals.invariants import RULES, violations


class Command(BaseCommand):
    help = "Check the rules that hold over all orders and tenants; fails with the rows that break one."

    def handle(self, **options: Any) -> None:
        found = violations()
        for violation in found:
            self.stderr.write(str(violation))
        if found:
            raise CommandError(f"{len(found)} rows break a rule.")
        self.stdout.write(f"{len(RULES)} rules hold.")
