"""What a job has left: how many rows, since when the oldest of them waits, and how many sessions wait for others."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import Error, connections
from django.db.models import BooleanField, Count, DateTimeField, F, Func, Min, Q, QuerySet, TextField
from django.db.models.functions import Cast

from identity.sessions.jobs import failures, telemetry
from identity.sessions.jobs.run import Run
from identity.sessions.jobs.walk import moment
from identity.sessions.models import RefreshSessionQuerySet, kept_by_a_descendant


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Rows that a job could change now, and since when the oldest of them could be."""

    rows: int
    since: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left by table, None where it was not counted in time.

    `blocked` sessions are past retention but kept by a descendant: no backlog. The oldest of them that holds personal
    data is past retention since `blocked_since`.
    """

    tables: Mapping[str, Waiting | None]
    blocked: int | None = None
    blocked_since: datetime | None = None

    @property
    def remaining(self) -> int | None:
        counted = [table.rows for table in self.tables.values() if table is not None]
        return sum(counted) if len(counted) == len(self.tables) else None


NOTHING_COUNTED = Left(tables=dict.fromkeys(telemetry.TABLES))


def waiting(run: Run, rows: QuerySet[Any], *, key: str, kept: timedelta = timedelta()) -> Waiting | None:
    """Count rows that have waited since `key` + `kept`; None, and a warning, if that took too long."""
    found = counted(run, rows, rows=Count("pk"), since=oldest(key))
    return None if found is None else Waiting(rows=found["rows"], since=later(found["since"], kept))


def sessions(
    run: Run, old: RefreshSessionQuerySet, *, cutoff: datetime, drained: bool, kept: timedelta, holding: Q
) -> Left:
    """Count the sessions left to delete, and those that are blocked.

    Where the search for sessions that may go has ended on none (`drained`), all that is old is blocked. Elsewhere it
    takes the definition itself, which reads the table twice. `holding` is the condition of a row with personal data.
    """
    if drained:
        found = counted(run, old, blocked=Count("pk"), blocked_since=oldest("updated_at", holding))
        tables = {"refresh_sessions": Waiting(rows=0)}
        if found is None:
            return Left(tables=tables)
        return Left(tables=tables, blocked=found["blocked"], blocked_since=later(found["blocked_since"], kept))
    blocked = Q(kept_by_a_descendant(cutoff))
    found = counted(
        run,
        old.with_child(),
        rows=Count("pk", filter=~blocked),
        since=oldest("updated_at", ~blocked & Q(child=None)),
        blocked=Count("pk", filter=blocked),
        blocked_since=oldest("updated_at", blocked & holding),
    )
    if found is None:
        return Left(tables={"refresh_sessions": None})
    return Left(
        tables={"refresh_sessions": Waiting(rows=found["rows"], since=later(found["since"], kept))},
        blocked=found["blocked"],
        blocked_since=later(found["blocked_since"], kept),
    )


def oldest(key: str, condition: Q = Q()) -> Cast:  # noqa: B008 -- a Q is never changed
    """Return the aggregate of the oldest finite key, as text: Python cannot hold every timestamp."""
    finite = Func(F(key), function="isfinite", output_field=BooleanField())
    return Cast(Min(key, filter=Q(finite) & condition, output_field=DateTimeField()), TextField())


def later(text: str | None, kept: timedelta) -> datetime | None:
    """Return a moment of the database and so much time, None where there is none that Python can hold."""
    try:
        found = moment(text)
        return None if found is None else found + kept
    except OverflowError:
        return None


def counted(run: Run, left: QuerySet[Any], /, **wanted: Any) -> dict[str, Any] | None:
    """Aggregate over rows; None, and a warning, if that took too long."""
    try:
        with run.counting():
            return left.aggregate(**wanted)
    except Error as error:
        if failures.kind(error) is failures.Kind.OUTAGE:
            connections[run.alias].close()
        table = left.model._meta.db_table
        telemetry.event("backlog not counted", level=logging.WARNING, table=table, error=error)
        return None
