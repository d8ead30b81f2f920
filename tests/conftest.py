"""Fixtures: a second connection, a second thread, triggers inside the server, a clean environment."""

import json
import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from identity.logs import Formatter
from tests.kit import Kit

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
def log() -> Iterator[list[dict[str, Any]]]:
    """Collect log lines as they are written, each parsed."""
    lines: list[dict[str, Any]] = []

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
def until_waiting(transactional_db: None) -> Callable[[int], None]:
    """Return once so many connections to the test database wait for a lock; fail if they do not within ten seconds."""

    def wait(count: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('kit.count', %s, false)", [str(count)])
            cursor.execute(_UNTIL_WAITING)

    return wait


_UNTIL_WAITING = """
DO $$
BEGIN
    FOR attempt IN 1..500 LOOP
        IF (
            SELECT count(DISTINCT pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
            WHERE NOT granted AND datname = current_database()
        ) >= current_setting('kit.count')::int THEN
            RETURN;
        END IF;
        PERFORM pg_sleep(0.02), pg_stat_clear_snapshot();
    END LOOP;
    RAISE EXCEPTION 'too few connections wait for a lock';
END $$
"""
