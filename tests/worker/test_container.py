"""As process 1 of a PID namespace, as in a container: stopped like anywhere else, and killed by a second signal too."""

import shutil
import signal
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, sessions
from tests.kit.processes import Process
from tests.kit.triggers import SESSIONS, Kit, terminate_others

pytestmark = pytest.mark.django_db(transaction=True)

Contained = Callable[..., tuple[Process, str]]
# The process takes its moment from the database, so rows here are placed around the present.
PRESENT = datetime.now(UTC)


@pytest.fixture
def contained(start: Callable[..., Process]) -> Contained:
    """Start a command as process 1 of a PID namespace, as in a container; return unshare and the pid seen from here."""
    namespace = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
    if not shutil.which("unshare") or subprocess.run([*namespace, "true"], capture_output=True).returncode:
        pytest.skip("this user may not make a PID namespace")

    def begin(*arguments: str) -> tuple[Process, str]:
        outside = start(*arguments, before=namespace)
        children = Path(f"/proc/{outside.pid}/task/{outside.pid}/children")
        while not (found := children.read_text().split()):
            pass
        return outside, found[0]

    return begin


def kill(number: str, pid: str) -> None:
    subprocess.run(["kill", number, pid], check=True)


def test_as_pid_1_of_a_container_it_is_stopped_like_anywhere_else(contained: Contained) -> None:
    worker, inside = contained("expire_sessions", "--loop")
    worker.until("job completed")
    status = Path(f"/proc/{inside}/status").read_text()
    assert status.partition("NSpid:")[2].split()[1] == "1"
    kill("-TERM", inside)
    assert worker.end() == 0
    assert worker.lines[-1]["reason"] == "SIGTERM"


def test_as_pid_1_a_second_signal_kills_though_the_kernel_spares_it_the_default(
    contained: Contained, until: Callable[[str], None], kit: Kit
) -> None:
    sessions(3, now=PRESENT, left=-DAY)
    kit.slow(SESSIONS, 60)
    worker, inside = contained("expire_sessions", "--loop")
    until("bool_or(wait_event = 'PgSleep')")
    kill("-TERM", inside)
    kill("-INT", inside)
    assert worker.end() in (128 + signal.SIGTERM, 128 + signal.SIGINT)
    terminate_others()
    assert not RefreshSession.objects.filter(status="Expired").exists()


def test_as_pid_1_it_is_stopped_while_it_still_starts(contained: Contained) -> None:
    worker, inside = contained("expire_sessions", "--loop")
    status = Path(f"/proc/{inside}/status")
    while not int(status.read_text().partition("SigCgt:")[2].split()[0], 16) & 1 << signal.SIGTERM - 1:
        pass
    kill("-TERM", inside)
    assert worker.end() == 128 + signal.SIGTERM
