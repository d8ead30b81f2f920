"""Work off a set of rows in batches: each its own short transaction, made smaller when it fails.

A row that cannot be changed costs itself alone. A batch that fails is halved until one row is left; the walk then moves
behind that row. Where it is not the rows' fault this is noticed at the first failure: a statement over no row at all
fails too, or none of a sample of rows from all over the set can be changed.
"""

import logging
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, Protocol
from uuid import UUID, uuid4

from django.db import Error, connections
from django.db.models import F, QuerySet
from django.db.models.expressions import Combinable

from identity.sessions.jobs import telemetry
from identity.sessions.jobs.failures import Dropped, Kind, is_lost_race, kind
from identity.sessions.jobs.run import ROW_PATIENCE, PhaseRun, Run
from identity.sessions.jobs.telemetry import Outcome
from identity.sessions.jobs.walk import Listed, Walk, Way
from identity.sessions.lookups import RowAddress, is_one_table, picked

# Seconds that a row is thought to take before one has been seen: ten times what it takes on a small server.
FIRST_COST = 0.0002
# A batch may take so many times what it is expected to, before it is tried in smaller pieces.
SPARE_TIME = 4
# So many times what others take makes a row slow.
SLOW_ROW = 20
# Rows that are tried when the first batch of a phase is refused: from the far end of the walk, and from anywhere. Were
# three of four rows bad, and the far end too, all of these would be in one of thirty cases.
FAR_END, ALL_OVER = 4, 12


class Work(Protocol):
    """A set of rows to be changed batch by batch."""

    @property
    def finished(self) -> bool: ...

    @property
    def since(self) -> datetime | None:
        """Return the key of the oldest row of the batch, which says how late all of it is at the most."""

    seen: bool  # whether the last batch came as far as to read which rows are next

    def batch(self, size: int) -> int:
        """Change at most `size` rows inside the transaction that is open; return how many."""

    def advance(self) -> None:
        """Move on: the last batch is committed."""

    def careful(self) -> None:
        """Pass by what is locked elsewhere from now on, instead of waiting for it."""

    def skip(self) -> UUID | None:
        """Move behind the one row of the last batch, which failed, and return its id; None if none was found."""

    def only(self, ids: list[UUID]) -> "Work":
        """Return the same work on these rows alone."""

    def sample(self) -> list[UUID]:
        """Return ids from the far end of the walk, and from all over the set."""


