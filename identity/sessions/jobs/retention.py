"""Job 2: delete what is past retention, so that phone numbers, addresses and user agents leave the database on time.

1. `sicr`: requests created before the cutoff are deleted, whatever their status.
2. `refresh`: chains of sessions whose tip is past retention are deleted from the tip up, then what has no such tip.
3. `redact`, with REDACT_BLOCKED: address and agent of sessions that a descendant keeps are blanked in place.

Deletion cannot be undone, so the order of things is the safety here:

* What is old is one definition, `older_than(cutoff)`, and the delete statement itself repeats it: an Active session is
  never matched, however old, and a row that changed meanwhile is left alone. No status is ever changed.
* Sessions form chains by `parent_session_id`, under a RESTRICT that the database itself enforces. A chain can go
  exactly when its tip can, and a tip ends Revoked or Expired. So the walk starts from old tips, of which there are few
  however many rotated sessions are stored, and takes each chain from its tip up.
* What a fork, or a run that was cut, left behind is an old childless Rotated session, and a cycle has no end at all: a
  second pass takes those, oldest first. It is the one search through the table.
* A parent with a live or younger descendant is blocked, not overdue: it goes when that descendant does.
* Each batch is a transaction of its own. Whatever was committed stays; progress is the absence of the row.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import Q, QuerySet

from identity.sessions.jobs import left, telemetry
from identity.sessions.jobs.batches import Rows, work_off
from identity.sessions.jobs.chains import Chains, Cycles
from identity.sessions.jobs.job import Job, Preview
from identity.sessions.jobs.left import Left
from identity.sessions.jobs.run import PhaseRun, Run
from identity.sessions.jobs.telemetry import Metrics, Phase
from identity.sessions.jobs.walk import Listed, Walk
from identity.sessions.models import PERSONAL_DATA, RefreshSession, RefreshSessionQuerySet, SignInConfirmationRequest
from identity.sessions.options import SessionRetentionOptions

# Ids that one search holds at once, in batches: enough to make searches rare, few enough to weigh some megabytes.
FOUND_AT_ONCE = 10

METRICS = Metrics(
    runs="identity_session_retention_runs_total",
    errors="identity_session_retention_errors_total",
    duration="identity_session_retention_run_duration_ms",
    longest_ms=1_800_000,  # the default of MaxRunDuration
    backlog="identity_session_retention_backlog",
    backlog_by_table=True,
    overdue="identity_session_retention_oldest_overdue_seconds",
    oldest="identity_session_retention_oldest_due_timestamp_seconds",
    last_success="identity_session_retention_last_success_timestamp_seconds",
    lag="identity_session_retention_lag_seconds",
    interval="identity_session_retention_interval_seconds",
    max_run_duration="identity_session_retention_max_run_duration_seconds",
    blocked="identity_session_retention_blocked",
    oldest_blocked="identity_session_retention_oldest_blocked_personal_data_timestamp_seconds",
)
SICR = Phase(
    name="sicr",
    table="sign_in_confirmation_requests",
    counter=METRICS.counter("identity_session_retention_sicr_deleted_total", "Requests that were deleted."),
    total="sicrDeleted",
    counted="deletedCount",
    things="confirmation requests",
    done="deleted",
)
REFRESH = Phase(
    name="refresh",
    table="refresh_sessions",
    counter=METRICS.counter("identity_session_retention_refresh_deleted_total", "Sessions that were deleted."),
    total="refreshDeleted",
    counted="deletedCount",
    things="sessions",
    done="deleted",
)
REDACT = Phase(
    name="redact",
    table="refresh_sessions",
    counter=METRICS.counter(
        "identity_session_retention_refresh_redacted_total", "Blocked sessions whose address and agent were blanked."
    ),
    total="refreshRedacted",
    counted="redactedCount",
    things="sessions",
    done="blanked",
    always=False,
)


def cutoffs(now: datetime, options: SessionRetentionOptions) -> dict[str, datetime]:
    """Return what the run compares ages with, by its name in the log."""
    return {
        "cutoffSicr": now - options.sicr_retention,
        "cutoffRefresh": now - options.refresh_terminal_retention,
    }


def retain(run: Run, options: SessionRetentionOptions) -> Left:
    """Run all phases, whichever fails, and count what is left.

    The two deletions take turns; blanking comes last, because what goes need not be blanked.
    """
    cutoff_sicr, cutoff = cutoffs(run.now, options).values()
    requests = SignInConfirmationRequest.objects.using(run.alias).older_than(cutoff_sicr)
    sessions = RefreshSession.objects.using(run.alias).older_than(cutoff)
    search = Search()
    run.alternate(
        (_late(SICR, options.sicr_retention), lambda phase: _delete_requests(run, phase, requests)),
        (
            _late(REFRESH, options.refresh_terminal_retention),
            lambda phase: _told(phase, _delete_sessions(run, phase, sessions, cutoff, search)),
        ),
    )
    if options.redact_blocked:
        run.alternate((REDACT, lambda phase: _redact(run, phase, sessions, cutoff)))
    kept = left.sessions(
        run,
        sessions,
        cutoff=cutoff,
        drained=search.ended_on_none,
        kept=options.refresh_terminal_retention,
        # Without the phase every row that is blocked holds some, and the job need not be able to read it.
        holding=PERSONAL_DATA if options.redact_blocked else Q(),
    )
    waiting = left.waiting(run, requests, key="created_at", kept=options.sicr_retention)
    return replace(kept, tables={SICR.table: waiting, **kept.tables})


def _late(phase: Phase, kept: timedelta) -> Phase:
    return replace(phase, lateness=lambda now, key: now - key - kept)


def _told(phase: PhaseRun, batches: Iterator[int]) -> Iterator[int]:
    for changed in batches:
        if changed:
            telemetry.event("batch deleted", phase=phase.name, deletedCount=changed)
        yield changed


def _delete_requests(run: Run, phase: PhaseRun, requests: QuerySet[Any]) -> Iterator[int]:
    return _told(phase, work_off(run, phase, Rows(Walk(requests, "created_at"), delete)))


def delete(rows: QuerySet[Any]) -> int:
    """Delete rows. Not QuerySet.delete(): that sends signals, and with a listener it would load every row first."""
    return rows._raw_delete(rows.db)


class Search:
    """The search for what the tips do not lead to: whether it was made to its end, and found nothing."""

    ended_on_none = False


def _delete_sessions(
    run: Run, phase: PhaseRun, sessions: RefreshSessionQuerySet, cutoff: datetime, search: Search
) -> Iterator[int]:
    """Delete the chains of old tips, then what has no such tip: strays that are Rotated, and cycles."""
    chains = partial(Chains, sessions, cutoff=cutoff)
    yield from work_off(run, phase, chains(way=Walk(sessions.tips(), "updated_at")))
    strays = Walk(sessions.ends(), "updated_at")
    found_any = bool(phase.left)
    while not strays.finished and run.goes_on():
        with run.searching():
            found = strays.ids(FOUND_AT_ONCE * run.batch_size)
        found_any = found_any or bool(found)
        found = [pk for pk in found if pk not in phase.left]
        yield from work_off(run, phase, chains(way=Listed(sessions, list(found))))
        yield from work_off(run, phase, Cycles(sessions, cutoff=cutoff, starts=found))
    search.ended_on_none = strays.finished and not found_any


def _redact(run: Run, phase: PhaseRun, sessions: RefreshSessionQuerySet, cutoff: datetime) -> Iterator[int]:
    """Blank address and agent of blocked sessions. One search through the table finds many of them."""
    blocked = Walk(sessions.blocked(cutoff).with_personal_data(), "updated_at")
    while not blocked.finished and run.goes_on():
        with run.searching():
            found = blocked.ids(FOUND_AT_ONCE * run.batch_size)
        rows = Rows(Listed(sessions.with_personal_data(), found), blank, no_key=True)
        yield from work_off(run, phase, rows)
    if phase.began and not phase.left:
        telemetry.event("phase done", phase=phase.name, redactedCount=phase.changed)


def blank(rows: QuerySet[Any]) -> int:
    return rows.update(ip_address=None, user_agent="")


def preview(alias: str, now: datetime, options: SessionRetentionOptions) -> Preview:
    """Count what a run would change, by the same sets."""
    cutoff_sicr, cutoff = cutoffs(now, options).values()
    sessions = RefreshSession.objects.using(alias)
    changes = {
        SICR: SignInConfirmationRequest.objects.using(alias).older_than(cutoff_sicr).count(),
        REFRESH: sessions.to_delete(cutoff).count(),
    }
    if options.redact_blocked:
        changes[REDACT] = sessions.blocked(cutoff).with_personal_data().count()
    return Preview(changes=changes, blocked=sessions.blocked(cutoff).count())


SESSION_RETENTION = Job(
    name="session_retention",
    options=SessionRetentionOptions,
    metrics=METRICS,
    phases=(SICR, REFRESH, REDACT),
    work=retain,
    preview=preview,
    cutoffs=cutoffs,
)
