"""The benchmarks' own arithmetic: a verdict that is wrong would be believed."""

import pytest

from benchmarks.__main__ import GROUPS, main
from benchmarks.expiry import last_by_first_tenth
from benchmarks.rig.pairs import in_turn, spread
from benchmarks.rig.report import Goal, Row, aligned
from benchmarks.rig.runs import Performed
from benchmarks.rig.traffic import Traffic, parsed, percentile


def run(*ends: float) -> Performed:
    return Performed(
        began=0, seconds=ends[-1], changed={"refresh": 10}, left=0, outcome="completed", problems=[],
        batches=[(end, 10) for end in ends], statements={}, processor=0, memory=0,
    )  # fmt: skip


def test_pairs_are_measured_in_turn_and_each_goes_first_as_often() -> None:
    order: list[str] = []
    in_turn("it", pairs=3, ours=lambda: order.append("ours") or 1, other=lambda: order.append("other") or 1)
    assert order == ["ours", "other", "other", "ours", "ours", "other"]


def test_a_ratio_is_taken_pair_by_pair() -> None:
    ours, other = iter([2, 9, 4]), iter([1, 3, 8])
    found = in_turn("it", pairs=3, ours=lambda: next(ours), other=lambda: next(other))
    assert (found.ratio.low, found.ratio.median, found.ratio.high) == (0.5, 2, 3)


@pytest.mark.parametrize(
    ("goal", "value", "verdict"),
    [
        (Goal(at_least=0.85), 0.85, "met"),
        (Goal(at_least=0.85), 0.849, "MISSED"),
        (Goal(at_most=2), 2, "met"),
        (Goal(at_most=2), 2.001, "MISSED"),
        (Goal(), 7, "shown"),
    ],
)
def test_a_verdict_follows_from_the_median(goal: Goal, value: float, verdict: str) -> None:
    assert Row(what="a", against="b", seen=spread(0, value, 1000), goal=goal).verdict == verdict


def test_batches_that_slow_down_show_as_a_ratio_of_the_last_tenth_to_the_first() -> None:
    steady = [float(end) for end in range(1, 22)]
    assert last_by_first_tenth(run(*steady)) == pytest.approx(1)
    assert last_by_first_tenth(run(*steady[:-2], 25.0, 30.0)) == pytest.approx(5.5)


def test_a_line_of_the_traffic_is_a_moment_and_a_latency_in_milliseconds() -> None:
    assert parsed("3 17 2500 1 1700000000 250000 40") == (pytest.approx(1700000000.25), 2.5)


def test_traffic_between_two_moments_is_what_was_under_way_then() -> None:
    traffic = Traffic(transactions=[(9, 500), (11, 1500), (15, 100), (25, 16000), (30, 100)])
    assert traffic.between(10, 20) == [1500, 100, 16000]


def test_a_percentile_is_a_value_that_was_seen() -> None:
    values = [float(value) for value in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0, 0.5, 0.99, 1)] == [1, 51, 100, 100]
    assert percentile([], 0.99) == 0


def test_a_table_is_aligned_and_is_markdown() -> None:
    assert aligned(("a", "long"), [("1", "2")]) == "| a | long |\n| - | ---- |\n| 1 | 2    |"


def test_the_command_knows_its_groups_and_needs_neither_peers_nor_plots_to_say_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["benchmarks", "--help"])
    with pytest.raises(SystemExit, match="0"):
        main()
    shown = capsys.readouterr().out
    assert all(name in shown for name in GROUPS)
