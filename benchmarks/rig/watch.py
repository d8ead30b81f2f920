"""Look at a server every few milliseconds: who waits for a lock, and how long transactions last."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.rig.server import MAINTENANCE, Server

# A wait shorter than this may be missed; a goal of 100 ms is seen several times over.
EVERY_SECONDS = 0.02
KILOBYTES = re.compile(r"^VmHWM:\s+([0-9]+) kB$", re.MULTILINE)
WAITS = """
    SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)
    FROM pg_locks JOIN pg_stat_activity USING (pid) WHERE NOT granted AND application_name = %s
"""
TRANSACTIONS = """
    SELECT coalesce(max(extract(epoch FROM clock_timestamp() - xact_start)), 0)
    FROM pg_stat_activity WHERE application_name = %s
"""


def peak_memory(process: int | str) -> float:
    """Return the most memory that a process has held so far, in MB; 0 when it is gone.

    Not what getrusage tells: that begins with the memory of the process which this one was forked from.
    """
    found = KILOBYTES.search(Path(f"/proc/{process}/status").read_text())
    return int(found[1]) / 1024 if found else 0


@dataclass(kw_only=True)
class Seen:
    """The longest lock wait of the writers, and the longest transaction of the job, both in milliseconds."""

    wait: float = 0
    transaction: float = 0


@contextmanager
def watching(server: Server, *, writers: str, job: str) -> Iterator[Seen]:
    """Watch the processes with these application names while the block runs."""
    seen, over = Seen(), threading.Event()

    def watch() -> None:
        with server.connect(MAINTENANCE) as connection:
            while not over.wait(EVERY_SECONDS):
                ((wait,),) = connection.execute(WAITS, [writers])
                ((transaction,),) = connection.execute(TRANSACTIONS, [job])
                seen.wait = max(seen.wait, float(wait) * 1000)
                seen.transaction = max(seen.transaction, float(transaction) * 1000)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield seen
    finally:
        over.set()
        watcher.join()
