"""Start runs of a job, in processes of their own, on one of the databases."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

from benchmarks.rig.server import COPY, ROOT, Server

# Nothing is to be cut short; in all else the defaults are measured.
PATIENT = {"EXPIRE_SESSIONS_MAX_RUN_DURATION": "6h", "SESSION_RETENTION_MAX_RUN_DURATION": "6h"}

Variables = Mapping[str, str]
NOTHING: Variables = {}


@dataclass(frozen=True, kw_only=True)
class Performed:
    """What one run was like: `began` is Unix time, `batches` holds when each ended, and its rows; memory in MB."""

    began: float
    seconds: float
    changed: dict[str, int]
    left: int | None
    outcome: str
    problems: list[str]
    batches: list[tuple[float, int]]
    statements: dict[str, float]
    processor: float
    memory: float

    @property
    def rows(self) -> int:
        return sum(self.changed.values())

    @property
    def rate(self) -> float:
        return self.rows / self.seconds

    def spent(self, *words: str) -> float:
        """Return the seconds spent in statements that hold all of the words."""
        return sum(seconds for sql, seconds in self.statements.items() if all(word in sql for word in words))


def perform(
    server: Server,
    job: str,
    *,
    database: str = COPY,
    rows: int | None = None,
    times: int = 1,
    options: Variables = NOTHING,
) -> list[Performed]:
    """Perform runs one after the other; refuse a result that did not change the rows it should."""
    with _started(server, job, database, times, options) as process:
        found = _finished(process)
    if rows is not None and found[0].rows != rows:
        raise RuntimeError(f"{job} changed {found[0].rows} rows where {rows} were due: {found[0].problems}")
    return found


def together(server: Server, job: str, *, copies: int) -> tuple[float, list[Performed]]:
    """Perform a run in several processes that start at once; return the seconds until the last ended, and each run."""
    with contextmanager(_many)(server, job, copies) as processes:
        for process in processes:
            _pipe(process.stdout).readline()
        started = time.perf_counter()
        for process in processes:
            _pipe(process.stdin).write("go\n")
            _pipe(process.stdin).flush()
        found = [_finished(process)[0] for process in processes]
        return time.perf_counter() - started, found


def _many(server: Server, job: str, copies: int) -> Iterator[list["subprocess.Popen[str]"]]:
    started = [_started(server, job, COPY, 1, NOTHING, "--wait") for _ in range(copies)]
    try:
        yield started
    finally:
        for process in started:
            process.__exit__(None, None, None)


def _started(
    server: Server, job: str, database: str, times: int, options: Variables, *flags: str
) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "benchmarks.rig.child", job, str(times), *flags],
        cwd=ROOT,
        env={**server.django(database), **PATIENT, **options},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,  # the log is written as ever, and read by nobody
        text=True,
    )


def _finished(process: "subprocess.Popen[str]") -> list[Performed]:
    lines: list[dict[str, Any]] = [json.loads(line) for line in _pipe(process.stdout)]
    if process.wait() or not lines:
        raise RuntimeError(f"A run ended with exit code {process.returncode}: {process.args!r}")
    return [Performed(**line) for line in lines]


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe
