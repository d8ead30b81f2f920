"""Options of the two commands: every refusal is one sentence and exit 2 before any SQL.

No test here may use a database: pytest-django fails whatever tries to.
"""

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from identity.sessions.night_window import parse_night_window
from identity.sessions.options import ExpireSessionsOptions, SessionRetentionOptions, effective, load
from tests.kit.refusals import FLAGS, VARIABLES, WRONG


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
        redact_blocked=False,
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
