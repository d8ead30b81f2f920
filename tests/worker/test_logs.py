"""Log lines: the events and fields of a run, and nothing that a row holds."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.kit.factories import DAY, chain, requests, sessions
from tests.kit.log import Log
from tests.kit.triggers import SESSIONS, Kit

pytestmark = pytest.mark.django_db

# The commands take their moment from the database, so rows here are placed around the present.
PRESENT = datetime.now(UTC)
DUE = {"now": PRESENT, "left": -DAY}


def test_the_lines_of_a_run_of_expiry(log: Log) -> None:
    sessions(3, **DUE)
    requests(2, **DUE)
    call_command("expire_sessions")
    assert [line["event"] for line in log] == ["job started", "phase done", "phase done", "job completed"]
    assert {(line["phase"], line["expiredCount"]) for line in log.events("phase done")} == {
        ("refresh", 3),
        ("sicr", 2),
    }
    [end] = log.events("job completed")
    expected = {"refreshExpired": 3, "sicrExpired": 2, "backlogRemaining": 0, "outcome": "completed"}
    assert {name: end[name] for name in expected} == expected
    assert isinstance(end["durationMs"], int)
    assert {UUID(line["jobRunId"]) for line in log} == {UUID(log[0]["jobRunId"])}


def test_the_lines_of_a_run_of_retention(log: Log) -> None:
    chain(5, now=PRESENT)
    requests(3, now=PRESENT, age=31 * DAY)
    call_command("session_retention", "--batch-size=4")
    [start], [end] = log.events("job started"), log.events("job completed")
    sicr, refresh = (datetime.fromisoformat(start[name]) for name in ("cutoffSicr", "cutoffRefresh"))
    assert sicr - refresh == 60 * DAY
    assert abs(sicr - (PRESENT - 30 * DAY)) < DAY
    batches = [(line["phase"], line["deletedCount"]) for line in log.events("batch deleted")]
    assert sorted(batches) == [("refresh", 1), ("refresh", 4), ("sicr", 3)]
    expected = {"sicrDeleted": 3, "refreshDeleted": 5, "backlogRemaining": 0, "outcome": "completed"}
    assert {name: end[name] for name in expected} == expected
    assert len({line["jobRunId"] for line in log}) == 1


def test_two_runs_have_two_ids(log: Log) -> None:
    call_command("expire_sessions")
    call_command("expire_sessions")
    assert len({line["jobRunId"] for line in log.events("job started")}) == 2


def test_a_suspicious_value_is_in_the_first_line_of_the_run(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSION_RETENTION_SICR_RETENTION", "1h")
    call_command("session_retention")
    assert log.events("job started")[0]["warnings"] == [
        "SESSION_RETENTION_SICR_RETENTION is 1h: rows go in less than a day."
    ]


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_no_line_holds_anything_of_a_row_even_when_the_server_quotes_one(command: str, log: Log, kit: Kit) -> None:
    personal = {"ip_address": "203.0.113.77", "user_agent": "Secret Browser"}
    rows = sessions(3, **DUE, **personal) + sessions(3, now=PRESENT, status="Revoked", age=99 * DAY, **personal)
    requests(3, **DUE, **personal)
    requests(3, now=PRESENT, age=99 * DAY, **personal)
    kit.poison(SESSIONS, rows[0].pk, rows[3].pk)
    with pytest.raises(CommandError) as failed:
        call_command(command)
    [line, *_] = log.events("phase failed")
    assert (line["phase"], line["exception"]) == ("refresh", "IntegrityError (SQLSTATE 23514)")
    everything = f"{log} {failed.value}"
    for value in ("203.0.113", "Secret", "+7900", rows[0].token_hash, "this row"):
        assert value not in everything


def test_what_somebody_typed_into_an_address_is_not_logged(log: Log, client: Client) -> None:
    client.get("/nowhere/", {"q": "canary"})
    assert [line["event"] for line in log] == ["Not Found: /nowhere/"]
    assert "canary" not in json.dumps(log)
