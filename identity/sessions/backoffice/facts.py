"""Named values as Django's admin wants them: functions of a row that carry a label."""

from collections.abc import Callable
from typing import Any

Column = Callable[[Any], str]


def column(name: str, label: str, show: Column) -> Column:
    """Return a column of a list; without an order, because the lists have their own."""

    def value(row: Any) -> str:
        return show(row)

    value.__name__ = name
    value.short_description = label  # type: ignore[attr-defined]
    return value


def fact(label: str, value: str) -> Column:
    """Return a line of a row's page, whose value is known already."""
    return column(label.lower().replace(" ", "-"), label, lambda _: value)
