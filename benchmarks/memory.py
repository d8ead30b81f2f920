"""Peak memory of a process that works off a big backlog, next to one that finds nothing."""

from benchmarks.rig import data
from benchmarks.rig.pairs import say, spread
from benchmarks.rig.report import Goal, Results, Row
from benchmarks.rig.runs import perform
from benchmarks.rig.server import Server
from benchmarks.rig.sizes import Size


def measure(server: Server, size: Size, results: Results) -> None:
    due = server.fill("due", data.due_sessions(size.rows))
    chains = server.fill("mixed", data.chains(2 * size.rows // 8, longest=15))
    for job, template, name in (
        ("expire_sessions", due, f"expire {size.rows:,} sessions"),
        ("session_retention", chains, f"delete {size.rows:,} sessions in chains"),
    ):
        say(f"memory: {name}")
        differences = [peak(server, job, template) - peak(server, job, "bench_empty") for _ in range(size.pairs)]
        results.rows.append(
            Row(
                what=f"peak memory: {name}",
                against="an empty run: difference",
                seen=spread(*differences),
                goal=Goal(at_most=15, unit="MB"),
            )
        )


def peak(server: Server, job: str, template: str) -> float:
    server.clone(template)
    return perform(server, job)[0].memory
