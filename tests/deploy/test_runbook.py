"""docs/runbook.md holds what it promises: its SQL and its commands run, its links lead somewhere."""

import re
import shutil
import subprocess
import sys

import pytest
from django.db import connection
from django.utils import timezone

from tests.kit.factories import DAY, chain, requests, sessions
from tests.kit.triggers import execute
from tests.kit.workers import ROOT, Worker, environment, free_port

RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
SQL = re.findall(r"^```sql\n(.*?)^```$", RUNBOOK, flags=re.MULTILINE | re.DOTALL)
COMMANDS = re.findall(r"^\$ (.+)$", RUNBOOK, flags=re.MULTILINE)


def rows_of(sql: str) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def statements(word: str) -> list[str]:
    """Return the statements that have a word in them."""
    return [each.strip() for block in SQL for each in block.split(";") if word in each]


@pytest.fixture
def rows(db: None) -> None:
    """Rows of every kind that the runbook asks for, and as many that it does not."""
    now = timezone.now()
    for due in (DAY, -DAY):
        sessions(2, now=now, left=due)
        requests(3, now=now, left=due)
    sessions(4, now=now, age=91 * DAY, status="Revoked")
    requests(5, now=now, age=31 * DAY, status="Confirmed")
    chain(3, now=now, tip="Active", left=DAY, age=100 * DAY)


@pytest.mark.usefixtures("rows")
@pytest.mark.parametrize("block", SQL, ids=range(len(SQL)))
def test_sql_runs(block: str):
    execute(block)


@pytest.mark.usefixtures("rows")
def test_what_is_due_and_what_is_old_is_what_the_jobs_would_take():
    due, old = statements("UNION ALL")
    assert {name: count for name, count, _ in rows_of(due)} == {
        "refresh_sessions": 2,
        "sign_in_confirmation_requests": 3,
    }
    assert {name: count for name, count, _ in rows_of(old)} == {
        "refresh_sessions": 4,
        "sign_in_confirmation_requests": 5,
    }


@pytest.mark.django_db
def test_nothing_but_our_own_constraints_stands_in_the_way():
    constraints, triggers = statements("pg_get_constraintdef") + statements("pg_trigger")
    assert {name for _, name, _ in rows_of(constraints)} == {
        "fk_refresh_sessions_parent",
        "ck_refresh_sessions_status",
        "ck_sicr_status",
        "sign_in_confirmation_requests_attempts_check",
    }
    assert rows_of(triggers) == []


@pytest.mark.django_db
def test_each_plan_can_use_the_index_that_is_named_beside_it():
    execute("SET LOCAL enable_seqscan = off")
    execute("SET LOCAL enable_bitmapscan = off")
    plans = statements("EXPLAIN")
    assert len(plans) == 3
    for statement in plans:
        [index] = re.findall(r"-- (ix_\w+)", statement)
        assert f"using {index} on " in rows_of(statement)[0][0] + rows_of(statement)[1][0]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("command", [command for command in dict.fromkeys(COMMANDS) if "manage.py" in command])
def test_a_command_runs(command: str):
    command = command.replace("python manage.py", f"{sys.executable} manage.py")
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.django_db(transaction=True)
def test_the_metrics_are_read_as_written():
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    [command] = [command for command in COMMANDS if "curl" in command]
    port = free_port()
    with Worker("expire_sessions", METRICS_PORT=port) as worker:
        worker.until("job completed")
        read = subprocess.run(["sh", "-c", command.replace("9108", str(port))], capture_output=True, text=True)
    assert "identity_expire_sessions_backlog 0.0\n" in read.stdout


def test_links_lead_somewhere():
    titles = re.findall(r"^#+ (.+)$", RUNBOOK, flags=re.MULTILINE)
    anchors = {title.lower().replace(" ", "-") for title in titles}
    for file, _, anchor in re.findall(r"\]\(([^)#]*)(#([^)]+))?\)", RUNBOOK):
        assert not file or (ROOT / "docs" / file).exists()
        assert file or anchor in anchors


def test_every_section_of_an_alert_has_the_same_parts():
    for section in RUNBOOK.split("\n## Identity")[1:]:
        body = section.split("\n## ")[0]
        for part in ("**Means:**", "**At stake:**", "**Look at", "**Do:**", "**It worked when**"):
            assert part in body.replace("**Look at** and **do:**", "**Look at **Do:**"), (body[:40], part)
