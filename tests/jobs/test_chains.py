"""Job 2 on rotation chains: a chain goes when its tip may, whole and in one run, in batches of any size."""

from datetime import timedelta
from typing import Any

import pytest

from identity.sessions.models import RefreshSession
from tests.kit.factories import (
    DAY,
    MICROSECOND,
    NOW,
    RefreshSessionFactory,
    chain,
)
from tests.kit.runs import after, retain_now

pytestmark = pytest.mark.django_db

SIZES = pytest.mark.parametrize("size", [5000, 3, 1])
ENDED = ("Rotated", "Revoked", "Expired")


def ids(model: Any = RefreshSession) -> set[Any]:
    return set(model.objects.values_list("pk", flat=True))


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
    assert first.backlog.remaining == 10 - first.refresh
    assert retain_now(batch_size=3).refresh == 10 - first.refresh
