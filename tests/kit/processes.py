"""Real processes of manage.py, with an environment that holds what the test gives and nothing else of the project's."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

from django.db import connection

from tests.kit.log import Log

ROOT = Path(__file__).parents[2]
# Far above what an end takes on a busy machine, far below any wait that a signal has to interrupt.
ENDS_WITHIN = 15
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "COVERAGE_PROCESS_START", "PYTHONPATH")
Environment = dict[str, str]


def environment(**given: str) -> Environment:
    return {name: os.environ[name] for name in _PASSED_ON if name in os.environ} | given


def database_url(**changes: Any) -> str:
    """Return the DATABASE_URL of the test database, as another process would have it."""
    known = connection.get_connection_params() | changes
    host = str(known.get("host") or "")
    place = f":{known.get('port') or 5432}/{host}" if host.startswith("/") else f"{host}:{known.get('port') or 5432}"
    user, password = (quote(str(known.get(part) or "any"), safe="") for part in ("user", "password"))
    return f"postgres://{user}:{password}@{place}/{known['dbname']}"


def manage(*arguments: str, **given: str) -> subprocess.CompletedProcess[str]:
    """Run manage.py to its end."""
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment(**given), capture_output=True, text=True, check=False)


class Process(subprocess.Popen[str]):
    """A manage.py that runs beside the test, whose log lines can be waited for."""

    def __init__(self, *arguments: str, before: tuple[str, ...] = (), **given: str) -> None:
        command = [*before, sys.executable, "manage.py", *arguments]
        pipe = subprocess.PIPE
        super().__init__(command, cwd=ROOT, env=environment(**given), stdout=pipe, stderr=pipe, text=True)
        self.lines = Log()

    def until(self, event: str, *, times: int = 1) -> dict[str, Any]:
        """Read log lines up to the next one of this event and return it; fail if the process ends before."""
        assert self.stderr
        for text in self.stderr:
            self.lines.append(json.loads(text))
            if self.lines[-1]["event"] == event:
                times -= 1
                if not times:
                    return self.lines[-1]
        raise AssertionError(f"no {event!r} before the end, but {self.lines}")

    def end(self, number: signal.Signals | None = None) -> int:
        """Send a signal, if one is given, read what is left to read, and return the exit code."""
        if number:
            self.send_signal(number)
        self.said, rest = self.communicate(timeout=ENDS_WITHIN)
        self.lines += [json.loads(text) for text in rest.splitlines()]
        return self.returncode
