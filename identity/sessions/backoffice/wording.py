"""Ages and moments in words, with the exact UTC beside them."""

from datetime import UTC, datetime, timedelta

from django.utils.html import format_html
from django.utils.safestring import SafeString

UNITS = [
    ("day", timedelta(days=1)),
    ("hour", timedelta(hours=1)),
    ("minute", timedelta(minutes=1)),
    ("second", timedelta(seconds=1)),
]
# Two neighbouring units tell an age well enough: "3 days 4 hours", never "3 days 4 hours 12 minutes 7 seconds".
PRECISION = 2


def in_words(duration: timedelta) -> str:
    """Return a duration as its two largest units, such as "3 days 4 hours"."""
    rest = abs(duration)
    parts: list[str] = []
    for name, unit in UNITS:
        count, rest = divmod(rest, unit)
        if count:
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
        if len(parts) == PRECISION or (parts and not count):
            break
    return " ".join(parts) or (f"{rest // timedelta(milliseconds=1)} ms" if rest else "0 seconds")


def relative(moment: datetime, now: datetime) -> str:
    """Return how far a moment lies from now, such as "5 minutes ago" or "in 3 days"."""
    if abs(moment - now) < timedelta(seconds=1):
        return "just now"
    return f"{in_words(now - moment)} ago" if moment < now else f"in {in_words(moment - now)}"


def utc(moment: datetime) -> str:
    """Return the exact moment in UTC."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(sep=' ')} UTC"


def age(moment: datetime | None, now: datetime) -> SafeString | str:
    """Return a time element: the age in words, the exact UTC on hover and for machines."""
    if moment is None:
        return "-"
    exact = utc(moment)
    return format_html('<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, relative(moment, now))


def age_and_moment(moment: datetime | None, now: datetime) -> SafeString | str:
    """Return the age in words with the exact UTC written out beside it, for pages about a single row."""
    if moment is None:
        return "-"
    return format_html("{} <span class='exact'>({})</span>", age(moment, now), utc(moment))
