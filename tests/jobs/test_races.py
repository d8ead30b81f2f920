"""Job 1 and the online transitions on two real connections, in both orders."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.db import transaction

from identity.sessions.lifecycle import TransitionRefused, confirm, rotate
from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.kit.factories import DAY, MICROSECOND, NOW, RefreshSessionFactory, RequestFactory, requests, sessions
from tests.kit.runs import expire_now
from tests.kit.triggers import REQUESTS, SESSIONS, Kit, execute

pytestmark = pytest.mark.django_db(transaction=True)

Elsewhere = Callable[..., Future[Any]]
Connection = psycopg.Connection[Any]
DEVICE = {"token_hash": "a" * 64, "ip_address": None, "user_agent": ""}
JUST_BEFORE = NOW - MICROSECOND
PATIENT = {"lock_timeout": timedelta(seconds=30)}
# One group update, or chunks.
SIZES = pytest.mark.parametrize("size", [5000, 2])


def statuses(model: Any = RefreshSession) -> dict[Any, str]:
    return dict(model.objects.values_list("pk", "status"))


@SIZES
def test_a_row_locked_elsewhere_is_skipped_and_done_later(size: int, other: Connection) -> None:
    rows = sessions(6, left=-DAY)
    other.execute("SELECT FROM refresh_sessions WHERE id = %s FOR UPDATE", [rows[2].pk])
    result = expire_now(batch_size=size)
    assert (result.refresh, result.outcome, result.backlog.remaining) == (5, "completed", 1)
    assert statuses()[rows[2].pk] == "Active"
    other.rollback()
    assert expire_now(batch_size=size).refresh == 1


@pytest.mark.parametrize("locked", [range(7), range(13, 20), range(0, 20, 3), range(20)])
def test_more_rows_on_one_moment_than_a_batch_holds_and_some_of_them_locked(locked: range, other: Connection) -> None:
    rows = sessions(20, left=-DAY)
    later = sessions(4, left=-DAY + MICROSECOND)
    held = {rows[place].pk for place in locked}
    other.execute("SELECT FROM refresh_sessions WHERE id = ANY(%s) FOR UPDATE", [list(held)])
    assert expire_now(batch_size=3).refresh == 24 - len(held)
    assert {pk for pk, status in statuses().items() if status == "Active"} == held
    assert all(statuses()[row.pk] == "Expired" for row in later)
    other.rollback()
    assert expire_now(batch_size=3).refresh == len(held)


@SIZES
def test_a_session_rotated_between_selection_and_update_stays_rotated(
    size: int, kit: Kit, elsewhere: Elsewhere, until_waiting: Callable[[int], None]
) -> None:
    rows = sessions(4, left=timedelta())
    with kit.gate("BEFORE", SESSIONS):
        job = elsewhere(expire_now, batch_size=size, **PATIENT)
        until_waiting(1)
        child = rotate(rows[0].pk, now=JUST_BEFORE, **DEVICE)
    assert job.result().refresh == 3
    assert statuses() == {row.pk: "Expired" for row in rows} | {rows[0].pk: "Rotated", child.pk: "Active"}


def test_a_rotation_that_is_first_to_write_wins_over_the_job_that_waits_for_it(
    elsewhere: Elsewhere, until_waiting: Callable[[int], None]
) -> None:
    rows = sessions(3, left=timedelta())
    with transaction.atomic():
        child = rotate(rows[0].pk, now=JUST_BEFORE, **DEVICE)
        job = elsewhere(expire_now, **PATIENT)
        until_waiting(1)
    assert job.result().refresh == 2
    assert statuses() == {row.pk: "Expired" for row in rows} | {rows[0].pk: "Rotated", child.pk: "Active"}


@SIZES
def test_a_rotation_that_comes_second_is_refused_and_leaves_no_child(
    size: int, kit: Kit, elsewhere: Elsewhere, until_waiting: Callable[[int], None]
) -> None:
    rows = sessions(3, left=timedelta())
    with kit.gate("AFTER", SESSIONS):
        job = elsewhere(expire_now, batch_size=size, **PATIENT)
        until_waiting(1)
        late = [elsewhere(rotate, row.pk, now=JUST_BEFORE, **DEVICE) for row in rows[:2]]
        until_waiting(3)
    assert job.result().refresh + len([rotation for rotation in late if not rotation.exception()]) == 3
    assert {type(rotation.exception()) for rotation in late} <= {TransitionRefused, type(None)}
    if size == 5000:  # one update holds all rows, so nothing can come between
        assert statuses() == {row.pk: "Expired" for row in rows}


@SIZES
def test_a_confirmation_between_selection_and_update_stays_confirmed(
    size: int, kit: Kit, elsewhere: Elsewhere, until_waiting: Callable[[int], None]
) -> None:
    rows = requests(4, left=timedelta())
    with kit.gate("BEFORE", REQUESTS):
        job = elsewhere(expire_now, batch_size=size, **PATIENT)
        until_waiting(1)
        confirm(rows[0].pk, now=JUST_BEFORE)
    assert job.result().sicr == 3
    assert statuses(SignInConfirmationRequest) == {row.pk: "Expired" for row in rows} | {rows[0].pk: "Confirmed"}


def test_a_confirmation_that_comes_second_is_refused_with_the_code_for_expired(
    kit: Kit, elsewhere: Elsewhere, until_waiting: Callable[[int], None]
) -> None:
    request = RequestFactory.create(left=timedelta())
    with kit.gate("AFTER", REQUESTS):
        job = elsewhere(expire_now, **PATIENT)
        until_waiting(1)
        late = elsewhere(confirm, request.pk, now=JUST_BEFORE)
        until_waiting(2)
    assert job.result().sicr == 1
    assert late.exception().code == "IDENTITY_CONFIRMATION_EXPIRED"
    request.refresh_from_db()
    assert (request.status, request.confirmed_at) == ("Expired", None)


@SIZES
def test_inserting_a_child_does_not_wait_for_a_batch_that_holds_its_parent(
    size: int, kit: Kit, elsewhere: Elsewhere, until_waiting: Callable[[int], None]
) -> None:
    parents = sessions(5, left=-DAY)
    with kit.gate("AFTER", SESSIONS):
        job = elsewhere(expire_now, batch_size=size, **PATIENT)
        until_waiting(1)
        with transaction.atomic():
            execute("SET LOCAL lock_timeout = '1s'")
            for parent in parents:
                RefreshSessionFactory.create(parent_session=parent)
    assert job.result().refresh == 5


@SIZES
def test_two_copies_at_once_flip_each_row_once(size: int, kit: Kit, elsewhere: Elsewhere) -> None:
    sessions(60, left=-DAY)
    requests(60, left=-DAY)
    kit.audit()
    copies = [elsewhere(expire_now, batch_size=size, **PATIENT) for _ in range(2)]
    assert sum(copy.result().refresh + copy.result().sicr for copy in copies) == 120
    changed = [change.row_id for change in kit.changes()]
    assert len(changed) == len(set(changed)) == 120
