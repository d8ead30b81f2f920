"""SQL that watches and disturbs the jobs from inside the server, so that no test depends on how they are written."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple, Self
from uuid import UUID

import psycopg
from django.db import connection

SESSIONS, REQUESTS = "refresh_sessions", "sign_in_confirmation_requests"

_FUNCTIONS = """
CREATE TABLE kit_audit (
    place bigserial, transaction xid8, at timestamptz, tab text, op text, row_id uuid, before text, after text
);
CREATE FUNCTION kit_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO kit_audit (transaction, at, tab, op, row_id, before, after)
    VALUES (pg_current_xact_id(), clock_timestamp(), tg_table_name, tg_op, old.id, old.status,
            CASE WHEN tg_op = 'UPDATE' THEN new.status END);
    RETURN NULL;
END $$;
CREATE FUNCTION kit_slow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(tg_argv[0]::double precision);
    RETURN CASE WHEN tg_op = 'DELETE' THEN old ELSE new END;
END $$;
CREATE FUNCTION kit_gate() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(1963);
    RETURN NULL;
END $$;
CREATE FUNCTION kit_poison() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF old.id = ANY(tg_argv[0]::uuid[]) THEN
        RAISE EXCEPTION 'this row holds %', old.user_agent USING ERRCODE = '23514';
    END IF;
    RETURN CASE WHEN tg_op = 'DELETE' THEN old ELSE new END;
END $$;
"""


class Change(NamedTuple):
    """One row change that the audit has seen."""

    transaction: int
    table: str
    op: str
    row_id: UUID
    before: str
    after: str | None


class Kit(AbstractContextManager["Kit"]):
    """Triggers on the two tables; all of them are gone afterwards."""

    def __enter__(self) -> Self:
        execute(_FUNCTIONS)
        return self

    def __exit__(self, *_: object) -> None:
        if connection.in_atomic_block:
            return  # the test's own rollback takes them
        execute("DROP TABLE IF EXISTS kit_audit, kit_referrer CASCADE")
        execute("DROP FUNCTION kit_audit, kit_slow, kit_gate, kit_poison CASCADE")

    def audit(self) -> None:
        """Record each row that an UPDATE or a DELETE changes, with its transaction."""
        for table in (SESSIONS, REQUESTS):
            _trigger("AFTER", table, "kit_audit()")

    def changes(self) -> list[Change]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT transaction::text::bigint, tab, op, row_id, before, after FROM kit_audit ORDER BY place"
            )
            return [Change(*row) for row in cursor.fetchall()]

    def batches(self) -> list[int]:
        """Return the number of rows of each transaction that the audit has seen, in order."""
        sizes: dict[int, int] = {}
        for change in self.changes():
            sizes[change.transaction] = sizes.get(change.transaction, 0) + 1
        return list(sizes.values())

    def slow(self, table: str, seconds: float) -> None:
        """Make each changed row take so long."""
        _trigger("BEFORE", table, f"kit_slow('{seconds}')")

    @contextmanager
    def gate(self, moment: str, table: str) -> Iterator[None]:
        """Hold up every statement on the table BEFORE it looks at rows, its snapshot taken, or AFTER it changed them.

        The gate opens at the end of the block; this connection itself passes.
        """
        execute("SELECT pg_advisory_lock(1963)")
        execute(f"CREATE TRIGGER kit_gate {moment} UPDATE OR DELETE ON {table} EXECUTE FUNCTION kit_gate()")
        try:
            yield
        finally:
            execute("SELECT pg_advisory_unlock(1963)")

    def poison(self, table: str, *ids: UUID) -> None:
        """Make any change of these rows fail, with an error text that quotes a row."""
        _trigger("BEFORE", table, f"kit_poison('{{{','.join(map(str, ids))}}}')")

    def refer_to(self, *ids: UUID) -> None:
        """Let a table that the jobs know nothing of refer to these sessions."""
        execute("CREATE TABLE kit_referrer (session_id uuid REFERENCES refresh_sessions (id))")
        for session_id in ids:
            execute("INSERT INTO kit_referrer VALUES (%s)", session_id)


def child_of(other: psycopg.Connection[Any], parent_id: UUID) -> Any:
    """Insert a live child on the other connection, in the transaction that is open there; return its id."""
    columns = "user_id, status, token_hash, created_at, updated_at, expires_at, user_agent"
    return other.execute(
        f"INSERT INTO refresh_sessions (id, parent_session_id, {columns}) SELECT gen_random_uuid(), id, user_id, "
        "'Active', 'a', now(), now(), now() + interval '30 days', '' FROM refresh_sessions WHERE id = %s RETURNING id",
        [parent_id],
    ).fetchone()[0]


def terminate_others() -> None:
    """End all other connections to the test database, also those whose client is gone, and wait until they are."""
    execute(
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def execute(sql: str, *params: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params or None)


def _trigger(moment: str, table: str, call: str) -> None:
    name = call.partition("(")[0]
    execute(f"CREATE TRIGGER {name} {moment} UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {call}")
