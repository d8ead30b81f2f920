"""Run the benchmarks: `python -m benchmarks --size short`. The table goes to stdout, what is under way to stderr."""

import argparse
import time

from benchmarks import chains, copies, expiry, idle, memory, online, pace, peers, retention
from benchmarks.rig.pairs import say
from benchmarks.rig.report import HEADINGS, Results, aligned
from benchmarks.rig.server import serving
from benchmarks.rig.sizes import SIZES

GROUPS = {
    "expiry": expiry.measure,
    "retention": retention.measure,
    "chains": chains.measure,
    "idle": idle.measure,
    "memory": memory.measure,
    "copies": copies.measure,
    "online": online.measure,
    "peers": peers.measure,
    "pace": pace.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure both jobs against the limits of PostgreSQL and their peers.")
    parser.add_argument("--size", choices=SIZES, default="short")
    parser.add_argument("--only", choices=GROUPS, nargs="+", default=list(GROUPS), help="groups to measure")
    parser.add_argument("--record", action="store_true", help="write the results into docs/benchmarks.md")
    flags = parser.parse_args()
    size, results, began = SIZES[flags.size], Results(), time.monotonic()
    with serving() as server:
        server.write_wal(megabytes=size.rows // 1000)  # about what changing so many rows writes
        for name in flags.only:
            started = time.monotonic()
            GROUPS[name](server, size, results)
            say(f"{name}: {time.monotonic() - started:.0f} s")
            if flags.record:  # after each group: what was measured is not lost with what comes after it
                from benchmarks.rig import page  # it draws, and nothing else needs the package for that

                page.write(results, server=server, size=size, seconds=time.monotonic() - began)
    print(aligned(HEADINGS, [row.cells() for row in results.rows]))
    for table in results.tables:
        print(f"\n{table.title}\n\n{aligned(table.headings, table.lines)}")


if __name__ == "__main__":
    main()
