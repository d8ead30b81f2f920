"""The night window: UTC, either side of midnight, both edges to the microsecond."""

import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.core.exceptions import ImproperlyConfigured

from identity import environment
from identity.sessions.night_window import NightWindow, parse_night_window
from identity.sessions.options import NIGHT_WINDOW
from tests.kit.factories import MICROSECOND


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


NIGHT = parse_night_window("02:00-05:00")
ACROSS_MIDNIGHT = parse_night_window("22:30-01:15")
ALWAYS = parse_night_window("00:00-24:00")
LATE = parse_night_window("23:00-24:00")


@pytest.mark.parametrize(
    ("window", "first", "last"),
    [
        (NIGHT, "2026-03-10 02:00", "2026-03-10 05:00"),
        (ACROSS_MIDNIGHT, "2026-03-10 22:30", "2026-03-11 01:15"),
        (LATE, "2026-03-10 23:00", "2026-03-11 00:00"),
    ],
)
def test_a_window_holds_its_opening_and_not_its_closing(window: NightWindow, first: str, last: str) -> None:
    opens, closes = at(first), at(last)
    assert not window.contains(opens - MICROSECOND)
    assert window.contains(opens)
    assert window.contains(closes - MICROSECOND)
    assert not window.contains(closes)


@pytest.mark.parametrize("moment", ["2026-03-10 22:30", "2026-03-11 00:00", "2026-03-11 01:14:59"])
def test_a_window_across_midnight_closes_on_the_next_day_from_either_side_of_it(moment: str) -> None:
    assert ACROSS_MIDNIGHT.closing(at(moment)) == at("2026-03-11 01:15")


@pytest.mark.parametrize(
    ("window", "moment", "opening"),
    [
        (NIGHT, "2026-03-10 01:59:59", "2026-03-10 02:00"),
        (NIGHT, "2026-03-10 02:00", "2026-03-11 02:00"),
        (NIGHT, "2026-03-10 12:00", "2026-03-11 02:00"),
        (NIGHT, "2026-12-31 12:00", "2027-01-01 02:00"),
        (ACROSS_MIDNIGHT, "2026-03-11 00:10", "2026-03-11 22:30"),
        (ACROSS_MIDNIGHT, "2026-03-11 02:00", "2026-03-11 22:30"),
        (LATE, "2026-03-11 00:00", "2026-03-11 23:00"),
    ],
)
def test_the_next_opening_is_the_first_one_after_the_moment(window: NightWindow, moment: str, opening: str) -> None:
    assert window.next_opening(at(moment)) == at(opening)


@pytest.mark.parametrize("moment", ["2026-03-10 00:00", "2026-03-10 12:34:56", "2026-03-10 23:59:59.999999"])
def test_a_window_of_a_whole_day_is_never_closed(moment: str) -> None:
    assert ALWAYS.contains(at(moment))
    assert ALWAYS.closing(at(moment)) == ALWAYS.next_opening(at(moment)) == at("2026-03-11 00:00")


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo", "Asia/Kathmandu", "UTC"])
def test_a_moment_means_the_same_in_every_zone(zone: str) -> None:
    for hour, inside in ((1, False), (2, True), (4, True), (5, False)):
        moment = datetime(2026, 3, 10, hour, 30, tzinfo=UTC) - timedelta(minutes=30)
        assert NIGHT.contains(moment.astimezone(ZoneInfo(zone))) is inside
        assert NIGHT.next_opening(moment.astimezone(ZoneInfo(zone))) == NIGHT.next_opening(moment)


@pytest.mark.parametrize("changeover", ["2026-03-08", "2026-11-01"])
def test_a_night_when_clocks_change_has_one_window_of_its_full_length(changeover: str, monkeypatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        minutes = [at(f"{changeover} 00:00") + timedelta(minutes=n) for n in range(24 * 60)]
        local = [moment.astimezone(ZoneInfo("America/New_York")) for moment in minutes]
        inside = [minute for minute, moment in zip(minutes, local, strict=True) if NIGHT.contains(moment)]
    finally:
        monkeypatch.undo()
        time.tzset()
    assert inside == [at(f"{changeover} 02:00") + timedelta(minutes=n) for n in range(180)]


@pytest.mark.parametrize("value", ["02:00-05:00", "22:30-01:15", "00:00-24:00", "23:59-00:00", "00:00-00:01"])
def test_a_window_is_written_as_it_was_given(value: str) -> None:
    assert str(parse_night_window(value)) == value


@pytest.mark.parametrize(
    "value",
    [
        "",
        " ",
        "05:00-05:00",
        "00:00-00:00",
        "24:00-24:00",
        "24:00-05:00",
        "02:00-24:01",
        "25:00-02:00",
        "02:00-25:00",
        "02:60-05:00",
        "02:00-05:60",
        "2-5",
        "2:00-5:00",
        "02:00",
        "02:00-",
        "02:00-05:00-06:00",
        "02:00 - 05:00",
        " 02:00-05:00",
        "02:00-05:00\n",
        "02:00\u201305:00",
        "02:00-05:00Z",
        "02:00:00-05:00:00",
        "-2:00-05:00",
        "\u0660\u0662:\u0660\u0660-\u0660\u0665:\u0660\u0660",
    ],
)
def test_what_is_not_a_window_is_refused_in_one_sentence(value: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refusal:
        environment.parse("SESSION_RETENTION_NIGHT_WINDOW_UTC", value, NIGHT_WINDOW)
    assert str(refusal.value) == (
        f"SESSION_RETENTION_NIGHT_WINDOW_UTC={value!r} is refused: give HH:MM-HH:MM in UTC with different ends, "
        "such as 02:00-05:00, or 00:00-24:00 for always."
    )


def test_only_the_whole_day_is_always() -> None:
    assert (ALWAYS.always, LATE.always, parse_night_window("00:00-23:59").always) == (True, False, False)
