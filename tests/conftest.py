"""Fixtures: a second connection, a second thread, triggers inside the server, a clean environment."""

import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from identity.logs import Formatter
from tests.kit.log import Log
from tests.kit.processes import Process, database_url
from tests.kit.triggers import Kit, terminate_others

PREFIXES = ("EXPIRE_SESSIONS_", "SESSION_RETENTION_", "METRICS_", "PROMETHEUS_", "OTEL_")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Options that happen to be set where the suite runs change no test."""
    for name in os.environ:
        if name.startswith(PREFIXES):
            monkeypatch.delenv(name)


@pytest.fixture
def kit(db: None) -> Iterator[Kit]:
    """Triggers that watch and disturb."""
    with Kit() as it:
        yield it


@pytest.fixture
def log() -> Iterator[Log]:
    """Collect log lines as they are written, each parsed."""
    lines = Log()

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(json.loads(self.format(record)))

    collector = Collector()
    form = dict(settings.LOGGING["formatters"]["json"])
    form.pop("()")
    collector.setFormatter(Formatter(**form))
    logging.getLogger().addHandler(collector)
    yield lines
    logging.getLogger().removeHandler(collector)


@pytest.fixture
def debug_log(log: Log) -> Iterator[Log]:
    """Collect what is told to who looks closely, too."""
    logger = logging.getLogger("identity.sessions")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    yield log
    logger.setLevel(level)


@pytest.fixture
def connect(transactional_db: None) -> Iterator[Callable[[], psycopg.Connection[Any]]]:
    """Open further connections to the test database, as other processes would; what they left open is rolled back."""
    opened: list[psycopg.Connection[Any]] = []

    def new() -> psycopg.Connection[Any]:
        known = connection.get_connection_params()
        params = {key: known[key] for key in known if key not in ("context", "cursor_factory", "prepare_threshold")}
        opened.append(psycopg.connect(**params))
        return opened[-1]

    yield new
    for other in opened:
        other.close()


@pytest.fixture
def other(connect: Callable[[], psycopg.Connection[Any]]) -> psycopg.Connection[Any]:
    """One further connection; its statements share one transaction until it commits."""
    return connect()


@pytest.fixture
def elsewhere(transactional_db: None) -> Iterator[Callable[..., Future[Any]]]:
    """Call a function in another thread, thus on a Django connection of its own."""

    def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        finally:
            connection.close()

    with ThreadPoolExecutor(max_workers=4) as pool:
        yield lambda function, *args, **kwargs: pool.submit(call, function, *args, **kwargs)


@pytest.fixture
def until(transactional_db: None) -> Callable[[str], None]:
    """Return once a condition on `others`, the other connections to the test database, holds; fail after 20 seconds."""

    def wait(condition: str) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('kit.condition', %s, false)", [f"SELECT {condition} FROM ({_OTHERS}) others"]
            )
            cursor.execute(_UNTIL)

    return wait


@pytest.fixture
def until_waiting(until: Callable[[str], None]) -> Callable[[int], None]:
    """Return once so many other connections wait for a lock."""
    return lambda count: until(f"count(*) FILTER (WHERE wait_event_type = 'Lock') >= {count}")


_OTHERS = """
    SELECT * FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
_UNTIL = """
DO $$
DECLARE holds boolean;
BEGIN
    FOR attempt IN 1..1000 LOOP
        EXECUTE current_setting('kit.condition') INTO holds;
        IF holds THEN
            RETURN;
        END IF;
        PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
    END LOOP;
    RAISE EXCEPTION 'never: %', current_setting('kit.condition');
END $$
"""


@pytest.fixture
def start(transactional_db: None) -> Iterator[Callable[..., Process]]:
    """Start manage.py on the test database; whatever is still running at the end is killed, its connections with it."""
    started: list[Process] = []

    def new(*arguments: str, **given: Any) -> Process:
        started.append(Process(*arguments, **{"DATABASE_URL": database_url(), **given}))
        return started[-1]

    yield new
    for process in started:
        process.kill()
        _, rest = process.communicate()
        sys.stderr.write(f"{process.args}: {process.lines} {rest}\n")  # pytest shows it if the test failed
    terminate_others()
