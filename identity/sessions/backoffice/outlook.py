"""What the jobs will do with a row, and when, in sentences."""

from datetime import datetime, timedelta

from identity.sessions.backoffice.descent import CAP, Descent
from identity.sessions.backoffice.wording import in_words, utc
from identity.sessions.models import (
    ConfirmationRequestStatus,
    RefreshSession,
    RefreshSessionStatus,
    SignInConfirmationRequest,
)
from identity.sessions.options import ExpireSessionsOptions, SessionRetentionOptions


def expiry_outlook(
    row: RefreshSession | SignInConfirmationRequest, *, due: bool, now: datetime, options: ExpireSessionsOptions
) -> str:
    """Return what expire_sessions will do with a session or a request."""
    if due:
        overdue = in_words(now - row.expires_at)
        every = in_words(options.polling_interval)
        return f"Overdue for {overdue}: the next run of expire_sessions makes it Expired. A run starts every {every}."
    if row.status in (RefreshSessionStatus.ACTIVE, ConfirmationRequestStatus.PENDING):
        then = utc(row.expires_at)
        return f"Live: the first run of expire_sessions after {then} makes it Expired, if it is still {row.status}."
    return f"expire_sessions leaves it alone: {row.status} is final."


def request_outlook(
    request: SignInConfirmationRequest, *, old: bool, now: datetime, options: SessionRetentionOptions
) -> str:
    """Return what session_retention will do with a request: its age alone decides."""
    kept = options.sicr_retention
    if old:
        return f"Past retention: session_retention deletes it {_next_run(now, options)}"
    return f"Kept until {in_words(kept)} after it was created: deleted {_run_after(request.created_at + kept, options)}"


def session_outlook(descent: Descent, *, now: datetime, options: SessionRetentionOptions) -> str:
    """Return what session_retention will do with a session, which depends on what came after it."""
    session, holding, kept = descent.session, descent.holding, options.refresh_terminal_retention
    old = session.pk in descent.past_retention
    if not descent.complete:
        return (
            f"More than {CAP:,} sessions came after it, or reading them took too long: when it goes is not known here."
        )
    if old and not descent.descendants:
        return f"Past retention: session_retention deletes it {_next_run(now, options)}"
    if old and not holding:
        return (
            f"Past retention, and so is all that came after it ({len(descent.descendants)}): session_retention deletes "
            f"them together, the last one first, {_next_run(now, options)}"
        )
    moment = max(now, *(_past_retention_from(each, kept) for each in [session, *holding]))
    if holding:
        return f"{_held(old, holding)} Deleted {_run_after(moment, options)}"
    if session.status == RefreshSessionStatus.ACTIVE:
        return f"Never deleted while Active. If nothing happens to it but expiry, deleted {_run_after(moment, options)}"
    return f"Kept until {in_words(kept)} after its last change: deleted {_run_after(moment, options)}"


def _past_retention_from(session: RefreshSession, kept: timedelta) -> datetime:
    """Return when a session is past retention at the earliest: expiry does not move updated_at."""
    ends = session.expires_at if session.status == RefreshSessionStatus.ACTIVE else session.updated_at
    return max(ends, session.updated_at + kept)


def _held(old: bool, holding: list[RefreshSession]) -> str:
    live = sum(each.status == RefreshSessionStatus.ACTIVE for each in holding)
    own = "Past retention, but blocked" if old else "Kept"
    which = f"{live} live" if live == len(holding) else f"{len(holding)} not past retention, {live} of them live"
    again = " Each rotation puts it off." if live else ""
    return f"{own} as long as sessions that came after it are kept ({which}).{again}"


def _next_run(now: datetime, options: SessionRetentionOptions) -> str:
    window = options.night_window
    opening = "is open now" if window.contains(now) else f"opens at {utc(window.next_opening(now))}"
    return f"in its next run (the night window {window} UTC {opening})."


def _run_after(moment: datetime, options: SessionRetentionOptions) -> str:
    opening = utc(options.night_window.next_opening(moment))
    return f"in the first run of session_retention after {utc(moment)} (the night window opens next at {opening})."
