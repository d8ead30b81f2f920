"""A worker's own /metrics: real processes, asked over HTTP."""

import math
import signal
import socket
from itertools import product
from pathlib import Path

import pytest
from django.utils import timezone

from tests.kit.factories import DAY, requests, sessions
from tests.kit.triggers import SESSIONS, Kit
from tests.kit.workers import Worker, events, free_port, manage, samples, scrape, value

pytestmark = pytest.mark.django_db(transaction=True)

OUTCOMES = ("completed", "deadline", "cancelled", "failed")
TABLES = ("refresh_sessions", "sign_in_confirmation_requests")
EXPIRE, RETENTION = "identity_expire_sessions_", "identity_session_retention_"


def outside_the_window() -> dict[str, str]:
    hour = (timezone.now().hour + 12) % 24
    return {"SESSION_RETENTION_NIGHT_WINDOW_UTC": f"{hour:02}:00-{hour:02}:59"}


def test_a_polling_worker_serves_every_metric_of_its_job_and_none_of_the_other():
    port = free_port()
    with Worker("expire_sessions", METRICS_PORT=port) as worker:
        worker.until("job completed")
        found = samples(scrape(port))
    assert {name for name, _ in found if not name.startswith(f"{EXPIRE}run_duration_ms_")} == {
        EXPIRE + name
        for name in (
            "refresh_expired_total",
            "sicr_expired_total",
            "backlog",
            "errors_total",
            "runs_total",
            "last_success_timestamp_seconds",
            "oldest_overdue_seconds",
            "oldest_due_timestamp_seconds",
            "lag_seconds_bucket",
            "lag_seconds_count",
            "lag_seconds_sum",
            "interval_seconds",
            "max_run_duration_seconds",
        )
    }
    assert value(found, EXPIRE + "run_duration_ms_count") == 1


def test_outside_its_window_a_worker_serves_counters_at_zero_and_gauges_without_a_value():
    port = free_port()
    with Worker("session_retention", METRICS_PORT=port, **outside_the_window()) as worker:
        worker.until("worker started")
        found = samples(scrape(port))
    for name in ("sicr_deleted_total", "refresh_deleted_total", "errors_total", "run_duration_ms_count"):
        assert value(found, RETENTION + name) == 0
    assert [value(found, RETENTION + "runs_total", outcome=outcome) for outcome in OUTCOMES] == [0, 0, 0, 0]
    assert value(found, RETENTION + "last_success_timestamp_seconds") == 0
    for name, table in product(("backlog", "oldest_overdue_seconds"), TABLES):
        assert math.isnan(value(found, RETENTION + name, table=table))
    assert math.isnan(value(found, RETENTION + "blocked"))


def test_a_run_shows_in_the_metrics():
    now, port = timezone.now(), free_port()
    sessions(3, now=now, left=-DAY)
    requests(2, now=now, left=-DAY)
    sessions(4, now=now)
    with Worker("expire_sessions", METRICS_PORT=port) as worker:
        worker.until("job completed")
        found = samples(scrape(port))
    assert value(found, EXPIRE + "refresh_expired_total") == 3
    assert value(found, EXPIRE + "sicr_expired_total") == 2
    assert value(found, EXPIRE + "runs_total", outcome="completed") == 1
    assert value(found, EXPIRE + "backlog") == 0
    assert value(found, EXPIRE + "last_success_timestamp_seconds") >= now.timestamp()


def test_durations_are_milliseconds_and_each_falls_into_a_bucket_of_its_size(kit: Kit):
    now, port = timezone.now(), free_port()
    with Worker("expire_sessions", METRICS_PORT=port, EXPIRE_SESSIONS_POLLING_INTERVAL="1s") as worker:
        quick = worker.until("job completed")["durationMs"]
        kit.slow(SESSIONS, 0.3)
        sessions(5, now=now, left=-DAY)
        slow = worker.until("job completed")["durationMs"]
        while slow < 1500:  # a run may have begun before the rows were there
            slow = worker.until("job completed")["durationMs"]
        found = samples(scrape(port))
    counted = {
        float(dict(labels)["le"]): count for (name, labels), count in found.items() if name.endswith("_ms_bucket")
    }
    assert value(found, EXPIRE + "run_duration_ms_sum") >= slow
    assert counted[1000] >= 1
    assert counted[2500] - counted[1000] == 1
    assert quick < 1000
    assert counted[250_000] == counted[math.inf] == value(found, EXPIRE + "run_duration_ms_count")


def test_a_port_that_is_taken_is_one_sentence_and_exit_2_before_any_sql():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = manage("expire_sessions", "--loop", METRICS_PORT=port, DATABASE_URL="postgres://u:p@127.0.0.1:1/none")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert f"METRICS_PORT={port} is refused" in refused.stderr
    assert refused.stdout == ""


def test_an_address_of_another_host_is_refused_in_the_same_way():
    refused = manage("session_retention", "--loop", METRICS_PORT=free_port(), METRICS_ADDRESS="192.0.2.1")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "METRICS_ADDRESS" in refused.stderr


@pytest.mark.parametrize("command", ["check", "shell -c pass", "migrate -v 0", "expire_sessions"])
def test_no_other_command_opens_the_port(command: str):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = manage(*command.split(), METRICS_PORT=taken.getsockname()[1])
    assert done.returncode == 0, done.stderr


def test_killed_workers_leave_nothing_in_the_multiprocess_directory_and_one_backlog(tmp_path: Path):
    port = free_port()
    for name in ("PROMETHEUS_MULTIPROC_DIR", "prometheus_multiproc_dir"):
        with Worker("expire_sessions", METRICS_PORT=port, **{name: tmp_path}) as worker:
            worker.until("job completed")
            found = samples(scrape(port))
            worker.stop(signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []
    assert [key for key in found if key[0] == EXPIRE + "backlog"] == [(EXPIRE + "backlog", frozenset())]


def test_a_client_that_breaks_off_writes_nothing_that_is_not_a_log_line():
    port = free_port()
    with Worker("expire_sessions", METRICS_PORT=port) as worker:
        worker.until("job completed")
        for request in (b"GET /metrics HTTP/1.1\r\n\r\n", b"nonsense\r\n\r\n", b""):
            with socket.create_connection(("127.0.0.1", port)) as client:
                # Closed with a reset, while the answer may still be under way.
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                client.sendall(request)
        assert scrape(port)
        assert worker.stop() == 0
    assert [each["event"] for each in events("\n".join(worker.lines))][-1] == "worker stopping"


def test_a_dry_run_touches_no_metric(tmp_path: Path):
    sessions(1, now=timezone.now(), left=-DAY)
    textfile = tmp_path / "identity.prom"
    assert manage("expire_sessions", "--dry-run", METRICS_TEXTFILE=textfile).returncode == 0
    assert not textfile.exists()
