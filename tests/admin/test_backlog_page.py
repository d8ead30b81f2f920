"""The backlog page: how much waits, how late it is, and what it is judged by."""

import pytest
from django.core.management import call_command

from identity.sessions.backoffice import sizes
from tests.admin import rows
from tests.admin.addresses import REQUESTS, SESSIONS, backlog, changelist, shown
from tests.admin.rows import DAY, MINUTE

EXPIRY_SESSIONS, EXPIRY_REQUESTS, RETENTION_SESSIONS, RETENTION_REQUESTS = range(4)
SECOND = MINUTE / 60


def page(client):
    response = client.get(backlog())
    assert response.status_code == 200
    return response.context


def panels(client):
    return page(client)["panels"]


def verdict(client, panel):
    return panels(client)[panel]["verdict"].level


def test_empty_tables_are_no_backlog(viewer):
    context = page(viewer)
    assert context["verdict"].words == "The jobs are keeping up."
    assert [(panel["rows"], panel["oldest"], panel["verdict"].words) for panel in context["panels"]] == [
        ("0", "none", "Nothing waits")
    ] * 4
    assert context["blocked"] == "0"


def test_each_panel_counts_what_its_job_would_take(viewer):
    rows.session(left=-MINUTE)
    rows.session(left=MINUTE)
    for _ in range(2):
        rows.request(left=-MINUTE)
    rows.request("Confirmed", left=-MINUTE)
    rows.chain(3)
    rows.chain(3, tip="Active", tip_age=DAY)
    rows.session("Rotated", age=91 * DAY)
    rows.session("Revoked", age=89 * DAY)
    for _ in range(4):
        rows.request("Expired", age=31 * DAY, left=-31 * DAY)
    context = page(viewer)
    assert [panel["rows"] for panel in context["panels"]] == ["1", "2", "4", "4"]
    assert context["blocked"] == "2"


def test_each_number_leads_to_the_list_of_as_many_rows(viewer):
    rows.session(left=-MINUTE)
    rows.request(left=-MINUTE)
    rows.request(age=31 * DAY)
    rows.chain(2)
    rows.chain(3, tip="Active", tip_age=DAY)
    context = page(viewer)
    for panel in context["panels"]:
        assert len(shown(viewer.get(panel["address"]))) == int(panel["rows"])
    assert len(shown(viewer.get(context["blocked_address"]))) == 2


@pytest.mark.parametrize(
    ("panel", "make", "on_time", "late"),
    [
        (EXPIRY_SESSIONS, lambda over: rows.session(left=-over), 9 * MINUTE, 11 * MINUTE),
        (EXPIRY_REQUESTS, lambda over: rows.request(left=-over), 9 * MINUTE, 11 * MINUTE),
        (RETENTION_SESSIONS, lambda over: rows.session("Revoked", age=over), 92 * DAY - MINUTE, 92 * DAY + MINUTE),
        (RETENTION_REQUESTS, lambda over: rows.request("Expired", age=over), 32 * DAY - MINUTE, 32 * DAY + MINUTE),
    ],
    ids=["expiry of sessions", "expiry of requests", "retention of sessions", "retention of requests"],
)
def test_a_job_is_late_once_its_oldest_row_passes_the_limit(panel, make, on_time, late, viewer):
    make(on_time)
    assert verdict(viewer, panel) == "good"
    assert page(viewer)["verdict"].level == "good"
    make(late)
    assert verdict(viewer, panel) == "late"
    assert page(viewer)["verdict"].words.startswith("Not keeping up: ")


def test_a_stray_that_only_a_scan_finds_counts_as_the_oldest(viewer):
    rows.session("Revoked", age=91 * DAY)
    rows.session("Rotated", age=95 * DAY)
    panel = panels(viewer)[RETENTION_SESSIONS]
    assert (panel["rows"], panel["oldest"], panel["verdict"].level) == ("2", "95 days", "late")


