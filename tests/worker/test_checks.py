"""`manage.py check` on the options: what the commands refuse, with an id and a hint, and what is suspicious."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.kit.refusals import VARIABLES, WRONG


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
            {"EXPIRE_SESSIONS_MAX_RUN_DURATION": "999ms"},
            "EXPIRE_SESSIONS_MAX_RUN_DURATION is 999ms: a run may end before its first batch.",
        ),
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
        (
            {"EXPIRE_SESSIONS_LOCK_TIMEOUT": "1s"},
            "EXPIRE_SESSIONS_LOCK_TIMEOUT is 1s: PostgreSQL looks for deadlocks after a second, "
            "and may cancel a sign-in instead of the job.",
        ),
        (
            {"SESSION_RETENTION_LOCK_TIMEOUT": "1m"},
            "SESSION_RETENTION_LOCK_TIMEOUT is 1m: PostgreSQL looks for deadlocks after a second, "
            "and may cancel a sign-in instead of the job.",
        ),
    ],
)
def test_legal_and_suspicious_values_are_a_warning_of_check(variables, sentence, monkeypatch) -> None:
    assert f"(identity_sessions.W001) {sentence}" in checked(monkeypatch, **variables)


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"SESSION_RETENTION_SICR_RETENTION": "24h"},
        {"EXPIRE_SESSIONS_POLLING_INTERVAL": "2m"},
        {"EXPIRE_SESSIONS_LOCK_TIMEOUT": "999ms"},
    ],
)
def test_values_at_the_limit_are_no_warning(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "identity_sessions" not in checked(monkeypatch, **variables)
