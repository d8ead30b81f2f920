"""Several copies of both jobs at once, beside writers: each row once, no deadlock, no batch too large."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import connection

from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, chain, requests, sessions
from tests.kit.oracle import forest, must_go
from tests.kit.runs import CUTOFF_REFRESH, expire_now, retain_now
from tests.kit.triggers import Kit, child_of

pytestmark = pytest.mark.django_db(transaction=True)

Elsewhere = Callable[..., Future[Any]]
Connection = psycopg.Connection[Any]
PATIENT = {"lock_timeout": timedelta(seconds=30)}
SIZES = pytest.mark.parametrize("size", [5000, 2])


def ids(model: Any = RefreshSession) -> set[Any]:
    return set(model.objects.values_list("pk", flat=True))


@SIZES
def test_two_copies_at_once_delete_each_row_once(size: int, kit: Kit, elsewhere: Elsewhere) -> None:
    rows = forest(21) + forest(22)
    going = must_go(rows, CUTOFF_REFRESH)
    requests(50, age=40 * DAY)
    kit.audit()
    copies = [elsewhere(retain_now, batch_size=size, **PATIENT) for _ in range(2)]
    deleted = sum(copy.result().refresh + copy.result().sicr for copy in copies)
    assert {copy.result().outcome for copy in copies} == {"completed"}
    last = retain_now()
    assert ids() == {row.pk for row in rows} - going
    changed = [change.row_id for change in kit.changes()]
    assert len(changed) == len(set(changed)) == deleted + last.refresh + last.sicr == len(going) + 50


def test_copies_of_both_jobs_beside_writers_make_no_deadlock_and_do_all_rows_once(
    kit: Kit, elsewhere: Elsewhere, connect: Callable[[], Connection]
) -> None:
    live = sessions(50)
    sessions(300, left=-DAY)
    for _ in range(40):
        chain(5, age=200 * DAY)
    kit.audit()
    writers = [connect() for _ in range(2)]

    def write(other: Connection) -> None:
        for row in live * 2:
            child_of(other, row.pk)
            other.execute("UPDATE refresh_sessions SET expires_at = expires_at WHERE id = %s", [row.pk])
            other.commit()

    work = [elsewhere(write, other) for other in writers]
    jobs = [elsewhere(expire_now, batch_size=20), elsewhere(retain_now, batch_size=20)]
    jobs += [elsewhere(expire_now, batch_size=20), elsewhere(retain_now, batch_size=20)]
    assert [task.exception() for task in [*work, *jobs]] == [None] * 6
    assert {job.result().outcome for job in jobs} == {"completed"}
    expire_now()
    retain_now()
    changed = [change.row_id for change in kit.changes() if change.before != change.after]
    assert len(changed) == len(set(changed)) == 500
    with connection.cursor() as cursor:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        assert cursor.fetchone() == (0,)


def test_every_batch_is_a_transaction_of_its_own_and_none_is_larger(kit: Kit) -> None:
    chain(7, age=200 * DAY)
    sessions(4, status="Expired", age=150 * DAY)
    requests(5, age=40 * DAY)
    kit.audit()
    retain_now(batch_size=3)
    assert sum(kit.batches()) == 16
    assert max(kit.batches()) <= 3
