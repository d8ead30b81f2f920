"""The two commands in one process: what they print, log, count and exit with."""

import re
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.kit.factories import DAY, MICROSECOND, chain, requests, sessions
from tests.kit.runs import EXPIRY, RETENTION
from tests.kit.triggers import SESSIONS, Kit

pytestmark = pytest.mark.django_db

# The commands take their moment from the database, so rows here are placed around the present.
PRESENT = datetime.now(UTC)
DUE = {"now": PRESENT, "left": -DAY}


def run(command: str, *flags: str) -> str:
    out = StringIO()
    call_command(command, *flags, stdout=out)
    return re.sub(r"in \d+\.\d s", "in N s", out.getvalue())


def content() -> list[Any]:
    return [*RefreshSession.objects.order_by("pk").values(), *SignInConfirmationRequest.objects.order_by("pk").values()]


def test_expiry_says_what_it_changed_how_long_it_took_and_what_is_left() -> None:
    sessions(3, **DUE)
    requests(2, **DUE)
    assert run("expire_sessions") == (
        "expire_sessions: 3 sessions and 2 confirmation requests expired in N s, 0 left, completed.\n"
    )
    assert run("expire_sessions") == (
        "expire_sessions: 0 sessions and 0 confirmation requests expired in N s, 0 left, completed.\n"
    )


def test_retention_says_what_it_deleted_and_what_a_descendant_keeps() -> None:
    chain(4, now=PRESENT)
    chain(3, now=PRESENT, tip="Active")
    requests(2, now=PRESENT, age=31 * DAY)
    assert run("session_retention") == (
        "session_retention: 2 confirmation requests and 4 sessions deleted in N s, "
        "0 left (2 blocked by a descendant), completed.\n"
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_a_run_at_its_deadline_is_an_orderly_end(command: str, kit: Kit) -> None:
    sessions(4, **DUE)
    sessions(4, now=PRESENT, status="Revoked", age=100 * DAY)
    kit.slow(SESSIONS, 0.2)
    summary = run(command, "--batch-size=1", "--max-run-duration=500ms")
    assert summary.endswith("left, deadline.\n")
    assert not summary.endswith(" 0 left, deadline.\n")


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_a_dry_run_says_what_would_change_and_changes_nothing(command: str, kit: Kit) -> None:
    sessions(3, **DUE)
    requests(2, **DUE)
    chain(3, now=PRESENT)
    chain(3, now=PRESENT, tip="Active")
    requests(4, now=PRESENT, age=31 * DAY, status="Confirmed")
    before, counted = content(), samples()
    kit.audit()
    said = run(command, "--dry-run")
    assert (content(), kit.changes()) == (before, [])
    assert samples() == counted
    assert (
        said
        == {
            "expire_sessions": (
                "expire_sessions: 3 sessions and 2 confirmation requests would be expired; nothing was changed.\n"
            ),
            "session_retention": (
                "session_retention: 4 confirmation requests and 3 sessions would be deleted "
                "(2 more are blocked by a descendant); nothing was changed.\n"
            ),
        }[command]
    )
    # And a real run then does what was said.
    done = run(command)
    assert re.findall(r"\d+ (?:sessions|confirmation requests)", done) == re.findall(
        r"\d+ (?:sessions|confirmation requests)", said
    )


def samples() -> dict[Any, float]:
    """Return every sample of both jobs' metrics."""
    return {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for metrics in (EXPIRY, RETENTION)
        for metric in metrics.registry.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }


def test_retention_takes_no_account_of_the_hour_when_it_runs_once(monkeypatch: pytest.MonkeyPatch) -> None:
    hour = (datetime.now(UTC) + timedelta(hours=6)).hour
    monkeypatch.setenv("SESSION_RETENTION_NIGHT_WINDOW_UTC", f"{hour:02}:00-{hour:02}:30")
    requests(2, now=PRESENT, age=31 * DAY)
    assert "2 confirmation requests" in run("session_retention")


def test_the_ages_of_the_options_are_what_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_RETENTION_SICR_RETENTION", "2d")
    monkeypatch.setenv("SESSION_RETENTION_REFRESH_TERMINAL_RETENTION", "PT72H")
    for days in (1, 2.5, 3.5):
        requests(1, now=PRESENT, age=days * DAY)
        sessions(1, now=PRESENT, age=days * DAY, status="Revoked")
    run("session_retention")
    assert (SignInConfirmationRequest.objects.count(), RefreshSession.objects.count()) == (1, 2)


def test_a_failed_phase_is_exit_1_with_one_sentence_and_the_other_phase_runs(kit: Kit, capsys: Any) -> None:
    [bad, *_] = sessions(5, **DUE)
    requests(2, **DUE)
    kit.poison(SESSIONS, bad.pk)
    with pytest.raises(CommandError) as failed:
        run("expire_sessions")
    assert failed.value.returncode == 1
    assert str(failed.value) == (
        "Rows of identity.refresh_sessions could not be changed (IntegrityError (SQLSTATE 23514)): see docs/runbook.md."
    )
    assert "4 sessions and 2 confirmation requests expired" in capsys.readouterr().out
    assert list(RefreshSession.objects.filter(status="Active")) == [bad]


def test_rows_on_both_sides_of_the_present_by_the_databases_clock() -> None:
    sessions(2, now=PRESENT, left=-timedelta(seconds=1) - MICROSECOND)
    sessions(2, now=PRESENT, left=timedelta(hours=1))
    assert run("expire_sessions").startswith("expire_sessions: 2 sessions")
