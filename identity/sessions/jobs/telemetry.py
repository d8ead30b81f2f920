"""What an operator sees of the jobs: metrics, log events and spans. Labels come from fixed lists."""

import logging
import math
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from identity import logs

if TYPE_CHECKING:
    from identity.sessions.jobs.left import Left

TABLES = ("refresh_sessions", "sign_in_confirmation_requests")

# Seconds by which rows are late: from a minute to a month, whatever the objective.
LAG_BOUNDS = [60.0, 300.0, 900.0, 3600.0, 14_400.0, 43_200.0, 86_400.0, 172_800.0, 604_800.0, 2_592_000.0]

logger = logging.getLogger("identity.sessions")
tracer = trace.get_tracer("identity.sessions")


class Outcome(StrEnum):
    """How a run ended. Only `failed` is an error: the others leave the rest to the next run, or nothing at all."""

    COMPLETED = "completed"
    DEADLINE = "deadline"
    CANCELLED = "cancelled"
    FAILED = "failed"


def _milliseconds_up_to(longest: int) -> list[float]:
    """Return bucket bounds 1-2.5-5 from 5 ms to past the longest run, so that a run at its limit has a finite one."""
    bounds: list[float] = []
    step = 1.0
    while not bounds or bounds[-1] <= longest:
        bounds += [bound for bound in (step, 2.5 * step, 5 * step) if bound >= 5]
        step *= 10
    return bounds


@dataclass(frozen=True, kw_only=True)
class Phase:
    """One phase of a job: its name in logs and spans, its table, and the words for what it changes.

    `total` names its count in `job completed`, `counted` in its span; `lateness` tells from the moment of a change and
    the key of a row how late that row is.
    """

    name: str
    table: str
    counter: Counter = field(repr=False, compare=False)
    total: str
    counted: str
    things: str
    done: str
    lateness: Callable[[datetime, datetime], timedelta] | None = field(default=None, compare=False)
    always: bool = True  # false for a phase that is an option


class Lag(Collector):
    """A histogram of rows by how late they were handled, told in numbers of rows at once."""

    def __init__(self, name: str, bounds: list[float]) -> None:
        self.name, self.bounds = name, bounds
        self._counts = {table: [0] * (len(bounds) + 1) for table in TABLES}
        self._sums = dict.fromkeys(TABLES, 0.0)

    def observe(self, table: str, lateness: timedelta, rows: int) -> None:
        """Count so many rows as late as the oldest of them."""
        seconds = max(0, lateness.total_seconds())
        self._counts[table][bisect_left(self.bounds, seconds)] += rows
        self._sums[table] += seconds * rows

    def collect(self) -> Iterator[Metric]:
        family = HistogramMetricFamily(self.name, "Rows by how late they were handled, in seconds.", labels=["table"])
        for table in TABLES:
            totals = accumulate(self._counts[table])
            bounds = [*map(str, self.bounds), "+Inf"]
            buckets = list(zip(bounds, map(float, totals), strict=True))
            family.add_metric([table], buckets=buckets, sum_value=self._sums[table])
        yield family


