"""Reading one variable: unset means the default, wrong means one sentence with its name, its value and what to give."""

from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from identity import environment
from identity.environment import Form

LENGTHS = (
    "a whole number with a unit (ms, s, m, h, d) such as 5m, or ISO 8601 such as PT5M, at most 36500d and above zero"
)
NUMBER = "a whole number from 1 to 1000000"


def test_an_unset_variable_means_its_default() -> None:
    assert environment.read("X_UNSET", environment.DURATION, "5m") == timedelta(minutes=5)
    assert environment.read("X_UNSET", environment.DURATION) is None


@pytest.mark.parametrize(
    ("value", "length"),
    [
        ("1ms", timedelta(milliseconds=1)),
        ("90s", timedelta(seconds=90)),
        ("5m", timedelta(minutes=5)),
        ("24h", timedelta(hours=24)),
        ("30d", timedelta(days=30)),
        ("030d", timedelta(days=30)),
        ("36500d", timedelta(days=36500)),
        ("P30D", timedelta(days=30)),
        ("PT5M", timedelta(minutes=5)),
        ("P1DT2H3M4S", timedelta(days=1, hours=2, minutes=3, seconds=4)),
    ],
)
def test_a_duration_is_what_it_says(value: str, length: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_LENGTH", value)
    assert environment.read("X_LENGTH", environment.DURATION) == length


WRONG_LENGTHS = [
    *("", " ", "0", "300", "-1", "-5m", "+5m", "5_000", "5_0m", "12h30", "1h30m", "1e3", "1e3s", "0x10", "0x10s"),
    *("5 m", " 5m", "5m ", "5m\n", "5 minutes", "5min", "5M", "5w", "5us", "1.5h", "1,5h", "00:05", "00:05:00"),
    *("P", "PT", "P1DT", "P1M", "P1Y", "P1W", "PT1.5H", "-P1D", "P-1D", "p1d", "PT0S", "P0D", "0s", "0d", "0ms"),
    *(
        "9e99",
        "Infinity",
        "nan",
        "None",
        "99999999999999d",
        "36501d",
        "P36501D",
        "9" * 400 + "d",
        "\u0661\u0662s",
        "\u0661\u0662",
        "\uff15m",
    ),
]


@pytest.mark.parametrize("value", WRONG_LENGTHS)
def test_what_is_not_a_duration_is_refused_in_one_sentence(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_LENGTH", value)
    with pytest.raises(ImproperlyConfigured) as refusal:
        environment.read("X_LENGTH", environment.DURATION, "5m")
    assert str(refusal.value) == f"X_LENGTH={value!r} is refused: give {LENGTHS}."
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize("value", ["0s", "0ms", "PT0S"])
def test_a_pause_may_be_zero(value: str) -> None:
    assert environment.parse("X_PAUSE", value, environment.DURATION_OR_ZERO) == timedelta()


@pytest.mark.parametrize("value", ["", "0", "-1s", "1"])
def test_a_pause_may_not_be_anything_else(value: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="; 0s is allowed"):
        environment.parse("X_PAUSE", value, environment.DURATION_OR_ZERO)


@pytest.mark.parametrize(("value", "number"), [("1", 1), ("5000", 5000), ("1000000", 1_000_000)])
def test_a_batch_size_is_a_whole_number_up_to_a_million(value: str, number: int) -> None:
    assert environment.parse("X_SIZE", value, environment.BATCH_SIZE) == number


WRONG_NUMBERS = [
    *(
        "",
        " ",
        "0",
        "-1",
        "+5",
        " 12 ",
        "12\n",
        "5_000",
        "7junk",
        "1e3",
        "0x10",
        "1.5",
        "1,5",
        "5k",
        "None",
        "\u0661\u0662",
    ),
    *(
        "1000001",
        "2500000000",
        "99999999999",
        "9" * 5000,
        "9e99",
        "Infinity",
        "12h30",
        "True",
        "\u0661\u0662",
        "\uff15",
    ),
]


@pytest.mark.parametrize("value", WRONG_NUMBERS)
def test_what_is_not_a_batch_size_is_refused_in_one_sentence(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_SIZE", value)
    with pytest.raises(ImproperlyConfigured) as refusal:
        environment.read("X_SIZE", environment.BATCH_SIZE, "5000")
    assert str(refusal.value) == f"X_SIZE={value!r} is refused: give {NUMBER}."


@pytest.mark.parametrize(
    ("form", "right", "wrong"),
    [
        (environment.PORT, "65535", ["0", "65536", "-1", "http", "9_000", ""]),
        (environment.ADDRESS, "::1", ["localhost", "127.0.0", "127.0.0.1:9000", ""]),
        (environment.BOOLEAN, "on", ["", "enabled", "yes", "2", "None"]),
        (environment.SCHEMA, "identity", ["", "Identity", "a b", "a;b", 'a"b', "a,public", "1a", "a" * 64]),
        (environment.HOSTS, "a.example,b.example", ["", ",", "a,,b", "a b"]),
        (environment.LEVEL, "DEBUG", ["", "debug", "LOUD", "10"]),
        (environment.URL, "http://gateway:9091", ["", "gateway:9091", "ftp://gateway", "http://", "http:// x"]),
        (environment.PATH, "/var/lib/metrics.prom", ["", " "]),
    ],
)
def test_every_other_form_takes_what_it_promises_and_nothing_else(form: Form, right: str, wrong: list[str]) -> None:
    environment.parse("X_OTHER", right, form)
    for value in wrong:
        with pytest.raises(ImproperlyConfigured) as refusal:
            environment.parse("X_OTHER", value, form)
        shown = "X_OTHER" if form.secret else f"X_OTHER={value!r}"
        assert str(refusal.value) == f"{shown} is refused: give {form.accepted}."


@pytest.mark.parametrize(
    ("value", "truth"), [("true", True), ("On", True), ("1", True), ("FALSE", False), ("0", False)]
)
def test_a_boolean_is_written_in_six_ways(value: str, truth: bool) -> None:
    assert environment.parse("X_TRUTH", value, environment.BOOLEAN) is truth


def test_a_value_may_name_another_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_SIZE", "$X_ELSEWHERE")
    monkeypatch.setenv("X_ELSEWHERE", "17")
    assert environment.read("X_SIZE", environment.BATCH_SIZE, "5000") == 17


@pytest.mark.parametrize("value", ["$X_NOWHERE", "$X_SIZE", "$", "$$", "${X_ELSEWHERE}"])
def test_a_reference_that_leads_nowhere_is_refused_and_no_silent_default(value, monkeypatch) -> None:
    monkeypatch.setenv("X_SIZE", value)
    with pytest.raises(ImproperlyConfigured) as refusal:
        environment.read("X_SIZE", environment.BATCH_SIZE, "5000")
    assert str(refusal.value) == f"X_SIZE={value!r} is refused: give {NUMBER}."


def test_a_secret_is_taken_as_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_SECRET", "$a&b%")
    assert environment.secret("X_SECRET", "a long random text") == "$a&b%"
    monkeypatch.delenv("X_SECRET")
    assert environment.secret("X_SECRET", "a long random text") is None


def test_an_empty_secret_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_SECRET", "  ")
    with pytest.raises(ImproperlyConfigured, match=r"^X_SECRET is empty: give a long random text\.$"):
        environment.secret("X_SECRET", "a long random text")


def test_what_a_reference_leads_to_is_not_told_when_it_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X_SECRET", "hunter2")
    monkeypatch.setenv("X_SIZE", "$X_SECRET")
    with pytest.raises(ImproperlyConfigured, match=r"^X_SIZE is refused: give a whole number from 1 to 1000000\.$"):
        environment.read("X_SIZE", environment.BATCH_SIZE)
