"""Batches as the server sees them: transactions of their own, nothing open and nothing set between them."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg.pq import TransactionStatus

from identity.sessions.jobs.stopping import Stop
from tests.kit.factories import DAY, MICROSECOND, requests, sessions
from tests.kit.log import Log
from tests.kit.runs import expire_now, retain_now
from tests.kit.triggers import REQUESTS, SESSIONS, Kit

pytestmark = pytest.mark.django_db(transaction=True)

Connection = psycopg.Connection[Any]


def test_every_batch_is_a_transaction_of_its_own_and_none_is_larger(kit: Kit) -> None:
    sessions(11, left=-DAY)
    requests(3, left=-DAY)
    kit.audit()
    expire_now(batch_size=4)
    assert sorted(kit.batches()) == [3, 3, 4, 4]


class Watching(Stop):
    """Note whether the job keeps its connection whenever it rests."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bool, float]] = []

    def wait(self, seconds: float) -> bool:
        self.seen.append((connection.connection is not None, seconds))
        return super().wait(0)


@pytest.mark.parametrize("job", [expire_now, retain_now])
def test_nothing_is_held_through_a_rest_and_no_setting_outlives_a_batch(job: Callable[..., Any]) -> None:
    sessions(9, left=-DAY)
    sessions(9, status="Revoked", age=100 * DAY)
    stop = Watching()
    assert job(batch_size=2, stop=stop, pause=timedelta(seconds=9)).refresh == 9
    assert {connected for connected, _ in stop.seen} == {False}
    assert [seconds for _, seconds in stop.seen].count(9) >= 4
    job(batch_size=2)
    assert connection.connection.info.transaction_status is TransactionStatus.IDLE
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('lock_timeout'), current_setting('statement_timeout')")
        assert cursor.fetchone() == ("0", "0")


@pytest.mark.parametrize("job", [expire_now, retain_now])
def test_no_statement_on_the_tables_takes_a_second_core(job: Callable[..., Any]) -> None:
    sessions(9, left=-DAY)
    sessions(9, status="Revoked", age=100 * DAY)
    processes: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "refresh_sessions" in sql or "sign_in_confirmation_requests" in sql:
            asked = connection.connection.execute("SELECT current_setting('max_parallel_workers_per_gather')")
            processes.extend(asked.fetchone())
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        assert job(batch_size=2).refresh == 9
    assert len(processes) > 10
    assert set(processes) == {"0"}


@pytest.mark.parametrize(("due", "rests"), [(0, 0), (1, 1), (5, 2)])
def test_a_rest_lies_between_a_batch_that_changed_rows_and_the_next(due: int, rests: int) -> None:
    sessions(due, left=-DAY)
    stop = Watching()
    expire_now(batch_size=2, stop=stop, pause=DAY)
    assert len(stop.seen) == rests


def test_a_search_that_found_nothing_to_delete_is_followed_by_no_rest() -> None:
    sessions(2, status="Revoked", age=DAY)
    stop = Watching()
    retain_now(stop=stop, pause=DAY)
    assert stop.seen == []


def one_a_moment(make: Callable[..., list[Any]], count: int) -> list[Any]:
    """Insert rows that both jobs find due or old, no two of one moment, in the order in which they are walked."""
    return [
        make(1, left=-60 * DAY + place * MICROSECOND, age=60 * DAY - place * MICROSECOND)[0] for place in range(count)
    ]


WALKS = pytest.mark.parametrize(
    ("job", "make", "table"),
    [(expire_now, sessions, SESSIONS), (expire_now, requests, REQUESTS), (retain_now, requests, REQUESTS)],
)
CHANGE = {expire_now: "UPDATE {} SET status = 'Expired'", retain_now: "DELETE FROM {}"}


def changing(job: Callable[[], Any], table: str) -> list[str]:
    """Run a job; return "picked" or "whole" for each statement that changed rows of a table."""
    sent: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith((f'UPDATE "{table}"', f'DELETE FROM "{table}"')):
            sent.append("picked" if "SKIP LOCKED" in sql else "whole")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        job()
    return sent


@WALKS
def test_all_that_fits_one_batch_is_changed_by_one_statement(job, make, table, kit: Kit) -> None:
    one_a_moment(make, 6)
    kit.audit()
    assert changing(lambda: job(batch_size=6), table) == ["whole"]
    assert kit.batches() == [6]


@WALKS
def test_windows_are_changed_whole(job, make, table, kit: Kit) -> None:
    one_a_moment(make, 10)
    kit.audit()
    assert changing(lambda: job(batch_size=3), table) == ["whole"] * 4
    assert kit.batches() == [3, 3, 3, 1]


@WALKS
def test_a_lock_met_in_a_window_is_waited_for_once_and_then_passed(
    job, make, table, kit: Kit, other: Connection, debug_log: Log
) -> None:
    rows = one_a_moment(make, 20)
    kit.audit()
    other.execute(f"SELECT FROM {table} WHERE id = ANY(%s) FOR UPDATE", [[rows[9].pk, rows[14].pk]])
    sent = changing(lambda: job(batch_size=4, lock_timeout=timedelta(milliseconds=20)), table)
    assert sent[:3] == ["whole", "whole", "whole"]
    assert set(sent[3:]) == {"picked"}
    assert [line["batchSize"] for line in debug_log.events("batch retried")] == [4]
    assert len({change.row_id for change in kit.changes()}) == sum(kit.batches()) == 18


@WALKS
def test_rows_are_picked_where_another_copy_is_at_work(
    job, make, table, connect: Callable[[], Connection], elsewhere, until_waiting, log: Log
) -> None:
    rows = one_a_moment(make, 20)
    copy, holder = connect(), connect()
    copy.execute(f"{CHANGE[job].format(table)} WHERE id = ANY(%s)", [[row.pk for row in rows[4:8]]])
    holder.execute(f"SELECT FROM {table} WHERE id = %s FOR UPDATE", [rows[14].pk])
    running: Future[Any] = elsewhere(job, batch_size=4, lock_timeout=timedelta(seconds=30))
    until_waiting(1)
    copy.commit()
    result = running.result()
    assert result.refresh + result.sicr == 20 - 4 - 1  # it passes the row that is held, and has not waited for it
    assert not log.events("batch retried")


@WALKS
def test_a_batch_of_one_row_passes_a_locked_one(job, make, table, other: Connection) -> None:
    rows = one_a_moment(make, 4)
    other.execute(f"SELECT FROM {table} WHERE id = %s FOR UPDATE", [rows[2].pk])
    result = job(batch_size=1)
    assert (result.refresh + result.sicr, result.outcome) == (3, "completed")


@WALKS
@pytest.mark.parametrize("size", [1, 2])
def test_a_walk_ends_where_another_copy_takes_all_that_is_left_while_it_looks(
    job, make, table, size: int, connect: Callable[[], Connection]
) -> None:
    make(6, left=-60 * DAY, age=60 * DAY)
    copy = connect()
    taken: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if not taken and table in sql and sql.count(" ASC") == 2:  # by key and id
            taken.append(sql)
            copy.execute(CHANGE[job].format(table))
            copy.commit()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        result = job(batch_size=size)
    assert taken
    assert (result.refresh, result.sicr, result.outcome) == (0, 0, "completed")
