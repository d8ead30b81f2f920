"""Big tables: no page takes long, fails for a slow read, or sends more statements for more rows."""

import pytest
from django.contrib import admin
from django.db import connection
from django.test.utils import CaptureQueriesContext

from identity.sessions.backoffice.bounded import NotInTime, bounded, clock
from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.admin.addresses import REQUESTS, SESSIONS, backlog, change, changelist, shown
from tests.admin.rows import DAY
from tests.kit.factories import chain, requests, sessions
from tests.kit.plans import indexes, on_table, plans

# What one page may cost, logging in and permissions included.
MOST_STATEMENTS = 12
TABLES = {SESSIONS: "refresh_sessions", REQUESTS: "sign_in_confirmation_requests"}


@pytest.fixture
def impatient(transactional_db):
    """A role that gives up after a tenth of a second."""
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '100ms'")
    yield
    with connection.cursor() as cursor:
        cursor.execute("RESET statement_timeout")


@pytest.fixture
def locked(impatient, other):
    """Both tables held by somebody else, so that every read of them takes for ever."""
    other.execute("LOCK TABLE refresh_sessions, sign_in_confirmation_requests IN ACCESS EXCLUSIVE MODE")


def timeout():
    with connection.cursor() as cursor:
        cursor.execute("SELECT setting::int FROM pg_settings WHERE name = 'statement_timeout'")
        return cursor.fetchone()[0]


def test_a_bounded_read_has_the_time_limit_and_ends_with_it(transactional_db):
    with bounded():
        assert timeout() == 1500
    assert timeout() == 0


def test_a_bounded_read_never_gets_more_time_than_the_role_has(impatient):
    with bounded():
        assert timeout() == 100


def test_a_read_that_takes_too_long_is_told_apart_from_other_errors(impatient):
    with pytest.raises(NotInTime), bounded(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(10)")


def test_a_list_that_is_not_ready_in_time_says_so_instead_of_failing(locked, viewer):
    for address in (changelist(SESSIONS), changelist(REQUESTS, waiting="overdue")):
        response = viewer.get(address)
        assert shown(response) == []
        assert "not ready in time" in response.content.decode()


def test_the_backlog_page_says_what_was_not_counted_in_time(locked, viewer):
    page = viewer.get(backlog())
    assert page.status_code == 200
    assert [panel["rows"] for panel in page.context["panels"]] == ["not counted in time"] * 4
    assert {panel["verdict"].level for panel in page.context["panels"]} == {"unknown"}
    assert page.context["blocked"] == "not counted in time"
    assert page.context["verdict"].level == "unknown"


def fill(count):
    now = clock()
    sessions(count, now=now, left=-DAY)
    sessions(count, now=now, status="Revoked", age=100 * DAY)
    requests(count, now=now, age=40 * DAY, left=-DAY)
    for _ in range(count):
        chain(2, now=now)


PAGES = [
    (model, query)
    for model in (SESSIONS, REQUESTS)
    for query in [
        {},
        {"waiting": "overdue"},
        {"waiting": "deletable"},
        {"waiting": "blocked"},
        {"p": 2},
        {"p": 100000},
        {"q": "a"},
        {"q": "a1b2c3d4-0000-4000-8000-000000000001"},
    ]
]


@pytest.mark.parametrize(("model", "query"), PAGES)
def test_a_list_takes_as_many_statements_for_100_rows_as_for_20(model, query, viewer, monkeypatch):
    fill(120)
    viewer.get(changelist(model))  # content types are read once in a process
    counts = {}
    for per_page in (20, 100):
        for registered in (RefreshSession, SignInConfirmationRequest):
            monkeypatch.setattr(admin.site.get_model_admin(registered), "list_per_page", per_page)
        with CaptureQueriesContext(connection) as captured:
            assert viewer.get(changelist(model, **query)).status_code == 200
        counts[per_page] = len(captured)
    assert counts[20] == counts[100] <= MOST_STATEMENTS


@pytest.mark.parametrize("length", [2, 40])
def test_a_sessions_page_takes_as_many_statements_whatever_its_chain(length, viewer):
    root = chain(length, now=clock())[0]
    viewer.get(change(root))
    with CaptureQueriesContext(connection) as captured:
        page = viewer.get(change(root))
    assert len(captured) == 10
    assert len(page.content) < 200_000


def test_the_backlog_page_takes_as_many_statements_whatever_waits(viewer):
    counts = set()
    for more in (0, 30):
        fill(more)
        with CaptureQueriesContext(connection) as captured:
            viewer.get(backlog())
        counts.add(len(captured))
    assert len(counts) == 1


def test_no_count_is_without_a_limit_and_no_statement_is_distinct(viewer):
    fill(5)
    with CaptureQueriesContext(connection) as captured:
        for model in (SESSIONS, REQUESTS):
            viewer.get(changelist(model))
        viewer.get(backlog())
        viewer.get(
            "/admin/autocomplete/?app_label=identity_sessions&model_name=refreshsession&field_name=parent_session"
        )
    statements = [query["sql"] for query in captured]
    counts = [sql for sql in statements if "COUNT(" in sql]
    assert len(counts) >= 8
    assert all("LIMIT" in sql for sql in counts)
    assert not [sql for sql in statements if "DISTINCT" in sql or "DATE_TRUNC" in sql]


@pytest.fixture
def analyzed(db):
    """Enough rows, with statistics, for the planner to choose as it does on a big table."""
    now = clock()
    sessions(4000, now=now)
    sessions(50, now=now, left=-DAY)
    requests(4000, now=now, status="Confirmed", age=DAY)
    requests(50, now=now, age=40 * DAY, left=-DAY)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE refresh_sessions, sign_in_confirmation_requests")


@pytest.mark.parametrize(
    ("model", "query", "index"),
    [
        (SESSIONS, {}, "refresh_sessions_pkey"),
        (SESSIONS, {"waiting": "overdue"}, "ix_refresh_sessions_expires_at"),
        (SESSIONS, {"q": "a1b2c3d4-0000-4000-8000-000000000001"}, "ix_refresh_sessions_user_id"),
        (REQUESTS, {}, "ix_sicr_created_at"),
        (REQUESTS, {"waiting": "overdue"}, "ix_sicr_expires_at"),
        (REQUESTS, {"waiting": "deletable"}, "ix_sicr_created_at"),
        (REQUESTS, {"q": "a1b2c3d4"}, "sign_in_confirmation_requests_pkey"),
    ],
)
def test_a_list_is_read_from_an_index_in_its_order(model, query, index, viewer, analyzed):
    with plans() as collected:
        viewer.get(changelist(model, **query))
    read = [plan for plan in collected.values() if indexes(plan) & {index} or on_table(plan, TABLES[model])]
    # The last one reads the rows; what counts them before stops at the cap.
    assert index in indexes(read[-1])
    assert not [node for node in on_table(read[-1], TABLES[model]) if node["Node Type"] == "Seq Scan"]


def test_a_row_in_a_long_chain_is_read_through_the_index_on_parents(viewer, analyzed):
    root = chain(50, now=clock())[0]
    with plans() as collected:
        viewer.get(change(root))
    [plan] = [plan for sql, plan in collected.items() if "RECURSIVE" in sql]
    assert "ix_refresh_sessions_parent_id" in indexes(plan)
    assert not [node for node in on_table(plan, "refresh_sessions") if node["Node Type"] == "Seq Scan"]
