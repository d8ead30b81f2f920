"""Plans on realistic rows: each batch uses its index, and its sub-selects run once."""

from typing import Any

import pytest
from django.db import connection

from identity.sessions.jobs.batches import Rows
from identity.sessions.models import RefreshSession
from tests.kit.factories import NOW
from tests.kit.plans import Node, explain, indexes, nodes, on_table, plans
from tests.kit.runs import expire_now, retain_now
from tests.kit.triggers import REQUESTS, SESSIONS, execute

# Chains of four, the tip first, over 160 days; a tenth of them revoked, a tenth expired, and 100 sessions due.
# Requests of 33 days, 40 of the last ones pending, half of those due.
ROWS = """
    INSERT INTO refresh_sessions (id, user_id, parent_session_id, status, token_hash, created_at, updated_at,
                                  expires_at, user_agent)
    SELECT md5('s' || g)::uuid, gen_random_uuid(), CASE WHEN mod(g, 4) < 3 THEN md5('s' || g + 1)::uuid END,
           CASE WHEN mod(g, 4) > 0 THEN 'Rotated' WHEN mod(g, 40) = 0 THEN 'Revoked' WHEN mod(g, 40) = 4 THEN 'Expired'
                ELSE 'Active' END,
           md5('t' || g), moment, moment, now + CASE WHEN mod(g, 200) = 8 THEN -1 ELSE 1 END * g * interval '2 minutes',
           repeat('Mozilla/5.0 ', 6)
    FROM (SELECT %s::timestamptz AS now) clock, generate_series(0, 19999) g,
         LATERAL (SELECT now - g * interval '11.5 minutes' AS moment) age;
    INSERT INTO sign_in_confirmation_requests (id, phone_number, code_hash, status, attempts, created_at, updated_at,
                                               expires_at, user_agent)
    SELECT gen_random_uuid(), '+7900' || g, md5('c' || g), CASE WHEN g <= 40 THEN 'Pending' ELSE 'Confirmed' END, 0,
           moment, moment, now + (20 - g) * interval '1 second', repeat('Mozilla/5.0 ', 6)
    FROM (SELECT %s::timestamptz AS now) clock, generate_series(1, 20000) g,
         LATERAL (SELECT now - g * interval '2.4 minutes' AS moment) age;
"""
# Fewer than are due or old of any kind, so that the jobs work in chunks.
SIZES = {expire_now: 15, retain_now: 400}


@pytest.fixture
def realistic(db: None) -> None:
    execute(ROWS, NOW, NOW)
    execute("ANALYZE refresh_sessions, sign_in_confirmation_requests")


def batch_plans(job: Any, verbs: tuple[str, ...], table: str) -> dict[str, Node]:
    """Return the plans of a job's statements that change or lock rows of a table, or walk them."""
    with plans() as collected:
        job(batch_size=SIZES[job])
    return {sql: plan for sql, plan in collected.items() if sql.lstrip().startswith(verbs) and on_table(plan, table)}


@pytest.mark.parametrize(
    ("job", "table", "index"),
    [
        (expire_now, SESSIONS, "ix_refresh_sessions_expires_at"),
        (expire_now, REQUESTS, "ix_sicr_expires_at"),
        (retain_now, REQUESTS, "ix_sicr_created_at"),
    ],
)
def test_each_batch_uses_its_index_and_never_reads_the_whole_table(job, table, index, realistic: None) -> None:
    found = batch_plans(job, ("UPDATE", "DELETE"), table)
    assert found
    for sql, plan in found.items():
        assert index in indexes(plan), sql
        assert not [node for node in on_table(plan, table) if node["Node Type"] == "Seq Scan"], sql


