"""One run of a job: its moment and limits, whether it may go on, what it has changed, and what went wrong."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import Error, connections, transaction
from opentelemetry import trace
from opentelemetry.util.types import AttributeValue

from identity.sessions.jobs import failures, telemetry
from identity.sessions.jobs.stopping import Stop
from identity.sessions.jobs.telemetry import Metrics, Outcome

# PostgreSQL keeps these settings in 32 bits.
_LONGEST_MS = 2**31 - 1


@contextmanager
def short_transaction(alias: str, *, lock_timeout: timedelta, statement_timeout: timedelta) -> Iterator[None]:
    """Open a transaction whose statements give way: both limits are its own and end with it."""
    limits = [min(limit // timedelta(milliseconds=1), _LONGEST_MS) for limit in (lock_timeout, statement_timeout)]
    with transaction.atomic(using=alias):
        with connections[alias].cursor() as cursor:
            cursor.execute(
                # jit: compiling costs more than a batch takes, and the walk up chains always looks dear to the planner.
                # Parallel workers: a scan that takes every core makes sign-ins wait for theirs.
                "SELECT set_config('lock_timeout', %s, true), set_config('statement_timeout', %s, true),"
                " set_config('jit', 'off', true), set_config('max_parallel_workers_per_gather', '0', true)",
                [f"{limit}ms" for limit in limits],
            )
        yield


def database_clock(alias: str) -> tuple[datetime, timedelta]:
    """Return the database's time and the statement_timeout that its role came with (zero: none)."""
    with connections[alias].cursor() as cursor:
        cursor.execute("SELECT clock_timestamp(), current_setting('statement_timeout')::interval")
        now, statement_timeout = cursor.fetchone()
    return now, statement_timeout


@dataclass(kw_only=True)
class Run:
    """One run. `now` is the database's, read once: a host whose clock runs ahead must not expire live sessions."""

    alias: str
    now: datetime = field(init=False)
    batch_size: int
    pause: timedelta
    lock_timeout: timedelta
    statement_timeout: timedelta
    allowed: timedelta = timedelta.max  # the role's own statement_timeout
    deadline: float  # on time.monotonic()
    stop: Stop
    metrics: Metrics
    progress: Callable[[int], object]
    changed: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    halted: Outcome | None = None
    outage: bool = False
    outage_known: bool = False  # to the run before this one
    error: Error | None = None
    _rest_is_due: bool = False
    _told: set[str] = field(default_factory=set)

    def begin(self) -> None:
        """Read the database's clock, and the role's own statement_timeout, which is never exceeded."""
        self.now, role = database_clock(self.alias)
        self.allowed = role or self.allowed
        self.statement_timeout = min(self.statement_timeout, self.allowed)

    def goes_on(self) -> bool:
        """Rest if a batch changed rows before, then tell whether another may start: no stop, deadline not reached."""
        if self._rest_is_due:
            self._rest_is_due = False
            self.stop.wait(min(self.pause.total_seconds(), self.deadline - time.monotonic()))
        if self.stop.requested:
            self.halted = Outcome.CANCELLED
        elif self.time_is_up:
            self.halted = Outcome.DEADLINE
        return self.halted is None

    @property
    def time_is_up(self) -> bool:
        return time.monotonic() >= self.deadline

    def transaction(self) -> AbstractContextManager[None]:
        """Open the short transaction of one batch."""
        return short_transaction(self.alias, lock_timeout=self.lock_timeout, statement_timeout=self.statement_timeout)

    def count(self, phase: str, rows: int) -> None:
        """Count rows whose change is committed."""
        self.changed[phase] = self.changed.get(phase, 0) + rows
        self._rest_is_due = rows > 0  # a look that changed nothing is no batch: there is nothing to rest from
        self.metrics.changed[phase].inc(rows)
        self.progress(rows)

    def failed(self, phase: str, error: Error, *, table: str) -> None:
        """Log and count a failure and mark its span. A lost connection is dropped: whatever follows opens a new one."""
        self.error = error
        self.problems.append(failures.explain(error, table=table))
        self.metrics.errors.inc()
        telemetry.mark_failed(trace.get_current_span(), error)
        if failures.kind(error) is failures.Kind.OUTAGE:
            self.outage = True
            connections[self.alias].close()
        # Where in the code it was is told once a phase, and once an outage however many runs that lasts.
        frames = phase not in self._told and not (self.outage and self.outage_known)
        self._told.add(phase)
        self.outage_known = self.outage_known or self.outage
        telemetry.event(
            "phase failed", level=logging.ERROR, frames=frames, phase=phase, error=error, problem=self.problems[-1]
        )

    @contextmanager
    def phase(self, phase: str, *, table: str, counted: str, **attributes: AttributeValue) -> Iterator[None]:
        """Run one phase in a span of its own; a database error ends this phase alone, any other error is a bug."""
        self.changed.setdefault(phase, 0)
        with telemetry.span(phase, phase=phase, **attributes) as span:
            try:
                yield
            except Error as error:
                self.failed(phase, error, table=table)
            finally:
                span.set_attribute(counted, self.changed[phase])

    @property
    def outcome(self) -> Outcome:
        return Outcome.FAILED if self.problems else self.halted or Outcome.COMPLETED
