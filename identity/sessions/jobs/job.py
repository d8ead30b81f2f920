"""A job, one run of it from start to end, and what is told of it in every way that operators read."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

from django.db import Error
from opentelemetry.trace import Span

from identity import logs
from identity.sessions.jobs import telemetry
from identity.sessions.jobs.left import NOTHING_COUNTED, Left
from identity.sessions.jobs.run import Run
from identity.sessions.jobs.stopping import Stop
from identity.sessions.jobs.telemetry import Metrics, Outcome, Phase
from identity.sessions.options import Options


@dataclass(frozen=True, kw_only=True)
class Preview:
    """How many rows a run would change now by phase, and how many sessions are blocked."""

    changes: dict[Phase, int]
    blocked: int = 0


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job: its phases, what it does and what it would do."""

    name: str
    options: type[Any]
    metrics: Metrics
    phases: tuple[Phase, ...]
    work: Callable[[Run, Any], Left]
    preview: Callable[[str, datetime, Any], Preview]
    # What the run compares ages with, by its name in the log.
    cutoffs: Callable[[datetime, Any], dict[str, datetime]] = field(default=lambda now, options: {})


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run did: rows changed by phase, what is left, how it ended, and a sentence for each thing that failed."""

    changed: dict[Phase, int]
    left: Left
    outcome: Outcome
    seconds: float
    problems: tuple[str, ...]
    outage: bool


def perform(
    job: Job,
    options: Options,
    *,
    alias: str,
    stop: Stop,
    longest: timedelta | None = None,
    progress: Callable[[int], object] = lambda rows: None,
    outage_known: bool = False,
) -> Report:
    """Perform one run; `longest` shortens MaxRunDuration. A database error never leaves here: the report tells it."""
    identity = str(uuid4())
    token = logs.job_run_id.set(identity)
    started = time.monotonic()
    job.metrics.prepare(interval=options.interval, max_run_duration=options.max_run_duration)
    run = Run(
        alias=alias,
        batch_size=options.batch_size,
        pause=options.batch_pause,
        lock_timeout=options.lock_timeout,
        duration=min(longest or options.max_run_duration, options.max_run_duration),
        stop=stop,
        metrics=job.metrics,
        progress=progress,
        outage_known=outage_known,
    )
    try:
        with telemetry.span(job.name, jobRunId=identity) as span:
            left = _work(job, options, run)
            return _report(job, run, left, span, seconds=time.monotonic() - started)
    finally:
        logs.job_run_id.reset(token)


def _work(job: Job, options: Options, run: Run) -> Left:
    fields: dict[str, Any] = {"warnings": suspicious} if (suspicious := options.warnings()) else {}
    try:
        run.begin()
    except Error as error:
        telemetry.event("job started", **fields)
        run.failed("start", error, table=telemetry.TABLES[0])
        return NOTHING_COUNTED
    fields |= {name: moment.isoformat() for name, moment in job.cutoffs(run.now, options).items()}
    telemetry.event("job started", **fields)
    return job.work(run, options)


def _report(job: Job, run: Run, left: Left, span: Span, *, seconds: float) -> Report:
    changed = {
        phase: run.changed.get(phase.name, 0) for phase in job.phases if phase.always or phase.name in run.phases
    }
    counts: dict[str, Any] = {phase.total: rows for phase, rows in changed.items()}
    job.metrics.show(left, now=getattr(run, "now", None))
    job.metrics.ended(run.outcome, seconds=seconds, at=time.time())
    span.set_attributes({**counts, "outcome": run.outcome})
    if run.error is not None:
        telemetry.mark_failed(span, run.error)
    # Last, so that who has read this line finds the run in the metrics too.
    telemetry.event(
        "job completed",
        **counts,
        durationMs=round(seconds * 1000),
        backlogRemaining=left.remaining,
        outcome=run.outcome,
    )
    return Report(
        changed=changed,
        left=left,
        outcome=run.outcome,
        seconds=seconds,
        problems=tuple(dict.fromkeys(run.problems)),
        outage=run.outage,
    )
