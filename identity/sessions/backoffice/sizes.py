"""How long the queues are: counted within limits, the oldest first, by age."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from django.db.models import Count, Min, Q, QuerySet

from identity.sessions.backoffice.bounded import NotInTime, bounded
from identity.sessions.backoffice.queues import ALLOWED_INTERVALS, Queue
from identity.sessions.models import RefreshSession

# "More than this" tells as much as the number would, and so many index entries are read in a tenth of a second.
CAP = 100_000
# Where a bar of the histogram ends, in intervals of the job.
BAR_ENDS = (1, ALLOWED_INTERVALS, 4, 12, 48)


@dataclass(frozen=True, kw_only=True)
class Bar:
    """Rows overdue by `above` to `up_to`; the last bar has no end."""

    above: timedelta
    up_to: timedelta | None
    late: bool
    rows: int = 0


@dataclass(frozen=True, kw_only=True)
class Size:
    """What was counted of a queue: `more` rows than CAP exist, or not all was counted in time (`incomplete`)."""

    queue: Queue
    bars: tuple[Bar, ...]
    rows: int = 0
    oldest: timedelta | None = None
    more: bool = False
    incomplete: bool = False

    @property
    def late(self) -> bool:
        return self.oldest is not None and self.oldest > self.queue.limit


def empty_bars(queue: Queue) -> tuple[Bar, ...]:
    """Return the bars of a queue's histogram with nothing in them."""
    ends = [timedelta(), *(times * queue.interval for times in BAR_ENDS), None]
    allowed = ALLOWED_INTERVALS * queue.interval
    return tuple(
        Bar(above=above, up_to=up_to, late=above >= allowed) for above, up_to in pairwise(ends) if above is not None
    )


def part_size(queue: Queue, part: QuerySet[Any], now: datetime) -> Size:
    """Return the size of one set: its rows, its oldest and its bars in one statement over at most CAP + 1 rows."""
    bars, overdue_since = empty_bars(queue), now - queue.threshold
    within = {
        f"bar{number}": Count("pk", filter=_between(queue.key, bar, overdue_since)) for number, bar in enumerate(bars)
    }
    found = part.order_by(queue.key)[: CAP + 1].aggregate(rows=Count("pk"), first=Min(queue.key), **within)
    return Size(
        queue=queue,
        bars=tuple(replace(bar, rows=found[f"bar{number}"]) for number, bar in enumerate(bars)),
        rows=min(found["rows"], CAP),
        oldest=now - found["first"] if found["first"] else None,
        more=found["rows"] > CAP,
    )


def _between(key: str, bar: Bar, overdue_since: datetime) -> Q:
    """Return the condition of a bar: later keys are the less overdue ones."""
    until = Q() if bar.up_to is None else Q(**{f"{key}__gt": overdue_since - bar.up_to})
    return until & (Q(**{f"{key}__lte": overdue_since - bar.above}) if bar.above else Q())


def size(queue: Queue, now: datetime) -> Size:
    """Return the size of a queue, marked incomplete if a part of it could not be counted in time."""
    total = Size(queue=queue, bars=empty_bars(queue))
    for part in queue.sets(now):
        try:
            with bounded():
                total = together(total, part_size(queue, part, now))
        except NotInTime:
            total = replace(total, incomplete=True)
    return total


def together(one: Size, other: Size) -> Size:
    """Return two sizes of the same queue as one."""
    return replace(
        one,
        bars=tuple(replace(bar, rows=bar.rows + more.rows) for bar, more in zip(one.bars, other.bars, strict=True)),
        rows=one.rows + other.rows,
        oldest=max((oldest for oldest in (one.oldest, other.oldest) if oldest is not None), default=None),
        more=one.more or other.more,
        incomplete=one.incomplete or other.incomplete,
    )


def blocked(cutoff: datetime) -> int | None:
    """Return how many sessions past retention another refers to, at most CAP + 1; None if not counted in time."""
    try:
        with bounded():
            return RefreshSession.objects.blocked(cutoff)[: CAP + 1].count()
    except NotInTime:
        return None
