"""Retention of confirmation requests against raw delete loops in SQL, by id and by address."""

import time
from functools import partial

from benchmarks.expiry import rates
from benchmarks.rig import data
from benchmarks.rig.pairs import in_turn
from benchmarks.rig.report import Goal, Results, Row
from benchmarks.rig.runs import perform
from benchmarks.rig.server import Server
from benchmarks.rig.sizes import Size

BATCH = 5000  # the default of the job
RAW = """
    DELETE FROM sign_in_confirmation_requests WHERE {column} = ANY(ARRAY(
        SELECT {column} FROM sign_in_confirmation_requests
        WHERE created_at < now() - interval '30 days' ORDER BY created_at LIMIT 5000))
"""


def measure(server: Server, size: Size, results: Results) -> None:
    old = server.fill("old", data.old_requests(size.rows))
    for column, goal, name in (("id", 0.9, "id"), ("ctid", 0.8, "address (ctid)")):
        found = in_turn(
            f"delete requests, raw by {name}",
            pairs=size.pairs,
            ours=lambda: delete(server, size, old),
            other=partial(raw_rate, server, old, RAW.format(column=column)),
        )
        results.rows.append(
            Row(
                what=f"delete {size.rows:,} old requests",
                against=f"raw DELETE loop in batches of {BATCH} by {name}: rows/s",
                seen=found.ratio,
                goal=Goal(at_least=goal),
                figures=rates(found),
            )
        )


def delete(server: Server, size: Size, template: str) -> float:
    server.clone(template)
    (found,) = perform(server, "session_retention", rows=size.rows)
    return found.rate


def raw_rate(server: Server, template: str, statement: str) -> float:
    """Repeat a statement, each time in a transaction of its own, until it finds nothing; return rows/s."""
    server.clone(template)
    with server.connect() as connection:
        started = time.perf_counter()
        rows = 0
        while changed := connection.execute(statement.encode()).rowcount:
            rows += changed
        return rows / (time.perf_counter() - started)
