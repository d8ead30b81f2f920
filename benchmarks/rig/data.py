"""Fill the tables inside the server, with the same rows each time: ids are hashes, and random() is seeded.

Rows lie on disk in the order in which a service would have written them, by `created_at`, so the links of a chain are
scattered over the table and what runs out together lies together, more or less.
"""

from psycopg import sql

from benchmarks.rig.server import Connection, Fill

SESSIONS = sql.SQL("""
    INSERT INTO refresh_sessions (id, user_id, parent_session_id, status, token_hash, created_at, updated_at,
                                  expires_at, revoked_at, revoked_reason, ip_address, user_agent)
    SELECT md5({kind} || '/' || chain || '/' || link)::uuid, md5('user/' || chain)::uuid,
           CASE WHEN link > 1 THEN md5({kind} || '/' || chain || '/' || link - 1)::uuid END,
           CASE WHEN link < links THEN 'Rotated' ELSE {tip} END,
           repeat(md5({kind} || chain || link), 2), born, CASE WHEN link < links THEN born + step ELSE moved END,
           born + interval '30 days', CASE WHEN link = links AND {tip} = 'Revoked' THEN moved END,
           CASE WHEN link = links AND {tip} = 'Revoked' THEN 'SignedOut' END,
           ('10.0.' || chain % 250 || '.' || link % 250)::inet, 'Benchmark/1.0 (' || {kind} || ')'
    FROM (
        SELECT chain, link, links, step, moved, moved - (links - link) * step AS born
        FROM (
            SELECT chain, {shortest} + floor(random() * ({longest} - {shortest} + 1))::int AS links,
                   (0.1 + 0.9 * random()) * {step}::interval AS step,
                   now() - {youngest}::interval - random() * ({oldest}::interval - {youngest}::interval) AS moved
            FROM generate_series(1, {count}) AS chain
        ) AS chains, generate_series(1, links) AS link
    ) AS sessions
    ORDER BY born
""")

REQUESTS = sql.SQL("""
    INSERT INTO sign_in_confirmation_requests (id, user_id, phone_number, code_hash, status, attempts, created_at,
                                               updated_at, expires_at, confirmed_at, ip_address, user_agent)
    SELECT md5({kind} || '/' || request)::uuid, md5('user/' || request)::uuid, '+1555' || lpad(request::text, 7, '0'),
           repeat(md5('code' || request), 2), {status}, 1, born, born, born + interval '5 minutes', NULL,
           ('10.1.' || request % 250 || '.1')::inet, 'Benchmark/1.0 (' || {kind} || ')'
    FROM (
        SELECT request, now() - {youngest}::interval - random() * ({oldest}::interval - {youngest}::interval) AS born
        FROM generate_series(1, {count}) AS request
    ) AS requests
    ORDER BY born
""")


def sessions(
    kind: str, count: int, *, tip: str, youngest: str, oldest: str, links: tuple[int, int] = (1, 1), step: str = "4 d"
) -> Fill:
    """Fill in chains of so many links, whose tips came into their status at an age between `youngest` and `oldest`."""

    def fill(connection: Connection) -> None:
        values = {"kind": kind, "tip": tip, "youngest": youngest, "oldest": oldest, "step": step, "count": count}
        ends = {"shortest": links[0], "longest": links[1]}
        connection.execute(SESSIONS.format(**{name: sql.Literal(value) for name, value in {**values, **ends}.items()}))

    return fill


def requests(kind: str, count: int, *, status: str, youngest: str, oldest: str) -> Fill:
    """Fill in confirmation requests of one status; `youngest` and `oldest` are their ages."""

    def fill(connection: Connection) -> None:
        values = {"kind": kind, "status": status, "youngest": youngest, "oldest": oldest, "count": count}
        connection.execute(REQUESTS.format(**{name: sql.Literal(value) for name, value in values.items()}))

    return fill


def due_sessions(count: int) -> Fill:
    return sessions("due", count, tip="Active", youngest="30 d 1 h", oldest="31 d")


def live_sessions(count: int) -> Fill:
    return sessions("live", count, tip="Active", youngest="1 h", oldest="28 d")


def revoked_sessions(count: int) -> Fill:
    return sessions("old", count, tip="Revoked", youngest="91 d", oldest="100 d")


def old_requests(count: int) -> Fill:
    return requests("old", count, status="Confirmed", youngest="31 d", oldest="40 d")


def pending_requests(count: int) -> Fill:
    """Fill in requests that a benchmark will confirm, with hours to live instead of five minutes."""

    def fill(connection: Connection) -> None:
        requests("live", count, status="Pending", youngest="1 s", oldest="2 s")(connection)
        connection.execute("UPDATE sign_in_confirmation_requests SET expires_at = now() + interval '1 d'")

    return fill


def chains(count: int, *, longest: int) -> Fill:
    """Fill in chains, half of them dead from end to end, half old as well but kept by a live tip."""
    return all_of(
        sessions("dead", count // 2, tip="Revoked", youngest="91 d", oldest="200 d", links=(1, longest)),
        sessions(
            "kept", count - count // 2, tip="Active", youngest="1 d", oldest="9 d", links=(1, longest), step="5 w"
        ),
    )


def long_chains(count: int, *, links: int) -> Fill:
    return sessions(
        "dead", count, tip="Expired", youngest="91 d", oldest="100 d", links=(links, links), step="30 minutes"
    )


def blocked_sessions(count: int) -> Fill:
    """Fill in rotated sessions past retention, each kept by the live tip of its chain of 51."""
    return without_indexes(
        sessions("kept", count // 50, tip="Active", youngest="91 d", oldest="92 d", links=(51, 51), step="1 d")
    )


def all_of(*fills: Fill) -> Fill:
    def fill(connection: Connection) -> None:
        for each in fills:
            each(connection)

    return fill


def without_indexes(fill_in: Fill) -> Fill:
    """Fill in many rows: the indexes that are no constraint are made afterwards, which is several times faster."""

    def fill(connection: Connection) -> None:
        indexes = connection.execute(
            "SELECT indexname, indexdef FROM pg_indexes JOIN pg_class ON relname = indexname"
            " WHERE schemaname = current_schema AND tablename IN ('refresh_sessions', 'sign_in_confirmation_requests')"
            " AND NOT EXISTS (SELECT FROM pg_constraint WHERE conindid = pg_class.oid)"
        ).fetchall()
        for name, _ in indexes:
            connection.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
        fill_in(connection)
        for _, definition in indexes:
            connection.execute(definition)

    return fill
