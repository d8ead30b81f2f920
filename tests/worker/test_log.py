"""The log of real processes: one JSON object a line, with the names that the contract gives."""

from typing import Any

import pytest
from django.utils import timezone

from tests.kit.factories import DAY, chain, requests, sessions
from tests.kit.triggers import SESSIONS, Kit
from tests.kit.workers import Worker, events, manage

pytestmark = pytest.mark.django_db(transaction=True)

COMMON = {"time", "level", "logger", "event", "jobRunId"}


def told(log: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return events with their own fields."""
    return [(each["event"], {name: each[name] for name in each if name not in COMMON}) for each in log]


def test_an_expiry_run_from_start_to_end():
    now = timezone.now()
    sessions(2, now=now, left=-DAY)
    requests(1, now=now, left=-DAY)
    log = events(manage("expire_sessions").stderr)
    duration = log[-1].pop("durationMs")
    started, *phases, completed = told(log)
    # Phases take turns: which of them is done first is not said.
    phases.sort(key=lambda phase: phase[1]["phase"])
    assert [started, *phases, completed] == [
        ("job started", {}),
        ("phase done", {"phase": "refresh", "expiredCount": 2}),
        ("phase done", {"phase": "sicr", "expiredCount": 1}),
        ("job completed", {"refreshExpired": 2, "sicrExpired": 1, "backlogRemaining": 0, "outcome": "completed"}),
    ]
    assert 0 < duration < 60_000
    assert len({each["jobRunId"] for each in log}) == 1


def test_a_retention_run_from_start_to_end():
    now = timezone.now()
    chain(3, now=now)
    requests(2, now=now, age=40 * DAY)
    log = events(manage("session_retention").stderr)
    log[-1].pop("durationMs")
    (started, cutoffs), *rest = told(log)
    assert started == "job started"
    assert set(cutoffs) == {"cutoffSicr", "cutoffRefresh"}
    assert rest == [
        ("batch deleted", {"phase": "sicr", "deletedCount": 2}),
        ("batch deleted", {"phase": "refresh", "deletedCount": 3}),
        ("job completed", {"sicrDeleted": 2, "refreshDeleted": 3, "backlogRemaining": 0, "outcome": "completed"}),
    ]
    assert len({each["jobRunId"] for each in log}) == 1


def test_a_failed_phase_is_one_line_with_its_traceback_inside(kit: Kit):
    now = timezone.now()
    [bad] = sessions(1, now=now, left=-DAY)
    kit.poison(SESSIONS, bad.id)
    done = manage("expire_sessions")
    *log, sentence = done.stderr.splitlines()
    assert "SQLSTATE 23514" in sentence
    [failed] = [each for each in events("\n".join(log)) if each["event"] == "phase failed"]
    assert (failed["phase"], failed["exception"]) == ("refresh", "IntegrityError (SQLSTATE 23514)")
    assert failed["exc_info"].startswith("Traceback")
    assert failed["jobRunId"]


def test_each_run_of_a_worker_has_an_id_of_its_own():
    with Worker("expire_sessions", EXPIRE_SESSIONS_POLLING_INTERVAL="200ms") as worker:
        worker.until("job completed", times=3)
        assert worker.stop() == 0
    log = events("\n".join(worker.lines))
    runs = [each["jobRunId"] for each in log if each["event"] == "job completed"]
    assert len(set(runs)) == len(runs) >= 3
    assert [each["event"] for each in log if "jobRunId" not in each] == ["worker started", "worker stopping"]
    assert log[0]["options"]["EXPIRE_SESSIONS_POLLING_INTERVAL"] == "200ms"
