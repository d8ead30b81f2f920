"""When runs of retention start: inside the night window, whatever happens to the host and its clock."""

from datetime import timedelta
from itertools import repeat as forever

import pytest

from identity.sessions.night_window import parse_night_window
from identity.sessions.worker.schedule import nightly
from tests.kit.world import World, at, starts

MINUTE = timedelta(minutes=1)
NIGHT = nightly(parse_night_window("02:00-05:00"))


def test_waiting_is_cut_into_naps_so_that_a_changed_clock_is_noticed_within_a_minute() -> None:
    world = World(at("2026-03-10 06:00"), timedelta(hours=21))
    starts(world, NIGHT, timedelta(hours=24))
    assert max(world.waits) <= 60


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


def test_a_night_when_the_database_is_away_is_tried_again_inside_the_window_only() -> None:
    world = World(at("2026-03-10 01:00"), timedelta(hours=25))
    begun = starts(world, NIGHT, timedelta(hours=24), succeeds=lambda run: False)
    assert begun[0] == at("2026-03-10 02:00")
    assert len(begun) > 100
    assert all(2 <= moment.hour < 5 for moment in begun)


def test_a_clock_that_had_run_years_ahead_holds_up_no_night() -> None:
    world = World(at("2031-01-01 03:00"), timedelta(days=2), {at("2031-01-01 03:10"): at("2026-03-10 06:00")})
    assert starts(world, NIGHT, timedelta(hours=24))[1:] == [at("2026-03-11 02:00"), at("2026-03-12 02:00")]
