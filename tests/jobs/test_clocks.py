"""Clocks: the database's decides what is due, and no time zone has a say."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, HOUR, sessions
from tests.kit.processes import Process, database_url

pytestmark = pytest.mark.django_db(transaction=True)

Start = Callable[..., Process]
PRESENT = datetime.now(UTC)
MINUTE = timedelta(minutes=1)
# Preloaded, because the command of that name is a parent of its own that passes no signal on.
LIBRARY = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)
faked = pytest.mark.skipif(LIBRARY is None, reason="faketime is not installed")


def shifted(by: str) -> dict[str, str]:
    """Return what gives a process another time of day; its waits stay as long as they are."""
    return {"LD_PRELOAD": str(LIBRARY), "FAKETIME": by, "DONT_FAKE_MONOTONIC": "1"}


def expired() -> set[object]:
    return set(RefreshSession.objects.filter(status="Expired").values_list("pk", flat=True))


def test_no_time_zone_has_a_say(start: Start) -> None:
    [old] = sessions(1, now=PRESENT, left=-20 * MINUTE)
    [just] = sessions(1, now=PRESENT, left=timedelta(seconds=-1))
    sessions(1, now=PRESENT, left=20 * MINUTE)
    sessions(1, now=PRESENT, left=6 * HOUR)
    url = f"{database_url()}?options=-c%20timezone%3DAsia/Tokyo"
    process = start("expire_sessions", DATABASE_URL=url, TZ="America/New_York", PYTHONWARNINGS="error::RuntimeWarning")
    assert process.end() == 0
    assert expired() == {old.pk, just.pk}


@faked
@pytest.mark.parametrize("ahead", ["+2h", "-2h"])
def test_a_host_whose_clock_is_off_expires_what_the_database_says(ahead: str, start: Start) -> None:
    [due] = sessions(1, now=PRESENT, left=-10 * MINUTE)
    sessions(1, now=PRESENT, left=10 * MINUTE)
    process = start("expire_sessions", **shifted(ahead))
    assert process.end() == 0
    assert expired() == {due.pk}


@faked
@pytest.mark.parametrize("ahead", ["+2h", "-2h"])
def test_a_host_whose_clock_is_off_deletes_what_the_database_says(ahead: str, start: Start) -> None:
    [kept] = sessions(1, now=PRESENT, status="Revoked", age=90 * DAY - HOUR)
    sessions(1, now=PRESENT, status="Revoked", age=90 * DAY + HOUR)
    process = start("session_retention", **shifted(ahead))
    assert process.end() == 0
    assert list(RefreshSession.objects.all()) == [kept]


@faked
@pytest.mark.parametrize("night", ["2026-03-08", "2026-11-01"])
def test_a_night_when_the_clocks_of_its_host_change_begins_at_two_utc(night: str, start: Start) -> None:
    almost = datetime.fromisoformat(f"{night}T01:59:58+00:00")
    shift = f"{(almost - datetime.now(UTC)).total_seconds():.0f}s"
    worker = start("session_retention", "--loop", **shifted(shift), TZ="America/New_York")
    assert worker.until("job started")["time"].startswith(f"{night}T02:00")
