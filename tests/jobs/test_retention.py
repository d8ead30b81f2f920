"""Job 2: what is past retention goes, what is not stays, and no status ever changes."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from identity.sessions.models import ConfirmationRequestStatus, RefreshSession, SignInConfirmationRequest
from tests.kit.factories import (
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
from tests.kit.runs import after, retain_now

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


@pytest.mark.parametrize(("rows", "size"), [(8, 4), (80, 40), (800, 400)])
def test_a_batch_costs_the_same_few_statements_however_many_rows_it_has(rows: int, size: int) -> None:
    for _ in range(rows // 4):
        chain(4)
    sessions(rows, status="Revoked", age=100 * DAY)
    with CaptureQueriesContext(connection) as captured:
        assert retain_now(batch_size=size).refresh == 2 * rows
    sent = [query["sql"] for query in captured if "SAVEPOINT" not in query["sql"]]
    batches = [sql for sql in sent if "set_config" in sql]
    assert len(batches) < 20
    # Its limits, the end of its window, the tips, the walk and the delete.
    # Once, a look at how long chains are.
    assert len(sent) <= 5 * len(batches) + 2


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
    left = {
        table: (found.rows, (NOW - found.since).total_seconds()) for table, found in backlog.tables.items() if found
    }
    # All of a chain that may go is to delete; the parents of a live session are blocked.
    assert left["sign_in_confirmation_requests"] == (3, 86400)
    assert left["refresh_sessions"] == (6, 110 * 86400)
    backlog = retain_now().backlog
    assert (backlog.remaining, backlog.blocked) == (0, 4)
