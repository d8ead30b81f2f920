"""Show both jobs at work: `manage.py demo`, or `make demo`."""

import logging
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from local import rows, tally
from local.own_database import refuse_any_other_database

JOBS = ["expire_sessions", "session_retention"]

FAREWELL = """
Where to go next
  README.md                                                every option, and how to run on your own database
  .venv/bin/python manage.py session_retention --dry-run   what a run would delete
  .venv/bin/python manage.py expire_sessions --loop        the worker, with its log lines; Ctrl-C stops it in order
  make admin                                               the backlog and the rows in Django admin
  make test                                                the rules, proved on a real PostgreSQL
"""


class Command(BaseCommand):
    help = "Fill the embedded database with sample rows and run both jobs on them, twice."

    def handle(self, *args: Any, **options: Any) -> None:
        refuse_any_other_database()
        # The log lines are for machines; here they would hide what a person came to see.
        logging.getLogger().setLevel(logging.WARNING)
        self.title("Sample rows in a PostgreSQL of this folder's own")
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            rows.refill(cursor)
        columns = {"before": tally.by_status()}
        self.stdout.write(tally.table(columns))
        for job in JOBS:
            self.run(job)
            columns[f"after {job}"] = tally.by_status()
        self.title("What became of the rows")
        self.stdout.write(tally.table(columns))
        self.run_again(columns[f"after {JOBS[-1]}"])
        self.stdout.write(FAREWELL)

    def run_again(self, left: tally.Tally) -> None:
        """Show that a second run finds nothing to do; raise CommandError if it did something."""
        for job in JOBS:
            self.run(job, " again")
        if (changed := tally.difference(left, tally.by_status())) != 0:
            raise CommandError(f"The second run changed {changed} rows: it should have found nothing to do.")
        self.stdout.write("The second run changed 0 rows.")

    def run(self, job: str, again: str = "") -> None:
        self.title(f"manage.py {job}{again}")
        call_command(job, stdout=self.stdout, stderr=self.stderr)

    def title(self, text: str) -> None:
        self.stdout.write(f"\n{self.style.MIGRATE_HEADING(text)}")
