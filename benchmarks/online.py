"""Sign-ins and rotations while a job drains a backlog: the time they take, and what they wait for."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import expiry
from benchmarks.rig import data
from benchmarks.rig.pairs import say, spread
from benchmarks.rig.report import Curves, Goal, Results, Row, Table, short
from benchmarks.rig.runs import NOTHING, Variables, perform
from benchmarks.rig.server import Server
from benchmarks.rig.sizes import Size
from benchmarks.rig.traffic import flowing, percentile
from benchmarks.rig.watch import watching

JOB = "job"  # the application name of whoever drains
COMPUTING = "a process that computes, no database"
RAW_DELETE = "DELETE FROM sign_in_confirmation_requests WHERE created_at < now() - interval '30 days'"
Moments = tuple[float, float]  # Unix times: when something began and when it ended
LONGEST_WAIT = Goal(at_most=100, unit="ms")


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """The traffic over a stretch of time: latencies and the longest lock wait in ms, and how many seconds it lasted."""

    latencies: list[float]
    wait: float
    seconds: float

    @property
    def p99(self) -> float:
        return percentile(self.latencies, 0.99)

    def cells(self, name: str) -> tuple[str, ...]:
        figures = (*(percentile(self.latencies, share) for share in (0.5, 0.99, 1)), self.wait)
        return (name, f"{self.seconds:.1f} s", *(f"{short(figure)} ms" for figure in figures))


def measure(server: Server, size: Size, results: Results) -> None:
    lines = []
    for name, template, drain, raw in scenes(server, size):
        found: dict[str, list[Stretch]] = {"idle": [], name: [], raw: [], COMPUTING: []}
        for pair in range(size.pairs):
            say(f"online, {name}: pair {pair + 1} of {size.pairs}")
            found["idle"].append(stretch(server, size, template, lambda: rest(size.online_seconds)))
            found[name].append(stretch(server, size, template, drain))
        say(f"online, {raw}")
        found[raw].append(stretch(server, size, template, raw_drain(server, raw)))
        say(f"online, {COMPUTING}")
        found[COMPUTING].append(stretch(server, size, template, lambda: computing(size.online_seconds)))
        results.rows += rows(name, found["idle"], found[name])
        results.curves.append(distribution(name, found))
        lines += [typical(stretches).cells(what) for what, stretches in found.items()]
    results.tables.append(
        Table(
            title="Sign-ins and rotations meanwhile",
            headings=("beside", "for", "p50", "p99", "longest", "longest lock wait"),
            lines=lines,
        )
    )


def scenes(server: Server, size: Size) -> list[tuple[str, str, Callable[[], Moments], str]]:
    """Return each job's name, database and drain, and the statement that stands for doing it all at once."""
    traffic = data.all_of(data.live_sessions(4 * share(size)), data.pending_requests(4 * share(size)))
    due = server.fill("online_due", data.all_of(data.due_sessions(size.rows), traffic))
    half = size.rows // 2
    old = data.all_of(data.chains(2 * half // 8, longest=15), data.old_requests(half), traffic)
    return [
        ("expire_sessions", due, lambda: drained(server, "expire_sessions"), expiry.RAW),
        ("session_retention", server.fill("online_old", old), lambda: drained(server, "session_retention"), RAW_DELETE),
    ]


def share(size: Size) -> int:
    """Return the rows that each client has for itself: more than it can use up."""
    return max(2_000, size.rows // 20)


def drained(server: Server, job: str, options: Variables = NOTHING) -> Moments:
    (found,) = perform(server, job, options={"PGAPPNAME": JOB, **options})
    return found.began, found.began + found.seconds


def raw_drain(server: Server, statement: str) -> Callable[[], Moments]:
    def drain() -> Moments:
        with server.connect() as connection:
            start = time.time()
            connection.execute(statement.encode())
            return start, time.time()

    return drain


def rest(seconds: float) -> Moments:
    start = time.time()
    time.sleep(seconds)  # the quiet stretch itself: nothing but the traffic runs
    return start, time.time()


def computing(seconds: float) -> Moments:
    """Keep one core busy: what whoever does anything at all on this machine costs the traffic."""
    start = time.time()
    # It ends by itself, also where nobody is left to end it.
    spin = f"import time\nend = time.monotonic() + {seconds}\nwhile time.monotonic() < end: pass"
    subprocess.run([sys.executable, "-c", spin], check=True)
    return start, time.time()


def stretch(
    server: Server, size: Size, template: str, meanwhile: Callable[[], Moments], *, apart: bool = False
) -> Stretch:
    """Keep the traffic up on a fresh copy while something goes on; return what it was like until that ended.

    `apart` gives one half of the cores to the traffic and the other to what goes on.
    """
    server.clone(template)
    cores = sorted(os.sched_getaffinity(0)) if apart else []
    place(server, cores[: len(cores) // 2])
    try:
        with (
            watching(server, writers="traffic", job=JOB) as seen,
            flowing(server, share=share(size), due=size.rows) as flow,
        ):
            place(server, cores[len(cores) // 2 :])
            start, end = meanwhile()
    finally:
        place(server, cores)
    return Stretch(latencies=flow.between(start, end), wait=seen.wait, seconds=end - start)


def can_be_apart(server: Server) -> bool:
    """Tell whether there are cores to share out, and a server here that can be confined to some."""
    return server.own is not None and hasattr(os, "sched_setaffinity") and len(os.sched_getaffinity(0)) > 1


def place(server: Server, cores: list[int]) -> None:
    """Confine whatever this process and the server start from now on to some cores; without any, leave it as it is."""
    if cores and server.own is not None:
        for process in (0, server.own.get_postmaster_info().pid):
            os.sched_setaffinity(process, cores)


def typical(stretches: list[Stretch]) -> Stretch:
    return sorted(stretches, key=lambda stretch: stretch.p99)[len(stretches) // 2]


def distribution(name: str, found: dict[str, list[Stretch]]) -> Curves:
    """Show the share of the transactions that took longer than a time."""
    shares = [share / 1000 for share in range(0, 1001, 5)]
    lines = {
        what: [(100 * share, percentile(typical(stretches).latencies, share)) for share in shares]
        for what, stretches in found.items()
    }
    return Curves(
        name=f"latency-{name}", caption=f"Sign-ins and rotations while {name} drains", x="per cent of the transactions",
        y="milliseconds at most", lines=lines, logarithmic=True,
    )  # fmt: skip


def rows(name: str, idle: list[Stretch], busy: list[Stretch]) -> list[Row]:
    return [
        Row(
            what=f"confirm and rotate while {name} drains",
            against="the same traffic alone: p99",
            seen=spread(*(one.p99 / other.p99 for one, other in zip(busy, idle, strict=True))),
            goal=Goal(at_most=2),
            figures=f"{short(typical(busy).p99)} against {short(typical(idle).p99)} ms",
        ),
        Row(
            what=f"longest lock wait of theirs while {name} drains",
            against="",
            seen=spread(*(one.wait for one in busy)),
            goal=LONGEST_WAIT,
        ),
    ]
