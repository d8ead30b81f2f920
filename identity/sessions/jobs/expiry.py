"""Job 1: flip what has run out to Expired. The status column changes and nothing else does; nothing is published.

Security does not rest on it: confirm and rotate check the time themselves. What a lost race leaves is left as it is.
"""

from typing import Any

from django.db.models import QuerySet

from identity.sessions.jobs import left as backlog
from identity.sessions.jobs import telemetry
from identity.sessions.jobs.batches import Windows, work_off
from identity.sessions.jobs.left import Backlog
from identity.sessions.jobs.run import Run
from identity.sessions.lookups import picked
from identity.sessions.models import RefreshSession, RefreshSessionStatus, SignInConfirmationRequest

EXPIRED = RefreshSessionStatus.EXPIRED  # both tables spell it alike


def expire(run: Run) -> Backlog:
    """Run both phases, whichever fails, and count what is left.

    1. Sessions Active with `expires_at` <= now become Expired: `revoked_at` and `revoked_reason` stay as they are.
    2. Requests Pending with `expires_at` <= now become Expired: `confirmed_at` stays null.
    3. Rows still due are counted.
    """
    sets = {
        "refresh": RefreshSession.objects.using(run.alias).due(run.now),
        "sicr": SignInConfirmationRequest.objects.using(run.alias).due(run.now),
    }
    for phase, due in sets.items():
        _expire(run, phase, due)
    return Backlog(
        tables={
            due.model._meta.db_table: backlog.overdue(run, due, key="expires_at", since=run.now)
            for due in sets.values()
        }
    )


def _expire(run: Run, phase: str, due: QuerySet[Any]) -> None:
    with run.phase(phase, table=due.model._meta.db_table, counted="expiredCount"):
        for _ in work_off(run, phase, Windows(due, "expires_at", flip)):
            pass
        telemetry.event("phase done", phase=phase, expiredCount=run.changed[phase])


def flip(window: QuerySet[Any], most: int | None) -> int:
    """Flip a window at once, or up to `most` of its rows, past those that are locked elsewhere; return how many.

    The window's own conditions stand in the update too: a session rotated meanwhile stays Rotated. NO KEY, because a
    plain FOR UPDATE would make the insert of a child wait.
    """
    if most is not None:
        window = picked(window, window.select_for_update(skip_locked=True, no_key=True)[:most])
    return window.update(status=EXPIRED)
