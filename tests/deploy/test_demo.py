"""The demo: its sample rows, and that it empties no database but its own."""

from datetime import timedelta

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.models.functions import Now

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from local import rows, tally


@pytest.fixture
def now(db):
    """The database's clock, once the tables are filled."""
    with connection.cursor() as cursor:
        rows.refill(cursor)
    return RefreshSession.objects.values_list(Now(), flat=True)[0]


def test_some_twenty_thousand_rows_have_every_status(now):
    counts = tally.by_status()
    assert all(counts.values())
    assert 18_000 < sum(counts.values()) < 25_000


@pytest.mark.parametrize(
    ("rows_concerned", "field", "age"),
    [
        (RefreshSession.objects.filter(status="Active"), "expires_at", timedelta(0)),
        (SignInConfirmationRequest.objects.filter(status="Pending"), "expires_at", timedelta(0)),
        (SignInConfirmationRequest.objects.all(), "created_at", timedelta(days=30)),
        (RefreshSession.objects.filter(status="Revoked"), "updated_at", timedelta(days=90)),
    ],
    ids=["sessions run out", "codes run out", "requests are old", "sessions are old"],
)
def test_rows_lie_within_a_quarter_of_an_hour_on_both_sides_of_each_limit(rows_concerned, field, age, now):
    limit, near = now - age, timedelta(minutes=15)
    assert rows_concerned.filter(**{f"{field}__range": (limit - near, limit)}).exists()
    assert rows_concerned.filter(**{f"{field}__gt": limit, f"{field}__lt": limit + near}).exists()


def test_old_sessions_are_tips_parents_and_leftovers(now):
    old = RefreshSession.objects.older_than(now - timedelta(days=90))
    assert old.tips().childless().exists()
    assert old.exclude(children=None).exists()
    assert old.childless().filter(status="Rotated").exists()


def test_filling_again_gives_the_same_rows(now):
    before = set(RefreshSession.objects.values_list("pk", "parent_session", "status"))
    with connection.cursor() as cursor:
        rows.refill(cursor)
    assert set(RefreshSession.objects.values_list("pk", "parent_session", "status")) == before


def test_the_demo_refuses_a_database_that_may_be_real(monkeypatch):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django_prometheus.db.backends.postgresql")
    with pytest.raises(CommandError, match="unset DATABASE_URL"):
        call_command("demo")


def test_the_demo_refuses_a_folder_that_its_server_cannot_live_in(monkeypatch):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "local.embedded")
    monkeypatch.setitem(settings.DATABASES["default"], "HOST", "/my projects/var/postgres")
    with pytest.raises(CommandError, match="path without spaces"):
        call_command("demo")
