"""The backlog page: are the jobs keeping up, what is overdue, and which options are in force."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe

from identity.sessions.backoffice.bounded import clock
from identity.sessions.backoffice.queues import queues
from identity.sessions.backoffice.sizes import CAP, Bar, Size, blocked, size
from identity.sessions.backoffice.wording import in_words, utc
from identity.sessions.options import ExpireSessionsOptions, SessionRetentionOptions, effective, load

LISTS = {
    "refresh_sessions": "admin:identity_sessions_refreshsession_changelist",
    "sign_in_confirmation_requests": "admin:identity_sessions_signinconfirmationrequest_changelist",
}
FILTERS = {"due": "overdue", "deletable": "deletable"}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A judgement in words; `level` is its colour: good, late or unknown."""

    level: str
    words: str


def verdict(size: Size) -> Verdict:
    """Judge a queue by its oldest row: late is late, however much was not counted."""
    allowed = in_words(size.queue.limit - size.queue.threshold)
    if size.late:
        return Verdict(level="late", words=f"Late: rows wait for more than {allowed}")
    if size.incomplete:
        known = "On time as far as counted in time" if size.rows else "Not known: not counted in time"
        return Verdict(level="unknown", words=known)
    if not size.rows:
        return Verdict(level="good", words="Nothing waits")
    return Verdict(level="good", words="On time")


def overall(sizes: list[Size]) -> Verdict:
    """Judge the jobs together: the worst of the queues decides."""
    late = [f"{each.queue.job} on {each.queue.table}" for each in sizes if each.late]
    if late:
        return Verdict(level="late", words=f"Not keeping up: {', '.join(late)}.")
    if any(each.incomplete for each in sizes):
        return Verdict(level="unknown", words="Not all could be counted in time: nothing known is late.")
    return Verdict(level="good", words="The jobs are keeping up.")


def number(rows: int, *, more: bool = False, incomplete: bool = False) -> str:
    """Return a count in words, as far as one was had."""
    if more:
        return f"more than {rows:,}"
    if incomplete:
        return f"at least {rows:,}, not counted in time" if rows else "not counted in time"
    return f"{rows:,}"


def bar_label(bar: Bar) -> str:
    if bar.up_to is None:
        return f"over {in_words(bar.above)}"
    return f"{in_words(bar.above)} to {in_words(bar.up_to)}" if bar.above else f"up to {in_words(bar.up_to)}"


def histogram(size: Size) -> list[dict[str, Any]]:
    """Return the bars, their widths in per cent of the longest; a bar that has rows can be seen."""
    longest = max(bar.rows for bar in size.bars) or 1
    return [
        {
            "label": bar_label(bar),
            "rows": bar.rows,
            "width": max(1, round(100 * bar.rows / longest)) if bar.rows else 0,
            "late": bar.late,
        }
        for bar in size.bars
    ]


def panel(size: Size) -> dict[str, Any]:
    """Return what the page says about a queue."""
    queue = size.queue
    return {
        "job": queue.job,
        "table": queue.table,
        "waiting_for": queue.waiting_for,
        "rows": number(size.rows, more=size.more, incomplete=size.incomplete),
        "age_of": "Overdue time" if queue.waiting_for == "due" else "Age",
        "oldest": in_words(size.oldest) if size.oldest is not None else "none",
        "limit": in_words(queue.limit),
        "verdict": verdict(size),
        "bars": histogram(size),
        "drawn": f"the oldest {CAP:,}" if size.more else "",
        "address": f"{reverse(LISTS[queue.table])}?waiting={FILTERS[queue.waiting_for]}",
    }


def breakable(name: str) -> SafeString:
    """Return a long name that a narrow screen may break after an underscore."""
    return format_html_join(mark_safe("_<wbr>"), "{}", ((part,) for part in name.split("_")))


def overview(now: datetime | None = None) -> dict[str, Any]:
    """Return all that the page shows; raise ImproperlyConfigured if an option is refused."""
    expiry, retention = load(ExpireSessionsOptions), load(SessionRetentionOptions)
    now = now or clock()
    sizes = [size(queue, now) for queue in queues(expiry, retention)]
    kept = blocked(now - retention.refresh_terminal_retention)
    return {
        "read_at": utc(now.replace(microsecond=0)),
        "verdict": overall(sizes),
        "panels": [panel(each) for each in sizes],
        "blocked": "not counted in time" if kept is None else number(min(kept, CAP), more=kept > CAP),
        "blocked_address": f"{reverse(LISTS['refresh_sessions'])}?waiting=blocked",
        "options": [(breakable(name), value) for name, value in (effective(expiry) | effective(retention)).items()],
    }
