"""Random forests of sessions: what survives a run is exactly what the plain rule keeps, in batches of any size."""

import pytest

from identity.sessions.models import RefreshSession
from tests.kit.log import Log
from tests.kit.oracle import forest, must_go
from tests.kit.runs import CUTOFF_REFRESH, after, retain_now

pytestmark = pytest.mark.django_db


def survivors() -> dict[object, str]:
    return dict(RefreshSession.objects.values_list("pk", "status"))


@pytest.mark.parametrize("size", [1, 3, 7, 5000])
@pytest.mark.parametrize("seed", range(6))
def test_survivors_are_those_that_the_rule_keeps(seed: int, size: int, log: Log) -> None:
    rows = forest(seed)
    going = must_go(rows, CUTOFF_REFRESH)
    assert going
    counted: list[int] = []
    result = retain_now(batch_size=size, progress=counted.append)
    assert survivors() == {row.pk: row.status for row in rows if row.pk not in going}
    assert (result.outcome, result.refresh, sum(counted)) == ("completed", len(going), len(going))
    assert max(counted) <= size
    assert result.backlog.remaining == 0
    # No batch had to be tried again: the constraint is there for races, not to be run into.
    assert {line["event"] for line in log} <= {"batch deleted"}
    assert retain_now(batch_size=size).refresh == 0


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("seed", range(10, 14))
def test_runs_that_are_cut_again_and_again_end_at_the_same_survivors(seed: int, size: int) -> None:
    rows = forest(seed)
    going = must_go(rows, CUTOFF_REFRESH)
    deleted = 0
    for batches in (1, 2, 3, 5, 8):
        deleted += retain_now(batch_size=size, **after(batches)).refresh
        assert survivors().keys() >= {row.pk for row in rows} - going
    deleted += retain_now(batch_size=size).refresh
    assert survivors() == {row.pk: row.status for row in rows if row.pk not in going}
    assert deleted == len(going)
