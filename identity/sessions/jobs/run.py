"""One run of a job: its moment and limits, whether it may go on, what its phases changed, and what went wrong."""

import logging
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import Error, connections
from opentelemetry import trace
from opentelemetry.trace import Span

from identity.sessions.jobs import failures, telemetry
from identity.sessions.jobs.database import short_transaction
from identity.sessions.jobs.stopping import Stop
from identity.sessions.jobs.telemetry import Metrics, Outcome, Phase

# A batch gets an eighth of what is left of the run, so that one that fails can be halved down to a single row, and half
# for that row. No batch of 5,000 rows should take this long: what does is better done in smaller ones.
SHARE, SHARE_ALONE = 8, 2
LONGEST_BATCH = timedelta(seconds=15)
# Nor is a batch cut before it took three seconds, or a row called slow before one: a busy server may be late with both.
BATCH_PATIENCE, ROW_PATIENCE = 3.0, 1.0
LEAST_LIMIT = 0.01
# A count is worth a fraction of a run: twenty seconds read some ten million rows. When a stop is requested, only what
# is quickly counted is.
COUNTING, COUNTING_SHARE = timedelta(seconds=20), 4
COUNTING_STOPPED = timedelta(milliseconds=500)
# Ids of rows left that are told.
NAMED = 10


@dataclass(kw_only=True)
class Run:
    """One run. `now` is the database's, read once: a host whose clock runs ahead must not expire live sessions."""

    alias: str
    now: datetime = field(init=False)
    batch_size: int
    pause: timedelta
    lock_timeout: timedelta
    duration: timedelta
    stop: Stop
    metrics: Metrics
    progress: Callable[[int], object] = lambda rows: None
    deadline: float = math.inf  # on time.monotonic(); by default `duration` from now
    phases: dict[str, "PhaseRun"] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    halted: Outcome | None = None
    outage: bool = False
    outage_known: bool = False  # to the run before this one
    error: Error | None = None
    _rest_is_due: bool = False

    def __post_init__(self) -> None:
        self.deadline = min(self.deadline, time.monotonic() + self.duration.total_seconds())

    @property
    def left(self) -> float:
        """Return the seconds left of the run."""
        return max(0, self.deadline - time.monotonic())

    def begin(self) -> None:
        """Read the database's clock."""
        with self.transaction(self.limit()) as self.now:
            pass

    def goes_on(self) -> bool:
        """Rest if a batch changed rows before, then tell whether another may start: no stop, deadline not reached."""
        if self._rest_is_due and self.pause:
            # Nothing is held through a rest, not even a connection: some roles end idle ones.
            connections[self.alias].close()
            self.stop.wait(min(self.pause.total_seconds(), self.left))
        self._rest_is_due = False
        if self.stop.requested:
            self.halted = Outcome.CANCELLED
        elif not self.left:
            self.halted = Outcome.DEADLINE
        return self.halted is None

    def seconds_for_a_batch(self) -> float:
        return max(min(self.left / SHARE, LONGEST_BATCH.total_seconds()), LEAST_LIMIT)

    def limit(self, *, expected: float = 0, alone: bool = False) -> timedelta:
        """Return how long a statement may take, whose batch is expected to take so many seconds or is of one row."""
        share = self.left / (SHARE_ALONE if alone else SHARE)
        wanted = max(expected, ROW_PATIENCE if alone else BATCH_PATIENCE)
        return timedelta(seconds=max(min(share, wanted, LONGEST_BATCH.total_seconds()), LEAST_LIMIT))

    def transaction(self, limit: timedelta) -> AbstractContextManager[datetime]:
        """Open the short transaction of one batch."""
        return short_transaction(self.alias, lock_timeout=self.lock_timeout, limit=limit, stop=self.stop)

    def searching(self) -> AbstractContextManager[datetime]:
        """Open a transaction for one search through a table, which may take what is left of the run."""
        return self.transaction(timedelta(seconds=max(self.left, LEAST_LIMIT)))

    def counting(self) -> AbstractContextManager[datetime]:
        """Open a transaction for a count at the end of the run."""
        limit = COUNTING_STOPPED if self.stop.requested else min(COUNTING, self.duration / COUNTING_SHARE)
        return self.transaction(limit)

    def changed_rows(self, rows: int) -> None:
        self._rest_is_due = rows > 0  # a look that changed nothing is no batch: there is nothing to rest from
        self.progress(rows)

    def failed(self, phase: str, error: Error, *, table: str, **fields: Any) -> None:
        """Log and count a failure and mark its span. A lost connection is dropped: whatever follows opens a new one."""
        self.error = error
        self.problems.append(failures.explain(error, table=table))
        self.metrics.errors.inc()
        telemetry.mark_failed(trace.get_current_span(), error)
        if failures.kind(error) is failures.Kind.OUTAGE:
            self.outage = True
            connections[self.alias].close()
        # Where in the code it was is told once an outage, however many runs that lasts.
        frames = not (self.outage and self.outage_known)
        self.outage_known = self.outage_known or self.outage
        telemetry.event(
            "phase failed",
            level=logging.ERROR, frames=frames, phase=phase, error=error, problem=self.problems[-1], **fields,
        )  # fmt: skip

    def alternate(self, *phases: tuple[Phase, Callable[["PhaseRun"], Iterator[int]]]) -> None:
        """Work off phases batch by batch, in turn by the time that each has used, so that none starves another."""
        running = [PhaseRun(self, phase, work) for phase, work in phases]
        self.phases |= {each.name: each for each in running}
        while running:
            turn = min(running, key=lambda each: each.used)
            if not turn.step():
                running.remove(turn)

    @property
    def changed(self) -> dict[str, int]:
        return {name: phase.changed for name, phase in self.phases.items()}

    @property
    def outcome(self) -> Outcome:
        return Outcome.FAILED if self.problems else self.halted or Outcome.COMPLETED


