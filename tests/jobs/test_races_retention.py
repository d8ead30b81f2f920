"""Job 2 beside other connections: locked rows, children that arrive, other copies."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.kit.factories import DAY, NOW, RefreshSessionFactory, chain, requests, sessions
from tests.kit.runs import retain_now
from tests.kit.triggers import SESSIONS, Kit, child_of

pytestmark = pytest.mark.django_db(transaction=True)

Elsewhere = Callable[..., Future[Any]]
Connection = psycopg.Connection[Any]
PATIENT = {"lock_timeout": timedelta(seconds=30)}
SIZES = pytest.mark.parametrize("size", [5000, 2])


def ids(model: Any = RefreshSession) -> set[Any]:
    return set(model.objects.values_list("pk", flat=True))


@SIZES
def test_requests_locked_elsewhere_are_skipped_and_done_later(size: int, other: Connection) -> None:
    rows = requests(7, age=40 * DAY)
    other.execute("SELECT FROM sign_in_confirmation_requests WHERE id = ANY(%s) FOR UPDATE", [[rows[0].pk, rows[4].pk]])
    result = retain_now(batch_size=size)
    assert (result.sicr, result.outcome, result.backlog.remaining) == (5, "completed", 2)
    other.rollback()
    assert retain_now(batch_size=size).sicr == 2


@pytest.mark.parametrize("locked", [range(7), range(13, 20), range(0, 20, 3), range(20)])
def test_more_requests_of_one_moment_than_a_batch_holds_and_some_of_them_locked(
    locked: range, other: Connection
) -> None:
    rows = requests(20, age=40 * DAY)
    requests(4, age=39 * DAY)
    held = {rows[place].pk for place in locked}
    other.execute("SELECT FROM sign_in_confirmation_requests WHERE id = ANY(%s) FOR UPDATE", [list(held)])
    assert retain_now(batch_size=3).sicr == 24 - len(held)
    assert ids(SignInConfirmationRequest) == held
    other.rollback()
    assert retain_now(batch_size=3).sicr == len(held)


@SIZES
def test_a_chain_whose_tip_is_locked_elsewhere_waits_for_the_next_run(size: int, other: Connection) -> None:
    held = chain(4, age=200 * DAY)
    chain(4, age=200 * DAY)
    other.execute("SELECT FROM refresh_sessions WHERE id = %s FOR UPDATE", [held[-1].pk])
    result = retain_now(batch_size=size)
    assert (result.refresh, result.outcome, result.backlog.remaining) == (4, "completed", 4)
    assert ids() == {row.pk for row in held}
    other.rollback()
    assert retain_now(batch_size=size).refresh == 4


@pytest.mark.parametrize("link", [0, 1, 2])
def test_a_chain_locked_in_its_middle_costs_the_others_nothing(link: int, other: Connection, kit: Kit) -> None:
    held = chain(4, age=200 * DAY)
    for _ in range(30):
        chain(4, age=150 * DAY)
    kit.audit()
    other.execute("SELECT FROM refresh_sessions WHERE id = %s FOR UPDATE", [held[link].pk])
    result = retain_now(batch_size=40)
    assert result.outcome == "completed"
    assert ids() <= {row.pk for row in held}
    assert held[link].pk in ids()
    assert len(kit.batches()) < 30
    other.rollback()
    retain_now()
    assert ids() == set()


@SIZES
def test_a_child_not_yet_committed_keeps_its_parent_and_no_one_waits_for_it(size: int, other: Connection) -> None:
    parent = RefreshSessionFactory.create(status="Rotated", age=200 * DAY)
    sessions(9, status="Revoked", age=200 * DAY)
    child = child_of(other, parent.pk)
    result = retain_now(batch_size=size)
    assert (result.refresh, result.outcome) == (9, "completed")
    other.commit()
    assert ids() == {parent.pk, child}
    assert retain_now(batch_size=size).refresh == 0


@pytest.mark.parametrize("link", [0, 1])
def test_a_child_inserted_while_its_parent_is_about_to_be_deleted_costs_no_traceback(
    link: int,
    kit: Kit,
    other: Connection,
    elsewhere: Elsewhere,
    until_waiting: Callable[[int], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = chain(3, age=200 * DAY)
    sessions(20, status="Revoked", age=200 * DAY)
    kit.audit()
    with kit.gate("BEFORE", SESSIONS):
        job = elsewhere(retain_now, batch_size=50, **PATIENT)
        until_waiting(1)
        child = child_of(other, rows[link].pk)
        other.commit()
    result = job.result()
    assert result.outcome == "completed"
    assert ids() == {child, *(row.pk for row in rows[: link + 1])}
    assert (result.backlog.remaining, result.backlog.blocked) == (0, link + 1)
    assert not [record for record in caplog.records if record.levelname == "ERROR" or record.exc_info]


def test_a_row_that_changed_between_selection_and_delete_is_left_alone(
    kit: Kit, other: Connection, elsewhere: Elsewhere, until_waiting: Callable[[int], None]
) -> None:
    root, middle, _ = chain(3, age=200 * DAY)
    with kit.gate("BEFORE", SESSIONS):
        job = elsewhere(retain_now, **PATIENT)
        until_waiting(1)
        other.execute("SET session_replication_role = replica")  # this one passes the gate
        other.execute("UPDATE refresh_sessions SET updated_at = %s WHERE id = %s", [NOW, middle.pk])
        other.commit()
    assert job.result().outcome == "completed"
    assert ids() == {root.pk, middle.pk}


def test_an_old_session_that_another_refers_to_is_not_locked_for_nothing(
    kit: Kit, other: Connection, elsewhere: Elsewhere, until_waiting: Callable[[int], None]
) -> None:
    revoked = RefreshSessionFactory.create(status="Revoked", age=200 * DAY)
    RefreshSessionFactory.create(parent_session=revoked)
    sessions(3, status="Revoked", age=200 * DAY)
    with kit.gate("BEFORE", SESSIONS):
        job = elsewhere(retain_now, **PATIENT)
        until_waiting(1)
        other.execute("SELECT FROM refresh_sessions WHERE id = %s FOR UPDATE NOWAIT", [revoked.pk])
        other.rollback()
    assert (job.result().refresh, job.result().outcome) == (3, "completed")


def test_a_table_locked_elsewhere_is_an_error_of_one_phase_and_not_of_the_other(other: Connection) -> None:
    sessions(3, status="Revoked", age=200 * DAY)
    requests(3, age=40 * DAY)
    other.execute("LOCK sign_in_confirmation_requests IN ACCESS EXCLUSIVE MODE")
    result = retain_now(lock_timeout=timedelta(milliseconds=20))
    assert (result.sicr, result.refresh, result.outcome) == (0, 3, "failed")
    other.rollback()
    assert retain_now().sicr == 3
