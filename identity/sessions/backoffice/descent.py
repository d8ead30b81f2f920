"""What came after a session: its descendants by rotation, read as far as a page can show."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet, Value

from identity.sessions.backoffice.bounded import NotInTime, bounded
from identity.sessions.models import RefreshSession

# Chains of more links than this exist; their page says that it has not read to the end.
CAP = 10_000
# LATERAL with OFFSET 0 keeps each level a look-up in the index on parents: a plain join may hash the whole table.
DESCENDANTS = """WITH RECURSIVE descendant (id, parent_session_id, status, updated_at, expires_at, depth) AS (
        SELECT id, parent_session_id, status, updated_at, expires_at, 1
        FROM refresh_sessions WHERE parent_session_id = %(session)s
        UNION ALL
        SELECT child.*, descendant.depth + 1
        FROM descendant CROSS JOIN LATERAL (
            SELECT id, parent_session_id, status, updated_at, expires_at
            FROM refresh_sessions WHERE parent_session_id = descendant.id OFFSET 0
        ) child
    )
    SELECT * FROM descendant LIMIT %(rows)s
"""


@dataclass(frozen=True, kw_only=True)
class Descent:
    """The descendants of a session, nearest first; not `complete` if there are more, or they took too long to read.

    `due` and `past_retention` are what the jobs make of them: whether the session itself is due, and the ids of those
    that are old, the session included.
    """

    session: RefreshSession
    descendants: tuple[RefreshSession, ...] = ()
    due: bool = False
    past_retention: frozenset[UUID] = frozenset()
    complete: bool = True

    @property
    def children(self) -> list[RefreshSession]:
        return [each for each in self.descendants if each.parent_session_id == self.session.pk]

    @property
    def tips(self) -> list[RefreshSession]:
        """Return where the chain ends: more than one end where a session was rotated twice."""
        parents = {each.parent_session_id for each in self.descendants}
        return [each for each in self.descendants if each.pk not in parents] if self.complete else []

    @property
    def holding(self) -> list[RefreshSession]:
        """Return the descendants that keep the session: live ones, and those not past retention."""
        return [each for each in self.descendants if each.pk not in self.past_retention]


def descent(session: RefreshSession, *, now: datetime, cutoff: datetime) -> Descent:
    """Read the descendants of a session in one statement, and what the jobs make of them in another."""
    try:
        with bounded():
            found = RefreshSession.objects.raw(DESCENDANTS, {"session": session.pk, "rows": CAP + 1})
            rows = tuple(found)
            everyone = [session.pk, *(each.pk for each in rows)]
            old = RefreshSession.objects.older_than(cutoff).filter(pk__any_of=everyone)
            due = RefreshSession.objects.due(now).filter(pk=session.pk)
            sets = set(_named("old", old).union(_named("due", due)))
    except NotInTime:
        return Descent(session=session, complete=False)
    return Descent(
        session=session,
        descendants=rows,
        due=("due", session.pk) in sets,
        past_retention=frozenset(pk for name, pk in sets if name == "old"),
        complete=len(rows) <= CAP,
    )


def _named(name: str, rows: QuerySet[RefreshSession]) -> QuerySet[RefreshSession, tuple[str, UUID]]:
    return rows.annotate(name=Value(name)).values_list("name", "pk")
