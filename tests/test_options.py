"""Options of the two commands: every refusal is one sentence and exit 2 before any SQL.

No test here may use a database: pytest-django fails whatever tries to.
"""

from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from identity.sessions.night_window import parse_night_window
from identity.sessions.options import ExpireSessionsOptions, SessionRetentionOptions, effective, load

LENGTH = "a whole number with a unit (ms, s, m, h, d) such as 5m, or ISO 8601 such as PT5M, at most 36500d"
ABOVE_ZERO = f"{LENGTH} and above zero"
OR_ZERO = f"{LENGTH}; 0s is allowed"
NUMBER = "a whole number from 1 to 1000000"
WINDOW = "HH:MM-HH:MM in UTC with different ends, such as 02:00-05:00, or 00:00-24:00 for always"

WRONG = {
    ABOVE_ZERO: ["", " ", "0s", "PT0S", "300", "-5m", "5 minutes", "00:05", "P1M", "1.5h", "9e99", "$NOWHERE"],
    OR_ZERO: ["", "0", "-1s", "5", "$NOWHERE"],
    NUMBER: ["", "0", "-1", "5_000", "1e3", "0x10", "12h30", "2500000000", "\u0661\u0662", "$NOWHERE"],
    WINDOW: ["", "05:00-05:00", "02:00-25:00", "25:00-02:00", "2-5", "02:00", "$NOWHERE"],
}
FORMS = {
    ("expire_sessions", "EXPIRE_SESSIONS"): {
        "POLLING_INTERVAL": ABOVE_ZERO,
        "BATCH_SIZE": NUMBER,
        "MAX_RUN_DURATION": ABOVE_ZERO,
        "BATCH_PAUSE": OR_ZERO,
        "LOCK_TIMEOUT": ABOVE_ZERO,
    },
    ("session_retention", "SESSION_RETENTION"): {
        "SICR_RETENTION": ABOVE_ZERO,
        "REFRESH_TERMINAL_RETENTION": ABOVE_ZERO,
        "RETENTION_INTERVAL": ABOVE_ZERO,
        "BATCH_SIZE": NUMBER,
        "MAX_RUN_DURATION": ABOVE_ZERO,
        "NIGHT_WINDOW_UTC": WINDOW,
        "BATCH_PAUSE": OR_ZERO,
        "LOCK_TIMEOUT": ABOVE_ZERO,
    },
}
VARIABLES = [
    (command, f"{prefix}_{name}", form) for (command, prefix), names in FORMS.items() for name, form in names.items()
]
FLAGS = [
    ("expire_sessions", "--polling-interval", ABOVE_ZERO),
    ("expire_sessions", "--batch-size", NUMBER),
    ("expire_sessions", "--max-run-duration", ABOVE_ZERO),
    ("session_retention", "--retention-interval", ABOVE_ZERO),
    ("session_retention", "--batch-size", NUMBER),
    ("session_retention", "--max-run-duration", ABOVE_ZERO),
    ("session_retention", "--night-window", WINDOW),
]


def refusal(command: str, *flags: str) -> str:
    """Return the sentence that the command refuses with; fail unless it exits with 2."""
    with pytest.raises(CommandError) as refused:
        call_command(command, *flags)
    assert refused.value.returncode == 2
    return str(refused.value)


@pytest.mark.parametrize(
    ("command", "variable", "value", "form"),
    [(command, variable, value, form) for command, variable, form in VARIABLES for value in WRONG[form]],
)
def test_a_wrong_variable_is_refused(command, variable, value, form, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, value)
    expected = f"{variable}={value!r} is refused: give {form}."
    assert refusal(command) == refusal(command, "--loop") == refusal(command, "--dry-run") == expected


@pytest.mark.parametrize(
    ("command", "flag", "value", "form"),
    [(command, flag, value, form) for command, flag, form in FLAGS for value in WRONG[form]],
)
def test_a_wrong_flag_is_refused_by_its_own_name(command: str, flag: str, value: str, form: str) -> None:
    assert refusal(command, f"{flag}={value}") == f"{flag}={value!r} is refused: give {form}."


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--loop", "--dry-run"], "--dry-run with --loop is refused: give one of them."),
        (["--metrics-port=9000"], "--metrics-port without --loop is refused: a single run serves nothing."),
        (
            ["--loop", "--metrics-port=0"],
            "--metrics-port='0' is refused: give a port number from 1 to 65535.",
        ),
        (["--database=nowhere"], "--database='nowhere' is refused: give an alias of DATABASES (default)."),
    ],
)
def test_what_makes_no_sense_is_refused(command: str, flags: list[str], sentence: str) -> None:
    assert refusal(command, *flags) == sentence


