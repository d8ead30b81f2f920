"""Retention of rotation chains against the naive loop, layer by layer of leaves, and a delete that knows all ids."""

import time

from psycopg import sql

from benchmarks.expiry import rates
from benchmarks.retention import BATCH, raw_rate
from benchmarks.rig import data
from benchmarks.rig.pairs import in_turn
from benchmarks.rig.report import Goal, Results, Row
from benchmarks.rig.runs import perform
from benchmarks.rig.server import Connection, Fill, Server
from benchmarks.rig.sizes import Size

NAIVE = """
    DELETE FROM refresh_sessions WHERE id = ANY(ARRAY(
        SELECT id FROM refresh_sessions s
        WHERE status IN ('Rotated', 'Revoked', 'Expired') AND updated_at < now() - interval '90 days'
          AND NOT EXISTS (SELECT FROM refresh_sessions child WHERE child.parent_session_id = s.id)
        LIMIT 5000))
"""
# Whole chains one after the other, each from its tip up: so every batch takes children before parents.
KNOWN = """
    CREATE TABLE known AS
    SELECT row_number() OVER (ORDER BY user_id, created_at DESC) AS n, id FROM refresh_sessions
    WHERE user_agent = 'Benchmark/1.0 (dead)';
    ALTER TABLE known ADD PRIMARY KEY (n);
"""
BY_KNOWN_ID = sql.SQL("""
    DELETE FROM refresh_sessions WHERE id = ANY(ARRAY(SELECT id FROM known WHERE n > {} AND n <= {}))
""")


def measure(server: Server, size: Size, results: Results) -> None:
    mixed = server.fill("mixed", with_known(data.chains(size.chains, longest=15)))
    long = server.fill("long", with_known(data.long_chains(size.long_chains, links=size.long_chain)))
    mixed_name = f"{size.chains:,} chains, mean 8, half dead"
    results.rows.append(against_naive(server, size, mixed, mixed_name))
    results.rows.append(against_known(server, size, mixed, mixed_name))
    long_name = f"{size.long_chains} chains of {size.long_chain:,}"
    results.rows.append(against_known(server, size, long, long_name))


def against_naive(server: Server, size: Size, template: str, name: str) -> Row:
    found = in_turn(
        "chains, naive loop",
        pairs=size.pairs,
        ours=lambda: delete(server, template),
        other=lambda: raw_rate(server, template, NAIVE),
    )
    return Row(
        what=name,
        against="naive leaf-layer loop in raw SQL: rows/s",
        seen=found.ratio,
        goal=Goal(at_least=6),
        figures=rates(found),
    )


def against_known(server: Server, size: Size, template: str, name: str) -> Row:
    found = in_turn(
        f"{name}, known ids",
        pairs=size.pairs,
        ours=lambda: delete(server, template),
        other=lambda: known_rate(server, template),
    )
    return Row(
        what=name,
        against="raw batched DELETE of the same rows by known id: rows/s",
        seen=found.ratio,
        goal=Goal(at_least=0.5),
        figures=rates(found),
    )


def delete(server: Server, template: str) -> float:
    server.clone(template)
    with server.connect() as connection:
        ((rows,),) = connection.execute("SELECT count(*) FROM known")
    (found,) = perform(server, "session_retention", rows=rows)
    return found.rate


def known_rate(server: Server, template: str) -> float:
    server.clone(template)
    with server.connect() as connection:
        ((last,),) = connection.execute("SELECT count(*) FROM known")
        started = time.perf_counter()
        for n in range(0, last, BATCH):
            connection.execute(BY_KNOWN_ID.format(n, n + BATCH))
        return float(last / (time.perf_counter() - started))


def with_known(fill_in: Fill) -> Fill:
    def fill(connection: Connection) -> None:
        fill_in(connection)
        connection.execute(KNOWN)

    return fill
