"""Reads that may not take long: a page must answer whatever the size of the tables."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

from django.db import OperationalError, connection, transaction

# Below the two seconds that many roles have, so that a page says it in words before the role's own limit strikes.
TIME_LIMIT = timedelta(milliseconds=1500)
QUERY_CANCELED = "57014"
# One round trip for both. Never above what the role has: zero there means that it has none.
LIMIT_AND_CLOCK = """
    SELECT statement_timestamp(), set_config('statement_timeout', CASE
        WHEN setting::bigint BETWEEN 1 AND %s THEN setting ELSE %s END, true)
    FROM pg_settings WHERE name = 'statement_timeout'
"""


class NotInTime(Exception):
    """A read was cut off by its time limit."""


@contextmanager
def bounded(time_limit: timedelta = TIME_LIMIT) -> Iterator[datetime]:
    """Yield the database's now; raise NotInTime if a statement inside takes longer than `time_limit`."""
    milliseconds = time_limit // timedelta(milliseconds=1)
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(LIMIT_AND_CLOCK, [milliseconds, str(milliseconds)])
            yield cursor.fetchone()[0]
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != QUERY_CANCELED:
            raise
        raise NotInTime from error


def clock() -> datetime:
    """Return the database's now: one clock for the pages and the jobs."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement_timestamp()")
        moment: datetime = cursor.fetchone()[0]
        return moment
