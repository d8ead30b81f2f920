"""Where a one-shot run leaves its metrics: a real Pushgateway, and a file for the textfile collector."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest
from django.utils import timezone

from tests.kit.factories import DAY, requests, sessions
from tests.kit.workers import events, late, manage, samples, value
from tests.worker.conftest import Gateway

pytestmark = pytest.mark.django_db(transaction=True)

EXPIRE, RETENTION = "identity_expire_sessions_", "identity_session_retention_"
AT_MOST = timedelta(seconds=7)  # five, and the end of a process on a busy machine
NOWHERE = {"DATABASE_URL": "postgres://u:p@127.0.0.1:1/none"}


def warning(stderr: str) -> str:
    [found] = [each["event"] for each in events(stderr) if each["level"] == "WARNING"]
    return found


def test_a_run_pushes_the_metrics_of_its_own_job_and_nothing_else(gateway: Gateway):
    sessions(3, now=timezone.now(), left=-DAY)
    assert manage("expire_sessions", PROMETHEUS_PUSHGATEWAY_URL=gateway.address).returncode == 0
    found = samples(gateway.metrics(), prefix="")
    pushed = {name for name, labels in found if ("job", "expire_sessions") in labels}
    assert value(found, EXPIRE + "refresh_expired_total", job="expire_sessions") == 3
    assert {name for name in pushed if not name.startswith(EXPIRE)} == {
        "push_time_seconds",
        "push_failure_time_seconds",
    }
    assert not any(name.startswith("identity_") for name, labels in found if ("job", "expire_sessions") not in labels)


def test_both_jobs_keep_their_metrics_apart(gateway: Gateway):
    for command in ("expire_sessions", "session_retention"):
        assert manage(command, PROMETHEUS_PUSHGATEWAY_URL=gateway.address).returncode == 0
    found = samples(gateway.metrics())
    assert value(found, EXPIRE + "runs_total", job="expire_sessions", outcome="completed") == 1
    assert value(found, RETENTION + "runs_total", job="session_retention", outcome="completed") == 1
    assert value(found, RETENTION + "blocked", job="session_retention") == 0


@pytest.mark.parametrize("place", ["gateway", "textfile"])
def test_a_failed_run_keeps_the_last_success_and_the_last_backlog(place: str, tmp_path: Path, gateway: Gateway):
    textfile = tmp_path / "identity.prom"
    variables: dict[str, object] = {"METRICS_TEXTFILE": textfile}
    read = textfile.read_text
    if place == "gateway":
        variables, read = {"PROMETHEUS_PUSHGATEWAY_URL": gateway.address}, gateway.metrics
    assert manage("session_retention", **variables).returncode == 0
    before = samples(read())
    assert manage("session_retention", **variables, **NOWHERE).returncode == 1
    after = samples(read())
    assert value(after, RETENTION + "runs_total", outcome="failed") == 1
    assert value(after, RETENTION + "errors_total") >= 1
    for name, labels in before:
        if name.endswith(("_last_success_timestamp_seconds", "_backlog", "_oldest_overdue_seconds", "_blocked")):
            assert after[name, labels] == before[name, labels]
    assert set(after) == set(before)


def test_a_first_run_that_fails_claims_neither_a_success_nor_an_empty_backlog(tmp_path: Path):
    textfile = tmp_path / "identity.prom"
    assert manage("expire_sessions", METRICS_TEXTFILE=textfile, **NOWHERE).returncode == 1
    names = {name for name, _ in samples(textfile.read_text())}
    assert EXPIRE + "errors_total" in names
    assert not names & {EXPIRE + "last_success_timestamp_seconds", EXPIRE + "backlog"}


def test_both_jobs_may_share_one_textfile(tmp_path: Path):
    textfile = tmp_path / "identity.prom"
    requests(2, now=timezone.now(), left=-DAY)
    for command in ("expire_sessions", "session_retention"):
        assert manage(command, METRICS_TEXTFILE=textfile).returncode == 0
    found = samples(textfile.read_text())
    assert value(found, EXPIRE + "sicr_expired_total") == 2
    assert value(found, RETENTION + "runs_total", outcome="completed") == 1
    assert list(tmp_path.iterdir()) == [textfile]


def test_a_textfile_that_holds_something_else_is_replaced(tmp_path: Path):
    textfile = tmp_path / "identity.prom"
    textfile.write_bytes(b"\xff not metrics {\n")
    assert manage("expire_sessions", METRICS_TEXTFILE=textfile).returncode == 0
    assert value(samples(textfile.read_text()), EXPIRE + "runs_total", outcome="completed") == 1


def test_a_textfile_that_cannot_be_written_is_a_warning(tmp_path: Path):
    done = manage("expire_sessions", METRICS_TEXTFILE=tmp_path / "missing" / "identity.prom")
    assert done.returncode == 0
    assert "METRICS_TEXTFILE" in warning(done.stderr)


def test_a_gateway_that_is_down_is_a_warning():
    done = manage("expire_sessions", PROMETHEUS_PUSHGATEWAY_URL="http://127.0.0.1:1")
    assert done.returncode == 0
    assert "(Connection refused)" in warning(done.stderr)


def test_a_gateway_that_refuses_the_metrics_is_a_warning_with_its_status():
    with answering(503) as url:
        done = manage("expire_sessions", PROMETHEUS_PUSHGATEWAY_URL=url)
    assert done.returncode == 0
    assert "(HTTP 503)" in warning(done.stderr)


def test_a_gateway_that_never_answers_costs_less_than_five_seconds():
    with answering(None) as url:
        done = manage("expire_sessions", PROMETHEUS_PUSHGATEWAY_URL=url)
        delay = late(done)
    assert done.returncode == 0
    assert "(TimeoutError)" in warning(done.stderr)
    assert delay < AT_MOST


@contextmanager
def answering(status: int | None) -> Iterator[str]:
    """Listen as a gateway that answers with this status, or, with None, takes a request and says nothing."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if status is None:
                self.rfile.read()  # until the client gives up
                return
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
