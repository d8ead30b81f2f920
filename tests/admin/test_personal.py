"""Personal data is hidden from those who may not see it, and cannot be had by a detour."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.admin import rows
from tests.admin.addresses import REQUESTS, SESSIONS, change, changelist, shown


@pytest.fixture
def both(db):
    return [rows.session(), rows.request()]


def pages(both):
    return [changelist(SESSIONS), changelist(REQUESTS), *map(change, both)]


def test_a_viewer_sees_no_phone_number_address_or_user_agent(viewer, both):
    for address in pages(both):
        content = viewer.get(address).content.decode()
        assert "hidden" in content
        for value in (rows.PHONE, rows.ADDRESS, rows.AGENT):
            assert value not in content, address


def test_the_permission_shows_them(privacy, both):
    session, request = (privacy.get(change(row)).content.decode() for row in both)
    assert rows.ADDRESS in session
    assert rows.AGENT in session
    assert rows.PHONE in request
    assert rows.PHONE in privacy.get(changelist(REQUESTS)).content.decode()
    assert "hidden</span>" not in session + request


@pytest.mark.parametrize("who", ["viewer", "privacy", "superuser"])
def test_a_hash_of_a_secret_is_on_no_page(who, both, request):
    for address in pages(both):
        assert rows.SECRET not in request.getfixturevalue(who).get(address).content.decode()


def test_hidden_values_do_not_even_leave_the_database(viewer, both):
    for address in pages(both):
        with CaptureQueriesContext(connection) as captured:
            viewer.get(address)
        statements = " ".join(query["sql"] for query in captured)
        for column in ("token_hash", "code_hash", "phone_number", "user_agent", "ip_address"):
            assert f'"{column}"' not in statements, (address, column)


def test_an_empty_value_looks_like_any_other(viewer, both):
    empty = rows.session(ip_address=None, user_agent="")
    pages = [viewer.get(change(row)).content.decode() for row in (both[0], empty)]
    assert [page.count("hidden</span>") for page in pages] == [2, 2]


@pytest.mark.parametrize("value", [rows.PHONE, rows.PHONE[1:], rows.ADDRESS, rows.AGENT, rows.SECRET])
def test_search_does_not_find_by_a_hidden_value(value, viewer, both):
    for model in (SESSIONS, REQUESTS):
        assert shown(viewer.get(changelist(model, q=value))) == []


@pytest.mark.parametrize(
    "lookup",
    [
        "phone_number", "phone_number__startswith", "phone_number__regex", "ip_address", "ip_address__gt", "user_agent",
        "user_agent__contains", "token_hash", "token_hash__startswith", "code_hash__startswith", "status", "id__gt",
        "user_id", "parent_session", "parent_session__user_agent__startswith", "children__ip_address", "nonsense",
    ],
)  # fmt: skip
@pytest.mark.parametrize("who", ["viewer", "superuser"])
def test_a_look_up_in_the_query_string_is_refused(lookup, who, both, request):
    for model in (SESSIONS, REQUESTS):
        assert request.getfixturevalue(who).get(changelist(model, **{lookup: "1"})).status_code == 400


@pytest.mark.parametrize("order", ["1", "-1", "7", "-7", "7.1", "phone_number", "-ip_address"])
def test_the_order_of_a_list_cannot_be_asked_for(order, viewer):
    for number in range(5):
        rows.request(phone_number=f"+7999000000{(number * 3) % 5}")
        rows.session(ip_address=f"203.0.113.{(number * 3) % 5}")
    for model in (SESSIONS, REQUESTS):
        assert shown(viewer.get(changelist(model, o=order))) == shown(viewer.get(changelist(model)))
