"""Job 2: delete what is past retention, so that phone numbers, addresses and user agents leave the database on time.

Deletion cannot be undone, so the order of things is the safety here:

* What is old is one definition, `older_than(cutoff)`, and the delete statement itself repeats it: an Active session is
  never matched, however old, and a row that changed meanwhile is left alone. No status is ever changed.
* Requests are referred to by nothing and go by `created_at`, whatever their status.
* Sessions form chains by `parent_session_id`, under a RESTRICT that the database itself enforces. A chain can go
  exactly when its tip can, and a tip ends Revoked or Expired. So the walk starts from old tips, of which there are few
  however many rotated sessions are stored, and takes each chain from its tip up.
* A parent with a live or younger descendant is blocked, not overdue: it goes when that descendant does.
* What a fork, or a run that was cut, left behind is an old childless session; a second pass takes those.
* Each batch is a transaction of its own. Whatever was committed stays; progress is the absence of the row.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from identity.sessions.jobs import left as backlog
from identity.sessions.jobs import telemetry
from identity.sessions.jobs.batches import Windows, Work, work_off
from identity.sessions.jobs.chains import Chains
from identity.sessions.jobs.left import Backlog, Overdue, overdue
from identity.sessions.jobs.run import Run
from identity.sessions.lookups import picked
from identity.sessions.models import RefreshSession, RefreshSessionQuerySet, SignInConfirmationRequest

# Ids of strays that are held at once, in batches: enough to make scans rare, few enough to weigh some megabytes.
STRAYS_AT_ONCE = 10


def retain(run: Run, *, cutoff_sicr: datetime, cutoff_refresh: datetime) -> Backlog:
    """Run both phases, whichever fails, and count what is left.

    1. Requests created before `cutoff_sicr` are deleted.
    2. Chains whose tip was updated before `cutoff_refresh` are deleted from the tip up, then strays.
    3. Requests still old, sessions still old and childless, and blocked sessions are counted.
    """
    requests = SignInConfirmationRequest.objects.using(run.alias).older_than(cutoff_sicr)
    sessions = RefreshSession.objects.using(run.alias).older_than(cutoff_refresh)
    with run.phase("sicr", table="sign_in_confirmation_requests", counted="deletedCount", batchSize=run.batch_size):
        _work_off(run, "sicr", Windows(requests, "created_at", delete))
    drained = False
    with run.phase("refresh", table="refresh_sessions", counted="deletedCount", batchSize=run.batch_size):
        drained = _delete_sessions(run, sessions, cutoff_refresh)
    return _backlog(run, requests, sessions, drained, cutoff_sicr=cutoff_sicr, cutoff_refresh=cutoff_refresh)


def delete(window: QuerySet[Any], most: int | None) -> int:
    """Delete a window at once, or up to `most` of its rows, past those that are locked elsewhere; return how many.

    Not QuerySet.delete(): that sends signals, and with a listener it would load every row first.
    """
    if most is not None:
        window = picked(window, window.select_for_update(skip_locked=True)[:most])
    return window._raw_delete(window.db)


def _delete_sessions(run: Run, sessions: RefreshSessionQuerySet, cutoff: datetime) -> bool:
    """Delete the chains of old tips, then strays until a pass finds none; tell whether none is left for certain."""
    left_out: list[UUID] = []
    _work_off(run, "refresh", Chains(sessions, cutoff=cutoff, left_out=left_out))
    while run.goes_on():
        strays = sessions.childless().exclude(pk__in=left_out).values_list("pk", flat=True)
        with run.transaction():
            found = list(strays[: STRAYS_AT_ONCE * run.batch_size])
        before = run.changed["refresh"]
        _work_off(run, "refresh", Chains(sessions, cutoff=cutoff, left_out=left_out, starts=found))
        if run.changed["refresh"] == before:  # nothing found, or all of it is locked elsewhere
            return not found and not left_out
    return False


def _work_off(run: Run, phase: str, work: Work) -> None:
    for deleted in work_off(run, phase, work):
        if deleted:
            telemetry.event("batch deleted", phase=phase, deletedCount=deleted)


def _backlog(
    run: Run,
    requests: QuerySet[SignInConfirmationRequest],
    sessions: RefreshSessionQuerySet,
    drained: bool,
    *,
    cutoff_sicr: datetime,
    cutoff_refresh: datetime,
) -> Backlog:
    # The search for childless sessions is the one scan of the night: where it ended on none, that is the count.
    left = Overdue(rows=0, seconds=0)
    childless = left if drained else overdue(run, sessions.childless(), key="updated_at", since=cutoff_refresh)
    stored = backlog.count(run, sessions)
    return Backlog(
        tables={
            "sign_in_confirmation_requests": overdue(run, requests, key="created_at", since=cutoff_sicr),
            "refresh_sessions": childless,
        },
        blocked=None if stored is None or childless is None else stored - childless.rows,
    )
