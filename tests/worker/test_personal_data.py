"""Nothing that a row, the DSN or the settings hold in secret reaches an operator, however a run fails."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest
from django.utils import timezone

from tests.kit.collector import Collector
from tests.kit.factories import DAY, requests, sessions
from tests.kit.triggers import REQUESTS, SESSIONS, Kit, execute
from tests.kit.workers import database_url, events, manage
from tests.worker.conftest import Server

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORD, SECRET_KEY = "canary-database-password", "canary-secret-key"
ROW = {"id": UUID("ca9a0001-0000-4000-8000-000000000001"), "user_id": UUID("ca9a0002-0000-4000-8000-000000000002")}
SESSION = {
    "token_hash": "canary-token-hash",
    "ip_address": "198.51.100.201",
    "user_agent": "canary-user-agent",
    "revoked_reason": "canary-reason",
}
REQUEST = {
    "phone_number": "+79995550123",
    "code_hash": "canary-code-hash",
    "ip_address": "198.51.100.202",
    "user_agent": "canary-request-agent",
}
CANARIES = {str(value) for columns in (ROW, SESSION, REQUEST) for value in columns.values()} | {PASSWORD, SECRET_KEY}


@pytest.fixture
def rows(transactional_db: None) -> None:
    """One row in each table that both jobs would change."""
    now = timezone.now()
    sessions(1, now=now, age=200 * DAY, left=-DAY, **ROW, **SESSION)
    requests(1, now=now, age=40 * DAY, left=-DAY, **ROW, **REQUEST)


def a_check_constraint(kit: Kit) -> str:
    for table in (SESSIONS, REQUESTS):
        execute(f"ALTER TABLE {table} ADD CONSTRAINT kit_ck CHECK (status <> 'Expired') NOT VALID")
    return "expire_sessions"


def a_foreign_key(kit: Kit) -> str:
    execute("UPDATE refresh_sessions SET status = 'Revoked'")
    kit.refer_to(ROW["id"])
    return "session_retention"


def a_trigger_that_quotes_the_row(kit: Kit) -> str:
    for table in (SESSIONS, REQUESTS):
        kit.poison(table, ROW["id"])
    return "expire_sessions"


def a_connection_that_breaks(kit: Kit) -> str:
    execute("""
        CREATE FUNCTION kit_break() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            PERFORM pg_terminate_backend(pg_backend_pid());
            RETURN old;
        END $$
    """)
    execute("CREATE TRIGGER kit_break BEFORE DELETE ON sign_in_confirmation_requests EXECUTE FUNCTION kit_break()")
    return "session_retention"


@pytest.fixture
def mended(kit: Kit):
    yield
    for table in (SESSIONS, REQUESTS):
        execute(f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS kit_ck")
    execute("DROP FUNCTION IF EXISTS kit_break CASCADE")


@pytest.mark.usefixtures("rows", "mended")
@pytest.mark.parametrize(
    "broken", [a_check_constraint, a_foreign_key, a_trigger_that_quotes_the_row, a_connection_that_breaks]
)
def test_an_error_of_the_database_tells_nothing_of_the_row(
    broken: Callable[[Kit], str], kit: Kit, collector: Collector, tmp_path: Path
):
    command = broken(kit)
    told = everything_told(command, database_url(password=PASSWORD), collector, tmp_path)
    assert "SQLSTATE" in told
    assert {canary for canary in CANARIES if canary in told} == set()


def test_a_wrong_password_is_not_told(server: Server, collector: Collector, tmp_path: Path):
    url = server.url(user="guarded", password=PASSWORD)
    told = everything_told("expire_sessions", url, collector, tmp_path)
    assert "OperationalError" in told
    assert {canary for canary in CANARIES if canary in told} == set()


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_a_run_that_works_tells_nothing_of_the_rows_either(command: str, collector: Collector, tmp_path: Path):
    told = everything_told(command, database_url(password=PASSWORD), collector, tmp_path, code=0)
    assert {canary for canary in CANARIES if canary in told} == set()


def everything_told(command: str, url: str, collector: Collector, folder: Path, *, code: int = 1) -> str:
    """Run a command with every log level open; return its output, metrics and spans."""
    metrics = folder / "identity.prom"
    done = manage(
        command,
        DATABASE_URL=url,
        DJANGO_SECRET_KEY=SECRET_KEY,
        DJANGO_DEBUG="on",
        LOG_LEVEL="DEBUG",
        METRICS_TEXTFILE=metrics,
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.address,
    )
    assert done.returncode == code, done.stderr
    assert events("\n".join(line for line in done.stderr.splitlines() if line.startswith("{")))
    spans = collector.raw()
    assert command.encode() in spans
    return done.stdout + done.stderr + metrics.read_text() + spans.decode(errors="replace")
