"""Rotation chains: walk up from sessions that nothing refers to, and delete leaf first under RESTRICT."""

from datetime import datetime
from typing import Any, NamedTuple, cast
from uuid import UUID

from django.db import connections
from django.db.models import F
from django.db.models.expressions import Combinable

from identity.sessions.jobs.batches import sample
from identity.sessions.jobs.failures import Dropped
from identity.sessions.jobs.walk import Listed, Way
from identity.sessions.lookups import RowAddress, addressed, is_one_table
from identity.sessions.models import TERMINAL, RefreshSessionQuerySet

# Breadth first from the starts: every prefix of it is closed under "child before parent", so LIMIT may cut anywhere.
# A parent is a link if it is past retention and has no other child; if it has one it is a fork, where the walk ends.
# Of siblings among the starts none goes further: to look for the others would read all that were deleted before.
# LATERAL with LIMIT keeps the recursion a chain of index look-ups: as a plain join the planner hashes the whole table,
# at every level.
WALK_UP = """
    WITH RECURSIVE leaf AS (
        SELECT s.id, s.parent_session_id, s.{address} AS address,
            count(*) OVER (PARTITION BY s.parent_session_id) AS siblings
        FROM unnest(%(starts)s::uuid[]) AS start (id)
        CROSS JOIN LATERAL (
            SELECT s.id, s.parent_session_id, s.ctid FROM refresh_sessions s
            WHERE s.id = start.id
              AND (SELECT child.id FROM refresh_sessions child WHERE child.parent_session_id = s.id LIMIT 1) IS NULL
            LIMIT 1
        ) s
    ), chain (id, parent_session_id, address, start, depth, fork, ends) AS (
        SELECT id, parent_session_id, address, id, 1, false, siblings > 1 FROM leaf
        UNION ALL
        SELECT parent.id, parent.parent_session_id, parent.address,
            chain.start, chain.depth + 1, parent.fork, parent.fork
        FROM chain
        CROSS JOIN LATERAL (
            SELECT p.id, p.parent_session_id, p.{address} AS address, (
                SELECT other.id FROM refresh_sessions other
                WHERE other.parent_session_id = p.id AND other.id <> chain.id LIMIT 1
            ) IS NOT NULL AS fork
            FROM refresh_sessions p
            WHERE p.id = chain.parent_session_id AND p.status = ANY(%(terminal)s) AND p.updated_at < %(cutoff)s
            LIMIT 1
        ) parent
        WHERE NOT chain.ends
    )
    SELECT id, parent_session_id, address, start, depth, fork, ends FROM chain LIMIT %(size)s
"""
# What a batch needs of its links: how many, their addresses as an array's text, the sessions right above a full batch,
# and the forks, whose last child may have been in this batch.
SUMMARY = f"""
    WITH link AS MATERIALIZED ({WALK_UP})
    SELECT count(*) FILTER (WHERE NOT fork), coalesce(array_agg(address) FILTER (WHERE NOT fork), '{{{{}}}}')::text,
        CASE WHEN count(*) = %(size)s THEN ARRAY(
            SELECT parent_session_id FROM link
            WHERE NOT ends AND parent_session_id IS NOT NULL AND parent_session_id NOT IN (SELECT id FROM link)
        ) ELSE '{{{{}}}}' END,
        ARRAY(SELECT id FROM link WHERE fork UNION SELECT parent_session_id FROM link WHERE ends AND NOT fork)
    FROM link
"""
# A batch begins with as many tips as should fill it with whole chains: what is cut off has to be looked up once more.
# By the mean length so far every second batch would be cut; a twentieth less, and hardly any is.
SPARE = 1.05
# Tips whose chains are looked at before the first batch, to know that mean from the start: a matter of milliseconds.
SAMPLE = 100


class Link(NamedTuple):
    """A row of WALK_UP."""

    id: UUID
    parent: UUID | None
    address: Any
    start: UUID
    depth: int
    fork: bool
    ends: bool


