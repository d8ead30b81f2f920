"""Rows of the result table: what was compared, the ratio with its spread, the goal, and the verdict."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.rig.pairs import Spread


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A limit that a ratio, or a figure with a unit, has to keep."""

    at_least: float | None = None
    at_most: float | None = None
    unit: str = "x"

    def met(self, value: float) -> bool:
        if self.at_least is not None and value < self.at_least:
            return False
        return self.at_most is None or value <= self.at_most

    def __str__(self) -> str:
        if self.at_least is not None:
            return f"at least {self.at_least:g} {self.unit}"
        return f"at most {self.at_most:g} {self.unit}" if self.at_most is not None else ""


SHOWN = Goal()  # no limit: the figure is shown for comparison


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row: `seen` is a median with its spread, `figures` are the absolute numbers behind it."""

    what: str
    against: str
    seen: Spread
    goal: Goal = SHOWN
    figures: str = ""

    @property
    def verdict(self) -> str:
        if self.goal == SHOWN:
            return "shown"
        return "met" if self.goal.met(self.seen.median) else "MISSED"

    @property
    def measured(self) -> str:
        low, middle, high = (short(value) for value in (self.seen.low, self.seen.median, self.seen.high))
        return f"{middle} {self.goal.unit}" if low == high else f"{middle} {self.goal.unit} ({low} to {high})"

    def cells(self) -> tuple[str, ...]:
        return (self.what, self.against, self.measured, str(self.goal), self.verdict, self.figures)


HEADINGS = ("what", "against", "measured", "goal", "verdict", "figures")


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table beside the main one, with headings of its own."""

    title: str
    headings: tuple[str, ...]
    lines: list[tuple[str, ...]]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Curves:
    """What is drawn in one plot: points by the name of the line."""

    name: str
    caption: str
    x: str
    y: str
    lines: dict[str, list[tuple[float, float]]]
    logarithmic: bool = False


@dataclass(kw_only=True)
class Results:
    """All that one run has found, in order."""

    rows: list[Row] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    curves: list[Curves] = field(default_factory=list)


def short(value: float) -> str:
    """Write a figure with three digits or so."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def aligned(headings: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    """Lay a table out for a terminal; it is Markdown as well."""
    lines = list(lines)
    widths = [max(len(line[column]) for line in [headings, *lines]) for column in range(len(headings))]
    rule = tuple("-" * width for width in widths)
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |"
        for line in [headings, rule, *lines]
    )
