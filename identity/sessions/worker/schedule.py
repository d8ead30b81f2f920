"""When a worker runs its task: the only module that decides it, and it knows nothing of what the task does."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from identity.sessions.jobs.stopping import Stop
from identity.sessions.night_window import NightWindow

# Short enough to notice within the minute that the host was suspended or its clock was set.
NAP = timedelta(seconds=30)
# While the database is away: at most this long to the next attempt, at least as long as the interval grown so far.
LONGEST_RETRY = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A point in time on both clocks: the host's UTC and the one that nobody can set."""

    utc: datetime
    steady: float


def this_moment() -> Moment:
    return Moment(utc=datetime.now(UTC), steady=time.monotonic())


# Seconds from now to the next start, zero or less for at once; the last start is None before the first.
Schedule = Callable[[Moment | None, Moment, timedelta], float]


def polling(last: Moment | None, now: Moment, interval: timedelta) -> float:
    """Start at once, then every `interval` from start to start. A run that overran is followed by one, not a burst."""
    return 0 if last is None else last.steady + interval.total_seconds() - now.steady


def nightly(window: NightWindow) -> Schedule:
    """Start at the window's opening, or at once inside it, and again inside the same window where `interval` fits."""

    def schedule(last: Moment | None, now: Moment, interval: timedelta) -> float:
        # A last start far ahead is of a clock that was wrong: it must not hold up all the nights until then.
        if last is None or last.utc > now.utc + interval:
            start = now.utc
        elif last.utc + interval < window.closing(last.utc):
            start = last.utc + interval
        else:
            start = _opening_from(window, window.opening(last.utc) + interval)
        if start <= now.utc:
            start = now.utc if window.contains(now.utc) else window.next_opening(now.utc)
        elif not window.contains(start):
            start = window.next_opening(start)
        return (start - now.utc).total_seconds()

    return schedule


def _opening_from(window: NightWindow, moment: datetime) -> datetime:
    return moment if window.opening(moment) == moment else window.next_opening(moment)


def repeat(
    task: Callable[[], bool],
    *,
    schedule: Schedule,
    interval: timedelta,
    stop: Stop,
    clock: Callable[[], Moment] = this_moment,
) -> None:
    """Call `task` on schedule until a stop is requested.

    The task returns False when the database was away: the next attempt then comes after `interval`, doubled each time,
    at most a minute. The wait is a chain of naps, so that a clock that was set or a suspended host is noticed.
    """
    last: Moment | None = None
    failures = 0
    while not stop.requested:
        now = clock()
        until_next = interval if not failures else min(interval * 2 ** min(failures - 1, 10), LONGEST_RETRY)
        if (seconds := schedule(last, now, until_next)) > 0:
            stop.wait(min(seconds, NAP.total_seconds()))
            continue
        last = now
        failures = 0 if task() else failures + 1
