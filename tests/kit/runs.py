"""Call the two jobs at a moment of the test's choosing."""

import time
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from identity.sessions.jobs import telemetry
from identity.sessions.jobs.expiry import expire
from identity.sessions.jobs.left import Backlog
from identity.sessions.jobs.retention import retain
from identity.sessions.jobs.run import Run
from identity.sessions.jobs.stopping import Stop
from tests.kit.factories import DAY, NOW

CUTOFF_SICR, CUTOFF_REFRESH = NOW - 30 * DAY, NOW - 90 * DAY


class Result(NamedTuple):
    """What a run has done: rows by phase, what is left, and how it ended."""

    refresh: int
    sicr: int
    backlog: Backlog
    outcome: str


def new_run(metrics: telemetry.Metrics, *, now: datetime = NOW, **changes: Any) -> Run:
    """Return a run with limits that no test reaches unless it asks for it."""
    values: dict[str, Any] = {
        "alias": "default",
        "batch_size": 5000,
        "pause": timedelta(),
        "lock_timeout": timedelta(milliseconds=200),
        "statement_timeout": timedelta(seconds=60),
        "deadline": time.monotonic() + 600,
        "stop": Stop(),
        "metrics": metrics,
        "progress": lambda rows: None,
    }
    run = Run(**values | changes)
    run.now = now
    return run


def expire_now(**changes: Any) -> Result:
    run = new_run(telemetry.EXPIRE_SESSIONS, **changes)
    return _result(run, expire(run))


def retain_now(*, now: datetime = NOW, **changes: Any) -> Result:
    run = new_run(telemetry.SESSION_RETENTION, now=now, **changes)
    return _result(run, retain(run, cutoff_sicr=now - 30 * DAY, cutoff_refresh=now - 90 * DAY))


def _result(run: Run, backlog: Backlog) -> Result:
    return Result(run.changed["refresh"], run.changed["sicr"], backlog, str(run.outcome))


def after(batches: int) -> dict[str, Any]:
    """Return what makes a run stop, as on SIGTERM, once so many of its batches are committed."""
    stop = Stop()
    left = iter(range(batches - 1))
    if not batches:
        stop.request("SIGTERM")
    return {"stop": stop, "progress": lambda rows: next(left, None) is None and stop.request("SIGTERM")}
