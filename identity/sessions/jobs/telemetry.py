"""What an operator sees of the jobs: metrics, log events and spans. Labels come from fixed lists."""

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from identity import logs

TABLES = ("refresh_sessions", "sign_in_confirmation_requests")

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
class Metrics:
    """The metrics of one job, all present from the start: counters at 0, gauges at NaN until a run has counted.

    A gauge of 0 would say that nothing is left when a restarted worker does not know. A dry run touches none of them.
    """

    changed: dict[str, Counter]
    errors: Counter
    runs: Counter
    duration: Histogram
    backlog: Gauge
    backlog_by_table: bool
    oldest: Gauge
    last_success: Gauge
    blocked: Gauge | None = None
    registry: CollectorRegistry = field(repr=False)

    def ended(self, outcome: Outcome, *, seconds: float, at: float) -> None:
        """Record the end of a run; the time of the last success moves only if no phase failed."""
        self.runs.labels(outcome=outcome).inc()
        self.duration.observe(seconds * 1000)
        if outcome is not Outcome.FAILED:
            self.last_success.set(at)


def _metrics(job: str, *, changed: dict[str, str], longest: int, backlog_by_table: bool, blocked: bool) -> Metrics:
    registry = CollectorRegistry()
    prefix = f"identity_{job}"
    metrics = Metrics(
        registry=registry,
        changed={
            phase: Counter(f"{prefix}_{name}", f"Rows that {job} changed.", registry=registry)
            for phase, name in changed.items()
        },
        errors=Counter(f"{prefix}_errors", "Failed phases, and rows left out because they failed.", registry=registry),
        runs=Counter(f"{prefix}_runs", "Runs by how they ended.", ["outcome"], registry=registry),
        duration=Histogram(
            f"{prefix}_run_duration_ms",
            "Length of a run in milliseconds.",
            buckets=_milliseconds_up_to(longest),
            registry=registry,
        ),
        backlog=Gauge(
            f"{prefix}_backlog",
            "Rows that the job could have changed and that were left at the end of its last run.",
            ["table"] if backlog_by_table else [],
            registry=registry,
        ),
        backlog_by_table=backlog_by_table,
        oldest=Gauge(
            f"{prefix}_oldest_overdue_seconds",
            "Time since the oldest row of the backlog was due, at the end of the last run.",
            ["table"],
            registry=registry,
        ),
        last_success=Gauge(
            f"{prefix}_last_success_timestamp_seconds",
            "End of the last run without a failed phase, Unix time; 0 until there is one.",
            registry=registry,
        ),
        blocked=Gauge(
            f"{prefix}_blocked", "Sessions past retention that a younger or live descendant keeps.", registry=registry
        )
        if blocked
        else None,
    )
    for outcome in Outcome:
        metrics.runs.labels(outcome=outcome)
    for table in TABLES:
        metrics.oldest.labels(table=table).set(math.nan)
        if backlog_by_table:
            metrics.backlog.labels(table=table).set(math.nan)
    if not backlog_by_table:
        metrics.backlog.set(math.nan)
    if metrics.blocked is not None:
        metrics.blocked.set(math.nan)
    return metrics


# The longest runs are MaxRunDuration's defaults, 2 and 30 minutes, in milliseconds.
EXPIRE_SESSIONS = _metrics(
    "expire_sessions",
    changed={"refresh": "refresh_expired", "sicr": "sicr_expired"},
    longest=120_000,
    backlog_by_table=False,
    blocked=False,
)
SESSION_RETENTION = _metrics(
    "session_retention",
    changed={"sicr": "sicr_deleted", "refresh": "refresh_deleted"},
    longest=1_800_000,
    backlog_by_table=True,
    blocked=True,
)


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
