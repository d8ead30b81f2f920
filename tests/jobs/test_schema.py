"""The tables as the database has them: indexes, constraints, and the one schema they live in."""

from io import StringIO

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.kit.factories import RefreshSessionFactory, RequestFactory, chain

pytestmark = pytest.mark.django_db


def rows(sql: str, *params: object) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        return cursor.fetchall()


@pytest.mark.parametrize(
    ("name", "column", "statuses"),
    [
        ("ix_refresh_sessions_expires_at", "expires_at", {"Active"}),
        ("ix_refresh_sessions_user_id", "user_id", None),
        ("ix_refresh_sessions_parent_id", "parent_session_id", None),
        ("ix_refresh_sessions_tips", "updated_at", {"Revoked", "Expired"}),
        ("ix_sicr_expires_at", "expires_at", {"Pending"}),
        ("ix_sicr_created_at", "created_at", None),
    ],
)
def test_each_index_has_its_column_first_and_holds_only_the_rows_it_is_for(name, column, statuses) -> None:
    [(first, condition)] = rows(
        "SELECT pg_get_indexdef(indexrelid, 1, true), pg_get_expr(indpred, indrelid) "
        "FROM pg_index WHERE indexrelid = %s::regclass",
        name,
    )
    assert first == column
    every = {"Active", "Rotated", "Revoked", "Expired", "Pending", "Confirmed", "Exhausted", "Superseded"}
    assert (condition and {status for status in every if f"'{status}'" in condition}) == statuses


def test_the_parent_constraint_restricts_in_the_database_and_at_once() -> None:
    assert rows(
        "SELECT confdeltype::text, condeferrable, convalidated FROM pg_constraint "
        "WHERE contype = 'f' AND conrelid = 'refresh_sessions'::regclass"
    ) == [("r", False, True)]


def test_a_parent_cannot_be_deleted_before_its_child() -> None:
    parent, child = chain(2)
    with pytest.raises(IntegrityError, match="fk_refresh_sessions_parent"), transaction.atomic():
        RefreshSession.objects.filter(pk=parent.pk).delete()
    RefreshSession.objects.filter(pk=child.pk).delete()
    assert RefreshSession.objects.filter(pk=parent.pk).delete()[0] == 1


def test_a_whole_chain_can_be_deleted_in_one_statement() -> None:
    chain(5)
    assert RefreshSession.objects.all().delete()[0] == 5


def test_a_child_needs_its_parent() -> None:
    orphan = RefreshSessionFactory.build(parent_session_id=RefreshSessionFactory.build().pk)
    with pytest.raises(IntegrityError, match="fk_refresh_sessions_parent"):
        orphan.save(force_insert=True)


@pytest.mark.parametrize("factory", [RefreshSessionFactory, RequestFactory])
def test_a_status_that_does_not_exist_is_refused_by_the_database(factory) -> None:
    with pytest.raises(IntegrityError, match="status"):
        factory.create(status="Gone")


def test_nothing_is_created_outside_the_schema() -> None:
    assert (
        rows(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
            "WHERE relkind IN ('r', 'S', 'v') AND nspname NOT LIKE 'pg\\_%%' "
            "AND nspname NOT IN ('identity', 'information_schema')"
        )
        == []
    )
    assert ("identity", "django_migrations") in rows("SELECT schemaname, tablename FROM pg_tables")


def test_a_table_of_the_same_name_in_public_is_never_taken() -> None:
    session = RefreshSessionFactory.create()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE public.refresh_sessions (LIKE identity.refresh_sessions)")
        cursor.execute("SHOW search_path")
        assert cursor.fetchone() == ("identity",)
        cursor.execute("ALTER TABLE identity.refresh_sessions RENAME TO away")
        cursor.execute("SELECT to_regclass('refresh_sessions')")
        assert cursor.fetchone() == (None,)
        cursor.execute("ALTER TABLE identity.away RENAME TO refresh_sessions")
    assert RefreshSession.objects.get() == session


def test_the_label_and_the_tables_are_apart_from_those_of_djangos_own_sessions() -> None:
    assert RefreshSession._meta.label == "identity_sessions.RefreshSession"
    assert Session._meta.app_label == "sessions"
    tables = [model._meta.db_table for model in (RefreshSession, SignInConfirmationRequest, Session)]
    assert tables == ["refresh_sessions", "sign_in_confirmation_requests", "django_session"]
    Session.objects.create(session_key="k", session_data="", expire_date="2026-01-01T00:00Z")
    call_command("clearsessions")
    assert not Session.objects.exists()


def test_no_migration_is_missing() -> None:
    call_command("makemigrations", "--check", "--dry-run", stdout=StringIO())


@pytest.mark.django_db(transaction=True)
def test_the_migrations_go_back_and_forth() -> None:
    call_command("migrate", "identity_sessions", "zero", verbosity=0)
    assert rows("SELECT to_regclass('refresh_sessions'), to_regclass('sign_in_confirmation_requests')") == [
        (None, None)
    ]
    call_command("migrate", "identity_sessions", verbosity=0)
    assert len(rows("SELECT FROM pg_constraint WHERE conname = 'fk_refresh_sessions_parent'")) == 1
