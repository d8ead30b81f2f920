"""Rows for tests, placed around one fixed moment: `age` since the last transition, `left` until the TTL ends."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import factory
from factory import LazyAttribute, LazyFunction, Sequence
from factory.django import DjangoModelFactory

from identity.sessions.models import RefreshSession, SignInConfirmationRequest

# An ordinary night, inside the default window.
NOW = datetime(2026, 3, 10, 3, 0, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MICROSECOND = timedelta(microseconds=1)

USER_AGENT = "Mozilla/5.0 (X11; Linux x86_64)"


class RefreshSessionFactory(DjangoModelFactory):
    class Meta:
        model = RefreshSession

    class Params:
        now = NOW
        age = DAY
        left = 29 * DAY

    id = LazyFunction(uuid4)
    user_id = LazyFunction(uuid4)
    status = "Active"
    token_hash = Sequence(lambda n: f"{n:064x}")
    created_at = LazyAttribute(lambda row: row.now - row.age)
    updated_at = LazyAttribute(lambda row: row.now - row.age)
    expires_at = LazyAttribute(lambda row: row.now + row.left)
    revoked_at = LazyAttribute(lambda row: row.updated_at if row.status == "Revoked" else None)
    revoked_reason = LazyAttribute(lambda row: "signed out" if row.status == "Revoked" else None)
    ip_address = factory.Faker("ipv4")
    user_agent = USER_AGENT


class RequestFactory(DjangoModelFactory):
    class Meta:
        model = SignInConfirmationRequest

    class Params:
        now = NOW
        age = timedelta(minutes=1)
        left = timedelta(minutes=4)

    id = LazyFunction(uuid4)
    user_id = LazyFunction(uuid4)
    phone_number = Sequence(lambda n: f"+7900{n:07d}")
    code_hash = Sequence(lambda n: f"{n:064x}")
    status = "Pending"
    attempts = 0
    created_at = LazyAttribute(lambda row: row.now - row.age)
    updated_at = LazyAttribute(lambda row: row.now - row.age)
    expires_at = LazyAttribute(lambda row: row.now + row.left)
    confirmed_at = LazyAttribute(lambda row: row.updated_at if row.status == "Confirmed" else None)
    ip_address = factory.Faker("ipv6")
    user_agent = USER_AGENT


def sessions(count: int, **values: Any) -> list[RefreshSession]:
    """Insert many sessions in one statement."""
    return RefreshSession.objects.bulk_create(RefreshSessionFactory.build_batch(count, **values))


def requests(count: int, **values: Any) -> list[SignInConfirmationRequest]:
    """Insert many confirmation requests in one statement."""
    return SignInConfirmationRequest.objects.bulk_create(RequestFactory.build_batch(count, **values))


def chain(
    length: int, *, tip: str = "Expired", age: timedelta = 200 * DAY, now: datetime = NOW, **values: Any
) -> list[RefreshSession]:
    """Insert one rotation chain, the root first; what is given is its tip's, all above is Rotated for 200 days."""
    above = {"status": "Rotated", "age": 200 * DAY, "now": now}
    rows: list[RefreshSession] = []
    for place in range(1, length + 1):
        link = {"status": tip, "age": age, "now": now, **values} if place == length else above
        rows.append(RefreshSessionFactory.build(parent_session=rows[-1] if rows else None, **link))
    return RefreshSession.objects.bulk_create(rows)
