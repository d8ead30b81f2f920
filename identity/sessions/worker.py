"""A worker: one job, performed on schedule until a signal asks to stop."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import connections

from identity.sessions import telemetry
from identity.sessions.jobs import Job
from identity.sessions.loop import nightly, polling, repeat
from identity.sessions.options import Options, SessionRetentionOptions, effective
from identity.sessions.performing import perform
from identity.sessions.stopping import Stop


def stay(job: Job, options: Options, *, alias: str, stop: Stop) -> None:
    """Perform the job on schedule until a stop is requested; the run under way ends after its batch."""
    schedule = nightly(options.night_window) if isinstance(options, SessionRetentionOptions) else polling
    telemetry.event("worker started", job=job.name, options=effective(options), warnings=options.warnings())
    repeat(_task(job, options, alias=alias, stop=stop), schedule=schedule, interval=options.interval, stop=stop)
    telemetry.event("worker stopping", job=job.name, reason=stop.reason)


def _task(job: Job, options: Options, *, alias: str, stop: Stop) -> Callable[[], bool]:
    """Return the task of the loop: it performs a run and tells whether the database was there."""
    away = False

    def task() -> bool:
        nonlocal away
        report = perform(job, options, alias=alias, stop=stop, longest=_until_closing(options), outage_known=away)
        away = report.outage
        # A fresh connection for each run: none is idle for hours, or still leads to a server that was demoted.
        connections[alias].close()
        return not away

    return task


def _until_closing(options: Options) -> timedelta | None:
    """Return the time that is left of the night window; None for a job without one."""
    if not isinstance(options, SessionRetentionOptions):
        return None
    now = datetime.now(UTC)
    return options.night_window.closing(now) - now
