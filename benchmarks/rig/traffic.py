"""Sign-ins and rotations at a fixed rate, by pgbench, and how long each took."""

import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.rig.server import COPY, MAINTENANCE, Server

RATE = 200  # transactions a second; the machine is far from busy with it
CLIENTS = 4
NAME = "traffic"
SCRIPTS = Path(__file__).parent / "sql"
MIX = tuple(f"{SCRIPTS}/{script}" for script in ("confirm.sql@9", "rotate.sql@9", "late.sql@2"))


@dataclass(kw_only=True)
class Traffic:
    """Transactions as pairs of when they ended (Unix time) and what they took from their due start, in ms."""

    transactions: list[tuple[float, float]] = field(default_factory=list)

    def between(self, start: float, end: float) -> list[float]:
        """Return the latencies of what was under way at some time between two moments."""
        return [took for at, took in self.transactions if at >= start and at - took / 1000 <= end]


@contextmanager
def flowing(server: Server, *, scripts: tuple[str, ...] = MIX, **variables: int) -> Iterator[Traffic]:
    """Keep the traffic up while the block runs; what it was like is known afterwards.

    Latency counts from the time at which a transaction was due, not from when a client was free to send it.
    """
    traffic = Traffic()
    with tempfile.TemporaryDirectory() as folder:
        command = [str(server.tools / "pgbench"), "--no-vacuum", f"--client={CLIENTS}", f"--rate={RATE}", "--time=7200"]
        command += ["--protocol=prepared", "--log", f"--log-prefix={folder}/log", "--random-seed=42"]
        command += [f"--define={name}={value}" for name, value in {"i": 0, "j": 0, **variables}.items()]
        command += [f"--file={script}" for script in scripts]
        environment = {**server.environment(COPY), "PGAPPNAME": NAME}
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            time.sleep(1)  # connections, plans and caches
            if process.poll() is not None:
                assert process.stderr is not None
                raise RuntimeError(process.stderr.read().decode())
            yield traffic
        finally:
            end(server)
            process.communicate(timeout=60)
        for log in Path(folder).iterdir():
            traffic.transactions += map(parsed, log.read_text().splitlines())


def parsed(line: str) -> tuple[float, float]:
    """Read a line of pgbench's log: client, number, microseconds, script, and when it ended in seconds and µs."""
    _, _, took, _, seconds, microseconds, *_ = line.split()
    return int(seconds) + int(microseconds) / 1e6, int(took) / 1000


def end(server: Server) -> None:
    """Cut pgbench's connections: it then ends in order and writes out its log, which a signal would lose."""
    with server.connect(MAINTENANCE) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = %s", [NAME])


def percentile(values: list[float], share: float) -> float:
    """Return the value that this share of the values does not exceed; 0 if there are none."""
    if not values:
        return 0
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]