def test_without_variables_the_defaults_of_the_contract_are_in_force() -> None:
    assert effective(load(ExpireSessionsOptions)) == {
        "EXPIRE_SESSIONS_POLLING_INTERVAL": "5m",
        "EXPIRE_SESSIONS_BATCH_SIZE": "5000",
        "EXPIRE_SESSIONS_MAX_RUN_DURATION": "2m",
        "EXPIRE_SESSIONS_BATCH_PAUSE": "0s",
        "EXPIRE_SESSIONS_LOCK_TIMEOUT": "500ms",
    }
    assert load(SessionRetentionOptions) == SessionRetentionOptions(
        sicr_retention=timedelta(days=30),
        refresh_terminal_retention=timedelta(days=90),
        retention_interval=timedelta(hours=24),
        batch_size=5000,
        max_run_duration=timedelta(minutes=30),
        night_window=parse_night_window("02:00-05:00"),
        batch_pause=timedelta(),
        lock_timeout=timedelta(milliseconds=500),
    )


def test_every_option_has_the_variable_that_the_contract_names() -> None:
    names = {*effective(load(ExpireSessionsOptions)), *effective(load(SessionRetentionOptions))}
    assert names == {variable for _, variable, _ in VARIABLES}


def test_a_flag_goes_before_its_variable_and_a_variable_before_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPIRE_SESSIONS_BATCH_SIZE", "17")
    monkeypatch.setenv("EXPIRE_SESSIONS_POLLING_INTERVAL", "PT90S")
    options = load(ExpireSessionsOptions, batch_size="18", polling_interval=None)
    assert (options.batch_size, options.polling_interval) == (18, timedelta(seconds=90))
    # The flag is what counts, so what it replaces is not looked at.
    monkeypatch.setenv("EXPIRE_SESSIONS_BATCH_SIZE", "no number")
    assert load(ExpireSessionsOptions, batch_size="18").batch_size == 18


@pytest.mark.parametrize("text", ["1ms", "90s", "5m", "36h", "30d", "1001ms"])
def test_an_effective_value_can_be_given_back_as_it_is_shown(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPIRE_SESSIONS_POLLING_INTERVAL", text)
    assert effective(load(ExpireSessionsOptions))["EXPIRE_SESSIONS_POLLING_INTERVAL"] == text


def checked(monkeypatch: pytest.MonkeyPatch, **variables: str) -> str:
    """Return what `manage.py check` has to say with these variables."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    out = StringIO()
    try:
        call_command("check", stdout=out, stderr=out)
    except CommandError as error:
        out.write(str(error))
    return out.getvalue()


@pytest.mark.parametrize(("command", "variable", "form"), VARIABLES)
def test_check_reports_the_same_sentence_with_an_id_and_a_hint(command: Any, variable, form, monkeypatch) -> None:
    value = WRONG[form][1]
    text = checked(monkeypatch, **{variable: value})
    assert f"(identity_sessions.E001) {variable}={value!r} is refused: give {form}." in text
    assert "HINT: Unset it for the default, " in text


def test_check_reports_every_wrong_variable_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = checked(monkeypatch, EXPIRE_SESSIONS_BATCH_SIZE="0", SESSION_RETENTION_BATCH_SIZE="0")
    assert text.count("identity_sessions.E001") == 2


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        (
            {"SESSION_RETENTION_SICR_RETENTION": "23h"},
            "SESSION_RETENTION_SICR_RETENTION is 23h: rows go in less than a day.",
        ),
        (
            {"SESSION_RETENTION_REFRESH_TERMINAL_RETENTION": "1s"},
            "SESSION_RETENTION_REFRESH_TERMINAL_RETENTION is 1s: rows go in less than a day.",
        ),
        (
            {"EXPIRE_SESSIONS_POLLING_INTERVAL": "1m"},
            "EXPIRE_SESSIONS_MAX_RUN_DURATION is 2m, longer than EXPIRE_SESSIONS_POLLING_INTERVAL (1m): "
            "a run may delay the next.",
        ),
        (
            {"SESSION_RETENTION_RETENTION_INTERVAL": "10m"},
            "SESSION_RETENTION_MAX_RUN_DURATION is 30m, longer than SESSION_RETENTION_RETENTION_INTERVAL (10m): "
            "a run may delay the next.",
        ),
    ],
)
def test_legal_and_suspicious_values_are_a_warning_of_check(variables, sentence, monkeypatch) -> None:
    assert f"(identity_sessions.W001) {sentence}" in checked(monkeypatch, **variables)


@pytest.mark.parametrize(
    "variables",
    [{}, {"SESSION_RETENTION_SICR_RETENTION": "24h"}, {"EXPIRE_SESSIONS_POLLING_INTERVAL": "2m"}],
)
def test_values_at_the_limit_are_no_warning(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "identity_sessions" not in checked(monkeypatch, **variables)
