"""Perform one run of a job from start to end, and tell operators about it in every way they read."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.db import Error
from opentelemetry.trace import Span

from identity import logs
from identity.sessions.jobs import telemetry
from identity.sessions.jobs.job import Job
from identity.sessions.jobs.left import Backlog
from identity.sessions.jobs.run import Run
from identity.sessions.jobs.stopping import Stop
from identity.sessions.jobs.telemetry import Outcome
from identity.sessions.options import Options

_NOTHING_COUNTED = Backlog(tables=dict.fromkeys(telemetry.TABLES))


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a run did: rows changed by phase, what is left, how it ended, and a sentence for each thing that failed."""

    changed: dict[str, int]
    backlog: Backlog
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
    longest = min(longest or options.max_run_duration, options.max_run_duration)
    run = Run(
        alias=alias,
        batch_size=options.batch_size,
        pause=options.batch_pause,
        lock_timeout=options.lock_timeout,
        statement_timeout=options.max_run_duration,
        deadline=started + longest.total_seconds(),
        stop=stop,
        metrics=job.metrics,
        progress=progress,
        outage_known=outage_known,
    )
    try:
        with telemetry.span(job.name, jobRunId=identity) as span:
            backlog = _work(job, options, run)
            return _report(job, run, backlog, span, seconds=time.monotonic() - started)
    finally:
        logs.job_run_id.reset(token)


def _work(job: Job, options: Options, run: Run) -> Backlog:
    try:
        run.begin()
    except Error as error:
        run.failed("start", error, table=telemetry.TABLES[0])
        return _NOTHING_COUNTED
    cutoffs = job.cutoffs(run.now, options)
    fields: dict[str, Any] = {name: moment.isoformat() for name, moment in cutoffs.items()}
    if suspicious := options.warnings():
        fields["warnings"] = suspicious
    telemetry.event("job started", **fields)
    return job.work(run, cutoffs)


def _report(job: Job, run: Run, backlog: Backlog, span: Span, *, seconds: float) -> Report:
    changed = {phase: run.changed.get(phase, 0) for phase in job.changed}
    counts: dict[str, Any] = {name: changed[phase] for phase, name in job.changed.items()}
    backlog.show(job.metrics)
    job.metrics.ended(run.outcome, seconds=seconds, at=time.time())
    span.set_attributes({**counts, "outcome": run.outcome})
    if run.error is not None:
        telemetry.mark_failed(span, run.error)
    # Last, so that who has read this line finds the run in the metrics too.
    telemetry.event(
        "job completed",
        **counts,
        durationMs=round(seconds * 1000),
        backlogRemaining=backlog.remaining,
        outcome=run.outcome,
    )
    return Report(
        changed=changed,
        backlog=backlog,
        outcome=run.outcome,
        seconds=seconds,
        problems=tuple(dict.fromkeys(run.problems)),
        outage=run.outage,
    )
