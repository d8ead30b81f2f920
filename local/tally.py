"""Count the rows of both tables by status, and lay counts side by side."""

from django.db.models import Count

from identity.sessions.models import RefreshSession, SignInConfirmationRequest

# (table, status) -> rows; a status without rows is there with 0.
Tally = dict[tuple[str, str], int]

ROW = "  {:<14}{}"
COLUMN = "{:>26}"


def by_status() -> Tally:
    """Return how many rows each table has in each status."""
    tally: Tally = {}
    for model in (RefreshSession, SignInConfirmationRequest):
        table = model._meta.db_table
        found = dict(model.objects.values_list("status").annotate(Count("pk")))
        for status, _ in model._meta.get_field("status").flatchoices:
            tally[table, status] = found.get(status, 0)
    return tally


def difference(one: Tally, other: Tally) -> int:
    """Return by how many rows two tallies differ, all statuses added up."""
    return sum(abs(one[key] - other[key]) for key in one)


def table(columns: dict[str, Tally]) -> str:
    """Return a table per database table: a row per status and the total, a column per tally."""
    first = next(iter(columns.values()))
    tables = dict.fromkeys(name for name, _ in first)
    return "\n".join(_one(name, columns) for name in tables)


def _one(name: str, columns: dict[str, Tally]) -> str:
    tallies = list(columns.values())
    statuses = [status for table, status in tallies[0] if table == name]
    lines = [name, ROW.format("", "".join(COLUMN.format(title) for title in columns))]
    lines += [_row(status, [tally[name, status] for tally in tallies]) for status in statuses]
    lines.append(_row("total", [sum(tally[name, status] for status in statuses) for tally in tallies]))
    return "\n".join(lines)


def _row(title: str, counts: list[int]) -> str:
    return ROW.format(title, "".join(COLUMN.format(f"{count:,}") for count in counts))
