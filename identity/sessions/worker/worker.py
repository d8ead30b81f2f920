"""A worker: one job, performed on schedule until a signal asks to stop."""

from collections.abc import Callable
from datetime import UTC, datetime

from django.db import connections

from identity.sessions.jobs import telemetry
from identity.sessions.jobs.job import Job, perform
from identity.sessions.jobs.stopping import Stop
from identity.sessions.night_window import NightWindow
from identity.sessions.options import Options, SessionRetentionOptions, effective
from identity.sessions.worker.schedule import nightly, polling, repeat


def stay(job: Job, options: Options, *, alias: str, stop: Stop) -> None:
    """Perform the job on schedule until a stop is requested; the run under way ends after its batch."""
    window = _window(options)
    schedule = nightly(window) if window else polling
    task = _task(job, options, window, alias=alias, stop=stop)
    telemetry.event("worker started", job=job.name, options=effective(options), warnings=options.warnings())
    repeat(task, schedule=schedule, interval=options.interval, stop=stop)
    telemetry.event("worker stopping", job=job.name, reason=stop.reason)


def _window(options: Options) -> NightWindow | None:
    """Return the hours that the job is confined to, None for a job that may always run."""
    window = options.night_window if isinstance(options, SessionRetentionOptions) else None
    return None if window is None or window.always else window


def _task(job: Job, options: Options, window: NightWindow | None, *, alias: str, stop: Stop) -> Callable[[], bool]:
    """Return the task of the loop: it performs a run and tells whether the database was there."""
    away = False

    def task() -> bool:
        nonlocal away
        now = datetime.now(UTC)
        left = window.closing(now) - now if window else None
        report = perform(job, options, alias=alias, stop=stop, longest=left, outage_known=away)
        away = report.outage
        # A fresh connection for each run: none is idle for hours, or still leads to a server that was demoted.
        connections[alias].close()
        return not away

    return task
