"""When runs of expiry start: from start to start, never in a burst, rarer while the database is away."""

from datetime import datetime, timedelta
from itertools import pairwise
from itertools import repeat as forever

from identity.sessions.worker.schedule import polling
from tests.kit.world import World, at, starts

MINUTE = timedelta(minutes=1)
DAY_START = at("2026-03-10 12:00")


def minutes(begun: list[datetime], since: datetime) -> list[float]:
    return [round((moment - since) / MINUTE, 1) for moment in begun]


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
