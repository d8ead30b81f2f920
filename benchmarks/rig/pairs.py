"""Two things measured in turn, pair by pair, so that whatever else the machine does falls on both."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median

Measure = Callable[[], float]


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Figures of one kind: the median stands for them, the extremes tell how much it is worth."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)


def spread(*values: float) -> Spread:
    return Spread(values=values)


@dataclass(frozen=True, kw_only=True)
class Pairs:
    """What was measured of ours and of the other thing, pair by pair."""

    ours: Spread
    other: Spread

    @property
    def ratio(self) -> Spread:
        """Return ours by the other, for each pair."""
        return spread(*(one / other for one, other in zip(self.ours.values, self.other.values, strict=True)))


def in_turn(subject: str, *, pairs: int, ours: Measure, other: Measure) -> Pairs:
    """Measure both in turn; who goes first changes from pair to pair."""
    found: dict[Measure, list[float]] = {ours: [], other: []}
    for pair in range(pairs):
        say(f"{subject}: pair {pair + 1} of {pairs}")
        for measure in (ours, other) if pair % 2 == 0 else (other, ours):
            found[measure].append(measure())
    return Pairs(ours=spread(*found[ours]), other=spread(*found[other]))


def say(what: str) -> None:
    """Tell on stderr what is under way; the table alone goes to stdout."""
    sys.stderr.write(f"  {what}\n")
    sys.stderr.flush()
