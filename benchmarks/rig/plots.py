"""Plots of a run: every ratio next to its goal, and the curves that a single figure cannot tell."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib

from benchmarks.rig.report import Curves, Results, Row

matplotlib.use("svg")
from matplotlib import pyplot

# The same run gives the same file, and text stays text.
matplotlib.rcParams.update({"svg.hashsalt": "benchmarks", "svg.fonttype": "none", "font.size": 9})
MET, MISSED, SHOWN = "#2a7f62", "#c0392b", "#4c6a92"


@dataclass(frozen=True, kw_only=True)
class Plot:
    """A file that was drawn, and what it shows."""

    file: str
    caption: str


def draw(results: Results, folder: Path) -> Iterator[Plot]:
    """Draw whatever the results hold, and yield each plot."""
    ratios = [row for row in results.rows if row.goal.unit == "x"]
    if ratios:
        yield draw_ratios(ratios, folder)
    for curves in results.curves:
        yield draw_curves(curves, folder)


def draw_ratios(rows: list[Row], folder: Path) -> Plot:
    figure, axes = pyplot.subplots(figsize=(9, 0.5 + 0.42 * len(rows)), layout="constrained")
    colours = {"met": MET, "MISSED": MISSED, "shown": SHOWN}
    for place, row in enumerate(rows):
        colour = colours[row.verdict]
        axes.plot([max(row.seen.low, 1e-4), max(row.seen.high, 1e-4)], [place, place], color=colour, linewidth=2)
        axes.plot([max(row.seen.median, 1e-4)], [place], marker="o", color=colour)
        goal = row.goal.at_least or row.goal.at_most
        if goal:
            axes.plot([goal], [place], marker=">" if row.goal.at_least else "<", color="black", markersize=7)
    axes.set_yticks(range(len(rows)), [f"{row.what}\nby {row.against}" for row in rows], fontsize=6)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="grey", linewidth=0.7)
    axes.set_title("Ratios with their spread; a triangle is the goal and points to where it is met")
    return saved(figure, folder, Plot(file="benchmark-ratios.svg", caption="Each ratio, its spread and its goal"))


def draw_curves(curves: Curves, folder: Path) -> Plot:
    figure, axes = pyplot.subplots(figsize=(8, 3.6), layout="constrained")
    for name, points in curves.lines.items():
        axes.plot([x for x, _ in points], [y for _, y in points], label=name, linewidth=1.2)
    axes.set_xlabel(curves.x)
    axes.set_ylabel(curves.y)
    if curves.logarithmic:
        axes.set_yscale("log")
    axes.set_title(curves.caption)
    axes.legend(fontsize=7)
    return saved(figure, folder, Plot(file=f"benchmark-{curves.name}.svg", caption=curves.caption))


def saved(figure: Any, folder: Path, plot: Plot) -> Plot:
    figure.savefig(folder / plot.file, metadata={"Date": None})
    pyplot.close(figure)
    return plot
