"""The online transitions that the jobs race with: confirm a request, rotate a session, revoke a session.

Each is one guarded UPDATE with the TTL in its condition, and the number of rows it changed decides who won. So no
answer depends on whether the expiry job has come by yet: what has run out is refused, whatever its status still says.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from identity.sessions.models import (
    ConfirmationRequestStatus,
    RefreshSession,
    RefreshSessionQuerySet,
    RefreshSessionStatus,
    SignInConfirmationRequest,
)

# Sliding: each rotation starts it anew.
SESSION_TTL = timedelta(days=30)


class TransitionRefused(Exception):
    """The row is not in the state that the transition starts from; `code` is what a client is told."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def confirm(request_id: UUID, *, now: datetime) -> None:
    """Turn a Pending request into Confirmed; raise TransitionRefused if it has run out or is not Pending."""
    live = SignInConfirmationRequest.objects.filter(
        pk=request_id, status=ConfirmationRequestStatus.PENDING, expires_at__gt=now
    )
    if not live.update(status=ConfirmationRequestStatus.CONFIRMED, confirmed_at=now, updated_at=now):
        raise TransitionRefused(
            "IDENTITY_CONFIRMATION_EXPIRED", "This code can no longer be confirmed: ask for a new one."
        )


def rotate(
    session_id: UUID, *, now: datetime, token_hash: str, ip_address: str | None, user_agent: str
) -> RefreshSession:
    """Turn an Active session into Rotated and return its new Active child, both in one transaction.

    Raise TransitionRefused if the session has run out or is not Active. The child lives SESSION_TTL from `now`.
    """
    with transaction.atomic():
        if not _live(session_id, now=now).update(status=RefreshSessionStatus.ROTATED, updated_at=now):
            raise _refused()
        # The update has locked the row, so its owner can be read behind it.
        user_id = RefreshSession.objects.values_list("user_id", flat=True).get(pk=session_id)
        return RefreshSession.objects.create(
            user_id=user_id,
            parent_session_id=session_id,
            status=RefreshSessionStatus.ACTIVE,
            token_hash=token_hash,
            created_at=now,
            updated_at=now,
            expires_at=now + SESSION_TTL,
            ip_address=ip_address,
            user_agent=user_agent,
        )


def revoke(session_id: UUID, *, now: datetime, reason: str) -> None:
    """Turn an Active session into Revoked; raise TransitionRefused if it has run out or is not Active.

    One that has run out is refused although its column may still say Active: expiry is not a revocation.
    """
    if not _live(session_id, now=now).update(
        status=RefreshSessionStatus.REVOKED, updated_at=now, revoked_at=now, revoked_reason=reason
    ):
        raise _refused()


def _live(session_id: UUID, *, now: datetime) -> RefreshSessionQuerySet:
    return RefreshSession.objects.filter(pk=session_id, status=RefreshSessionStatus.ACTIVE, expires_at__gt=now)


def _refused() -> TransitionRefused:
    return TransitionRefused("IDENTITY_SESSION_NOT_ACTIVE", "This session is no longer active: sign in again.")
