"""Expiry against the limit, one update over everything; then with an old snapshot about, and without statistics."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from statistics import mean

from benchmarks.rig import data
from benchmarks.rig.pairs import Pairs, in_turn, spread
from benchmarks.rig.report import Curves, Goal, Results, Row, short
from benchmarks.rig.runs import Performed, perform
from benchmarks.rig.server import Connection, Fill, Server
from benchmarks.rig.sizes import Size

RAW = "UPDATE refresh_sessions SET status = 'Expired' WHERE status = 'Active' AND expires_at <= now()"
AUTOVACUUM_OFF = "ALTER TABLE refresh_sessions SET (autovacuum_enabled = false)"


def measure(server: Server, size: Size, results: Results) -> None:
    due = server.fill("due", data.due_sessions(size.rows))
    server.fill("unknown", unwatched(size.rows), statistics=False)
    results.rows.append(against_raw(server, size, due))
    results.rows.extend(with_old_snapshot(server, size, due, results))
    results.rows.append(without_statistics(server, size, due))


def against_raw(server: Server, size: Size, due: str) -> Row:
    found = in_turn(
        "expire in chunks",
        pairs=size.pairs,
        ours=lambda: expire(server, size, due).rate,
        other=lambda: raw_rate(server, due),
    )
    return Row(
        what=f"expire {size.rows:,} due sessions in chunks",
        against="one raw UPDATE over all: rows/s",
        seen=found.ratio,
        goal=Goal(at_least=0.85),
        figures=rates(found),
    )


def with_old_snapshot(server: Server, size: Size, due: str, results: Results) -> list[Row]:
    runs: dict[str, list[Performed]] = {"beside an old snapshot": [], "without": []}

    def beside_a_snapshot() -> float:
        server.clone(due)
        with old_snapshot(server):
            runs["beside an old snapshot"] += perform(server, "expire_sessions", rows=size.rows)
        return runs["beside an old snapshot"][-1].rate

    def alone() -> float:
        runs["without"].append(expire(server, size, due))
        return runs["without"][-1].rate

    found = in_turn(
        "expire beside an old snapshot",
        pairs=size.pairs,
        ours=beside_a_snapshot,
        other=alone,
    )
    results.curves.append(batch_times({name: found[-1] for name, found in runs.items()}))
    return [
        Row(
            what="the same with an old snapshot open elsewhere",
            against="itself without: rows/s",
            seen=found.ratio,
            goal=Goal(at_least=0.9),
            figures=rates(found),
        ),
        Row(
            what="the last tenth of the batches of that run",
            against="the first tenth: seconds",
            seen=spread(*map(last_by_first_tenth, runs["beside an old snapshot"])),
            goal=Goal(at_most=1.3),
        ),
    ]


def without_statistics(server: Server, size: Size, due: str) -> Row:
    found = in_turn(
        "expire without statistics",
        pairs=size.pairs,
        ours=lambda: expire(server, size, "bench_unknown").rate,
        other=lambda: expire(server, size, due).rate,
    )
    return Row(
        what="the same without statistics, autovacuum off",
        against="itself with: rows/s",
        seen=found.ratio,
        goal=Goal(at_least=0.8),
        figures=rates(found),
    )


def expire(server: Server, size: Size, template: str) -> Performed:
    server.clone(template)
    (found,) = perform(server, "expire_sessions", rows=size.rows)
    return found


def raw_rate(server: Server, template: str) -> float:
    server.clone(template)
    with server.connect() as connection:
        started = time.perf_counter()
        rows = connection.execute(RAW).rowcount
        return rows / (time.perf_counter() - started)


@contextmanager
def old_snapshot(server: Server) -> Iterator[None]:
    """Hold a snapshot in the same database, as a backup would: no version that it can see may be cleaned up."""
    with server.connect() as connection, connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute("SELECT count(*) FROM django_migrations")
        yield


def last_by_first_tenth(found: Performed) -> float:
    """Return the seconds a batch took in the last tenth of them by those in the first; the very first is a warm-up."""
    each = lengths(found)
    tenth = max(1, len(each) // 10)
    return mean(each[-tenth:]) / mean(each[:tenth])


def lengths(found: Performed) -> list[float]:
    """Return the seconds from the end of each batch to that of the next."""
    ends = [end for end, _ in found.batches]
    return [after - before for before, after in pairwise(ends)]


def batch_times(runs: dict[str, Performed]) -> Curves:
    """Show the time of each batch, averaged over a fiftieth of the run."""
    lines: dict[str, list[tuple[float, float]]] = {}
    for name, found in runs.items():
        each = lengths(found)
        step = max(1, len(each) // 50)
        lines[name] = [(start, 1000 * mean(each[start : start + step])) for start in range(0, len(each), step)]
    return Curves(
        name="batches", caption="Time of a batch of 5000 over one run", x="batch", y="milliseconds", lines=lines
    )


def unwatched(rows: int) -> Fill:
    def fill(connection: Connection) -> None:
        connection.execute(AUTOVACUUM_OFF)
        data.due_sessions(rows)(connection)

    return fill


def rates(found: Pairs) -> str:
    return f"{short(found.ours.median)} against {short(found.other.median)} rows/s"
