"""Odd surroundings of a process: streams that its caller has closed, bytes that are no text, a late signal."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest
from django.conf import settings
from django.utils import timezone

from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, sessions
from tests.kit.workers import environment

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("closed", ["2>&-", "<&-"])
def test_a_run_does_its_work_whatever_becomes_of_its_stderr_and_stdin(closed: str) -> None:
    sessions(3, now=timezone.now(), left=-DAY)
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" manage.py expire_sessions {closed}', sys.executable],
        cwd=settings.BASE_DIR,
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert (done.returncode, "3 sessions" in done.stdout) == (0, True)
    assert RefreshSession.objects.filter(status="Expired").count() == 3


def test_a_database_url_that_is_no_text_is_refused_in_one_line() -> None:
    url = b"postgres://user:p\xffss@127.0.0.1:1/name"
    done = subprocess.run(
        [sys.executable, "manage.py", "expire_sessions"],
        cwd=settings.BASE_DIR,
        env={os.fsencode(name): os.fsencode(value) for name, value in environment().items()} | {b"DATABASE_URL": url},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "DATABASE_URL" in done.stderr


def test_a_signal_after_the_run_loses_neither_its_summary_nor_its_exit_code() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        gateway = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with subprocess.Popen(
            [sys.executable, "manage.py", "expire_sessions"],
            cwd=settings.BASE_DIR,
            env=environment(PROMETHEUS_PUSHGATEWAY_URL=gateway),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert any(json.loads(line)["event"] == "job completed" for line in process.stderr)
            with silent.accept()[0]:  # the push is under way, and waits for an answer
                process.send_signal(signal.SIGTERM)
                summary, _ = process.communicate(timeout=60)
    assert (process.returncode, "completed" in summary) == (0, True)
