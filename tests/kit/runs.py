"""Call the two jobs at a moment of the test's choosing."""

from datetime import datetime, timedelta
from typing import Any, NamedTuple

from identity.sessions.jobs.expiry import METRICS as EXPIRY
from identity.sessions.jobs.expiry import expire
from identity.sessions.jobs.left import Left
from identity.sessions.jobs.retention import METRICS as RETENTION
from identity.sessions.jobs.retention import retain
from identity.sessions.jobs.run import Run
from identity.sessions.jobs.stopping import Stop
from identity.sessions.jobs.telemetry import Metrics
from identity.sessions.options import ExpireSessionsOptions, SessionRetentionOptions, load
from tests.kit.factories import DAY, NOW

CUTOFF_SICR, CUTOFF_REFRESH = NOW - 30 * DAY, NOW - 90 * DAY


class Result(NamedTuple):
    """What a run has done: rows by phase, what is left, how it ended, and the run itself."""

    refresh: int
    sicr: int
    backlog: Left
    outcome: str
    run: Run


def new_run(metrics: Metrics, *, now: datetime = NOW, **changes: Any) -> Run:
    """Return a run with limits that no test reaches unless it asks for it."""
    values: dict[str, Any] = {
        "alias": "default",
        "batch_size": 5000,
        "pause": timedelta(),
        "lock_timeout": timedelta(milliseconds=200),
        "duration": timedelta(seconds=600),
        "stop": Stop(),
        "metrics": metrics,
    }
    run = Run(**values | changes)
    run.now = now
    return run


def expire_now(**changes: Any) -> Result:
    run = new_run(EXPIRY, **changes)
    return _result(run, expire(run, load(ExpireSessionsOptions)))


def retain_now(*, redact: str = "off", **changes: Any) -> Result:
    run = new_run(RETENTION, **changes)
    return _result(run, retain(run, load(SessionRetentionOptions, redact_blocked=redact)))


def _result(run: Run, left: Left) -> Result:
    return Result(run.changed["refresh"], run.changed["sicr"], left, str(run.outcome), run)


def after(batches: int) -> dict[str, Any]:
    """Return what makes a run stop, as on SIGTERM, once so many of its batches are committed."""
    stop = Stop()
    left = iter(range(batches - 1))
    if not batches:
        stop.request("SIGTERM")
    return {"stop": stop, "progress": lambda rows: next(left, None) is None and stop.request("SIGTERM")}
