"""What goes wrong: rows that cannot be changed, locks, time limits, a lost connection, a missing table or privilege."""

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.kit.factories import DAY, NOW, chain, requests, sessions
from tests.kit.log import Log
from tests.kit.runs import EXPIRY, RETENTION, expire_now, retain_now
from tests.kit.triggers import REQUESTS, SESSIONS, Kit, execute

pytestmark = pytest.mark.django_db(transaction=True)

Connection = psycopg.Connection[Any]


def errors() -> float:
    return sum(metrics.errors._value.get() for metrics in (EXPIRY, RETENTION))


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
    [failed] = log.events("phase failed")
    assert (failed["rowsLeft"], set(failed["ids"])) == (3, {str(pk) for pk in bad})
    assert errors() - before == 1


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
def test_a_batch_that_the_time_limit_cuts_is_made_smaller_until_it_passes(job: Any, kit: Kit, debug_log: Log) -> None:
    sessions(24, left=-DAY)
    sessions(24, status="Revoked", age=100 * DAY)
    kit.audit()
    kit.slow(SESSIONS, 0.01)
    execute("SET statement_timeout = '100ms'")
    try:
        result = job(batch_size=24)
    finally:
        execute("RESET statement_timeout")
    assert (result.refresh, result.outcome) == (24, "completed")
    assert 24 > max(kit.batches()) >= 3
    assert 1 <= len(debug_log.events("batch retried")) <= 4


def test_a_row_that_never_passes_ends_its_phase_and_says_so(kit: Kit) -> None:
    sessions(4, left=-DAY)
    requests(2, left=-DAY)
    kit.slow(SESSIONS, 1)
    result = expire_now(duration=timedelta(seconds=2))
    assert (result.refresh, result.sicr, result.outcome) == (0, 2, "failed")


def test_the_time_limit_of_the_role_is_never_exceeded(kit: Kit, debug_log: Log) -> None:
    sessions(12, now=NOW, left=-3000 * DAY)
    kit.slow(SESSIONS, 0.02)
    execute("SET statement_timeout = '100ms'")
    try:
        call_command("expire_sessions")
    finally:
        execute("RESET statement_timeout")
    assert not RefreshSession.objects.filter(status="Active").exists()
    assert {line["exception"] for line in debug_log.events("batch retried")} == {"OperationalError (SQLSTATE 57014)"}


@pytest.mark.parametrize("size", [1, 10])
def test_a_batch_that_no_run_has_time_for_fails_instead_of_ending_each_of_them_in_order(size: int, kit: Kit) -> None:
    sessions(3, left=-DAY)
    kit.slow(SESSIONS, 0.3)
    ended = expire_now(batch_size=size, duration=timedelta(milliseconds=200))
    assert ended.outcome == "failed"
    assert not RefreshSession.objects.filter(status="Expired").exists()


def test_a_lock_in_the_way_makes_the_batches_small_for_as_long_as_it_stands(other: Connection, debug_log: Log) -> None:
    links = chain(40)
    other.execute("SELECT FROM refresh_sessions WHERE id = %s FOR UPDATE", [links[35].pk])
    chain(100)
    retain_now(batch_size=32, lock_timeout=timedelta(milliseconds=50))
    assert debug_log.events("batch retried")
    assert max(line["deletedCount"] for line in debug_log.events("batch deleted")) == 32


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_nor_is_it_exceeded_by_the_counts_at_the_end(command: str) -> None:
    limits: list[int] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "COUNT(" in sql:
            asked = connection.connection.execute(
                "SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'"
            )
            limits.extend(asked.fetchone())
        return execute(sql, params, many, context)

    execute("SET statement_timeout = '7s'")
    try:
        with connection.execute_wrapper(note):
            call_command(command)
    finally:
        execute("RESET statement_timeout")
    assert limits
    assert max(limits) <= 7000