class Chains:
    """Work that deletes chains whole, from their childless ends up, at most a batch of rows at a time.

    What a full batch left above it comes next, so that the whole chain goes in one run. A fork is looked at again at
    the end: it goes when its last child has gone. After the first failure links are locked before they are deleted,
    past those that are locked elsewhere: what lies below such a link goes, and nothing waits for it.
    """

    def __init__(self, old: RefreshSessionQuerySet, *, cutoff: datetime, way: Way, careful: bool = False) -> None:
        self._old, self._cutoff, self._way = old, cutoff, way
        self._careful = careful
        self._plain: bool | None = None  # whether rows may be addressed by where they lie
        self._carried: list[UUID] = []
        self._forks: dict[UUID, datetime | None] = {}
        self._from_way, self._taken, self._starts = False, 0, 0
        self._above: list[UUID] = []
        self._met: list[UUID] = []
        self._tips_seen = self._links_seen = 0
        self.since: datetime | None = None
        self.seen = False
        self._first: UUID | None = None

    @property
    def finished(self) -> bool:
        return self._way.finished and not self._carried and not self._forks

    def batch(self, size: int) -> int:
        self.seen, self._first = False, None
        if self._plain is None:
            self._plain = is_one_table(self._old)
        candidates = self._candidates(size)
        # Childless ones alone: where a family of sessions is revoked at once its parents are tips too, and two copies
        # that have each locked a parent of the other's would wait for each other.
        free = candidates.childless_by_lookup().select_for_update(skip_locked=True, of=("self",))
        starts = list(free.values_list("pk", flat=True)[:size])
        self._first = starts[0] if starts else self._first
        self.seen, self._starts = True, len(starts)
        delete = self._delete_carefully if self._careful else self._delete
        return delete(starts, size)

    def _candidates(self, size: int) -> RefreshSessionQuerySet:
        if not self._carried and self._forks and (self._way.finished or len(self._forks) >= size):
            self.since = min(filter(None, self._forks.values()), default=None)
            self._carried, self._forks = list(self._forks), {}
        self._from_way = not self._carried
        if self._from_way:
            window = cast(RefreshSessionQuerySet, self._way.window(self._tips_to_fill(size)))
            self.since, self._first = self._way.since, self._way.first
            return window
        taken = self._carried[:size]
        self._taken, self._first = len(taken), taken[0]
        return self._old.filter(pk__any_of=taken)

    def advance(self) -> None:
        self._forks |= dict.fromkeys(self._met, self.since)
        if self._from_way:
            self._way.advance()
            self._carried = self._above
        else:
            self._carried = self._above + self._carried[self._taken :]

    def careful(self) -> None:
        self._careful = True

    def skip(self) -> UUID | None:
        if self._from_way:
            self._way.advance()
        else:
            del self._carried[:1]
        return self._first if self.seen else None

    def only(self, ids: list[UUID]) -> "Chains":
        return Chains(self._old, cutoff=self._cutoff, way=Listed(self._old, ids), careful=True)

    def sample(self) -> list[UUID]:
        return sample(self._sessions.childless_by_lookup(), "updated_at")

    def _tips_to_fill(self, size: int) -> int:
        if isinstance(self._way, Listed) or size == 1:
            return size
        if not self._tips_seen:
            tips = list(self._sessions.order_by("updated_at").values_list("pk", flat=True)[:SAMPLE])
            self._see(tips=len(tips), links=self._query(SUMMARY, tips, size)[0][0])
        if self._links_seen <= self._tips_seen:  # sessions that were never rotated fill it one by one
            return size
        return max(1, int(size * self._tips_seen / self._links_seen / SPARE))

    @property
    def _sessions(self) -> RefreshSessionQuerySet:
        sessions: Any = self._way.rows
        return cast(RefreshSessionQuerySet, sessions)

    def _see(self, *, tips: int, links: int) -> None:
        self._tips_seen += tips
        self._links_seen += links

    def _delete(self, starts: list[UUID], size: int) -> int:
        [(links, addresses, self._above, self._met)] = self._query(SUMMARY, starts, size)
        self._see(tips=self._starts if self._from_way else 0, links=links)
        return self._delete_these(self._old.filter(addressed(addresses, by=self._by)), links)

    def _delete_carefully(self, starts: list[UUID], size: int) -> int:
        """Lock the links first. Of a chain with one that somebody holds, what lies below it goes."""
        links = [Link(*row) for row in self._query(WALK_UP, starts, size)]
        ids = [link.id for link in links if not link.fork]
        held = self._old.filter(pk__any_of=ids).select_for_update(skip_locked=True)
        locked = set(held.values_list("pk", flat=True))
        broken: dict[UUID, int] = {}
        for link in links:  # nearest first
            if not link.fork and link.id not in locked:
                broken.setdefault(link.start, link.depth)
        going = {link.id for link in links if not link.fork and link.depth < broken.get(link.start, link.depth + 1)}
        known = {link.id for link in links}
        full = len(links) == size
        self._above = [
            link.parent
            for link in links
            if full and link.parent and not link.ends and link.id in going and link.parent not in known
        ]
        forked = {link.parent: None for link in links if link.ends and not link.fork and link.parent}
        self._met = list(forked | {link.id: None for link in links if link.fork})
        return self._delete_these(self._old.filter(pk__any_of=list(going)), len(going))

    def _delete_these(self, rows: RefreshSessionQuerySet, expected: int) -> int:
        deleted = rows._raw_delete(rows.db)
        if deleted < expected and rows.exists():
            raise Dropped(others=deleted)
        return deleted

    @property
    def _by(self) -> Combinable:
        return RowAddress() if self._plain else F("pk")

    def _query(self, query: str, starts: list[UUID], size: int) -> list[Any]:
        values: dict[str, Any] = {"starts": starts, "size": size, "terminal": TERMINAL, "cutoff": self._cutoff}
        with connections[self._old.db].cursor() as cursor:
            cursor.execute(query.format(address="ctid" if self._plain else "id"), values)
            found: list[Any] = cursor.fetchall()
            return found


