"""Show the admin on sample rows: `manage.py demo_admin`, or `make admin`."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand
from django.db import connection
from django.utils.crypto import get_random_string

from local import rows
from local.own_database import refuse_any_other_database
from local.users import USERS, make_users

GREETING = """
The admin, on sample rows that no job has worked on yet:

  http://127.0.0.1:{port}/admin/

{users}

  The password of all four is {password}

In another terminal, with a look at the page in between:
  .venv/bin/python manage.py expire_sessions
  .venv/bin/python manage.py session_retention
Ctrl-C ends the server.
"""


class Command(BaseCommand):
    help = "Fill the embedded database with sample rows and serve the admin on 127.0.0.1, for this machine alone."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", default="8000", help="port to serve on (default: 8000)")

    def handle(self, *args: Any, port: str, **options: Any) -> None:
        refuse_any_other_database()
        call_command("migrate", verbosity=0)
        with connection.cursor() as cursor:
            rows.refill(cursor)
        password = get_random_string(12)
        make_users(password)
        users = "\n".join(f"  {name:<8} {may}" for name, may in USERS.items())
        self.stdout.write(GREETING.format(port=port, users=users, password=password))
        call_command("runserver", f"127.0.0.1:{port}", use_reloader=False)