class Pace:
    """How many rows the next batch takes: what fits into its time, half after a failure, double after a success.

    After a failure the size grows only once as many rows as failed are done with: the failing one is among them.
    """

    def __init__(self, most: int) -> None:
        self._batch_size = self._most = self._size = most
        self._owed = 0
        self.cost = FIRST_COST  # seconds a row

    def size(self, seconds: float) -> int:
        """Return a size of which a batch should take half of so many seconds."""
        return max(1, min(self._size, int(seconds / 2 / self.cost)))

    def passed(self, size: int, seconds: float) -> None:
        self.cost = max(seconds / size, 1e-6)
        self._owed -= size
        if self._owed <= 0:
            self._size = min(max(2 * size, self._size), self._most)

    def failed(self, size: int, *, slow: bool) -> None:
        self._owed, self._size = size, max(1, size // 2)
        if slow:  # whatever limit it was that ended the batch, what is smaller than this passes it
            self._most = self._size

    def patient(self, limit: timedelta) -> bool:
        """Tell whether a row that was cut after so long is slow by itself, and not for the end of the run."""
        return limit.total_seconds() >= min(ROW_PATIENCE, SLOW_ROW * self.cost)

    def blamed(self) -> None:
        """Go on as before: it was one row."""
        self._owed, self._most = 0, self._batch_size


def work_off(run: Run, phase: PhaseRun, work: Work) -> Iterator[int]:
    """Work off a set until it is finished or the run may not go on; yield after each attempt the rows it changed.

    Raises the error that no smaller batch can help: an outage, a bug, or a fault of the table as a whole.
    """
    pace = Pace(run.batch_size)
    while not work.finished and run.goes_on():
        phase.began = True
        size = pace.size(run.seconds_for_a_batch())
        started, limit = time.monotonic(), run.limit(expected=size * pace.cost * SPARE_TIME, alone=size == 1)
        try:
            with run.transaction(limit) as now:
                changed = work.batch(size)
        except Error as error:
            changed = 0
            work.careful()
            _look_into(run, phase, work, error)
            if size == 1 and kind(error) is Kind.SLOW and phase.changed and not pace.patient(limit):
                run.halted = Outcome.DEADLINE  # what is left of the run is too short for a row
                return
            _make_smaller(phase, work, pace, size, error)
        else:
            phase.count(changed, since=work.since, now=now)
            work.advance()
            pace.passed(size, time.monotonic() - started)
        yield changed


def _make_smaller(phase: PhaseRun, work: Work, pace: Pace, size: int, error: Error) -> None:
    """Halve the next batch, or leave the one row that was in this one."""
    if size > 1:
        telemetry.event("batch retried", level=logging.DEBUG, phase=phase.name, batchSize=size, error=error)
        pace.failed(size, slow=kind(error) is Kind.SLOW)
        return
    pace.blamed()
    row = work.skip()
    if row is None:  # not even which row it was could be read
        raise error
    of_the_row = {Kind.REFUSED: not is_lost_race(error, table=phase.table), Kind.SLOW: True}
    if of_the_row.get(kind(error)):
        phase.leave(row, error)


def _look_into(run: Run, phase: PhaseRun, work: Work, error: Error) -> None:
    """Raise the error if it is not of some row: an outage, a lock on all of the table, a fault of each statement."""
    what = kind(error)
    if what in (Kind.OUTAGE, Kind.BUG) or (what is Kind.LOCKED and not work.seen):
        raise error
    if what is Kind.SLOW and connections[run.alias].connection is not None:
        connections[run.alias].close_if_unusable_or_obsolete()  # transaction_timeout ends the session too
    if what is not Kind.REFUSED or phase.rows_are_to_blame or is_lost_race(error, table=phase.table):
        return
    with run.transaction(run.limit()):
        work.only([uuid4()]).batch(1)  # no row has this id, but triggers and privileges of the statement speak up
    phase.rows_are_to_blame = bool(phase.changed) or _some_can_be_changed(run, phase, work, error)
    if not phase.rows_are_to_blame:
        raise error


def _some_can_be_changed(run: Run, phase: PhaseRun, work: Work, error: Error) -> bool:
    if isinstance(error, Dropped) and error.others:
        return True
    with run.transaction(run.limit()):
        sample = work.sample()
    # What a trigger drops can be told from the rest in one statement; an error hides what would become of the others.
    tries = [sample] if isinstance(error, Dropped) else [[pk] for pk in sample]
    return any(_can_be_changed(run, phase, work.only(ids), len(ids)) for ids in tries)


def _can_be_changed(run: Run, phase: PhaseRun, work: Work, size: int) -> bool:
    try:
        with run.transaction(run.limit(alone=True)) as now:
            changed = work.batch(size)
    except Error as error:
        if kind(error) in (Kind.OUTAGE, Kind.BUG):
            raise
        return isinstance(error, Dropped) and bool(error.others)
    phase.count(changed, since=work.since, now=now)
    return changed > 0


class Rows:
    """Rows that nothing refers to, changed a window at a time.

    A window is changed whole by its bounds, which costs the server least and waits for what is locked in it. After the
    first failure, or the first window that was empty because another copy is at work here, rows are picked past the
    locked ones, and copies share the rest.
    """

    def __init__(
        self, way: Way, change: Callable[[QuerySet[Any]], int], *, no_key: bool = False, careful: bool = False
    ) -> None:
        self._way, self._change, self._no_key = way, change, no_key
        self._careful = careful
        self._by: Combinable | None = None
        self.seen = False

    @property
    def finished(self) -> bool:
        return self._way.finished

    @property
    def since(self) -> datetime | None:
        return self._way.since

    def batch(self, size: int) -> int:
        self.seen = False
        window = self._way.window(size)
        self.seen = True
        if self._way.empty:
            return 0
        rows = self._picked(window, size) if self._careful else window
        changed = self._change(rows)
        if changed < size:
            changed += self._second_look(window, size, changed)
            self._careful = self._careful or changed == 0
        return changed

    def _second_look(self, window: QuerySet[Any], size: int, before: int) -> int:
        """Change what was unlocked meanwhile; raise Dropped if rows stay as they are although they are locked here."""
        held = list(self._lock(window).values_list("pk", flat=True)[: size - before])
        if not held:
            return 0
        free = window.filter(pk__any_of=held)
        changed = self._change(free)
        if free.exists():
            raise Dropped(others=before + changed)
        return changed

    def _picked(self, window: QuerySet[Any], size: int) -> QuerySet[Any]:
        if self._by is None:
            self._by = RowAddress() if is_one_table(window) else F("pk")
        return picked(window, self._lock(window)[:size], by=self._by)

    def _lock(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        return rows.select_for_update(skip_locked=True, no_key=self._no_key)

    def advance(self) -> None:
        self._way.advance()

    def careful(self) -> None:
        self._careful = True

    def skip(self) -> UUID | None:
        row = self._way.first if self.seen else None
        self._way.advance()
        return row

    def only(self, ids: list[UUID]) -> "Rows":
        return Rows(Listed(self._way.rows, ids), self._change, no_key=self._no_key, careful=True)

    def sample(self) -> list[UUID]:
        return sample(self._way.rows, self._way.key if isinstance(self._way, Walk) else "pk")


def sample(rows: QuerySet[Any], key: str) -> list[UUID]:
    """Return ids from the far end of a walk, and from all over the set."""
    ids = rows.values_list("pk", flat=True)
    return [*ids.order_by(f"-{key}", "-pk")[:FAR_END], *ids.order_by("?")[:ALL_OVER]]
