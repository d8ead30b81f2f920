"""What a pause between batches buys: rows, WAL and the lag of a replica by BATCH_PAUSE, and what sign-ins feel."""

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import online
from benchmarks.rig.pairs import say
from benchmarks.rig.replica import caught_up, lagging, replicating
from benchmarks.rig.report import Results, Table, short
from benchmarks.rig.runs import perform
from benchmarks.rig.server import MAINTENANCE, Server
from benchmarks.rig.sizes import Size

MEGABYTE = 1024 * 1024
UNKNOWN = ("not measured",) * 3
APART = "Cores apart: the sign-ins have one half of the cores, the job and its backend the other."


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
        felt = [p99s(server, size, job, template, apart=False)]
        if online.can_be_apart(server):
            felt.append(p99s(server, size, job, template, apart=True))
        lines = [("nothing runs", *[""] * 3, *cells(felt, None))]
        for pause in size.pauses_ms:
            lines.append((f"{pause} ms", *(figures(paces[pause]) if pause in paces else UNKNOWN), *cells(felt, pause)))
        results.tables.append(
            Table(
                title=f"BATCH_PAUSE of {job}, batches of 5000",
                headings=(
                    *("pause", "rows/s", "WAL MB/s", "replica behind"),
                    *("p99 of sign-ins", "p99 of sign-ins, cores apart")[: len(felt)],
                ),
                lines=lines,
                note=APART if len(felt) > 1 else "",
            )
        )


def p99s(server: Server, size: Size, job: str, template: str, *, apart: bool) -> dict[int | None, float]:
    """Return the p99 of the traffic by pause, that of the traffic alone under None."""
    found: dict[int | None, float] = {}
    for pause in (None, *size.pauses_ms):
        say(f"pace: {job}, {'nothing runs' if pause is None else f'{pause} ms'}{', cores apart' if apart else ''}")
        drain = resting(size) if pause is None else draining(server, job, pause)
        found[pause] = online.stretch(server, size, template, drain, apart=apart).p99
    return found


def cells(felt: list[dict[int | None, float]], pause: int | None) -> list[str]:
    return [f"{short(found[pause])} ms ({short(found[pause] / found[None])} x)" for found in felt]


def resting(size: Size) -> Callable[[], online.Moments]:
    return lambda: online.rest(size.online_seconds)


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
