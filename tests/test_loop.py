"""When runs start: on a clock that only waiting and working move, so that a night costs no time."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain, pairwise
from itertools import repeat as forever

import pytest

from identity.sessions.loop import Moment, Schedule, nightly, polling, repeat
from identity.sessions.night_window import parse_night_window
from identity.sessions.stopping import Stop

MINUTE = timedelta(minutes=1)
NIGHT = nightly(parse_night_window("02:00-05:00"))


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class World(Stop):
    """A clock and a wait that moves it, until a stop after `lasting`.

    `jumps` are what happens to the host: at a time of UTC, it becomes another.
    """

    def __init__(self, start: datetime, lasting: timedelta, jumps: dict[datetime, datetime] | None = None) -> None:
        super().__init__()
        self.utc, self.steady, self.lasting = start, 0.0, lasting.total_seconds()
        self.jumps = jumps or {}
        self.waits: list[float] = []

    def clock(self) -> Moment:
        return Moment(utc=self.utc, steady=self.steady)

    def work(self, duration: timedelta) -> None:
        self.utc += duration
        self.steady += duration.total_seconds()

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.work(timedelta(seconds=max(seconds, 0.001)))
        for moment in [moment for moment in self.jumps if moment <= self.utc]:
            self.utc = self.jumps.pop(moment)
        if self.steady >= self.lasting:
            self.request("SIGTERM")
        return self.requested


def starts(
    world: World,
    schedule: Schedule,
    interval: timedelta,
    *,
    lengths: Iterable[timedelta] = (),
    succeeds: Callable[[int], bool] = lambda run: True,
) -> list[datetime]:
    """Return when runs started; each takes the next of `lengths`, then no time at all."""
    begun: list[datetime] = []
    length = chain(lengths, forever(timedelta()))

    def task() -> bool:
        begun.append(world.utc)
        world.work(next(length))
        return succeeds(len(begun))

    repeat(task, schedule=schedule, interval=interval, stop=world, clock=world.clock)
    return begun


def minutes(begun: list[datetime], since: datetime) -> list[float]:
    return [round((moment - since) / MINUTE, 1) for moment in begun]


DAY_START = at("2026-03-10 12:00")


def test_polling_starts_at_once_and_then_from_start_to_start() -> None:
    world = World(DAY_START, 18 * MINUTE)
    assert minutes(starts(world, polling, 5 * MINUTE, lengths=forever(2 * MINUTE)), DAY_START) == [0, 5, 10, 15]


def test_a_run_that_overran_is_followed_at_once_by_one_run_and_never_by_a_burst() -> None:
    world = World(DAY_START, 30 * MINUTE)
    assert minutes(starts(world, polling, 5 * MINUTE, lengths=[17 * MINUTE]), DAY_START) == [0, 17, 22, 27]


def test_runs_longer_than_the_interval_follow_each_other_without_a_pause() -> None:
    world = World(DAY_START, 20 * MINUTE)
    lengths = [7 * MINUTE, 7 * MINUTE, 7 * MINUTE]
    assert minutes(starts(world, polling, 5 * MINUTE, lengths=lengths), DAY_START)[:4] == [0, 7, 14, 21]


def test_setting_the_hosts_clock_changes_no_cadence_of_polling() -> None:
    for shift in (timedelta(hours=-3), timedelta(hours=3)):
        moment = DAY_START + 2 * MINUTE
        world = World(DAY_START, 14 * MINUTE, {moment: moment + shift})
        first, *later = starts(world, polling, 5 * MINUTE)
        assert minutes([first, *(start - shift for start in later)], DAY_START) == [0, 5, 10]


def test_waiting_is_cut_into_naps_so_that_a_changed_clock_is_noticed_within_a_minute() -> None:
    world = World(at("2026-03-10 06:00"), timedelta(hours=21))
    starts(world, NIGHT, timedelta(hours=24))
    assert max(world.waits) <= 60


def test_after_a_stop_nothing_starts() -> None:
    world = World(DAY_START, MINUTE)
    world.request("SIGTERM")
    assert starts(world, polling, MINUTE) == []


def test_a_stop_during_a_run_lets_no_other_follow() -> None:
    world = World(DAY_START, 99 * MINUTE)

    def last(_: int) -> bool:
        world.request("SIGTERM")
        return True

    assert len(starts(world, polling, MINUTE, lengths=[9 * MINUTE], succeeds=last)) == 1


@pytest.mark.parametrize(
    ("window", "started", "interval", "expected"),
    [
        ("02:00-05:00", "10 01:00", "24h", ["10 02:00", "11 02:00", "12 02:00"]),
        ("02:00-05:00", "10 02:00", "24h", ["10 02:00", "11 02:00", "12 02:00"]),
        ("02:00-05:00", "10 03:30", "24h", ["10 03:30", "11 02:00", "12 02:00"]),
        ("02:00-05:00", "10 05:00", "24h", ["11 02:00", "12 02:00"]),
        ("02:00-05:00", "10 01:00", "1h", ["10 02:00", "10 03:00", "10 04:00", "11 02:00", "11 03:00", "11 04:00"]),
        ("02:00-05:00", "10 01:00", "2h", ["10 02:00", "10 04:00", "11 02:00", "11 04:00", "12 02:00"]),
        ("02:00-05:00", "10 01:00", "48h", ["10 02:00", "12 02:00"]),
        ("22:30-01:15", "10 12:00", "24h", ["10 22:30", "11 22:30"]),
        ("22:30-01:15", "10 00:30", "24h", ["10 00:30", "10 22:30", "11 22:30"]),
        ("00:00-24:00", "10 00:00", "24h", ["10 00:00", "11 00:00", "12 00:00"]),
        ("00:00-24:00", "10 00:00", "12h", ["10 00:00", "10 12:00", "11 00:00", "11 12:00", "12 00:00"]),
    ],
)
def test_retention_starts_at_the_opening_or_at_once_inside_the_window(window, started, interval, expected) -> None:
    start = at(f"2026-03-{started}")
    world = World(start, at("2026-03-12 02:30") - start)
    every = timedelta(hours=int(interval.removesuffix("h")))
    begun = starts(world, nightly(parse_night_window(window)), every, lengths=forever(10 * MINUTE))
    wanted = [at(f"2026-03-{moment}") for moment in expected]
    assert begun[: len(wanted)] == wanted
    assert {moment.day for moment in begun[len(wanted) :]} <= {12}


def test_a_restart_inside_the_window_runs_again_at_once() -> None:
    begun = []
    for start in ("02:00", "02:20", "04:59"):
        moment = at(f"2026-03-10 {start}")
        begun += starts(World(moment, MINUTE), NIGHT, timedelta(hours=24))
    assert begun == [at("2026-03-10 02:00"), at("2026-03-10 02:20"), at("2026-03-10 04:59")]


@pytest.mark.parametrize(
    ("asleep", "awake", "first"),
    [
        ("10 01:00", "10 03:00", "10 03:00"),  # across the opening: at once, late but inside
        ("10 01:00", "10 05:00", "11 02:00"),  # across the whole window: missed, the next night
        ("10 01:00", "10 01:59", "10 02:00"),
    ],
)
def test_a_host_that_slept_runs_inside_the_window_only(asleep: str, awake: str, first: str) -> None:
    world = World(at("2026-03-10 00:30"), timedelta(hours=25), {at(f"2026-03-{asleep}"): at(f"2026-03-{awake}")})
    begun = starts(world, NIGHT, timedelta(hours=24))
    assert begun[0] - at(f"2026-03-{first}") < MINUTE
    assert all(2 <= moment.hour < 5 for moment in begun)


def test_a_clock_set_back_does_not_repeat_the_nights_run() -> None:
    world = World(at("2026-03-10 02:00"), timedelta(hours=25.5), {at("2026-03-10 02:10"): at("2026-03-10 01:10")})
    assert starts(world, NIGHT, timedelta(hours=24)) == [at("2026-03-10 02:00"), at("2026-03-11 02:00")]


def test_a_clock_that_had_run_years_ahead_holds_up_no_night() -> None:
    world = World(at("2031-01-01 03:00"), timedelta(days=2), {at("2031-01-01 03:10"): at("2026-03-10 06:00")})
    assert starts(world, NIGHT, timedelta(hours=24))[1:] == [at("2026-03-11 02:00"), at("2026-03-12 02:00")]


def test_while_the_database_is_away_attempts_become_rarer_up_to_one_a_minute() -> None:
    world = World(DAY_START, 10 * MINUTE)
    begun = starts(world, polling, timedelta(seconds=2), succeeds=lambda run: False)
    gaps = [(after - before).total_seconds() for before, after in pairwise(begun)]
    assert gaps == sorted(gaps)
    assert (min(gaps), max(gaps)) == (2, 60)
    assert len([moment for moment in begun if moment <= DAY_START + 3 * MINUTE]) < 10


def test_the_cadence_is_back_once_the_database_is() -> None:
    world = World(DAY_START, 20 * MINUTE)
    begun = starts(world, polling, timedelta(seconds=10), succeeds=lambda run: run > 6)
    gaps = {(after - before).total_seconds() for before, after in pairwise(begun[6:])}
    assert gaps == {10}


def test_a_night_when_the_database_is_away_is_tried_again_inside_the_window_only() -> None:
    world = World(at("2026-03-10 01:00"), timedelta(hours=25))
    begun = starts(world, NIGHT, timedelta(hours=24), succeeds=lambda run: False)
    assert begun[0] == at("2026-03-10 02:00")
    assert len(begun) > 100
    assert all(2 <= moment.hour < 5 for moment in begun)
