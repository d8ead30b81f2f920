"""Rotation chains: walk up from sessions that nothing refers to, and delete leaf first under RESTRICT."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connections

from identity.sessions.jobs.batches import Windows
from identity.sessions.lookups import addressed
from identity.sessions.models import TERMINAL, RefreshSessionQuerySet

# Breadth first from the starts: every prefix of it is closed under "child before parent", so LIMIT may cut anywhere.
# A parent is passed only if it is itself past retention and has no other child. LATERAL with LIMIT keeps the recursion
# a chain of index look-ups: as a plain join the planner hashes the whole table, at every level.
WALK_UP = """
    WITH RECURSIVE chain (id, parent_session_id, address) AS (
        SELECT leaf.id, leaf.parent_session_id, leaf.ctid
        FROM unnest(%(starts)s::uuid[]) AS start (id)
        CROSS JOIN LATERAL (
            SELECT s.id, s.parent_session_id, s.ctid FROM refresh_sessions s
            WHERE s.id = start.id
              AND (SELECT child.id FROM refresh_sessions child WHERE child.parent_session_id = s.id LIMIT 1) IS NULL
            LIMIT 1
        ) leaf
        UNION ALL
        SELECT parent.id, parent.parent_session_id, parent.ctid
        FROM chain
        CROSS JOIN LATERAL (
            SELECT p.id, p.parent_session_id, p.ctid FROM refresh_sessions p
            WHERE p.id = chain.parent_session_id AND p.status = ANY(%(terminal)s) AND p.updated_at < %(cutoff)s
              AND p.id <> ALL(%(left_out)s::uuid[])
              AND (
                SELECT other.id FROM refresh_sessions other
                WHERE other.parent_session_id = p.id AND other.id <> chain.id LIMIT 1
              ) IS NULL
            LIMIT 1
        ) parent
    ), link AS MATERIALIZED (
        SELECT id, parent_session_id, address FROM chain LIMIT %(size)s
    )
    SELECT count(*), coalesce(array_agg(address), '{}')::text, CASE WHEN count(*) = %(size)s THEN ARRAY(
        SELECT parent_session_id FROM link WHERE parent_session_id NOT IN (SELECT id FROM link)
    ) ELSE '{}' END FROM link
"""
# A batch begins with as many tips as should fill it with whole chains: what is cut off has to be looked up once more.
# By the mean length so far every second batch would be cut; a twentieth less, and hardly any is.
SPARE = 1.05
# Tips whose chains are looked at before the first batch, to know that mean from the start: a matter of milliseconds.
SAMPLE = 100


# Exact, for a dry run: from every session that stays, up along its parents. UNION meets each only once.
BLOCKED = """
    WITH RECURSIVE kept (id) AS (
        SELECT parent_session_id FROM refresh_sessions
        WHERE parent_session_id IS NOT NULL AND NOT (status = ANY(%(terminal)s) AND updated_at < %(cutoff)s)
        UNION
        SELECT s.parent_session_id FROM refresh_sessions s JOIN kept USING (id) WHERE s.parent_session_id IS NOT NULL
    )
    SELECT count(*) FROM refresh_sessions JOIN kept USING (id)
    WHERE status = ANY(%(terminal)s) AND updated_at < %(cutoff)s
"""


def count_blocked(alias: str, *, cutoff: datetime) -> int:
    """Return how many sessions past retention a live or younger descendant keeps."""
    with connections[alias].cursor() as cursor:
        cursor.execute(BLOCKED, {"terminal": TERMINAL, "cutoff": cutoff})
        (blocked,) = cursor.fetchone()
    return int(blocked)


class Chains:
    """Work that deletes chains whole, from their childless ends up, at most a batch of rows at a time.

    It starts from windows over the tips, or from given sessions. What a full batch left above it is carried to the
    next one, so that the whole chain goes in one run.
    """

    table = "refresh_sessions"

    def __init__(
        self,
        old: RefreshSessionQuerySet,
        *,
        cutoff: datetime,
        left_out: list[UUID],
        starts: list[UUID] | None = None,
    ) -> None:
        self.left_out = left_out
        self._old, self._cutoff = old, cutoff
        # Never whole: tips have to be locked before their chains are read, or a child could arrive meanwhile.
        self._tips = None if starts is not None else Windows(old.tips(), "updated_at", self._delete, whole=False)
        if self._tips:
            self._tips.left_out = left_out
        self._carried = starts or []
        self._taken: list[UUID] = []
        self._starts: list[UUID] = []
        self._above: list[UUID] = []
        self._size = self._tips_seen = self._links_seen = 0

    @property
    def finished(self) -> bool:
        return not self._carried and (self._tips is None or self._tips.finished)

    def batch(self, size: int) -> int:
        self._size = size
        self._taken = self._starts = self._carried[:size]
        if self._tips and not self._taken:
            return self._tips.batch(self._tips_to_fill(size))
        return self._delete(self._old.filter(pk__any_of=self._taken).exclude(pk__any_of=self.left_out), size)

    def advance(self, changed: int) -> None:
        if self._tips and not self._taken:
            self._tips.advance(changed)
        self._carried = self._above + self._carried[len(self._taken) :]

    def first(self) -> UUID | None:
        if self._starts:
            return self._starts[0]
        return self._tips.first() if self._tips else None

    def _tips_to_fill(self, size: int) -> int:
        if not self._tips_seen:
            sample = list(self._old.tips().order_by("updated_at").values_list("pk", flat=True)[:SAMPLE])
            self._see(tips=len(sample), links=self._walk_up(sample)[0])
        if self._links_seen <= self._tips_seen:  # sessions that were never rotated fill it one by one
            return size
        return max(1, int(size * self._tips_seen / self._links_seen / SPARE))

    def _see(self, *, tips: int, links: int) -> None:
        self._tips_seen += tips
        self._links_seen += links

    def _delete(self, starts: Any, most: int | None) -> int:
        """Delete a batch, at most so many starts and what is above them; other copies skip what is locked here."""
        # Childless ones alone: where a family of sessions is revoked at once its parents are tips too, and two copies
        # that have each locked a parent of the other's would wait for each other.
        free = starts.childless_by_lookup().select_for_update(skip_locked=True, of=("self",))
        self._starts = list(free.values_list("pk", flat=True)[:most])
        links, addresses, self._above = self._walk_up(self._starts)
        self._see(tips=0 if self._taken else len(self._starts), links=links)
        return self._old.filter(addressed(addresses))._raw_delete(self._old.db)

    def _walk_up(self, starts: list[UUID]) -> tuple[int, str, list[UUID]]:
        """Return how many links a batch has, their addresses as an array's text, and what stands above a full one.

        A full batch may have been cut anywhere: the sessions right above it are looked at again.
        """
        values: dict[str, Any] = {"starts": starts, "left_out": self.left_out, "size": self._size}
        with connections[self._old.db].cursor() as cursor:
            cursor.execute(WALK_UP, {**values, "terminal": TERMINAL, "cutoff": self._cutoff})
            walked: tuple[int, str, list[UUID]] = cursor.fetchone()
        return walked
