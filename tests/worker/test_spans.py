"""Spans as a collector gets them: sent by real processes, however those end, decoded from OTLP."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone

from tests.kit.collector import Collector
from tests.kit.factories import DAY, chain, requests, sessions
from tests.kit.triggers import REQUESTS, SESSIONS, Kit
from tests.kit.workers import Worker, events, late, manage

pytestmark = pytest.mark.django_db(transaction=True)

AWAY = "http://127.0.0.1:1"


def warnings(stderr: str) -> list[str]:
    return [each["event"] for each in events(stderr) if each["level"] == "WARNING"]


def test_a_short_expiry_run_sends_its_span_and_one_for_each_phase(collector: Collector):
    now = timezone.now()
    sessions(3, now=now, left=-DAY)
    requests(1, now=now, left=-DAY)
    done = manage("expire_sessions", OTEL_EXPORTER_OTLP_ENDPOINT=collector.address)
    assert done.returncode == 0
    spans = collector.spans()
    run = spans.pop("expire_sessions")
    assert run.attributes == {
        "jobRunId": events(done.stderr)[0]["jobRunId"],
        "refreshExpired": 3,
        "sicrExpired": 1,
        "outcome": "completed",
    }
    assert {name: span.attributes for name, span in spans.items()} == {
        "refresh": {"phase": "refresh", "batchSize": 5000, "expiredCount": 3},
        "sicr": {"phase": "sicr", "batchSize": 5000, "expiredCount": 1},
    }
    assert [span.parent for span in spans.values()] == [run.id, run.id]
    assert not any(span.failed for span in (run, *spans.values()))
    assert run.service == "identity"


def test_a_retention_run_says_how_it_was_batched(collector: Collector):
    now = timezone.now()
    chain(3, now=now)
    requests(2, now=now, age=40 * DAY)
    traces = f"{collector.address}/v1/traces"
    done = manage(
        "session_retention", "--batch-size", "7", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=traces, OTEL_SERVICE_NAME="nightly"
    )
    assert done.returncode == 0
    spans = collector.spans()
    assert spans["refresh"].attributes == {"phase": "refresh", "batchSize": 7, "deletedCount": 3}
    assert spans["sicr"].attributes == {"phase": "sicr", "batchSize": 7, "deletedCount": 2}
    assert spans["session_retention"].attributes["outcome"] == "completed"
    assert spans["session_retention"].service == "nightly"


def test_a_run_that_fails_has_error_status_and_no_text_of_the_error(kit: Kit, collector: Collector):
    now = timezone.now()
    bad, *_ = sessions(2, now=now, left=-DAY, user_agent="Browser of one person")
    kit.poison(SESSIONS, bad.id)
    assert manage("expire_sessions", OTEL_EXPORTER_OTLP_ENDPOINT=collector.address).returncode == 1
    body = collector.raw()
    assert b"expire_sessions" in body
    assert b"Browser of one person" not in body


def test_status_tells_the_run_and_the_phase_that_failed_from_the_one_that_did_not(kit: Kit, collector: Collector):
    now = timezone.now()
    bad, *_ = sessions(2, now=now, left=-DAY)
    kit.poison(SESSIONS, bad.id)
    assert manage("expire_sessions", OTEL_EXPORTER_OTLP_ENDPOINT=collector.address).returncode == 1
    spans = collector.spans()
    assert {name: span.failed for name, span in spans.items()} == {
        "expire_sessions": True,
        "refresh": True,
        "sicr": False,
    }
    assert spans["expire_sessions"].attributes["outcome"] == "failed"
    assert spans["refresh"].description == "IntegrityError (SQLSTATE 23514)"
    assert spans["refresh"].attributes["expiredCount"] == 1
    assert not any(span.events for span in spans.values())


def test_a_worker_that_is_stopped_in_the_middle_of_a_batch_sends_the_spans_of_that_run(kit: Kit, collector: Collector):
    now = timezone.now()
    kit.slow(REQUESTS, 0.2)
    requests(6, now=now, age=40 * DAY, status="Confirmed")
    with Worker(
        "session_retention",
        "--batch-size=3",
        SESSION_RETENTION_NIGHT_WINDOW_UTC="00:00-24:00",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.address,
    ) as worker:
        worker.until("batch deleted")
        assert worker.stop() == 0
    spans = collector.spans()
    assert spans["session_retention"].attributes["outcome"] == "cancelled"
    assert spans["sicr"].attributes["deletedCount"] in (3, 6)  # the next batch may have begun
    assert not spans["session_retention"].failed


@pytest.mark.parametrize("status", [None, 503, 404], ids=["away", "busy", "wrong path"])
def test_a_collector_that_takes_nothing_is_one_warning_and_no_delay_beyond_five_seconds(status: int | None):
    with Collector(refusing=status) as collector:
        address = AWAY if status is None else collector.address
        done = manage("expire_sessions", OTEL_EXPORTER_OTLP_ENDPOINT=address)
        assert late(done) < timedelta(seconds=7)  # five, and the end of a process on a busy machine
    assert done.returncode == 0
    assert warnings(done.stderr) == [
        "Spans are lost: the collector that OTEL_EXPORTER_OTLP_ENDPOINT names does not take them."
    ]


@pytest.mark.parametrize(
    "forbidden", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}], ids=lambda variables: str(variables)
)
def test_nothing_is_sent_where_a_variable_forbids_it(collector: Collector, forbidden: dict[str, str]):
    done = manage("expire_sessions", OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, **forbidden)
    assert done.returncode == 0
    assert collector.raw() == b""
    assert warnings(done.stderr) == []


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"OTEL_TRACES_EXPORTER": "zipkin"}, "OTEL_TRACES_EXPORTER is neither otlp nor none"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "only http/protobuf"),
        ({"OTEL_BSP_SCHEDULE_DELAY": "-1"}, "refuses an OTEL variable"),
    ],
    ids=["exporter", "protocol", "value"],
)
def test_what_is_not_supported_is_one_warning(collector: Collector, variables: dict[str, str], words: str):
    done = manage("expire_sessions", OTEL_EXPORTER_OTLP_ENDPOINT=collector.address, **variables)
    assert done.returncode == 0
    [warning] = warnings(done.stderr)
    assert words in warning
    assert collector.raw() == b""


def test_without_the_sdk_a_run_goes_on_and_warns_once(tmp_path: Path):
    # An import of it fails from the start on, as if the extra were not there.
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.modules['opentelemetry.sdk'] = None\n")
    done = manage("expire_sessions", OTEL_EXPORTER_OTLP_ENDPOINT=AWAY, PYTHONPATH=tmp_path)
    assert done.returncode == 0
    assert warnings(done.stderr) == [
        "Spans are not sent: an OTEL variable asks for it, but the extra `otlp` is not installed."
    ]
