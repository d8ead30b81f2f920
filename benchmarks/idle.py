"""What a run costs that has nothing to do: it must not grow with the rows that are kept."""

import time

from benchmarks.rig import data
from benchmarks.rig.pairs import in_turn, say, spread
from benchmarks.rig.report import Goal, Results, Row, short
from benchmarks.rig.runs import Performed, perform
from benchmarks.rig.server import Server
from benchmarks.rig.sizes import Size

ANTI_JOIN = """
    SELECT count(*) FROM refresh_sessions s
    WHERE status IN ('Rotated', 'Revoked', 'Expired') AND updated_at < now() - interval '90 days'
      AND NOT EXISTS (SELECT FROM refresh_sessions child WHERE child.parent_session_id = s.id)
"""
ONE_CORE = b"SET max_parallel_workers_per_gather = 0"


def measure(server: Server, size: Size, results: Results) -> None:
    results.rows.append(tick(server, size))
    results.rows.extend(night(server, size))


def tick(server: Server, size: Size) -> Row:
    for name, rows in (("many", size.stored), ("few", size.few)):
        server.fill(name, data.without_indexes(data.live_sessions(rows)))
    found = in_turn(
        "nothing due",
        pairs=size.pairs,
        ours=lambda: idle_seconds(server, "bench_many", size.ticks),
        other=lambda: idle_seconds(server, "bench_few", size.ticks),
    )
    server.drop("bench_many")
    return Row(
        what=f"nothing due, {size.stored:,} rows stored",
        against=f"nothing due, {size.few:,} rows stored: seconds",
        seen=found.ratio,
        goal=Goal(at_most=2),
        figures=f"{found.ours.median * 1000:.1f} against {found.other.median * 1000:.1f} ms",
    )


def idle_seconds(server: Server, database: str, ticks: int) -> float:
    """Return the median length of a run; the first ones, which fill the caches, do not count."""
    runs = perform(server, "expire_sessions", database=database, rows=0, times=ticks + 5)[5:]
    return spread(*(run.seconds for run in runs)).median


def night(server: Server, size: Size) -> list[Row]:
    blocked = server.fill("blocked", data.blocked_sessions(size.stored))
    nights: list[Performed] = []

    def ours() -> float:
        nights.extend(perform(server, "session_retention", database=blocked, rows=0))
        return nights[-1].seconds

    def raw(setting: bytes = b"") -> float:
        with server.connect(blocked) as connection:
            connection.execute(setting)
            started = time.perf_counter()
            connection.execute(ANTI_JOIN)
            return time.perf_counter() - started

    say("all blocked: warming up")
    raw()
    alone = in_turn("all blocked, on one core", pairs=size.pairs, ours=ours, other=lambda: raw(ONE_CORE))
    nights.clear()  # the pass over tips is set beside the pairs that follow
    found = in_turn("all blocked", pairs=size.pairs, ours=ours, other=raw)
    server.drop(blocked)
    return [
        Row(
            what=f"nothing to delete, {size.stored:,} rotated rows all blocked",
            against="one raw count of old childless rows: seconds",
            seen=found.ratio,
            goal=Goal(at_most=1.5),
            figures=f"{short(found.ours.median)} against {short(found.other.median)} s",
        ),
        Row(
            what="the same",
            against="that count on one core, as the job is: seconds",
            seen=alone.ratio,
            figures=f"{short(alone.ours.median)} against {short(alone.other.median)} s",
        ),
        Row(
            what="the pass over tips in that run",
            against="the raw count: seconds",
            seen=spread(*(tips(run) / other for run, other in zip(nights, found.other.values, strict=True))),
            goal=Goal(at_most=0.01),
            figures=f"{spread(*map(tips, nights)).median * 1000:.1f} ms",
        ),
    ]


def tips(run: Performed) -> float:
    """Return the seconds spent in the statements that go over the tips, the two statuses of the partial index."""
    return run.spent('"status" IN (%s, %s)', "updated_at") - run.spent('"status" IN (%s, %s, %s)', "Min(")
