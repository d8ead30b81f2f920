"""Batches as the server sees them: transactions of their own, nothing open and nothing set between them."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from psycopg.pq import TransactionStatus

from identity.sessions.stopping import Stop
from tests.factories import DAY, requests, sessions
from tests.jobs import expire_now, retain_now
from tests.kit import Kit

pytestmark = pytest.mark.django_db(transaction=True)


def test_every_batch_is_a_transaction_of_its_own_and_none_is_larger(kit: Kit) -> None:
    sessions(11, left=-DAY)
    requests(3, left=-DAY)
    kit.audit()
    expire_now(batch_size=4)
    assert kit.batches() == [4, 4, 3, 3]


class Watching(Stop):
    """Note whether a transaction is open whenever the job rests."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[TransactionStatus, float]] = []

    def wait(self, seconds: float) -> bool:
        self.seen.append((connection.connection.info.transaction_status, seconds))
        return super().wait(0)


@pytest.mark.parametrize("job", [expire_now, retain_now])
def test_no_transaction_is_open_between_batches_and_no_setting_outlives_one(job: Callable[..., Any]) -> None:
    sessions(9, left=-DAY)
    sessions(9, status="Revoked", age=100 * DAY)
    stop = Watching()
    assert job(batch_size=2, stop=stop, pause=timedelta(seconds=9)).refresh == 9
    assert {status for status, _ in stop.seen} == {TransactionStatus.IDLE}
    assert [seconds for _, seconds in stop.seen].count(9) >= 4
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


@pytest.mark.parametrize(("due", "rests"), [(0, 0), (1, 1), (5, 3)])
def test_a_rest_follows_each_batch_that_changed_rows_and_nothing_else(due: int, rests: int) -> None:
    sessions(due, left=-DAY)
    stop = Watching()
    expire_now(batch_size=2, stop=stop, pause=DAY)
    assert len(stop.seen) == rests


def test_a_search_that_found_nothing_to_delete_is_followed_by_no_rest() -> None:
    sessions(2, status="Revoked", age=DAY)
    stop = Watching()
    retain_now(stop=stop, pause=DAY)
    assert stop.seen == []