class PhaseRun:
    """A phase under way: its span, what it changed, the rows it had to leave."""

    def __init__(self, run: Run, phase: Phase, work: Callable[["PhaseRun"], Iterator[int]]) -> None:
        self.phase, self.name, self.table = phase, phase.name, phase.table
        self.used = 0.0
        self.changed = 0
        self.began = False
        self.rows_are_to_blame = False
        self.left: dict[UUID, Error] = {}
        self._run, self._batches = run, work(self)
        self._span: Span | None = None

    def step(self) -> bool:
        """Do one batch; tell whether there may be another. A database error ends this phase alone."""
        began = time.monotonic()
        if self._span is None:
            self._span = telemetry.tracer.start_span(self.name, attributes=self._attributes())
        with trace.use_span(self._span, record_exception=False, set_status_on_exception=False):
            try:
                next(self._batches)
            except StopIteration:
                self._end()
                return False
            except Error as error:
                self._run.failed(self.name, error, table=self.table, **self._told())
                self._end(failed=True)
                return False
            finally:
                self.used += time.monotonic() - began
        return True

    def count(self, rows: int, *, since: datetime | None, now: datetime) -> None:
        """Count rows whose change is committed; all of them as late as the oldest."""
        self.changed += rows
        self.phase.counter.inc(rows)
        if since is not None and self.phase.lateness is not None:
            self._run.metrics.lag.observe(self.table, self.phase.lateness(now, since), rows)
        self._run.changed_rows(rows)

    def leave(self, row: UUID, error: Error) -> None:
        """Leave a row that cannot be changed."""
        self.left[row] = error

    def _end(self, *, failed: bool = False) -> None:
        assert self._span is not None
        if self.left and not failed:
            self._run.failed(self.name, next(iter(self.left.values())), table=self.table, **self._told())
        self._span.set_attribute(self.phase.counted, self.changed)
        self._span.end()

    def _told(self) -> dict[str, Any]:
        """Return how many rows were left because they failed, and the first ids: an id is no personal data."""
        return {"rowsLeft": len(self.left), "ids": [str(pk) for pk in list(self.left)[:NAMED]]} if self.left else {}

    def _attributes(self) -> dict[str, str | int]:
        return {"phase": self.name, "batchSize": self._run.batch_size}
