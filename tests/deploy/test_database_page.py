"""docs/database.md: its SQL is run as it stands there, with names of this test's own."""

import re
from pathlib import Path
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import ProgrammingError, connection, transaction

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from local import rows

PAGE = (Path(__file__).parents[2] / "docs" / "database.md").read_text()
ROLES, GRANTS, POOLER, INDEXES, INVALID = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
JOBS = {"identity_expiry": "expire_sessions", "identity_retention": "session_retention"}


def run(sql):
    """Run a script of several statements one by one: CREATE INDEX CONCURRENTLY stands no company."""
    with connection.cursor() as cursor:
        for statement in re.sub(r"--.*", "", sql).split(";"):
            if statement.strip():
                cursor.execute(statement)


@pytest.fixture
def roles(db):
    """The page's roles with its grants, over tables with rows; roles belong to the whole server, hence the suffix."""
    suffix = uuid4().hex[:8]

    def named(sql):
        return re.sub(r"\bidentity_(owner|expiry|retention|admin)\b", rf"identity_\1_{suffix}", sql)

    run(re.sub("CREATE SCHEMA.*", "", named(ROLES)))
    run(named(GRANTS))
    with connection.cursor() as cursor:
        rows.refill(cursor)
    return named


def become(role):
    run(f"SET LOCAL ROLE {role}")


@pytest.mark.parametrize("size", ["100", "5000"])
@pytest.mark.parametrize("role", JOBS)
def test_each_job_does_all_its_work_with_the_rights_on_the_page(role, size, roles, capsys):
    become(roles(role))
    call_command(JOBS[role], batch_size=size)
    call_command(JOBS[role], dry_run=True)
    done, left = capsys.readouterr().out.splitlines()
    assert "0 left" in done
    assert done.endswith("completed.")
    assert " 0 confirmation requests" in left


def refused(sql):
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        run(sql)


@pytest.mark.parametrize("role", JOBS)
@pytest.mark.parametrize("model", [RefreshSession, SignInConfirmationRequest])
def test_no_job_can_read_what_is_personal_or_change_what_is_not_its_own(role, model, roles):
    table = model._meta.db_table
    become(roles(role))
    for column in {"phone_number", "code_hash", "token_hash", "ip_address", "user_agent", "user_id"}:
        if column in {field.column for field in model._meta.fields}:
            refused(f"SELECT {column} FROM {table}")
    refused(f"UPDATE {table} SET expires_at = now()")
    refused(f"INSERT INTO {table} (id) VALUES (gen_random_uuid())")
    refused(f"DELETE FROM {table}" if role == "identity_expiry" else f"UPDATE {table} SET status = 'Expired'")


def test_the_admin_role_serves_every_page_and_changes_no_session(roles, client, django_user_model):
    django_user_model.objects.create_superuser("ann", password="any")
    session = RefreshSession.objects.exclude(children=None).first()
    become(roles("identity_admin"))
    page = client.post("/admin/login/?next=/admin/", {"username": "ann", "password": "any"}, follow=True)
    assert page.request["PATH_INFO"] == "/admin/"
    assert page.status_code == 200
    for path in ["backlog/", "refreshsession/", "signinconfirmationrequest/", f"refreshsession/{session.pk}/change/"]:
        assert client.get(f"/admin/identity_sessions/{path}").status_code == 200, path
    refused("DELETE FROM refresh_sessions")
    refused("UPDATE sign_in_confirmation_requests SET status = 'Expired'")


def shape(schema):
    """Return the definitions of indexes and constraints in a schema, without its name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_get_indexdef(indexrelid) FROM pg_index JOIN pg_class ON pg_class.oid = indrelid"
            " WHERE relnamespace = %(schema)s::regnamespace AND relname = ANY(%(tables)s) UNION ALL"
            " SELECT conname || ' ' || pg_get_constraintdef(c.oid) FROM pg_constraint c JOIN pg_class ON pg_class.oid ="
            " conrelid WHERE relnamespace = %(schema)s::regnamespace AND relname = ANY(%(tables)s) AND contype <> 'n'",
            {"schema": schema, "tables": ["refresh_sessions", "sign_in_confirmation_requests"]},
        )
        return {definition.replace(f"{schema}.", "") for (definition,) in cursor.fetchall()}


@pytest.mark.django_db(transaction=True)
def test_tables_that_were_there_get_the_indexes_and_constraints_that_migrate_makes():
    run(
        """
        CREATE SCHEMA adopted;
        CREATE TABLE adopted.refresh_sessions (LIKE refresh_sessions, PRIMARY KEY (id));
        CREATE TABLE adopted.sign_in_confirmation_requests
            (LIKE sign_in_confirmation_requests, PRIMARY KEY (id), CHECK (attempts >= 0));
        """
    )
    try:
        run(INDEXES.replace("search_path = identity", "search_path = adopted"))
        run("SET search_path = identity")
        assert shape("adopted") == shape("identity")
        with connection.cursor() as cursor:
            cursor.execute(INVALID)
            assert cursor.fetchall() == []
    finally:
        run("SET search_path = identity; DROP SCHEMA adopted CASCADE")
