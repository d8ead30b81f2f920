"""Work off a set of rows in batches: each its own short transaction, made smaller when it fails."""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Protocol
from uuid import UUID

from django.db import Error
from django.db.models import QuerySet

from identity.sessions.jobs import telemetry
from identity.sessions.jobs.failures import STATEMENT_TIMEOUT, Kind, kind, sqlstate
from identity.sessions.jobs.run import Run

# Rows that one run leaves out because each fails by itself. More of them is no stray row but a fault of the schema,
# and finding each costs some twenty statements.
MOST_LEFT_OUT = 100


class Work(Protocol):
    """A set of rows to be changed batch by batch."""

    table: str
    left_out: list[UUID]

    @property
    def finished(self) -> bool: ...

    def batch(self, size: int) -> int:
        """Change at most `size` rows inside the transaction that is open; return how many."""

    def advance(self, changed: int) -> None:
        """Move on: the last batch is committed."""

    def first(self) -> UUID | None:
        """Return the row that a batch of one would begin with."""


def work_off(run: Run, phase: str, work: Work) -> Iterator[int]:
    """Work off a set until it is finished or the run may not go on; yield the rows of each batch once it is committed.

    A batch that fails is rolled back alone and tried again at half the size, and the size doubles with each success,
    but never again to one that took too long. A row that fails by itself is left out. Raises the error when smaller
    batches cannot help, or when there is no time left to try one and the run has done nothing yet.
    """
    size = limit = run.batch_size
    while not work.finished and run.goes_on():
        try:
            with run.transaction():
                changed = work.batch(size)
        except Error as error:
            if size > 1 and _smaller_may_do(run, phase, error):
                telemetry.event("batch retried", level=logging.WARNING, phase=phase, batchSize=size, error=error)
                size //= 2
                limit = size if sqlstate(error) == STATEMENT_TIMEOUT else limit
            else:
                _leave_out(run, phase, work, error)
        else:
            work.advance(changed)
            run.count(phase, changed)
            size = min(2 * size, limit)
            yield changed


def _smaller_may_do(run: Run, phase: str, error: Error) -> bool:
    """Tell whether a batch that failed with this error may be tried again in smaller pieces."""
    # A batch that outlasts every run would otherwise end each of them in order, and the backlog would only grow.
    in_vain = sqlstate(error) == STATEMENT_TIMEOUT and run.time_is_up and not run.changed[phase]
    return kind(error) in (Kind.CUT, Kind.ROW) and not in_vain


def _leave_out(run: Run, phase: str, work: Work, error: Error) -> None:
    if kind(error) is not Kind.ROW or len(work.left_out) >= MOST_LEFT_OUT:
        raise error
    with run.transaction():
        row = work.first()
    if row is not None:
        work.left_out.append(row)
        run.failed(phase, error, table=work.table)


class Windows:
    """A walk over a set along a key: each batch starts where the one before it ended.

    Without it every batch would pass over the dead versions of all rows before it, which cannot be cleaned up while an
    old snapshot is open elsewhere. A short batch never means the end: locked rows are skipped.

    `change(window, None)` changes a whole window, which costs the server least and waits for what is locked in it;
    `change(window, most)` picks at most so many of its rows, past the locked ones. Windows are changed whole until one
    fails, or was empty because another copy is at work here: from then on rows are picked, and copies share the rest.
    """

    finished: bool = False

    def __init__(
        self, rows: QuerySet[Any], key: str, change: Callable[[Any, int | None], int], *, whole: bool = True
    ) -> None:
        self.table: str = rows.model._meta.db_table
        self.left_out: list[UUID] = []
        self._rows, self._key, self._change = rows, key, change
        self._whole = whole
        self._start: Any = None
        self._after: Any = None
        self._past = False

    def batch(self, size: int) -> int:
        ahead = self._ahead()
        # The key of the row behind this batch closes the window.
        self._after = ahead.values_list(self._key, flat=True)[size : size + 1].first()
        # What lies before it is one batch at most. Where many rows share that key it may be nothing, so the window must
        # be known to begin before it. A batch of one that meets a lock could not be tried again in smaller pieces.
        fits = self._after is None or self._start not in (None, self._after)
        if not (self._whole and fits and size > 1):
            return self._change(self._up_to(ahead, "lte"), size)
        self._whole = False  # and so it stays if this fails
        changed = self._change(self._up_to(ahead, "lt"), None)
        self._whole = changed > 0
        return changed

    def advance(self, changed: int) -> None:
        self.finished = self._after is None
        # Many rows may share one key: where the window stood still and nothing changed, the rest of them is locked.
        self._past = self._after == self._start and not changed
        self._start = self._after

    def first(self) -> UUID | None:
        pks = self._ahead().select_for_update(skip_locked=True, no_key=True).values_list("pk", flat=True)
        first: UUID | None = pks.first()
        return first

    def _up_to(self, ahead: QuerySet[Any], comparison: str) -> QuerySet[Any]:
        return ahead if self._after is None else ahead.filter(**{f"{self._key}__{comparison}": self._after})

    def _ahead(self) -> QuerySet[Any]:
        rows = self._rows.order_by(self._key)
        if self.left_out:
            rows = rows.exclude(pk__in=self.left_out)
        if self._start is not None:
            rows = rows.filter(**{f"{self._key}__{'gt' if self._past else 'gte'}": self._start})
        return rows
