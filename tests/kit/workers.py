"""Real processes: manage.py as an operator starts it, on the test database."""

import json
import os
import signal
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote
from urllib.request import urlopen

from django.db import connection
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).resolve().parents[2]
# What a process needs from the one that runs the suite; anything else would be an option that happens to be set.
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "XDG_RUNTIME_DIR")


def database_url(**replaced: str) -> str:
    """Return the DATABASE_URL of the test database."""
    known = connection.get_connection_params() | replaced
    user, password = quote(known["user"], safe=""), quote(known.get("password") or "unused", safe="")
    host, port = known.get("host") or "localhost", known.get("port") or 5432
    place = f":{port}/{host}" if host.startswith("/") else f"{host}:{port}"
    return f"postgres://{user}:{password}@{place}/{known['dbname']}"


def environment(**variables: object) -> dict[str, str]:
    inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
    given = {"DATABASE_URL": database_url(), "DJANGO_DEBUG": "off", **variables}
    return inherited | {name: str(value) for name, value in given.items()}


def manage(*arguments: str, **variables: object) -> subprocess.CompletedProcess[str]:
    """Run manage.py to its end."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
    )


def events(stderr: str) -> list[dict[str, Any]]:
    """Return the log; fail on a line that is not one JSON object."""
    return [json.loads(line) for line in stderr.splitlines()]


def late(done: subprocess.CompletedProcess[str]) -> timedelta:
    """Return how long ago the run of a process that has just ended was completed."""
    [completed] = [each for each in events(done.stderr) if each["event"] == "job completed"]
    return datetime.now(UTC) - datetime.fromisoformat(completed["time"])


class Worker:
    """A job with --loop; whatever happens it is gone at the end of the `with`."""

    def __init__(self, command: str, *flags: str, **variables: object) -> None:
        self.lines: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "manage.py", command, "--loop", *flags],
            cwd=ROOT,
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    @property
    def pid(self) -> int:
        return self._process.pid

    def until(self, event: str, *, times: int = 1) -> dict[str, Any]:
        """Read the log until an event has come so many times from now on; return the last of them."""
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.lines.append(line.rstrip("\n"))
            found = json.loads(line)
            times -= found["event"] == event
            if not times:
                return found
        raise AssertionError(f"the worker ended before {event!r}: {self.lines}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, read the log to its end and return the exit code."""
        self._process.send_signal(number)
        return self.end()

    def end(self) -> int:
        stdout, stderr = self._process.communicate(timeout=60)
        self.lines += [*stderr.splitlines(), *stdout.splitlines()]
        return self._process.returncode


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def scrape(port: int) -> str:
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return answer.read().decode()


Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def samples(text: str, prefix: str = "identity_") -> Samples:
    """Return the values of an exposition by name and labels, without the moments at which counters were created."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(prefix) and not sample.name.endswith("_created")
    }


def value(found: Samples, name: str, **labels: str) -> float:
    """Return the one sample of this name that has these labels, whatever others it has."""
    [matching] = [found[key] for key in found if key[0] == name and labels.items() <= dict(key[1]).items()]
    return matching
