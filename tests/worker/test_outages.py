"""What no smaller batch can mend: a lost connection, a server that takes no writes, a missing table or privilege."""

from collections.abc import Callable
from concurrent.futures import Future
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from tests.kit.factories import DAY, NOW, requests, sessions
from tests.kit.log import Log
from tests.kit.processes import database_url
from tests.kit.runs import EXPIRY, expire_now, new_run
from tests.kit.triggers import REQUESTS, SESSIONS, Kit, execute, terminate_others

pytestmark = pytest.mark.django_db(transaction=True)

Elsewhere = Callable[..., Future[Any]]


def test_a_backend_that_is_terminated_in_a_batch_ends_the_phase_and_the_next_run_does_the_rest(
    kit: Kit, elsewhere: Elsewhere, until: Callable[[str], None], log: Log
) -> None:
    sessions(6, left=-DAY)
    requests(2, left=-DAY)
    kit.audit()
    with kit.gate("AFTER", SESSIONS):
        job = elsewhere(expire_now, batch_size=2, lock_timeout=timedelta(seconds=30))
        until("count(*) FILTER (WHERE wait_event_type = 'Lock') = 1")
        terminate_others()
    result = job.result()
    # The other phase has a connection of its own again.
    assert (result.refresh, result.sicr, result.outcome) == (0, 2, "failed")
    assert [line["exception"] for line in log.events("phase failed")] == ["OperationalError (SQLSTATE 57P01)"]
    assert expire_now().refresh == 6
    assert len({change.row_id for change in kit.changes()}) == len(kit.changes()) == 8


def test_a_server_that_takes_no_writes_is_left_for_a_new_connection(start: Any) -> None:
    sessions(3, now=NOW, left=-3000 * DAY)
    requests(3, now=NOW, left=-3000 * DAY)
    name = connection.settings_dict["NAME"]
    # For connections to come, hence before the worker has one: a run on an older one would do the rows.
    execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    try:
        worker = start("expire_sessions", "--loop", "--polling-interval=50ms", EXPIRE_SESSIONS_MAX_RUN_DURATION="1s")
        refused = worker.until("phase failed")
        assert refused["exception"].endswith("(SQLSTATE 25006)")
        worker.until("job completed")
        run = [line["event"] for line in worker.lines if line.get("jobRunId") == refused["jobRunId"]]
        # Once for each phase: no smaller batch is tried on a server that takes none.
        assert run == ["job started", "phase failed", "phase failed", "job completed"]
    finally:
        execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
    while not worker.until("job completed")["refreshExpired"]:
        pass
    assert not RefreshSession.objects.filter(status="Active").exists()


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_a_missing_table_is_one_sentence_that_names_it(command: str) -> None:
    execute("ALTER TABLE refresh_sessions RENAME TO away")
    try:
        with pytest.raises(CommandError) as failed:
            call_command(command)
    finally:
        execute("ALTER TABLE away RENAME TO refresh_sessions")
    assert failed.value.returncode == 1
    assert str(failed.value) == (
        "Table identity.refresh_sessions was not found: run `manage.py migrate`, "
        "or check DATABASE_SCHEMA and the role's USAGE on it."
    )


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
@pytest.mark.parametrize("dry", [[], ["--dry-run"]])
def test_a_missing_schema_is_one_sentence_that_names_it(command: str, dry: list[str], start: Any) -> None:
    process = start(command, *dry, DATABASE_SCHEMA="elsewhere")
    _, written = process.communicate(timeout=15)
    assert process.returncode == 1
    assert "Table elsewhere.refresh_sessions was not found: run `manage.py migrate`" in written.splitlines()[-1]


@pytest.mark.parametrize("command", ["expire_sessions", "session_retention"])
def test_a_missing_privilege_is_one_sentence_that_names_the_table(command: str, start: Any) -> None:
    role = f"reader_{connection.settings_dict['NAME']}"
    execute(f"CREATE ROLE {role} LOGIN PASSWORD 'any'")
    try:
        execute(f"GRANT USAGE ON SCHEMA identity TO {role}")
        execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA identity TO {role}")
        execute(f"GRANT ALL ON sign_in_confirmation_requests TO {role}")
        requests(2, now=NOW, left=-3000 * DAY, age=3001 * DAY)
        sessions(1, now=NOW, left=-3000 * DAY)
        process = start(command, DATABASE_URL=database_url(user=role, password="any"))
        _, written = process.communicate(timeout=15)
    finally:
        execute(f"DROP OWNED BY {role}")
        execute(f"DROP ROLE {role}")
    assert process.returncode == 1
    assert written.splitlines()[-1] == (
        "CommandError: The database role lacks a privilege on identity.refresh_sessions, or row security would hide "
        "rows from it: grant it what docs/database.md lists, or BYPASSRLS."
    )
    # The other table is done all the same.
    assert not SignInConfirmationRequest.objects.filter(status="Pending").exists()


def test_an_outage_that_ends_both_phases_of_a_run_is_told_with_one_traceback(log: Log) -> None:
    run = new_run(EXPIRY)
    for phase, table in (("refresh", SESSIONS), ("sicr", REQUESTS)):
        run.failed(phase, OperationalError("the connection is closed"), table=table)
    assert ["exc_info" in line for line in log.events("phase failed")] == [True, False]