@pytest.fixture
def careful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have rows picked past locked ones from the first batch, as after a failure."""
    monkeypatch.setitem(Rows.__init__.__kwdefaults__, "careful", True)


@pytest.mark.parametrize(("job", "table"), [(expire_now, SESSIONS), (expire_now, REQUESTS), (retain_now, REQUESTS)])
@pytest.mark.parametrize("picks", [False, True])
def test_no_batch_reads_the_table_even_where_nothing_is_known_of_it(
    job, table, picks: bool, db: None, request: pytest.FixtureRequest
) -> None:
    if picks:
        request.getfixturevalue("careful")
    execute(ROWS, NOW, NOW)
    found = batch_plans(job, ("UPDATE", "DELETE"), table)
    assert {"SKIP LOCKED" in sql for sql in found} == {picks}
    for sql, plan in found.items():
        kinds = {node["Node Type"] for node in on_table(plan, table)}
        assert "Seq Scan" not in kinds, sql
        assert "Tid Scan" in kinds or "SKIP LOCKED" not in sql, sql  # a picked row is found again by its address


def test_deleting_chains_starts_from_the_index_on_tips(realistic: None) -> None:
    found = batch_plans(retain_now, ("SELECT", "DELETE", "WITH"), SESSIONS)
    locking = {sql: plan for sql, plan in found.items() if "FOR UPDATE" in sql}
    assert "ix_refresh_sessions_tips" in set().union(*(indexes(plan) for plan in locking.values()))
    for sql, plan in found.items():
        if sql.startswith("DELETE"):
            assert not [node for node in on_table(plan, SESSIONS) if node["Node Type"] == "Seq Scan"], sql


def test_walking_up_is_one_look_up_a_link(realistic: None) -> None:
    [(sql, plan)] = batch_plans(retain_now, ("WITH",), SESSIONS).items()
    scans = on_table(plan, SESSIONS)
    assert len(scans) >= 4
    assert {node["Node Type"] for node in scans} <= {"Index Scan", "Index Only Scan"}, sql
    assert {"ix_refresh_sessions_parent_id"} < indexes(plan)


@pytest.mark.parametrize("off", [[], ["hashjoin", "mergejoin"], ["hashjoin", "mergejoin", "nestloop"]])
@pytest.mark.parametrize("job", [expire_now, retain_now])
def test_the_rows_of_a_batch_are_picked_once_whatever_joins_there_are(
    job, off: list[str], realistic: None, careful: None
) -> None:
    for way in off:
        execute(f"SET LOCAL enable_{way} = off")
    picked = []
    for plan in changing(job):
        [lock] = [node for node in nodes(plan) if node["Node Type"] == "LockRows"]
        assert lock["Actual Loops"] == 1
        picked.append(lock["Actual Rows"])
        assert [node for node in nodes(plan) if node.get("Parent Relationship") == "InitPlan"]
        assert not [node for node in nodes(plan) if node["Node Type"] in ("Nested Loop", "Hash Join", "Merge Join")]
    assert max(picked) == SIZES[job]


def changing(job: Any) -> list[Node]:
    """Return what executing each kind of locking batch statement, then taken back, looked like."""
    kinds: dict[str, Node] = {}

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if "SKIP LOCKED" in sql and sql.startswith(("UPDATE", "DELETE")) and sql not in kinds:
            kinds[sql] = {}
            with connection.cursor() as cursor:
                cursor.execute("SAVEPOINT taken_back")
                kinds[sql] = explain(sql, params, analyze=True)
                cursor.execute("ROLLBACK TO taken_back")
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        job(batch_size=SIZES[job])
    assert kinds
    return list(kinds.values())


def scans(table: str) -> int:
    """Return how often this transaction has read the whole table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT seq_scan FROM pg_stat_xact_user_tables WHERE relname = %s", [table])
        [count] = cursor.fetchone()
    return int(count)


def test_a_delete_looks_for_children_by_index(realistic: None) -> None:
    leaves = RefreshSession.objects.childless().filter(status="Revoked")
    ids = list(leaves.values_list("pk", flat=True))
    before = scans(SESSIONS)
    assert RefreshSession.objects.filter(pk__any_of=ids)._raw_delete("default") > 400
    assert scans(SESSIONS) == before


def test_a_run_of_retention_reads_the_whole_table_as_often_for_many_batches_as_for_few(realistic: None) -> None:
    before = scans(SESSIONS)
    retain_now(batch_size=100)
    assert scans(SESSIONS) - before <= 3  # strays and their children once, the count of what is stored
