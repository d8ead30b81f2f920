"""The database goes away while a worker runs, and comes back."""

import socket
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.kit.workers import Worker, events, free_port, manage, samples, scrape, value
from tests.worker.conftest import Server

pytestmark = pytest.mark.django_db

EXPIRE = "identity_expire_sessions_"


def moments(runs: list[dict[str, Any]]) -> list[datetime]:
    return [datetime.fromisoformat(run["time"]) for run in runs]


def test_an_outage_is_seen_from_outside_is_told_once_and_ends_by_itself(server: Server):
    port = free_port()
    with Worker(
        "expire_sessions", DATABASE_URL=server.url(), METRICS_PORT=port, EXPIRE_SESSIONS_POLLING_INTERVAL="300ms"
    ) as worker:
        assert worker.until("job completed")["outcome"] == "completed"
        server.stop()
        while worker.until("job completed")["outcome"] != "failed":
            pass
        first = samples(scrape(port))
        failed = [worker.until("job completed") for _ in range(3)]
        during = samples(scrape(port))
        server.start()
        while worker.until("job completed")["outcome"] != "completed":
            pass
        after = samples(scrape(port))
        assert worker.stop() == 0
    log = events("\n".join(worker.lines))

    assert [run["outcome"] for run in failed] == ["failed"] * 3
    waits = [later - earlier for earlier, later in zip(moments(failed), moments(failed)[1:], strict=False)]
    assert waits == sorted(waits)
    assert waits[-1] > timedelta(seconds=1)  # three doublings of the interval are 2.4 s
    assert len([each for each in log if "exc_info" in each]) == 1

    success = EXPIRE + "last_success_timestamp_seconds"
    assert value(during, EXPIRE + "errors_total") > value(first, EXPIRE + "errors_total") > 0
    assert value(during, success) == value(first, success) > 0
    assert value(during, EXPIRE + "backlog") == 0
    assert value(after, success) > value(during, success)


def test_a_worker_that_starts_while_the_database_is_away_waits_for_it_and_stops_when_asked(server: Server):
    server.stop()
    try:
        with Worker("expire_sessions", DATABASE_URL=server.url(), EXPIRE_SESSIONS_POLLING_INTERVAL="300ms") as worker:
            worker.until("job completed", times=2)
            assert worker.stop() == 0
    finally:
        server.start()
    log = events("\n".join(worker.lines))
    assert log[-1]["event"] == "worker stopping"
    assert log[-1]["reason"] == "SIGTERM"


def test_a_host_that_accepts_and_says_nothing_costs_seconds_and_not_minutes():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgres://u:p@127.0.0.1:{silent.getsockname()[1]}/none"
        done = manage("expire_sessions", DATABASE_URL=url)  # fails after a minute by itself
    assert done.returncode == 1
    assert "did not answer in time" in done.stderr
