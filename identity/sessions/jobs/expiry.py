"""Job 1: flip what has run out to Expired. The status column changes and nothing else does; nothing is published.

Security does not rest on it: confirm and rotate check the time themselves. What a lost race leaves is left as it is.

1. `refresh`: sessions Active with `expires_at` <= now become Expired; `revoked_at`, `revoked_reason` stay as they are.
2. `sicr`: requests Pending with `expires_at` <= now become Expired; `confirmed_at` stays null.

The window's own conditions stand in the update: a session rotated meanwhile stays Rotated. Rows are locked NO KEY,
because a plain FOR UPDATE would make the insert of a child wait.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from identity.sessions.jobs import left, telemetry
from identity.sessions.jobs.batches import Rows, work_off
from identity.sessions.jobs.job import Job, Preview
from identity.sessions.jobs.left import Left
from identity.sessions.jobs.run import PhaseRun, Run
from identity.sessions.jobs.telemetry import Metrics, Phase
from identity.sessions.jobs.walk import Walk
from identity.sessions.models import RefreshSession, RefreshSessionStatus, SignInConfirmationRequest
from identity.sessions.options import ExpireSessionsOptions

EXPIRED = RefreshSessionStatus.EXPIRED  # both tables spell it alike

METRICS = Metrics(
    runs="identity_expire_sessions_runs_total",
    errors="identity_expire_sessions_errors_total",
    duration="identity_expire_sessions_run_duration_ms",
    longest_ms=120_000,  # the default of MaxRunDuration
    backlog="identity_expire_sessions_backlog",
    overdue="identity_expire_sessions_oldest_overdue_seconds",
    oldest="identity_expire_sessions_oldest_due_timestamp_seconds",
    last_success="identity_expire_sessions_last_success_timestamp_seconds",
    lag="identity_expire_sessions_lag_seconds",
    interval="identity_expire_sessions_interval_seconds",
    max_run_duration="identity_expire_sessions_max_run_duration_seconds",
)
REFRESH = Phase(
    name="refresh",
    table="refresh_sessions",
    counter=METRICS.counter("identity_expire_sessions_refresh_expired_total", "Sessions that became Expired."),
    total="refreshExpired",
    counted="expiredCount",
    things="sessions",
    done="expired",
    lateness=lambda now, expires_at: now - expires_at,
)
SICR = Phase(
    name="sicr",
    table="sign_in_confirmation_requests",
    counter=METRICS.counter("identity_expire_sessions_sicr_expired_total", "Requests that became Expired."),
    total="sicrExpired",
    counted="expiredCount",
    things="confirmation requests",
    done="expired",
    lateness=lambda now, expires_at: now - expires_at,
)


def expire(run: Run, options: ExpireSessionsOptions) -> Left:
    """Run both phases, whichever fails, and count what is still due."""
    due = due_rows(run.alias, run.now)
    run.alternate(
        (REFRESH, lambda phase: _expire(run, phase, due[REFRESH.table])),
        (SICR, lambda phase: _expire(run, phase, due[SICR.table])),
    )
    return Left(tables={table: left.waiting(run, rows, key="expires_at") for table, rows in due.items()})


def _expire(run: Run, phase: PhaseRun, due: QuerySet[Any]) -> Iterator[int]:
    yield from work_off(run, phase, Rows(Walk(due, "expires_at"), flip, no_key=True))
    if phase.began and not phase.left:
        telemetry.event("phase done", phase=phase.name, expiredCount=phase.changed)


def flip(rows: QuerySet[Any]) -> int:
    return rows.update(status=EXPIRED)


def due_rows(alias: str, now: datetime) -> dict[str, QuerySet[Any]]:
    return {
        REFRESH.table: RefreshSession.objects.using(alias).due(now),
        SICR.table: SignInConfirmationRequest.objects.using(alias).due(now),
    }


def preview(alias: str, now: datetime, options: ExpireSessionsOptions) -> Preview:
    due = due_rows(alias, now)
    return Preview(changes={phase: due[phase.table].count() for phase in (REFRESH, SICR)})


EXPIRE_SESSIONS = Job(
    name="expire_sessions",
    options=ExpireSessionsOptions,
    metrics=METRICS,
    phases=(REFRESH, SICR),
    work=expire,
    preview=preview,
)