def test_a_blocked_row_is_never_late(viewer):
    rows.chain(2, tip="Active", tip_age=DAY, age=400 * DAY)
    assert page(viewer)["verdict"].level == "good"


def test_the_limits_follow_the_options_in_force(viewer, monkeypatch):
    rows.session(left=-11 * MINUTE)
    assert verdict(viewer, EXPIRY_SESSIONS) == "late"
    monkeypatch.setenv("EXPIRE_SESSIONS_POLLING_INTERVAL", "6m")
    assert verdict(viewer, EXPIRY_SESSIONS) == "good"
    assert panels(viewer)[EXPIRY_SESSIONS]["limit"] == "12 minutes"
    assert "<td>6m</td>" in viewer.get(backlog()).content.decode()


def test_the_histogram_has_each_row_in_one_bar_and_the_late_ones_marked(viewer):
    for overdue in (
        MINUTE,
        5 * MINUTE - SECOND,
        6 * MINUTE,
        11 * MINUTE,
        30 * MINUTE,
        2 * 60 * MINUTE,
        5 * 60 * MINUTE,
        DAY,
    ):
        rows.session(left=-overdue)
    bars = panels(viewer)[EXPIRY_SESSIONS]["bars"]
    assert [(bar["label"], bar["rows"], bar["late"]) for bar in bars] == [
        ("up to 5 minutes", 2, False),
        ("5 minutes to 10 minutes", 1, False),
        ("10 minutes to 20 minutes", 1, True),
        ("20 minutes to 1 hour", 1, True),
        ("1 hour to 4 hours", 1, True),
        ("over 4 hours", 2, True),
    ]
    assert [bar["width"] for bar in bars] == [100, 50, 50, 50, 50, 100]


def test_retention_draws_the_time_past_the_threshold(viewer):
    for age in (90 * DAY + MINUTE, 91 * DAY + MINUTE, 93 * DAY):
        rows.session("Expired", age=age)
    assert [bar["rows"] for bar in panels(viewer)[RETENTION_SESSIONS]["bars"]] == [1, 1, 1, 0, 0, 0]


def test_more_rows_than_the_cap_are_said_to_be_more(viewer, monkeypatch):
    monkeypatch.setattr(sizes, "CAP", 2)
    for minutes in (3, 4, 5):
        rows.session(left=-minutes * MINUTE)
    rows.chain(4, tip="Active", tip_age=DAY)
    monkeypatch.setattr("identity.sessions.backoffice.overview.CAP", 2)
    context = page(viewer)
    panel = context["panels"][EXPIRY_SESSIONS]
    assert (panel["rows"], panel["oldest"][:9]) == ("more than 2", "5 minutes")
    assert context["blocked"] == "more than 2"


@pytest.mark.django_db(transaction=True)
def test_what_the_jobs_have_done_is_gone_at_the_next_reload(viewer, capsys):
    rows.session(left=-DAY)
    rows.request(left=-DAY)
    assert [panel["rows"] for panel in panels(viewer)[:2]] == ["1", "1"]
    call_command("expire_sessions")
    assert [panel["rows"] for panel in panels(viewer)] == ["0"] * 4
    rows.chain(3)
    rows.request(age=31 * DAY, status="Confirmed")
    assert [panel["rows"] for panel in panels(viewer)[2:]] == ["3", "1"]
    call_command("session_retention")
    assert [panel["rows"] for panel in panels(viewer)] == ["0"] * 4
    assert page(viewer)["blocked"] == "0"


def test_a_refused_option_is_named_on_the_pages_that_need_it(viewer, monkeypatch):
    row = rows.session()
    monkeypatch.setenv("SESSION_RETENTION_SICR_RETENTION", "30")
    for address in (backlog(), changelist(SESSIONS, waiting="deletable"), f"{changelist(SESSIONS)}{row.pk}/change/"):
        response = viewer.get(address)
        assert response.status_code == 503
        assert "SESSION_RETENTION_SICR_RETENTION" in response.content.decode()
    assert viewer.get(changelist(REQUESTS)).status_code == 200
