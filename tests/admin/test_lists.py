"""The lists: the jobs' own sets as filters, search by id, pages within bounds."""

from datetime import timedelta

import pytest

from identity.sessions.backoffice import lists
from identity.sessions.backoffice.bounded import clock
from identity.sessions.models import RefreshSession
from tests.admin import rows
from tests.admin.addresses import REQUESTS, SESSIONS, change, changelist, shown
from tests.admin.rows import DAY, MINUTE
from tests.kit.factories import requests, sessions


def test_overdue_sessions_are_those_that_the_job_would_expire_the_oldest_first(viewer):
    newer, older = rows.session(left=-MINUTE), rows.session(left=-2 * MINUTE)
    rows.session(left=MINUTE)
    rows.session("Expired", left=-MINUTE)
    assert shown(viewer.get(changelist(SESSIONS, waiting="overdue"))) == [older.pk, newer.pk]


def test_overdue_requests_are_those_that_the_job_would_expire_the_oldest_first(viewer):
    newer, older = rows.request(left=-MINUTE), rows.request(left=-2 * MINUTE)
    rows.request(left=MINUTE)
    rows.request("Confirmed", left=-MINUTE)
    assert shown(viewer.get(changelist(REQUESTS, waiting="overdue"))) == [older.pk, newer.pk]


def test_sessions_past_retention_are_deletable_or_blocked_by_a_descendant(viewer):
    whole = rows.chain(3, age=92 * DAY, tip_age=91 * DAY)
    parent, _ = rows.chain(2, tip="Active", tip_age=DAY)
    stray = rows.session("Rotated", age=95 * DAY)
    rows.session("Revoked", age=89 * DAY)
    rows.session("Active", age=100 * DAY)
    deletable = {stray.pk, *(row.pk for row in whole)}
    assert set(shown(viewer.get(changelist(SESSIONS, waiting="deletable")))) == deletable
    assert set(shown(viewer.get(changelist(SESSIONS, waiting="blocked")))) == {parent.pk}


def test_requests_past_retention_are_deletable_whatever_their_status(viewer):
    older, newer = rows.request("Confirmed", age=40 * DAY), rows.request("Pending", age=31 * DAY)
    rows.request("Expired", age=29 * DAY)
    assert shown(viewer.get(changelist(REQUESTS, waiting="deletable"))) == [older.pk, newer.pk]


def test_the_filters_go_by_the_options_in_force(viewer, monkeypatch):
    session, request = rows.session("Revoked", age=11 * DAY), rows.request("Expired", age=4 * DAY)
    assert shown(viewer.get(changelist(SESSIONS, waiting="deletable"))) == []
    monkeypatch.setenv("SESSION_RETENTION_REFRESH_TERMINAL_RETENTION", "10d")
    monkeypatch.setenv("SESSION_RETENTION_SICR_RETENTION", "3d")
    assert shown(viewer.get(changelist(SESSIONS, waiting="deletable"))) == [session.pk]
    assert shown(viewer.get(changelist(REQUESTS, waiting="deletable"))) == [request.pk]


def test_a_choice_that_the_filter_does_not_have_selects_nothing(viewer):
    rows.session(left=-DAY)
    assert shown(viewer.get(changelist(SESSIONS, waiting="everything"))) == []


def test_ages_are_told_in_words_with_the_exact_moment_on_hover(viewer):
    session = rows.session(age=3 * DAY + 4 * timedelta(hours=1) + MINUTE, left=5 * MINUTE + timedelta(seconds=30))
    page = viewer.get(changelist(SESSIONS)).content.decode()
    moment = session.updated_at.replace(tzinfo=None)
    assert f'title="{moment.isoformat(sep=" ")} UTC">3 days 4 hours ago</time>' in page
    assert "in 5 minutes" in page


@pytest.mark.parametrize("length", [1, 8, 9, 35, 36])
def test_search_finds_a_session_by_the_beginning_of_its_id_or_of_its_users_id(length, viewer):
    wanted = rows.session(id="a1b2c3d4-0000-4000-8000-000000000001", user_id="e5f6a7b8-0000-4000-8000-000000000001")
    rows.session(id="b1b2c3d4-0000-4000-8000-000000000001", user_id="f5f6a7b8-0000-4000-8000-000000000001")
    for value in (wanted.id, wanted.user_id):
        found = shown(viewer.get(changelist(SESSIONS, q=f" {value[:length].upper()} ")))
        assert [str(pk) for pk in found] == [wanted.id]


