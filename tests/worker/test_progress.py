"""The progress bar: on a terminal, once a run takes long, and nowhere else."""

import json
import os
import pty
import subprocess
import sys
import termios
from datetime import UTC, datetime

import pytest

from tests.kit.factories import DAY, sessions
from tests.kit.processes import ROOT, database_url, environment, manage
from tests.kit.triggers import SESSIONS, Kit

pytestmark = pytest.mark.django_db(transaction=True)

PRESENT = datetime.now(UTC)


def on_a_terminal(*arguments: str) -> str:
    """Run manage.py with a terminal for its stderr and return what was written there."""
    here, there = pty.openpty()
    termios.tcsetwinsize(there, (24, 80))
    command = [sys.executable, "manage.py", *arguments]
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment(DATABASE_URL=database_url()), stdout=subprocess.DEVNULL, stderr=there
    )
    os.close(there)
    written = b""
    try:
        while chunk := os.read(here, 4096):
            written += chunk
    except OSError:  # how a terminal says that the other side is gone
        pass
    finally:
        os.close(here)
    assert process.wait() == 0
    return written.decode()


def test_a_long_run_on_a_terminal_shows_its_rows_and_keeps_its_log_lines_whole(kit: Kit) -> None:
    sessions(30, now=PRESENT, left=-DAY)
    kit.slow(SESSIONS, 0.06)
    written = on_a_terminal("expire_sessions", "--batch-size=3")
    assert "expire_sessions: 30 rows" in written
    lines = [line for line in written.replace("\r", "\n").split("\n") if line.startswith("{")]
    assert [json.loads(line)["event"] for line in lines][-1] == "job completed"


def test_a_long_run_elsewhere_writes_log_lines_alone(kit: Kit) -> None:
    sessions(30, now=PRESENT, left=-DAY)
    kit.slow(SESSIONS, 0.06)
    ended = manage("expire_sessions", "--batch-size=3", DATABASE_URL=database_url())
    assert ended.returncode == 0
    assert all(json.loads(line) for line in ended.stderr.splitlines())


def test_a_short_run_on_a_terminal_shows_no_bar() -> None:
    sessions(3, now=PRESENT, left=-DAY)
    assert " rows" not in on_a_terminal("expire_sessions")
