"""Signals to the real process: in its sleep, in a batch, in a pause, twice, and those that nobody can handle."""

import signal
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, sessions
from tests.kit.processes import Process
from tests.kit.triggers import SESSIONS, Kit, execute, terminate_others

pytestmark = pytest.mark.django_db(transaction=True)

Start = Callable[..., Process]
Until = Callable[[str], None]
IN_A_BATCH = "bool_or(wait_event = 'PgSleep')"
COMMANDS = pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
ALWAYS = {"SESSION_RETENTION_NIGHT_WINDOW_UTC": "00:00-24:00"}
# The process takes its moment from the database, so rows here are placed around the present.
PRESENT = datetime.now(UTC)


def due(count: int) -> None:
    sessions(count, now=PRESENT, left=-DAY)


def expired() -> int:
    return RefreshSession.objects.filter(status="Expired").count()


@COMMANDS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_in_its_sleep_ends_a_worker_in_order(command: str, number: signal.Signals, start: Start) -> None:
    worker = start(command, "--loop", **ALWAYS)
    worker.until("job completed")
    assert worker.end(number) == 0
    assert [line["event"] for line in worker.lines if line["event"].startswith("worker")] == [
        "worker started",
        "worker stopping",
    ]
    assert worker.lines[-1]["reason"] == number.name


@COMMANDS
@pytest.mark.parametrize("loop", [[], ["--loop"]])
def test_a_signal_in_a_batch_lets_that_batch_finish_and_no_other_begin(
    command: str, loop: list[str], start: Start, until: Until, kit: Kit
) -> None:
    due(40)
    sessions(40, now=PRESENT, status="Revoked", age=100 * DAY)
    kit.audit()
    kit.slow(SESSIONS, 0.03)
    process = start(command, "--batch-size=10", *loop, **ALWAYS)
    until(IN_A_BATCH)
    assert process.end(signal.SIGTERM) == 0
    assert process.lines.events("job completed")[0]["outcome"] == "cancelled"
    assert set(kit.batches()) == {10}
    assert len(kit.batches()) < 4


CHANGED_BY = {
    "expire_sessions": "EXISTS (SELECT FROM refresh_sessions WHERE status = 'Expired')",
    "session_retention": "(SELECT count(*) FROM refresh_sessions) < 12",
}


@COMMANDS
def test_a_signal_in_a_pause_ends_it_at_once(command: str, start: Start, until: Until) -> None:
    due(6)
    sessions(6, now=PRESENT, status="Revoked", age=100 * DAY)
    pauses = {"EXPIRE_SESSIONS_BATCH_PAUSE": "10m", "SESSION_RETENTION_BATCH_PAUSE": "10m"}
    process = start(command, "--batch-size=2", "--max-run-duration=1h", **pauses)
    # A pause keeps no connection.
    until(f"count(*) = 0 AND {CHANGED_BY[command]}")
    assert process.end(signal.SIGTERM) == 0
    assert process.lines.events("job completed")[0]["outcome"] == "cancelled"


def test_a_second_signal_kills_and_the_open_batch_rolls_back_whole(start: Start, until: Until, kit: Kit) -> None:
    due(20)
    kit.slow(SESSIONS, 5)
    process = start("expire_sessions")
    until(IN_A_BATCH)
    process.send_signal(signal.SIGTERM)
    assert kill_again(process) == -signal.SIGTERM
    terminate_others()
    assert expired() == 0


def kill_again(process: Process) -> int:
    """Send SIGTERM once the first one has been handled, which /proc tells: the default action is back."""
    status = Path(f"/proc/{process.pid}/status")
    bit = 1 << (signal.SIGTERM - 1)
    while int(status.read_text().partition("SigCgt:")[2].split()[0], 16) & bit:
        pass
    return process.end(signal.SIGTERM)


def test_a_killed_process_loses_its_open_batch_alone_and_the_next_one_does_the_rest(
    start: Start, until: Until, kit: Kit
) -> None:
    due(30)
    kit.audit()
    kit.slow(SESSIONS, 0.05)
    process = start("expire_sessions", "--batch-size=10")
    until(IN_A_BATCH)
    assert process.end(signal.SIGKILL) == -signal.SIGKILL
    terminate_others()
    execute("DROP TRIGGER kit_slow ON refresh_sessions")
    assert expired() in (0, 10, 20)
    assert start("expire_sessions").end() == 0
    changed = [change.row_id for change in kit.changes()]
    assert len(changed) == len(set(changed)) == expired() == 30
