"""Job 1: what has run out becomes Expired; nothing else changes, in these tables or any other."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model

from identity.sessions.models import ConfirmationRequestStatus, RefreshSession, SignInConfirmationRequest
from tests.kit.factories import DAY, MICROSECOND, NOW, RefreshSessionFactory, RequestFactory, requests, sessions
from tests.kit.runs import after, expire_now

pytestmark = pytest.mark.django_db

# One batch for all, or chunks of a few rows: the rules are the same.
SIZES = pytest.mark.parametrize("size", [5000, 3, 1])


def stored(model: type[Model]) -> dict[Any, dict[str, Any]]:
    return {row["id"]: row for row in model._base_manager.values()}


def statuses(model: type[Model]) -> Counter[str]:
    return Counter(model._base_manager.values_list("status", flat=True))


def test_an_empty_batch_is_a_success_that_changes_nothing() -> None:
    sessions(3)
    requests(3)
    assert expire_now()[:2] == (0, 0)
    assert (statuses(RefreshSession), statuses(SignInConfirmationRequest)) == ({"Active": 3}, {"Pending": 3})
    assert expire_now().outcome == "completed"


@SIZES
@pytest.mark.parametrize("factory", [RefreshSessionFactory, RequestFactory])
def test_both_sides_of_the_limit_to_the_microsecond(factory: Any, size: int) -> None:
    gone = [factory.create(left=left).pk for left in (timedelta(), -MICROSECOND, -400 * DAY)]
    kept = [factory.create(left=left).pk for left in (MICROSECOND, 30 * DAY)]
    expire_now(batch_size=size)
    found = dict(factory._meta.model.objects.values_list("pk", "status"))
    assert {pk for pk, status in found.items() if status == "Expired"} == set(gone)
    assert {pk for pk, status in found.items() if status in ("Active", "Pending")} == set(kept)


@SIZES
def test_an_expired_session_keeps_every_other_field_and_is_not_revoked(size: int) -> None:
    sessions(8, left=-DAY, age=31 * DAY)
    before = stored(RefreshSession)
    assert expire_now(batch_size=size).refresh == 8
    assert stored(RefreshSession) == {pk: row | {"status": "Expired"} for pk, row in before.items()}
    assert not RefreshSession.objects.exclude(revoked_at=None, revoked_reason=None).exists()


@SIZES
def test_an_expired_request_keeps_every_other_field_and_is_not_confirmed(size: int) -> None:
    requests(8, left=-MICROSECOND)
    before = stored(SignInConfirmationRequest)
    assert expire_now(batch_size=size).sicr == 8
    assert stored(SignInConfirmationRequest) == {pk: row | {"status": "Expired"} for pk, row in before.items()}
    assert not SignInConfirmationRequest.objects.exclude(confirmed_at=None).exists()


@SIZES
def test_statuses_other_than_active_and_pending_are_never_touched(size: int) -> None:
    for status in ("Rotated", "Revoked", "Expired"):
        sessions(4, status=status, left=-DAY)
    for status in set(ConfirmationRequestStatus.values) - {"Pending"}:
        requests(4, status=status, left=-DAY)
    before = stored(RefreshSession), stored(SignInConfirmationRequest)
    assert expire_now(batch_size=size)[:2] == (0, 0)
    assert (stored(RefreshSession), stored(SignInConfirmationRequest)) == before


@SIZES
def test_a_second_run_over_the_same_rows_changes_none(size: int) -> None:
    sessions(7, left=-DAY)
    requests(7, left=-DAY)
    assert expire_now(batch_size=size)[:2] == (7, 7)
    assert expire_now(batch_size=size)[:2] == (0, 0)


def test_a_restart_after_a_stopped_run_does_the_rest_and_nothing_twice() -> None:
    sessions(10, left=-DAY)
    first = expire_now(batch_size=3, **after(3))  # the empty phase takes its turn
    assert (first.refresh, first.outcome) == (6, "cancelled")
    assert expire_now(batch_size=3).refresh == 4


def test_parents_and_children_expire_apart_from_each_other() -> None:
    parent = RefreshSessionFactory.create(left=DAY)
    child = RefreshSessionFactory.create(left=-DAY, parent_session=parent)
    expire_now()
    assert dict(RefreshSession.objects.values_list("pk", "status")) == {parent.pk: "Active", child.pk: "Expired"}


@pytest.mark.parametrize(("due", "size"), [(10, 3), (9, 3), (10, 9), (4, 1)])
def test_no_chunk_is_larger_than_a_batch(due: int, size: int) -> None:
    sessions(due, left=-DAY)
    counted: list[int] = []
    expire_now(batch_size=size, progress=counted.append)
    assert sum(counted) == due
    assert max(counted) <= size


def test_a_backlog_of_exactly_one_batch_is_one_update_and_one_more_row_makes_chunks() -> None:
    for due, updates in ((5, 1), (6, 2)):
        RefreshSession.objects.all().delete()
        sessions(due, left=-DAY)
        assert len([sql for sql in statements(batch_size=5) if sql.startswith('UPDATE "refresh_sessions"')]) == updates


def statements(**changes: Any) -> list[str]:
    """Return the statements that a run sends, without those that open and close transactions."""
    sent: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        expire_now(**changes)
    return [sql for sql in sent if not sql.startswith(("SAVEPOINT", "RELEASE"))]


def test_a_batch_costs_three_statements_however_many_rows_it_has() -> None:
    def cost(due: int, size: int) -> int:
        RefreshSession.objects.all().delete()
        for place in range(due):
            sessions(1, left=-DAY + place * MICROSECOND)
        return len(statements(batch_size=size))

    assert cost(40, 4) - cost(36, 4) == 3  # limits, the window's end, the update
    assert cost(400, 40) == cost(40, 4)


def test_more_rows_on_one_moment_than_a_batch_holds_are_all_done() -> None:
    sessions(25, left=-DAY)
    sessions(3, left=-2 * DAY)
    sessions(3, left=-MICROSECOND)
    assert expire_now(batch_size=4).refresh == 31


def test_a_stop_between_the_phases_leaves_the_second_one_to_the_next_run() -> None:
    sessions(3, left=-DAY)
    requests(3, left=-DAY)
    result = expire_now(**after(1))
    assert (result.refresh, result.sicr, result.outcome) == (3, 0, "cancelled")
    assert expire_now()[:2] == (0, 3)


def test_what_is_committed_before_the_deadline_stays_and_the_rest_is_counted() -> None:
    sessions(9, left=-DAY)
    result = expire_now(batch_size=2, deadline=0.0)
    assert (result.refresh, result.outcome) == (0, "deadline")
    assert result.backlog.remaining == 9


def test_the_backlog_counts_what_is_still_due_and_how_long_the_oldest_has_been() -> None:
    sessions(4, left=-DAY)
    sessions(4, left=DAY)
    requests(2, left=-timedelta(seconds=90))
    tables = expire_now(**after(0)).backlog.tables
    assert {table: (left.rows, (NOW - left.since).total_seconds()) for table, left in tables.items() if left} == {
        "refresh_sessions": (4, 86400),
        "sign_in_confirmation_requests": (2, 90),
    }
    assert expire_now().backlog.remaining == 0


def test_now_is_fixed_for_the_whole_run() -> None:
    RefreshSessionFactory.create(left=MICROSECOND)
    expire_now(now=NOW)
    assert statuses(RefreshSession) == {"Active": 1}
    expire_now(now=NOW + MICROSECOND)
    assert statuses(RefreshSession) == {"Expired": 1}
