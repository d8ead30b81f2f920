"""Which sessions must go, worked out in plain Python from all rows; and forests of rotation chains to try it on."""

import random
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, RefreshSessionFactory

ENDED = {"Rotated", "Revoked", "Expired"}


def must_go(rows: Iterable[RefreshSession], cutoff: datetime) -> set[UUID]:
    """Return the ids of rows that have ended, are old, and have no descendant that stays."""
    rows = list(rows)
    stays = {row.pk for row in rows if row.status not in ENDED or row.updated_at >= cutoff}
    parents = {row.pk: row.parent_session_id for row in rows}
    kept = set()
    for pk in stays:
        above: UUID | None = pk
        while above is not None and above not in kept:
            kept.add(above)
            above = parents[above]
    return parents.keys() - kept


def forest(seed: int, *, size: int = 90) -> list[RefreshSession]:
    """Insert chains, forks and single sessions of every status and of ages on both sides of the limit."""
    dice = random.Random(seed)
    # Few kinds of ages, so that many rows share one moment; exactly 90 days is not old yet.
    ages = [
        dice.choice([3, 89, 90]) * DAY if dice.random() < 0.15 else dice.choice([91, 120, 400]) * DAY
        for _ in range(size)
    ]
    rows: list[RefreshSession] = []
    children: dict[UUID, int] = defaultdict(int)
    for age in ages:
        parent = (
            dice.choice(rows) if rows and dice.random() < 0.2 else rows[-1] if rows and dice.random() < 0.8 else None
        )
        if parent:
            children[parent.pk] += 1
        rows.append(RefreshSessionFactory.build(parent_session=parent, age=age, status="Rotated"))
    for row in rows:
        # Those with children are mostly Rotated, but nothing in the database makes them so.
        if not children[row.pk] or dice.random() < 0.1:
            row.status = dice.choices(["Revoked", "Expired", "Rotated", "Active"], [6, 6, 2, 1])[0]
    return RefreshSession.objects.bulk_create(rows)
