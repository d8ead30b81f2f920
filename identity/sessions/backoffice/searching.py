"""Search by id and user id: ranges, which an index answers, where LIKE would read the whole table."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

UUID_DIGITS = 32


def id_range(text: str) -> tuple[UUID, UUID] | None:
    """Return the least and the greatest id that begins with a text, None if no id does."""
    digits = text.strip().replace("-", "").lower()
    if not 0 < len(digits) <= UUID_DIGITS or digits.strip("0123456789abcdef"):
        return None
    return UUID(digits.ljust(UUID_DIGITS, "0")), UUID(digits.ljust(UUID_DIGITS, "f"))


def by_id_or_user_id(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Select rows whose id or user id is or begins with a text; both have an index."""
    ids = id_range(text)
    return rows.filter(Q(id__range=ids) | Q(user_id__range=ids)) if ids else rows.none()


def by_id_then_user_id(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Select rows whose id is or begins with a text; if no id is it, those whose user id is it.

    For a table without an index on user ids: it is read as a whole only if there is no other way.
    """
    ids = id_range(text)
    if not ids:
        return rows.none()
    by_id = rows.filter(id__range=ids)
    return rows.filter(user_id=ids[0]) if ids[0] == ids[1] and not by_id.exists() else by_id