class Metrics:
    """The metrics of one job, all present from the start: counters at 0, gauges at NaN until a run has counted.

    A gauge of 0 would say that nothing is left when a restarted worker does not know. A dry run touches none of them.
    """

    def __init__(
        self,
        *,
        runs: str,
        errors: str,
        duration: str,
        longest_ms: int,
        backlog: str,
        overdue: str,
        oldest: str,
        last_success: str,
        lag: str,
        interval: str,
        max_run_duration: str,
        backlog_by_table: bool = False,
        blocked: str | None = None,
        oldest_blocked: str | None = None,
    ) -> None:
        self.registry = CollectorRegistry()
        self.runs = Counter(runs, "Runs by how they ended.", ["outcome"], registry=self.registry)
        for outcome in Outcome:
            self.runs.labels(outcome=outcome)
        self.errors = self.counter(errors, "Phases that failed, or had to leave rows that cannot be changed.")
        buckets = _milliseconds_up_to(longest_ms)
        self.duration = Histogram(duration, "Length of a run in milliseconds.", buckets=buckets, registry=self.registry)
        self.backlog_by_table = backlog_by_table
        self.backlog = self._gauge(backlog, "Rows left that the job can change.", by_table=backlog_by_table)
        self.overdue = self._gauge(
            overdue, "Time since the oldest row left was due, at the end of a run.", by_table=True
        )
        self.oldest = self._gauge(oldest, "Since when the oldest row left is due, Unix time.", by_table=True)
        self.last_success = self._gauge(last_success, "End of the last run without a failed phase, Unix time; 0: none.")
        self.last_success.set(0)
        self.interval = self._gauge(interval, "Time from the start of one run to the next, as configured.")
        self.max_run_duration = self._gauge(max_run_duration, "Longest time of a run, as configured.")
        self.blocked = blocked and self._gauge(blocked, "Sessions past retention that a descendant keeps.")
        self.oldest_blocked = oldest_blocked and self._gauge(
            oldest_blocked, "Since when the oldest blocked session with personal data is past retention, Unix time."
        )
        self.lag = Lag(lag, LAG_BOUNDS)
        self.registry.register(self.lag)

    def counter(self, name: str, documentation: str) -> Counter:
        return Counter(name, documentation, registry=self.registry)

    def _gauge(self, name: str, documentation: str, *, by_table: bool = False) -> Gauge:
        gauge = Gauge(name, documentation, ["table"] if by_table else [], registry=self.registry)
        for each in [gauge.labels(table=table) for table in TABLES] if by_table else [gauge]:
            each.set(math.nan)
        return gauge

    def prepare(self, *, interval: timedelta, max_run_duration: timedelta) -> None:
        """Show the options in force; a bucket of the lag ends where its objective does."""
        self.interval.set(interval.total_seconds())
        self.max_run_duration.set(max_run_duration.total_seconds())
        objective = (interval + max_run_duration).total_seconds()
        bounds = sorted({*LAG_BOUNDS, objective})
        if bounds != self.lag.bounds:
            self.registry.unregister(self.lag)
            self.lag = Lag(self.lag.name, bounds)
            self.registry.register(self.lag)

    def show(self, left: "Left", *, now: datetime | None) -> None:
        """Set the gauges of what is left; what was not counted keeps the value it had."""
        for table, found in left.tables.items():
            if found is not None and now is not None:
                overdue = (now - found.since).total_seconds() if found.since else 0
                self.overdue.labels(table=table).set(overdue)
                self.oldest.labels(table=table).set(found.since.timestamp() if found.since else math.nan)
                if self.backlog_by_table:
                    self.backlog.labels(table=table).set(found.rows)
        if not self.backlog_by_table and left.remaining is not None:
            self.backlog.set(left.remaining)
        if self.blocked and self.oldest_blocked and left.blocked is not None:
            self.blocked.set(left.blocked)
            self.oldest_blocked.set(left.blocked_since.timestamp() if left.blocked_since else math.nan)

    def ended(self, outcome: Outcome, *, seconds: float, at: float) -> None:
        """Record the end of a run; the time of the last success moves only if no phase failed."""
        self.runs.labels(outcome=outcome).inc()
        self.duration.observe(seconds * 1000)
        if outcome is not Outcome.FAILED:
            self.last_success.set(at)


def event(
    name: str, *, level: int = logging.INFO, error: BaseException | None = None, frames: bool = False, **fields: Any
) -> None:
    """Log one event. Of an error it keeps class and SQLSTATE only, and its frames where they are asked for."""
    if error is not None:
        fields["exception"] = logs.describe(error)
    trace_back = (type(error), error, error.__traceback__) if error is not None and frames else None
    logger.log(level, name, extra=fields, exc_info=trace_back)


@contextmanager
def span(name: str, **attributes: Any) -> Iterator[Span]:
    """Open a span. An error that passes through is recorded by class and SQLSTATE: its text may quote rows."""
    with tracer.start_as_current_span(
        name, attributes=attributes, record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield current
        except BaseException as error:
            mark_failed(current, error)
            raise


def mark_failed(current: Span, error: BaseException) -> None:
    """Give the span error status, described by class and SQLSTATE."""
    current.set_status(Status(StatusCode.ERROR, logs.describe(error)))
