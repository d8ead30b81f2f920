"""The lookup any_of: an array, or a subquery that runs once whatever joins the planner may use."""

import pytest
from django.contrib.postgres.expressions import ArraySubquery
from django.db import connection

from identity.sessions.models import RefreshSession
from tests.kit.factories import sessions
from tests.kit.plans import explain, nodes
from tests.kit.triggers import execute

pytestmark = pytest.mark.django_db


def test_any_of_a_list_matches_its_rows() -> None:
    wanted, others = sessions(3), sessions(2)
    ids = [row.pk for row in wanted]
    assert set(RefreshSession.objects.filter(pk__any_of=ids)) == set(wanted)
    assert set(RefreshSession.objects.exclude(pk__any_of=ids)) == set(others)
    assert not RefreshSession.objects.filter(pk__any_of=[]).exists()


def test_any_of_a_subquery_changes_no_more_rows_than_its_limit() -> None:
    sessions(50)
    few = RefreshSession.objects.order_by("expires_at").values("pk")[:7]
    assert RefreshSession.objects.filter(pk__any_of=ArraySubquery(few)).update(status="Expired") == 7


@pytest.mark.parametrize("off", [[], ["hashjoin", "mergejoin"], ["hashjoin", "mergejoin", "indexscan", "bitmapscan"]])
def test_any_of_a_subquery_runs_once_whatever_the_planner_may_use(off: list[str]) -> None:
    sessions(500)
    execute("ANALYZE refresh_sessions")
    for way in off:
        execute(f"SET LOCAL enable_{way} = off")
    few = RefreshSession.objects.select_for_update(skip_locked=True, no_key=True).values("pk")[:10]
    query = RefreshSession.objects.filter(pk__any_of=ArraySubquery(few), status="Active")
    sql, params = query.values("pk").query.sql_with_params()
    plan = explain(f"UPDATE refresh_sessions SET status = 'Expired' {sql[sql.index('WHERE') :]}", params, analyze=True)
    once = [node for node in nodes(plan) if node.get("Parent Relationship") == "InitPlan"]
    assert [(node["Actual Loops"], node["Actual Rows"]) for node in once] == [(1, 10)]
    assert not [node for node in nodes(plan) if "Join" in node["Node Type"] or node["Node Type"] == "Nested Loop"]
    assert RefreshSession.objects.filter(status="Expired").count() == 10


def test_a_wrong_value_is_a_type_error_of_the_server_and_no_row() -> None:
    sessions(1)
    with connection.cursor() as cursor, pytest.raises(Exception, match="uuid"):
        cursor.execute(*RefreshSession.objects.filter(pk__any_of=["no id"]).query.sql_with_params())