# From a session up along its parents, as far as they are past retention: where this leads back to it, it is a cycle,
# and all that was met is the cycle. It may go if each of its rows has no other child than the one in it.
CYCLES = """
    WITH RECURSIVE up (start, id, parent_session_id) AS (
        SELECT s.id, s.id, s.parent_session_id FROM refresh_sessions s
        WHERE s.id = ANY(%(starts)s::uuid[]) AND s.status = ANY(%(terminal)s) AND s.updated_at < %(cutoff)s
        UNION
        SELECT up.start, p.id, p.parent_session_id
        FROM up CROSS JOIN LATERAL (
            SELECT s.id, s.parent_session_id FROM refresh_sessions s
            WHERE s.id = up.parent_session_id AND s.status = ANY(%(terminal)s) AND s.updated_at < %(cutoff)s OFFSET 0
        ) p
    )
    SELECT DISTINCT array_agg(id ORDER BY id) FROM up GROUP BY start
    HAVING bool_or(parent_session_id = start) AND count(*) = (
        SELECT count(*) FROM refresh_sessions child WHERE child.parent_session_id = ANY(array_agg(up.id))
    )
"""


class Cycles:
    """Work that deletes cycles of old sessions that nothing else refers to, each in one statement as RESTRICT demands.

    A cycle of more rows than a batch holds goes whole all the same: it cannot go in parts.
    """

    since: datetime | None = None

    def __init__(self, old: RefreshSessionQuerySet, *, cutoff: datetime, starts: list[UUID]) -> None:
        self._old, self._cutoff, self._starts = old, cutoff, starts
        self._taken = 0
        self.seen = False

    @property
    def finished(self) -> bool:
        return not self._starts

    def batch(self, size: int) -> int:
        self.seen = False
        self._taken = min(size, len(self._starts))
        values: dict[str, Any] = {"starts": self._starts[:size], "terminal": TERMINAL, "cutoff": self._cutoff}
        with connections[self._old.db].cursor() as cursor:
            cursor.execute(CYCLES, values)
            cycles = [ids for (ids,) in cursor.fetchall()]
        self.seen = True
        if len(cycles) > 1 and sum(map(len, cycles)) > size:
            self._taken = 1
            return self.only(self._starts[:1]).batch(1)
        ids = [pk for cycle in cycles for pk in cycle]
        rows = self._old.filter(pk__any_of=ids)
        locked = rows.select_for_update(skip_locked=True).values_list("pk", flat=True)
        if len(list(locked)) < len(ids):
            return 0  # for the next run
        deleted = rows._raw_delete(rows.db)
        if deleted < len(ids):
            raise Dropped(others=0)
        return deleted

    def advance(self) -> None:
        del self._starts[: self._taken]

    def careful(self) -> None:
        """Nothing here waits for a lock."""

    def skip(self) -> UUID | None:
        return self._starts.pop(0) if self.seen else None

    def only(self, ids: list[UUID]) -> "Cycles":
        return Cycles(self._old, cutoff=self._cutoff, starts=ids)

    def sample(self) -> list[UUID]:
        return self._starts[:1]