def test_search_finds_requests_by_how_their_id_begins_or_by_a_whole_user_id(viewer):
    wanted, other = rows.request(), rows.request()
    rows.request(user_id=None)
    assert shown(viewer.get(changelist(REQUESTS, q=str(wanted.pk)))) == [wanted.pk]
    assert shown(viewer.get(changelist(REQUESTS, q=str(wanted.pk)[:20]))) == [wanted.pk]
    assert shown(viewer.get(changelist(REQUESTS, q=str(other.user_id)))) == [other.pk]


def test_what_a_search_finds_is_in_the_order_of_the_ids(viewer):
    ids = [f"a1b2c3d4-0000-4000-8000-00000000000{number}" for number in (2, 3, 1)]
    for number, row_id in enumerate(ids):
        rows.request(id=row_id, age=number * DAY)
    assert [str(pk) for pk in shown(viewer.get(changelist(REQUESTS, q="a1b2")))] == sorted(ids)
    assert [str(pk) for pk in shown(viewer.get(changelist(REQUESTS)))] == ids


@pytest.mark.parametrize("text", ["zebra", "a1b2%", "a" * 40, "'; DROP TABLE x", "Active"])
def test_search_for_what_no_id_begins_with_finds_nothing(text, viewer):
    rows.session()
    assert shown(viewer.get(changelist(SESSIONS, q=text))) == []


def test_search_and_filter_go_together(viewer):
    overdue, live = rows.session(left=-DAY), rows.session()
    assert shown(viewer.get(changelist(SESSIONS, q=str(overdue.pk), waiting="overdue"))) == [overdue.pk]
    assert shown(viewer.get(changelist(SESSIONS, q=str(live.pk), waiting="overdue"))) == []


@pytest.fixture
def small_cap(monkeypatch):
    """A cap that a test can reach: two pages and a little more."""
    monkeypatch.setattr(lists, "CAP", 120)


def test_a_list_is_counted_and_paged_up_to_the_cap(viewer, small_cap):
    requests(121, now=clock(), left=-DAY)
    response = viewer.get(changelist(REQUESTS, waiting="overdue"))
    assert "more than 120 sign in confirmation requests" in " ".join(response.content.decode().split())
    assert [len(shown(viewer.get(changelist(REQUESTS, waiting="overdue", p=page)))) for page in (1, 2, 3)] == [
        50,
        50,
        20,
    ]


@pytest.mark.parametrize(("page", "length"), [("3", 10), ("999999999", 10), ("0", 50), ("-1", 50), ("x", 50)])
def test_a_page_that_does_not_exist_is_answered_with_one_that_does(page, length, viewer):
    sessions(60)
    assert len(shown(viewer.get(changelist(SESSIONS, p=page)))) == length


def test_many_rows_that_no_index_has_in_order_are_not_sorted(viewer, monkeypatch):
    made = [rows.session("Revoked", age=age * DAY) for age in (99, 98, 97)]
    assert shown(viewer.get(changelist(SESSIONS, waiting="deletable"))) == [row.pk for row in made]
    monkeypatch.setattr(lists, "CAP", 2)
    response = viewer.get(changelist(SESSIONS, waiting="deletable"))
    assert "in no order" in response.content.decode()
    assert shown(response) == sorted(row.pk for row in made)[:2]


def test_all_rows_at_once_cannot_be_asked_for(viewer):
    sessions(60)
    assert len(shown(viewer.get(f"{changelist(SESSIONS)}?all="))) == 50


def test_a_row_that_is_gone_leads_back_to_the_index_with_a_message(viewer):
    gone = rows.session()
    RefreshSession.objects.all().delete()
    response = viewer.get(change(gone), follow=True)
    assert response.redirect_chain == [("/admin/", 302)]
    assert str(gone.pk) in response.content.decode()
