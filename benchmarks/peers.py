"""Both jobs next to the clean-up commands of other packages, on as many rows, with writers at work on the same rows.

Here whole commands are measured, the way cron runs them; the time that each takes on empty tables is taken off.
"""

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from benchmarks.rig.commands import OUR_COMMANDS, OURS, PEERS, Compared
from benchmarks.rig.pairs import say, spread
from benchmarks.rig.report import Results, Row, Table, short
from benchmarks.rig.runs import PATIENT
from benchmarks.rig.server import COPY, ROOT, Server
from benchmarks.rig.sizes import Size
from benchmarks.rig.traffic import flowing
from benchmarks.rig.watch import EVERY_SECONDS, peak_memory, watching

JOB = "job"


@dataclass(frozen=True, kw_only=True)
class Cleaned:
    """What one command was like: rows/s, peak memory in MB, longest transaction and longest wait of a writer in ms."""

    rate: float
    memory: float
    transaction: float
    wait: float


def measure(server: Server, size: Size, results: Results) -> None:
    server.migrate("bench_peers", PEERS[0].settings)
    found: dict[str, list[Cleaned]] = {each.name: [] for each in (*PEERS, *OUR_COMMANDS)}
    templates = {each.name: template(server, each, size.peers) for each in (*PEERS, *OUR_COMMANDS)}
    for pair in range(size.pairs):
        say(f"peers: round {pair + 1} of {size.pairs}")
        for each in (*PEERS, *OUR_COMMANDS):
            found[each.name].append(clean(server, each, templates[each.name], size.peers))
    results.tables.append(
        Table(
            title=f"Peers, {size.peers:,} rows that have run out each, with writers at work on them",
            headings=("command", "rows/s", "peak memory", "longest transaction", "longest lock wait of a writer"),
            lines=[cells(name, runs) for name, runs in found.items()],
        )
    )
    deletes = OUR_COMMANDS[-1].name
    for peer in PEERS:
        ratio = (one.rate / other.rate for one, other in zip(found[deletes], found[peer.name], strict=True))
        results.rows.append(
            Row(what=f"{deletes}, {size.peers:,} rows", against=f"{peer.name}: rows/s", seen=spread(*ratio))
        )


def cells(name: str, runs: list[Cleaned]) -> tuple[str, ...]:
    columns = [
        (spread(*(getattr(run, column) for run in runs)).median, unit)
        for column, unit in (("rate", ""), ("memory", " MB"), ("transaction", " ms"), ("wait", " ms"))
    ]
    return (name, *(f"{short(middle)}{unit}" for middle, unit in columns))


def template(server: Server, each: Compared, rows: int) -> str:
    name = "".join(letter for letter in each.name if letter.isalpha())
    return server.fill(name, each.fill(rows), empty=None if each.settings == OURS else "bench_peers")


def clean(server: Server, each: Compared, template: str, rows: int) -> Cleaned:
    """Run a command on a fresh copy while writers update random rows of its table."""
    server.clone("bench_empty" if each.settings == OURS else "bench_peers")
    start, _ = command(server, each)
    server.clone(template)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(f"\\set n random(1, :rows)\n{each.writer};\n")
        script.flush()
        with watching(server, writers="traffic", job=JOB) as seen, flowing(server, scripts=(script.name,), rows=rows):
            took, memory = command(server, each)
    with server.connect() as connection:
        ((left,),) = connection.execute(f"SELECT count(*) FROM {each.table} WHERE {each.left}".encode())
    if left > rows // 100:  # a row that a writer holds at the moment is left to the next run
        raise RuntimeError(f"{each.name} left {left} of {rows} rows")
    return Cleaned(rate=rows / (took - start), memory=memory, transaction=seen.transaction, wait=seen.wait)


def command(server: Server, each: Compared) -> tuple[float, float]:
    """Run a whole command; return its seconds and peak memory in MB."""
    environment = {**server.django(COPY, each.settings), **PATIENT, "PGAPPNAME": JOB}
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "django", each.command], cwd=ROOT, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    memory: float = 0
    while process.poll() is None:
        memory = max(memory, peak_memory(process.pid))
        time.sleep(EVERY_SECONDS)  # memory is sampled while the process runs
    if process.returncode:
        raise RuntimeError(f"{each.command} ended with {process.returncode}")
    return time.perf_counter() - started, memory
