"""A way through a set of rows: in the order of a key and the id, or along given ids, a window at a time.

The cursor is strict. It moves behind each window, whether its rows were changed, locked elsewhere or refused, so that
no row is met twice in a run and none stands in the way of those behind it. It also spares each batch the dead versions
of all rows before it, which cannot be cleaned up while an old snapshot is open elsewhere.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import DateTimeField, Min, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast


def moment(text: str | None) -> datetime | None:
    """Return a timestamp as PostgreSQL writes it; None for one that Python cannot hold, such as -infinity."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None


class Walk:
    """A walk along (key, id). Keys stay text, as the server writes them: `infinity` is one too.

    A window ends before the next key, which an index on the key alone finds. Ids are read only where more rows share a
    key than the window holds, and for windows of one row.
    """

    def __init__(self, rows: QuerySet[Any], key: str) -> None:
        self.rows, self.key = rows, key
        self.finished = False
        self.first: UUID | None = None  # the row of a window of one
        self._behind = Q()  # what lies behind the cursor
        self._begin: str | None = None  # the key of the first row there, once it is known
        self._next: tuple[str | None, Q] = (None, Q())  # the same two behind the window

    @property
    def since(self) -> datetime | None:
        """Return the key of the window's first row, which is its oldest."""
        return moment(self._begin)

    @property
    def empty(self) -> bool:
        """Tell whether the window is known to hold no row."""
        return self._begin is None

    def window(self, size: int) -> QuerySet[Any]:
        """Return the next rows, `size` at the most."""
        self.first = None
        ahead = self.rows.filter(self._behind)
        if self._begin is None and (begin := self._key(ahead, 0)) is not None:
            # Bounded below, so that a table of which nothing is known is not thought to be small.
            self._begin, self._behind = begin, Q(**{f"{self.key}__gte": _timestamp(begin)})
            ahead = self.rows.filter(self._behind)
        if self._begin is not None and size == 1:
            return self._among_equals(ahead, size)
        end = self._key(ahead, size) if self._begin else None
        if end is None:
            self._next = (None, Q())
            return ahead
        if end == self._begin:
            return self._among_equals(ahead, size)
        self._next = (end, Q(**{f"{self.key}__gte": _timestamp(end)}))
        return ahead.filter(**{f"{self.key}__lt": _timestamp(end)})

    def _among_equals(self, ahead: QuerySet[Any], size: int) -> QuerySet[Any]:
        found = self._places(ahead, size - 1, size + 1)
        if not found:  # another copy has changed some meanwhile, and what remains fits
            self._next = (None, Q())
            return ahead
        last, *after = found
        self._next = (after[0][0] if after else None, self._beyond(*last))
        if size == 1:
            self.first = last[1]
        key, pk = _timestamp(last[0]), last[1]
        return ahead.filter(Q(**{f"{self.key}__lte": key}), Q(**{f"{self.key}__lt": key}) | Q(pk__lte=pk))

    def advance(self) -> None:
        """Move behind the window."""
        self._begin, self._behind = self._next
        self.finished = self._begin is None

    def ids(self, count: int) -> list[UUID]:
        """Return the ids of the next rows, and move behind them."""
        found = self._places(self.rows.filter(self._behind), 0, count)
        self._behind = self._beyond(*found[-1]) if found else self._behind
        self.finished = len(found) < count
        return [pk for _, pk in found]

    def _key(self, ahead: QuerySet[Any], place: int) -> str | None:
        # An aggregate, so that the one key is written as text and not those that are passed over too.
        found = ahead.order_by(self.key)[place : place + 1].aggregate(at=Cast(Min(self.key), TextField()))
        at: str | None = found["at"]
        return at

    def _places(self, ahead: QuerySet[Any], start: int, end: int) -> list[tuple[str, UUID]]:
        rows = ahead.order_by(self.key, "pk").annotate(at=Cast(self.key, TextField()))
        return list(rows.values_list("at", "pk")[start:end])

    def _beyond(self, key: str, pk: UUID) -> Q:
        above = Q(**{f"{self.key}__gt": _timestamp(key)}) | Q(pk__gt=pk)
        return Q(**{f"{self.key}__gte": _timestamp(key)}) & above


def _timestamp(text: str) -> Cast:
    return Cast(Value(text), DateTimeField())


class Listed:
    """A walk along given ids, in their order."""

    empty = False  # but a row may be gone by now

    def __init__(self, rows: QuerySet[Any], ids: list[UUID], *, since: datetime | None = None) -> None:
        self.rows, self.since = rows, since
        self._ids = ids
        self._size = 0

    @property
    def finished(self) -> bool:
        return not self._ids

    @property
    def first(self) -> UUID | None:
        return self._ids[0] if self._ids else None

    def window(self, size: int) -> QuerySet[Any]:
        self._size = size
        return self.rows.filter(pk__any_of=self._ids[:size])

    def advance(self) -> None:
        del self._ids[: self._size]


Way = Walk | Listed
