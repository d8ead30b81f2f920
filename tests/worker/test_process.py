"""The real process: exit codes, signals in its sleep and in a batch, and what is left when it is killed."""

import json
import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, requests, sessions
from tests.kit.processes import Process, manage
from tests.kit.triggers import execute

pytestmark = pytest.mark.django_db(transaction=True)

Start = Callable[..., Process]
Until = Callable[[str], None]
COMMANDS = pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
ALWAYS = {"SESSION_RETENTION_NIGHT_WINDOW_UTC": "00:00-24:00"}
# The process takes its moment from the database, so rows here are placed around the present.
PRESENT = datetime.now(UTC)


def due(count: int) -> None:
    sessions(count, now=PRESENT, left=-DAY)


def expired() -> int:
    return RefreshSession.objects.filter(status="Expired").count()


def test_one_run_prints_its_summary_and_logs_one_object_a_line(start: Start) -> None:
    due(3)
    process = start("expire_sessions")
    assert process.end() == 0
    assert process.said.startswith("expire_sessions: 3 sessions and 0 confirmation requests expired in ")
    assert [line["event"] for line in process.lines] == ["job started", "phase done", "phase done", "job completed"]
    assert {line["level"] for line in process.lines} == {"INFO"}
    assert expired() == 3


def test_a_refused_option_is_one_line_on_stderr_and_exit_2(start: Start) -> None:
    due(3)
    ended = manage("expire_sessions", DATABASE_URL="postgres://u:p@nowhere.invalid/d", EXPIRE_SESSIONS_BATCH_SIZE="0")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        "CommandError: EXPIRE_SESSIONS_BATCH_SIZE='0' is refused: give a whole number from 1 to 1000000.\n"
    )
    assert expired() == 0


def test_a_worker_outside_its_window_waits_and_can_be_stopped(start: Start) -> None:
    sessions(2, now=PRESENT, status="Revoked", age=100 * DAY)
    hour = (datetime.now(UTC).hour + 6) % 24
    worker = start("session_retention", "--loop", f"--night-window={hour:02}:00-{hour:02}:30")
    started = worker.until("worker started")
    assert started["options"]["SESSION_RETENTION_NIGHT_WINDOW_UTC"] == f"{hour:02}:00-{hour:02}:30"
    assert worker.end(signal.SIGTERM) == 0
    assert worker.lines.events("job started") == []
    assert RefreshSession.objects.count() == 2


def test_a_worker_polls_and_a_restarted_one_goes_on(start: Start) -> None:
    due(4)
    worker = start("expire_sessions", "--loop", "--polling-interval=50ms", EXPIRE_SESSIONS_MAX_RUN_DURATION="1s")
    worker.until("job completed")
    due(3)
    # Runs may have ended before the rows were there.
    while not worker.until("job completed")["refreshExpired"]:
        pass
    assert worker.end(signal.SIGTERM) == 0
    assert sum(line["refreshExpired"] for line in worker.lines.events("job completed")) == 7
    again = start("expire_sessions", "--loop")
    assert again.until("job completed")["refreshExpired"] == 0


@COMMANDS
def test_a_pause_counts_towards_the_length_of_a_run(command: str, start: Start) -> None:
    due(6)
    requests(6, now=PRESENT, age=40 * DAY)
    pauses = {"EXPIRE_SESSIONS_BATCH_PAUSE": "10m", "SESSION_RETENTION_BATCH_PAUSE": "10m"}
    process = start(command, "--batch-size=2", "--max-run-duration=500ms", **pauses)
    assert process.end() == 0
    assert process.lines.events("job completed")[0]["outcome"] == "deadline"


def test_a_worker_restarted_inside_its_window_runs_at_once_and_finds_nothing(start: Start) -> None:
    sessions(4, now=PRESENT, status="Revoked", age=100 * DAY)
    for deleted in (4, 0):
        worker = start("session_retention", "--loop", **ALWAYS)
        assert worker.until("job completed")["refreshDeleted"] == deleted
        assert worker.end(signal.SIGTERM) == 0


def test_between_runs_no_transaction_is_open_and_nobody_is_kept_waiting(start: Start, until: Until) -> None:
    due(3)
    worker = start("expire_sessions", "--loop")
    worker.until("job completed")
    until("count(*) FILTER (WHERE xact_start IS NOT NULL) = 0")
    execute("SET lock_timeout = '500ms'")
    execute("ALTER TABLE refresh_sessions ADD COLUMN note text")
    execute("ALTER TABLE refresh_sessions DROP COLUMN note")
    execute("RESET lock_timeout")
    assert worker.end(signal.SIGTERM) == 0


@COMMANDS
def test_a_database_that_is_away_is_one_sentence_without_its_password_and_exit_1(command: str, tmp_path: Path) -> None:
    ended = manage(command, DATABASE_URL=f"postgres://u:hidden@:5432/{tmp_path}/d")
    assert ended.returncode == 1
    *lines, sentence = ended.stderr.splitlines()
    assert sentence.startswith("CommandError: The database was not reached or the connection was lost")
    assert sentence.count("DATABASE_URL") == 1
    assert {json.loads(line)["event"] for line in lines} <= {"job started", "phase failed", "job completed"}
    assert "hidden" not in ended.stdout + ended.stderr


def test_a_worker_stays_when_the_database_is_away_and_can_be_stopped(start: Start, tmp_path: Path) -> None:
    url = f"postgres://u:hidden@:5432/{tmp_path}/d"
    worker = start("expire_sessions", "--loop", "--polling-interval=20ms", DATABASE_URL=url)
    worker.until("job completed", times=4)
    assert worker.end(signal.SIGTERM) == 0
    failed = worker.lines.events("phase failed")
    # One traceback an outage, not one a try.
    assert len([line for line in failed if "exc_info" in line]) == 1
    assert {line["outcome"] for line in worker.lines.events("job completed")} == {"failed"}


def test_requests_too(start: Start) -> None:
    requests(2, now=PRESENT, age=31 * DAY)
    process = start("session_retention")
    assert process.end() == 0
    assert process.said.startswith("session_retention: 2 confirmation requests and 0 sessions deleted in ")
