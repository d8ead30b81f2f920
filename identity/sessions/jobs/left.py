"""What a job has left: how many rows, and for how long the oldest of them has been due."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import Error, connections
from django.db.models import Count, Min, QuerySet

from identity.sessions.jobs import failures, telemetry
from identity.sessions.jobs.run import Run, short_transaction
from identity.sessions.jobs.telemetry import Metrics

# A count is worth a fraction of a run, and must not keep a worker from stopping: twenty seconds read some ten million
# rows. When a stop is requested, only what is quickly counted is.
COUNT_TIMEOUT = timedelta(seconds=20)
COUNT_TIMEOUT_STOPPING = timedelta(milliseconds=500)


@dataclass(frozen=True, kw_only=True)
class Overdue:
    """Rows that a job could change now, and the seconds since the oldest of them was due (0 without rows)."""

    rows: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Backlog:
    """What is left by table, None where it was not counted; `blocked` rows are past retention but kept, no backlog."""

    tables: Mapping[str, Overdue | None]
    blocked: int | None = None

    @property
    def remaining(self) -> int | None:
        counted = [table.rows for table in self.tables.values() if table is not None]
        return sum(counted) if len(counted) == len(self.tables) else None

    def show(self, metrics: Metrics) -> None:
        """Set the job's gauges; what was not counted keeps the value it had."""
        for table, found in self.tables.items():
            if found is not None:
                metrics.oldest.labels(table=table).set(found.seconds)
                if metrics.backlog_by_table:
                    metrics.backlog.labels(table=table).set(found.rows)
        if not metrics.backlog_by_table and self.remaining is not None:
            metrics.backlog.set(self.remaining)
        if metrics.blocked is not None and self.blocked is not None:
            metrics.blocked.set(self.blocked)


def overdue(run: Run, rows: QuerySet[Any], *, key: str, since: datetime) -> Overdue | None:
    """Count rows left and the time from the oldest `key` to `since`; None, and a warning, if that took too long."""
    found = _counted(run, rows, number=Count("pk"), oldest=Min(key))
    if found is None:
        return None
    return Overdue(rows=found["number"], seconds=(since - (found["oldest"] or since)).total_seconds())


def count(run: Run, rows: QuerySet[Any]) -> int | None:
    """Count rows; None, and a warning, if that took too long."""
    found = _counted(run, rows, number=Count("pk"))
    return None if found is None else found["number"]


def _counted(run: Run, rows: QuerySet[Any], **wanted: Any) -> dict[str, Any] | None:
    limit = min(run.allowed, COUNT_TIMEOUT_STOPPING if run.stop.requested else COUNT_TIMEOUT)
    try:
        with short_transaction(run.alias, lock_timeout=run.lock_timeout, statement_timeout=limit):
            return rows.aggregate(**wanted)
    except Error as error:
        if failures.kind(error) is failures.Kind.OUTAGE:
            connections[run.alias].close()
        table = rows.model._meta.db_table
        telemetry.event("backlog not counted", level=logging.WARNING, table=table, error=error)
        return None
