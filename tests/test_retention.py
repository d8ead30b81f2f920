"""Job 2: what is past retention goes, what is not stays, and no status ever changes."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from identity.sessions.models import ConfirmationRequestStatus, RefreshSession, SignInConfirmationRequest
from tests.factories import (
    DAY,
    HOUR,
    MICROSECOND,
    NOW,
    RefreshSessionFactory,
    RequestFactory,
    chain,
    requests,
    sessions,
)
from tests.jobs import after, retain_now

pytestmark = pytest.mark.django_db

SIZES = pytest.mark.parametrize("size", [5000, 3, 1])
ENDED = ("Rotated", "Revoked", "Expired")


def ids(model: Any = RefreshSession) -> set[Any]:
    return set(model.objects.values_list("pk", flat=True))


def test_an_empty_batch_is_a_success_that_deletes_nothing() -> None:
    sessions(3)
    requests(3)
    result = retain_now()
    assert (result.refresh, result.sicr, result.outcome) == (0, 0, "completed")
    assert (len(ids()), len(ids(SignInConfirmationRequest))) == (3, 3)


@SIZES
@pytest.mark.parametrize("status", ConfirmationRequestStatus.values)
def test_requests_go_by_age_whatever_their_status_and_to_the_microsecond(status: str, size: int) -> None:
    kept = requests(2, status=status, age=30 * DAY) + requests(1, status=status, age=HOUR)
    requests(2, status=status, age=30 * DAY + MICROSECOND)
    requests(2, status=status, age=400 * DAY)
    assert retain_now(batch_size=size).sicr == 4
    assert ids(SignInConfirmationRequest) == {row.pk for row in kept}


def test_a_confirmed_request_of_40_days_goes_like_an_expired_one() -> None:
    for status in ("Confirmed", "Expired"):
        RequestFactory.create(status=status, age=40 * DAY)
    young = RequestFactory.create(status="Confirmed", age=20 * DAY)
    assert retain_now().sicr == 2
    assert ids(SignInConfirmationRequest) == {young.pk}


def test_a_request_goes_by_its_creation_and_not_by_its_last_change() -> None:
    RequestFactory.create(age=31 * DAY, updated_at=NOW)
    kept = RequestFactory.create(age=29 * DAY, updated_at=NOW - 31 * DAY)
    retain_now()
    assert ids(SignInConfirmationRequest) == {kept.pk}


@SIZES
@pytest.mark.parametrize("status", ENDED)
def test_an_ended_session_goes_after_90_days_to_the_microsecond(status: str, size: int) -> None:
    kept = [RefreshSessionFactory.create(status=status, age=age) for age in (10 * DAY, 89 * DAY, 90 * DAY)]
    for age in (90 * DAY + MICROSECOND, 91 * DAY, 900 * DAY):
        RefreshSessionFactory.create(status=status, age=age)
    assert retain_now(batch_size=size).refresh == 3
    assert ids() == {row.pk for row in kept}


def test_an_active_session_stays_at_any_age_even_when_it_has_run_out() -> None:
    kept = [RefreshSessionFactory.create(age=age, left=left) for age in (91 * DAY, 4000 * DAY) for left in (DAY, -DAY)]
    assert retain_now().refresh == 0
    assert ids() == {row.pk for row in kept}


def test_a_session_revoked_ten_days_ago_stays_however_long_ago_it_was_created() -> None:
    kept = RefreshSessionFactory.create(status="Revoked", age=10 * DAY, created_at=NOW - 400 * DAY)
    gone = RefreshSessionFactory.create(status="Revoked", age=91 * DAY, created_at=NOW - DAY)
    retain_now()
    assert kept.pk in ids()
    assert gone.pk not in ids()


@SIZES
@pytest.mark.parametrize(
    ("tip", "age"), [("Active", 200 * DAY), ("Revoked", 10 * DAY), ("Expired", 90 * DAY), ("Rotated", 89 * DAY)]
)
def test_a_chain_stays_whole_for_its_live_or_young_tip_without_an_error(tip: str, age: Any, size: int) -> None:
    rows = chain(6, tip=tip, age=age)
    result = retain_now(batch_size=size)
    assert (result.refresh, result.outcome) == (0, "completed")
    assert ids() == {row.pk for row in rows}
    assert (result.backlog.remaining, result.backlog.blocked) == (0, 5)


@SIZES
@pytest.mark.parametrize("tip", ENDED)
def test_a_chain_goes_whole_and_in_one_run_once_its_tip_is_old(tip: str, size: int) -> None:
    chain(7, tip=tip, age=91 * DAY)
    result = retain_now(batch_size=size)
    assert (result.refresh, result.outcome, result.backlog.remaining) == (7, "completed", 0)
    assert ids() == set()


def test_a_chain_that_was_blocked_goes_when_its_descendant_has_aged() -> None:
    chain(4, tip="Revoked", age=60 * DAY)
    assert retain_now().refresh == 0
    assert retain_now(now=NOW + 30 * DAY).refresh == 0
    assert retain_now(now=NOW + 30 * DAY + MICROSECOND).refresh == 4


@SIZES
@pytest.mark.parametrize(("status", "age"), [("Revoked", DAY), ("Rotated", 90 * DAY), ("Active", 200 * DAY)])
def test_the_old_part_below_an_ancestor_that_stays_goes(status: str, age: timedelta, size: int, log: Any) -> None:
    root, kept = chain(2, tip=status, age=age)
    old = RefreshSessionFactory.create(status="Rotated", age=200 * DAY, parent_session=kept)
    RefreshSessionFactory.create(status="Expired", age=100 * DAY, parent_session=old)
    assert retain_now(batch_size=size).refresh == 2
    assert ids() == {root.pk, kept.pk}
    assert {line["event"] for line in log} == {"batch deleted"}


@SIZES
def test_a_fork_keeps_what_its_live_branch_needs_and_no_more(size: int) -> None:
    trunk = chain(3, tip="Rotated", age=200 * DAY)
    live = RefreshSessionFactory.create(parent_session=trunk[-1])
    for _ in range(3):
        dead = RefreshSessionFactory.create(status="Rotated", age=150 * DAY, parent_session=trunk[1])
        RefreshSessionFactory.create(status="Expired", age=120 * DAY, parent_session=dead)
    result = retain_now(batch_size=size)
    assert ids() == {row.pk for row in trunk} | {live.pk}
    assert (result.refresh, result.backlog.remaining, result.backlog.blocked) == (6, 0, 3)


@SIZES
def test_a_fork_goes_whole_in_one_run_when_all_its_branches_are_old(size: int) -> None:
    trunk = chain(3, tip="Rotated", age=200 * DAY)
    for place in (0, 1, 1, 2):
        branch = RefreshSessionFactory.create(status="Rotated", age=180 * DAY, parent_session=trunk[place])
        RefreshSessionFactory.create(status="Revoked", age=170 * DAY, parent_session=branch)
    result = retain_now(batch_size=size)
    assert ids() == set()
    assert (result.refresh, result.backlog.remaining) == (11, 0)


def test_a_chain_of_3000_goes_in_one_run() -> None:
    chain(3000, age=200 * DAY)
    counted: list[int] = []
    assert retain_now(batch_size=500, progress=counted.append).refresh == 3000
    assert max(counted) <= 500
    assert len([rows for rows in counted if rows]) == 6


def test_a_batch_costs_the_same_few_statements_however_many_rows_it_has() -> None:
    def cost(rows: int, size: int) -> int:
        for _ in range(rows // 4):
            chain(4)
        sessions(rows, status="Revoked", age=100 * DAY)
        with CaptureQueriesContext(connection) as sent:
            assert retain_now(batch_size=size).refresh == 2 * rows
        return len([query for query in sent if "SAVEPOINT" not in query["sql"]])

    # Twice eight rows in batches of four, and twice eighty in batches of forty.
    assert cost(80, 40) == cost(8, 4) < 40


def test_ten_chains_of_five_in_batches_of_seven_are_all_done() -> None:
    for _ in range(10):
        chain(5, age=200 * DAY)
    counted: list[int] = []
    assert retain_now(batch_size=7, progress=counted.append).refresh == 50
    assert max(counted) <= 7
    assert ids() == set()


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_run_stopped_in_the_middle_of_a_chain_is_finished_by_the_next(batches: int) -> None:
    rows = chain(10, age=200 * DAY)
    first = retain_now(batch_size=3, **after(batches + 1))  # the empty first phase is a batch of its own
    assert first.outcome == "cancelled"
    assert 0 < first.refresh < 10
    # What is left is the root's end: no parent went before its child.
    assert ids() == {row.pk for row in rows[: 10 - first.refresh]}
    assert first.backlog.remaining == 1
    assert retain_now(batch_size=3).refresh == 10 - first.refresh


@SIZES
def test_a_second_run_over_the_same_rows_deletes_none(size: int) -> None:
    chain(4, age=200 * DAY)
    chain(4, tip="Active")
    requests(4, age=40 * DAY)
    assert retain_now(batch_size=size)[:2] == (4, 4)
    assert retain_now(batch_size=size)[:2] == (0, 0)


def test_backlog_and_blocked_rows_are_counted_apart() -> None:
    chain(5, tip="Active")
    chain(4, age=200 * DAY)
    sessions(2, status="Revoked", age=91 * DAY)
    requests(3, age=31 * DAY)
    backlog = retain_now(**after(0)).backlog
    left = {table: (found.rows, found.seconds) for table, found in backlog.tables.items() if found}
    # Of a chain that may go, its childless end is what a run could delete next; the live chain's parents are blocked.
    assert left["sign_in_confirmation_requests"] == (3, 86400)
    assert left["refresh_sessions"] == (3, 110 * 86400)
    backlog = retain_now().backlog
    assert (backlog.remaining, backlog.blocked) == (0, 4)
