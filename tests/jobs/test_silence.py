"""Both jobs are silent: no signal of Django, no other table, no other column, no status changed by a deletion."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models.signals import post_delete, post_init, post_save, pre_delete, pre_save

from identity.sessions.models import RefreshSession
from tests.kit.factories import DAY, chain, requests, sessions
from tests.kit.runs import expire_now, retain_now
from tests.kit.triggers import REQUESTS, SESSIONS, Kit

pytestmark = pytest.mark.django_db

OURS = {"refresh_sessions", "sign_in_confirmation_requests", "kit_audit"}
JOBS = pytest.mark.parametrize("job", [expire_now, retain_now])


@pytest.fixture(autouse=True)
def rows() -> None:
    """Rows for both jobs, and one that is none of their business."""
    sessions(6, left=-DAY)
    requests(6, left=-DAY)
    chain(6, age=200 * DAY)
    chain(3, tip="Active")
    sessions(2, status="Revoked")
    requests(6, age=40 * DAY, status="Confirmed")
    User.objects.create(username="bystander")


@contextmanager
def listening() -> Iterator[list[Any]]:
    """Collect the senders of every signal that models can send."""
    heard: list[Any] = []

    def listen(sender: Any, **_: Any) -> None:
        heard.append(sender)

    signals = (pre_save, post_save, pre_delete, post_delete, post_init)
    for signal in signals:
        signal.connect(listen)
    try:
        yield heard
    finally:
        for signal in signals:
            signal.disconnect(listen)


def other_tables() -> dict[str, Any]:
    """Return the content of every table but the two."""
    content = {}
    with connection.cursor() as cursor:
        for table in set(connection.introspection.table_names(cursor)) - OURS:
            cursor.execute(f"SELECT string_agg(t::text, '|' ORDER BY t::text) FROM {table} t")
            content[table] = cursor.fetchone()
    return content


@JOBS
def test_nothing_is_published_and_no_row_is_loaded(job: Callable[..., Any]) -> None:
    with listening() as heard:
        result = job(batch_size=2)
    assert result.refresh
    assert result.sicr
    assert heard == []


@JOBS
def test_no_other_table_changes(job: Callable[..., Any]) -> None:
    before = other_tables()
    job(batch_size=2)
    assert other_tables() == before
    assert any(before.values())


def test_expiry_updates_each_due_row_once_and_deletes_none(kit: Kit) -> None:
    kit.audit()
    expire_now(batch_size=2)
    changes = kit.changes()
    assert {(change.op, change.before, change.after) for change in changes} == {
        ("UPDATE", "Active", "Expired"),
        ("UPDATE", "Pending", "Expired"),
    }
    assert len({change.row_id for change in changes}) == len(changes) == 12


def test_expiry_writes_the_status_column_alone() -> None:
    written: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("UPDATE"):
            written.append(sql.partition(" WHERE ")[0].partition(" SET ")[2])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        expire_now()
        expire_now(batch_size=1)
    assert set(written) == {'"status" = %s'}


@JOBS
def test_no_personal_data_is_ever_read(job: Callable[..., Any]) -> None:
    sent: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if any(table in sql for table in (SESSIONS, REQUESTS)):
            sent.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        job(batch_size=2)
    assert len(sent) > 10
    for column in ("phone_number", "ip_address", "user_agent", "token_hash", "code_hash", "user_id", "*"):
        assert not [sql for sql in sent if column in sql.replace("COUNT(*)", "").replace("count(*)", "")]


def test_retention_deletes_each_old_row_once_and_changes_no_status(kit: Kit) -> None:
    before = {row["id"]: row for row in RefreshSession.objects.values()}
    kit.audit()
    retain_now(batch_size=4)
    changes = kit.changes()
    assert {change.op for change in changes} == {"DELETE"}
    assert len({change.row_id for change in changes}) == len(changes) == 12
    assert all(before[row["id"]] == row for row in RefreshSession.objects.values())
