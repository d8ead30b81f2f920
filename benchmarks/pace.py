"""What a pause between batches buys: rows, WAL and the lag of a replica by BATCH_PAUSE, and what sign-ins feel."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import online
from benchmarks.pairs import say
from benchmarks.performing import perform
from benchmarks.replica import caught_up, lagging, replicating
from benchmarks.report import Results, Table, short
from benchmarks.server import MAINTENANCE, Server
from benchmarks.sizes import Size

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Pace:
    """A run with a pause: rows and megabytes of WAL a second, and how far a replica fell behind."""

    rate: float
    wal: float
    lag_seconds: float
    lag_megabytes: float


def measure(server: Server, size: Size, results: Results) -> None:
    for job, template, _, _ in online.scenes(server, size):
        paces = {}
        if server.own is not None:
            with replicating(server):
                paces = {pause: paced(server, job, template, pause) for pause in size.pauses_ms}
        idle = online.stretch(server, size, template, lambda: online.rest(size.online_seconds))
        lines: list[tuple[str, ...]] = [("nothing runs", "", "", "", f"{short(idle.p99)} ms", "1")]
        for pause in size.pauses_ms:
            say(f"pace: {job}, {pause} ms, with traffic")
            drain = draining(server, job, pause)
            busy = online.stretch(server, size, template, drain)
            ours = figures(paces[pause]) if pause in paces else ("not measured",) * 3
            lines.append((f"{pause} ms", *ours, f"{short(busy.p99)} ms", short(busy.p99 / idle.p99)))
        results.tables.append(
            Table(
                title=f"BATCH_PAUSE of {job}, batches of 5000",
                headings=("pause", "rows/s", "WAL MB/s", "replica behind", "p99 of sign-ins", "by p99 without"),
                lines=lines,
            )
        )


def draining(server: Server, job: str, pause: int) -> Callable[[], online.Moments]:
    return lambda: online.drained(server, job, paused(job, pause))


def paused(job: str, milliseconds: int) -> dict[str, str]:
    return {f"{job.upper()}_BATCH_PAUSE": f"{milliseconds}ms" if milliseconds else "0s"}


def paced(server: Server, job: str, template: str, pause: int) -> Pace:
    """Drain a fresh copy, its replica in step at the start."""
    say(f"pace: {job}, {pause} ms, with a replica")
    server.clone(template)
    caught_up(server)
    before = written(server)
    with lagging(server) as behind:
        (found,) = perform(server, job, options=paused(job, pause))
        wal = written(server) - before
        caught_up(server)
    return Pace(
        rate=found.rate,
        wal=wal / MEGABYTE / found.seconds,
        lag_seconds=behind.seconds,
        lag_megabytes=behind.bytes / MEGABYTE,
    )


def written(server: Server) -> float:
    """Return the bytes of WAL that the server has written so far."""
    with server.connect(MAINTENANCE) as connection:
        ((position,),) = connection.execute("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")
    return float(position)


def figures(pace: Pace) -> tuple[str, ...]:
    behind = f"{pace.lag_seconds:.2f} s, {pace.lag_megabytes:.1f} MB"
    return (short(pace.rate), short(pace.wal), behind)
