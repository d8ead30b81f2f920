"""The commands that peers.py compares: whose they are, how their tables are filled, and what a writer there does."""

from collections.abc import Callable
from dataclasses import dataclass

from psycopg import sql

from benchmarks.rig import data
from benchmarks.rig.server import Connection, Fill

OURS, THEIRS = "settings.production", "benchmarks.rig.peers_settings"


@dataclass(frozen=True, kw_only=True)
class Compared:
    """A command; `fill` takes the number of rows that have run out, `writer` updates row :n of them."""

    name: str
    command: str
    settings: str
    table: str
    fill: Callable[[int], Fill]
    writer: str
    left: str = "true"  # the condition of what it should have cleaned


def inserted(statement: str) -> Callable[[int], Fill]:
    """Fill with one INSERT that makes rows from `n`."""

    def rows(count: int) -> Fill:
        def fill(connection: Connection) -> None:
            source = sql.SQL(" FROM generate_series(1, {}) AS n").format(count)
            connection.execute(sql.Composed([sql.SQL(statement), source]))

        return fill

    return rows


PEERS = (
    Compared(
        name="clearsessions (Django)",
        command="clearsessions",
        settings=THEIRS,
        table="django_session",
        fill=inserted(
            "INSERT INTO django_session (session_key, session_data, expire_date)"
            " SELECT md5(n::text), repeat(md5(n::text), 6), now() - interval '1 d'"
        ),
        writer="UPDATE django_session SET session_data = session_data WHERE session_key = md5(:n::text)",
    ),
    Compared(
        name="flushexpiredtokens (simplejwt)",
        command="flushexpiredtokens",
        settings=THEIRS,
        table="token_blacklist_outstandingtoken",
        fill=inserted(
            "INSERT INTO token_blacklist_outstandingtoken (id, jti, token, created_at, expires_at)"
            " SELECT n, md5(n::text), repeat(md5(n::text), 8), now() - interval '2 d', now() - interval '1 d'"
        ),
        writer="UPDATE token_blacklist_outstandingtoken SET token = token WHERE id = :n",
    ),
    Compared(
        name="cleartokens (django-oauth-toolkit)",
        command="cleartokens",
        settings=THEIRS,
        table="oauth2_provider_accesstoken",
        fill=inserted(
            "INSERT INTO oauth2_provider_accesstoken"
            " (id, token, token_checksum, scope, expires, created, updated, resource)"
            " SELECT n, md5(n::text), repeat(md5(n::text), 2), 'read', now() - interval '1 d', now(), now(), '[]'"
        ),
        writer="UPDATE oauth2_provider_accesstoken SET scope = scope WHERE id = :n",
    ),
)
OUR_COMMANDS = (
    Compared(
        name="expire_sessions (ours)",
        command="expire_sessions",
        settings=OURS,
        table="refresh_sessions",
        fill=data.due_sessions,
        left="status = 'Active'",
        writer="UPDATE refresh_sessions SET user_agent = user_agent WHERE id = md5('due/' || :n || '/1')::uuid",
    ),
    Compared(
        name="session_retention, requests (ours)",
        command="session_retention",
        settings=OURS,
        table="sign_in_confirmation_requests",
        fill=data.old_requests,
        writer="UPDATE sign_in_confirmation_requests SET attempts = attempts WHERE id = md5('old/' || :n)::uuid",
    ),
    Compared(
        name="session_retention, sessions (ours)",
        command="session_retention",
        settings=OURS,
        table="refresh_sessions",
        fill=data.revoked_sessions,
        writer="UPDATE refresh_sessions SET user_agent = user_agent WHERE id = md5('old/' || :n || '/1')::uuid",
    ),
)
