"""What goes wrong: rows that cannot be changed, locks, time limits, a lost connection, a missing table or privilege."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from identity.sessions import telemetry
from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.factories import DAY, NOW, chain, requests, sessions
from tests.jobs import expire_now, retain_now
from tests.kit import REQUESTS, SESSIONS, Kit, execute, terminate_others
from tests.processes import database_url

pytestmark = pytest.mark.django_db(transaction=True)

Elsewhere = Callable[..., Future[Any]]
Connection = psycopg.Connection[Any]
Log = list[dict[str, Any]]


def events(log: Log, name: str) -> Log:
    return [line for line in log if line["event"] == name]


def errors() -> float:
    return sum(metrics.errors._value.get() for metrics in (telemetry.EXPIRE_SESSIONS, telemetry.SESSION_RETENTION))


@pytest.mark.parametrize("size", [5000, 7, 1])
def test_rows_that_a_trigger_refuses_are_the_only_ones_left(size: int, kit: Kit, log: Log) -> None:
    rows = sessions(40, left=-DAY)
    requests(3, left=-DAY)
    bad = {rows[place].pk for place in (0, 17, 39)}
    kit.poison(SESSIONS, *bad)
    before = errors()
    result = expire_now(batch_size=size)
    assert set(RefreshSession.objects.filter(status="Active").values_list("pk", flat=True)) == bad
    assert (result.refresh, result.sicr, result.outcome) == (37, 3, "failed")
    assert result.backlog.remaining == 3
    assert errors() - before == len(events(log, "phase failed")) == 3


@pytest.mark.parametrize("size", [5000, 7, 1])
def test_requests_that_a_trigger_refuses_are_the_only_ones_left(size: int, kit: Kit) -> None:
    rows = requests(20, age=40 * DAY)
    kit.poison(REQUESTS, rows[4].pk, rows[5].pk)
    result = retain_now(batch_size=size)
    assert set(SignInConfirmationRequest.objects.all()) == {rows[4], rows[5]}
    assert (result.sicr, result.outcome) == (18, "failed")


@pytest.mark.parametrize("size", [5000, 7, 1])
@pytest.mark.parametrize("link", [0, 1, 3])
def test_a_row_of_a_chain_that_another_table_refers_to_keeps_what_is_above_it_alone(
    size: int, link: int, kit: Kit
) -> None:
    held = chain(4, age=150 * DAY)
    for _ in range(5):
        chain(4, age=150 * DAY)
    kit.refer_to(held[link].pk)
    result = retain_now(batch_size=size)
    assert set(RefreshSession.objects.values_list("pk", flat=True)) == {row.pk for row in held[: link + 1]}
    assert result.outcome == "failed"
    assert retain_now(batch_size=size).refresh == 0


def test_a_fault_of_all_rows_is_given_up_within_a_bound_of_statements(kit: Kit) -> None:
    rows = sessions(400, left=-DAY)
    kit.poison(SESSIONS, *(row.pk for row in rows))
    sent: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        result = expire_now(batch_size=200)
    assert (result.refresh, result.outcome, result.backlog.remaining) == (0, "failed", 400)
    assert len(sent) < 1000


@pytest.mark.parametrize("job", [expire_now, retain_now])
def test_a_lock_on_a_whole_table_fails_that_phase_quickly_and_the_other_one_runs(job: Any, other: Connection) -> None:
    sessions(3, left=-DAY)
    sessions(3, status="Revoked", age=100 * DAY)
    requests(3, left=-DAY, age=40 * DAY)
    other.execute("LOCK sign_in_confirmation_requests IN ACCESS EXCLUSIVE MODE")
    result = job(batch_size=8, lock_timeout=timedelta(milliseconds=20))
    assert (result.refresh, result.sicr, result.outcome) == (3, 0, "failed")
    assert result.backlog.remaining is None
    other.rollback()
    assert job().sicr == 3


@pytest.mark.parametrize("job", [expire_now, retain_now])
def test_a_batch_that_the_time_limit_cuts_is_made_smaller_until_it_passes(job: Any, kit: Kit, log: Log) -> None:
    sessions(24, left=-DAY)
    sessions(24, status="Revoked", age=100 * DAY)
    kit.audit()
    kit.slow(SESSIONS, 0.01)
    result = job(batch_size=24, statement_timeout=timedelta(milliseconds=100))
    assert (result.refresh, result.outcome) == (24, "completed")
    assert 24 > max(kit.batches()) >= 3
    assert 1 <= len(events(log, "batch retried")) <= 4


def test_a_row_that_never_passes_ends_its_phase_and_says_so(kit: Kit) -> None:
    sessions(4, left=-DAY)
    requests(2, left=-DAY)
    kit.slow(SESSIONS, 1)
    result = expire_now(statement_timeout=timedelta(milliseconds=50))
    assert (result.refresh, result.sicr, result.outcome) == (0, 2, "failed")


def test_the_time_limit_of_the_role_is_never_exceeded(kit: Kit, log: Log) -> None:
    sessions(12, now=NOW, left=-3000 * DAY)
    kit.slow(SESSIONS, 0.02)
    execute("SET statement_timeout = '100ms'")
    try:
        call_command("expire_sessions")
    finally:
        execute("RESET statement_timeout")
    assert not RefreshSession.objects.filter(status="Active").exists()
    assert {line["exception"] for line in events(log, "batch retried")} == {"OperationalError (SQLSTATE 57014)"}


def test_a_backend_that_is_terminated_in_a_batch_ends_the_phase_and_the_next_run_does_the_rest(
    kit: Kit, elsewhere: Elsewhere, until: Callable[[str], None], log: Log
) -> None:
    sessions(6, left=-DAY)
    requests(2, left=-DAY)
    kit.audit()
    with kit.gate("AFTER", SESSIONS):
        job = elsewhere(expire_now, batch_size=2, lock_timeout=timedelta(seconds=30))
        until("count(*) FILTER (WHERE wait_event_type = 'Lock') = 1")
        terminate_others()
    result = job.result()
    # The other phase has a connection of its own again.
    assert (result.refresh, result.sicr, result.outcome) == (0, 2, "failed")
    assert [line["exception"] for line in events(log, "phase failed")] == ["OperationalError (SQLSTATE 57P01)"]
    assert expire_now().refresh == 6
    assert len({change.row_id for change in kit.changes()}) == len(kit.changes()) == 8


def test_a_server_that_takes_no_writes_any_more_is_left_for_a_new_connection(start: Any, until: Any) -> None:
    sessions(3, now=NOW, left=-3000 * DAY)
    name = connection.settings_dict["NAME"]
    worker = start("expire_sessions", "--loop", "--polling-interval=50ms", EXPIRE_SESSIONS_MAX_RUN_DURATION="1s")
    worker.until("job completed")
    execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    try:
        sessions(3, now=NOW, left=-3000 * DAY)
        refused = worker.until("phase failed")
        assert refused["exception"].endswith("(SQLSTATE 25006)")
        worker.until("job completed")
        run = [line["event"] for line in worker.lines if line.get("jobRunId") == refused["jobRunId"]]
        # Once for each phase: no smaller batch is tried on a server that takes none.
        assert run == ["job started", "phase failed", "phase failed", "job completed"]
    finally:
        execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    while not worker.until("job completed")["refreshExpired"]:
        pass
    assert not RefreshSession.objects.filter(status="Active").exists()


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_a_missing_table_is_one_sentence_that_names_it(command: str) -> None:
    execute("ALTER TABLE refresh_sessions RENAME TO away")
    try:
        with pytest.raises(CommandError) as failed:
            call_command(command)
    finally:
        execute("ALTER TABLE away RENAME TO refresh_sessions")
    assert failed.value.returncode == 1
    assert str(failed.value) == (
        "Table identity.refresh_sessions was not found: run `manage.py migrate`, "
        "or check DATABASE_SCHEMA and the role's USAGE on it."
    )


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_missing_schema_is_one_sentence_that_names_it(command: str, dry: list[str], start: Any) -> None:
    process = start(command, *dry, DATABASE_SCHEMA="elsewhere")
    _, written = process.communicate(timeout=15)
    assert process.returncode == 1
    assert "Table elsewhere.refresh_sessions was not found: run `manage.py migrate`" in written.splitlines()[-1]


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_a_missing_privilege_is_one_sentence_that_names_the_table(command: str, start: Any) -> None:
    role = f"reader_{connection.settings_dict['NAME']}"
    execute(f"CREATE ROLE {role} LOGIN PASSWORD 'any'")
    try:
        execute(f"GRANT USAGE ON SCHEMA identity TO {role}")
        execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA identity TO {role}")
        execute(f"GRANT ALL ON sign_in_confirmation_requests TO {role}")
        requests(2, now=NOW, left=-3000 * DAY, age=3001 * DAY)
        process = start(command, DATABASE_URL=database_url(user=role, password="any"))
        _, written = process.communicate(timeout=15)
    finally:
        execute(f"DROP OWNED BY {role}")
        execute(f"DROP ROLE {role}")
    assert process.returncode == 1
    assert written.splitlines()[-1] == (
        "CommandError: The database role lacks a privilege on identity.refresh_sessions: "
        "grant it what docs/database.md lists."
    )
    # The other table is done all the same.
    assert not SignInConfirmationRequest.objects.filter(status="Pending").exists()
