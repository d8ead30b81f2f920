"""Behind a real PgBouncer in transaction mode: the database carries the search_path, start-up options are off."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.kit.factories import DAY, chain, requests, sessions
from tests.kit.processes import Process, database_url
from tests.kit.triggers import execute

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(not PGBOUNCER, reason="pgbouncer is not installed"),
]

Start = Callable[..., Process]
PRESENT = datetime.now(UTC)
PORT = 6432

CONFIGURATION = """
[databases]
* = host={host} port={port}
[pgbouncer]
listen_addr =
listen_port = {listen}
unix_socket_dir = {folder}
auth_type = trust
auth_file = {folder}/users
pool_mode = transaction
default_pool_size = 2
"""


@pytest.fixture
def pooler() -> Iterator[dict[str, str]]:
    """Run PgBouncer in front of the test database and return what a process needs to use it."""
    known = connection.get_connection_params()
    host = str(known.get("host") or "localhost")
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    values = {"host": host, "port": known.get("port") or 5432, "listen": PORT, "folder": folder}
    (folder / "pgbouncer.ini").write_text(CONFIGURATION.format(**values))
    (folder / "users").write_text(f'"{known["user"]}" "{known.get("password", "")}"\n')
    command = [str(PGBOUNCER), str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:
        # It refuses to be root; whoever owns the server's socket may use it.
        command[1:1] = ["-u", Path(host).owner() if host.startswith("/") else "nobody"]
    execute(f"ALTER DATABASE {connection.ops.quote_name(known['dbname'])} SET search_path = identity")
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr
        assert any("process up" in line for line in process.stderr), "PgBouncer did not start"
        yield {"DATABASE_URL": database_url(host=str(folder), port=PORT), "DATABASE_SCHEMA_OPTION": "off"}
    finally:
        process.kill()
        process.communicate()
        shutil.rmtree(folder)
        execute(f"ALTER DATABASE {connection.ops.quote_name(known['dbname'])} RESET search_path")


@pytest.mark.parametrize("count", [0, 1, 35])
def test_both_jobs_do_all_rows_two_copies_at_once(count: int, pooler: dict[str, str], start: Start) -> None:
    sessions(count, now=PRESENT, left=-DAY)
    requests(count, now=PRESENT, left=-DAY)
    sessions(count, now=PRESENT, status="Revoked", age=100 * DAY)
    if count:
        chain(count, now=PRESENT)
        chain(count, now=PRESENT, tip="Active")
    requests(count, now=PRESENT, age=40 * DAY, status="Confirmed")
    running = [
        start(command, "--batch-size=10", **pooler)
        for command in ("expire_sessions", "session_retention")
        for _ in "12"
    ]
    assert [process.end() for process in running] == [0] * 4
    assert not [line for process in running for line in process.lines if line["level"] != "INFO"]
    assert RefreshSession.objects.count() == 2 * count
    assert RefreshSession.objects.filter(status="Expired").count() == count
    assert SignInConfirmationRequest.objects.filter(status="Expired").count() == count
    assert SignInConfirmationRequest.objects.count() == count


def test_no_setting_and_no_lock_stays_on_a_pooled_connection(pooler: dict[str, str], start: Start) -> None:
    sessions(20, now=PRESENT, left=-DAY)
    assert start("expire_sessions", "--batch-size=5", **pooler).end() == 0
    assert start("session_retention", "--batch-size=5", **pooler).end() == 0
    shown: set[Any] = set()
    for _ in range(20):
        with psycopg.connect(**through(pooler)) as other:
            shown.add(
                other.execute(
                    "SELECT current_setting('statement_timeout'), current_setting('lock_timeout'), "
                    "current_setting('search_path')"
                ).fetchone()
            )
    assert shown == {("0", "0", "identity")}
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone() == (0,)


def through(pooler: dict[str, str]) -> dict[str, Any]:
    """Return what psycopg needs to connect through the pooler."""
    folder, _, name = pooler["DATABASE_URL"].partition(f":{PORT}/")[2].rpartition("/")
    return {"host": folder, "port": PORT, "dbname": name, "user": connection.get_connection_params()["user"]}


def test_a_worker_polls_on_and_a_killed_one_leaves_nothing_that_holds_up_the_next(
    pooler: dict[str, str], start: Start
) -> None:
    for _ in range(2):
        sessions(5, now=PRESENT, left=-DAY)
        worker = start("expire_sessions", "--loop", "--polling-interval=50ms", "--max-run-duration=1s", **pooler)
        assert worker.until("job completed")["refreshExpired"] == 5
        worker.until("job completed", times=3)
        worker.kill()


def test_the_migrations_are_seen_through_it(pooler: dict[str, str], start: Start) -> None:
    checked = start("migrate", "--check", **pooler)
    _, written = checked.communicate()
    assert (checked.returncode, written) == (0, "")
