"""A real PgBouncer in transaction mode between the jobs and the server, set up as docs/database.md says."""

import os
import pwd
import re
import shutil
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from uuid import uuid4

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from identity.demo import rows
from tests.test_database_page import GRANTS, POOLER, ROLES, run

PROGRAM = shutil.which("pgbouncer", path="/usr/sbin:/usr/bin:/usr/local/bin")
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed"),
]

CONFIG = """
[databases]
{databases}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def roles():
    """The page's roles, grants and search_path for this database, with names of this test's own; gone afterwards."""
    names = {name: f"{name}_{uuid4().hex[:8]}" for name in re.findall(r"CREATE ROLE (\w+)", ROLES)}

    def named(sql):
        for name, own in names.items():
            sql = re.sub(rf"\b{name}\b", own, sql)
        return sql.replace("DATABASE identity", f"DATABASE {connection.settings_dict['NAME']}")

    run(named(re.sub("CREATE SCHEMA.*", "", ROLES)) + named(GRANTS) + named(POOLER))
    run(";".join(f"ALTER ROLE {role} PASSWORD 'any'" for role in names.values()))
    yield names
    run(";".join(f"DROP OWNED BY {role}; DROP ROLE {role}" for role in names.values()))


@pytest.fixture
def pooler(roles, tmp_path):
    """A running PgBouncer: its port. Each role's database has the role's name on the page."""
    server = connection.get_connection_params()
    target = f"host={server['host']} port={server.get('port', 5432)} dbname={server['dbname']} password=any"
    databases = "\n".join(f"{name} = {target} user={role}" for name, role in roles.items())
    port = free_port()
    config = tmp_path / "pgbouncer.ini"
    config.write_text(CONFIG.format(databases=databases, port=port))
    with subprocess.Popen([PROGRAM, *as_the_server(server["host"]), config], stderr=subprocess.PIPE, text=True) as it:
        assert any("process up" in line for line in it.stderr)
        yield port
        it.terminate()


def as_the_server(host):
    """Return the flags that make PgBouncer, which refuses to be root, run as the owner of the server's socket."""
    if os.geteuid() != 0:
        return []
    return ["-u", pwd.getpwuid(Path(host).stat().st_uid).pw_name if host.startswith("/") else "nobody"]


def manage(port, role, *arguments, **environment):
    url = f"postgres://any:any@127.0.0.1:{port}/{role}"
    environment = {**os.environ, "DATABASE_URL": url, "DATABASE_SCHEMA_OPTION": "off", **environment}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
    )


def refill():
    with connection.cursor() as cursor:
        rows.refill(cursor)


@pytest.fixture
def busy(pooler):
    """Another client that uses the pooler all the time, so that connections change hands."""
    stop = Event()

    def ask():
        with psycopg.connect(
            host="127.0.0.1", port=pooler, dbname="identity_retention", user="any", autocommit=True
        ) as client:
            while not stop.is_set():
                client.execute("SELECT 1", prepare=False)

    with ThreadPoolExecutor(max_workers=1) as pool:
        asking = pool.submit(ask)
        yield
        stop.set()
        asking.result()


@pytest.mark.usefixtures("busy")
def test_both_jobs_do_all_their_work_through_a_pooler_with_many_rows_one_row_and_none(pooler):
    refill()
    for role, job in [("identity_expiry", "expire_sessions"), ("identity_retention", "session_retention")]:
        many = manage(pooler, role, job, "--batch-size", "100")
        assert (many.returncode, " 0 left" in many.stdout) == (0, True), many.stderr
        none = manage(pooler, role, job, "--batch-size", "100")
        assert f"{job}: 0 " in none.stdout
    run("UPDATE sign_in_confirmation_requests SET created_at = now() - interval '31 days' WHERE id = "
        "(SELECT id FROM sign_in_confirmation_requests LIMIT 1)")  # fmt: skip
    one = manage(pooler, "identity_retention", "session_retention", "--batch-size", "1")
    assert "1 confirmation requests and 0 sessions deleted" in one.stdout, one.stderr


def test_a_run_leaves_no_setting_and_no_lock_on_the_poolers_connections(pooler):
    refill()
    assert manage(pooler, "identity_retention", "session_retention").returncode == 0
    seen = set()
    for _ in range(20):
        with psycopg.connect(host="127.0.0.1", port=pooler, dbname="identity_retention", user="any") as client:
            names = ("statement_timeout", "lock_timeout", "search_path")
            seen.add(tuple(client.execute(f"SHOW {name}", prepare=False).fetchone()[0] for name in names))
            (locks,) = client.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'").fetchone()
            assert locks == 0
    assert seen == {("0", "0", "identity")}


def test_a_pooler_that_refuses_the_start_up_option_is_told_apart_from_an_outage(pooler):
    refused = manage(pooler, "identity_expiry", "expire_sessions", DATABASE_SCHEMA_OPTION="on")
    assert refused.returncode == 1
    assert "DATABASE_SCHEMA_OPTION=off" in refused.stderr.splitlines()[-1]
