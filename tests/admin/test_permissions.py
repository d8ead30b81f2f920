"""Who sees what, and that nobody can write."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.urls import reverse

from tests.admin import rows
from tests.admin.addresses import REQUESTS, SESSIONS, backlog, change, changelist


@pytest.fixture
def both(db):
    return [rows.session(left=-rows.HOUR), rows.request(left=-rows.HOUR)]


@pytest.mark.parametrize("who", ["viewer", "privacy", "superuser"])
def test_whoever_may_view_sees_the_backlog_the_lists_and_the_rows(who, both, request):
    client = request.getfixturevalue(who)
    for address in [backlog(), changelist(SESSIONS), changelist(REQUESTS), *map(change, both)]:
        assert client.get(address).status_code == 200
        assert client.head(address).status_code == 200


def test_the_backlog_is_the_first_entry_of_the_app_on_the_index(viewer):
    (app,) = viewer.get(reverse("admin:index")).context["app_list"]
    assert [model["admin_url"] for model in app["models"]] == [backlog(), changelist(SESSIONS), changelist(REQUESTS)]


def test_staff_without_permission_sees_no_entry_and_is_refused_every_page(nobody, both):
    assert nobody.get(reverse("admin:index")).context["app_list"] == []
    for address in [backlog(), changelist(SESSIONS), changelist(REQUESTS), *map(change, both)]:
        assert nobody.get(address).status_code == 403


@pytest.mark.parametrize("permission", ["view_backlog", "view_refreshsession"])
def test_a_permission_opens_its_own_page_alone(permission, nobody, both):
    User.objects.get(username="nobody").user_permissions.add(Permission.objects.get(codename=permission))
    pages = {"view_backlog": backlog(), "view_refreshsession": changelist(SESSIONS), "another": changelist(REQUESTS)}
    answers = {name: nobody.get(address).status_code for name, address in pages.items()}
    assert [name for name, status in answers.items() if status == 200] == [permission]


def test_a_stranger_is_sent_to_the_login(client, both):
    for address in [backlog(), changelist(SESSIONS), *map(change, both)]:
        assert client.get(address)["Location"].startswith(reverse("admin:login"))


def writes(row):
    """Every way to write that Django's admin knows, or could be made to think it knows."""
    model, one = row._meta.model_name, change(row)
    every = changelist(model)
    chosen = {"_selected_action": [str(row.pk)], "select_across": "1", "index": "0"}
    formset = {"form-TOTAL_FORMS": "1", "form-INITIAL_FORMS": "1", "form-0-id": str(row.pk), "form-0-status": "Revoked"}
    return [
        (one, {"status": "Revoked"}),
        (one, {"status": "Revoked", "_saveasnew": "1"}),
        (f"{one}?_popup=1", {"status": "Revoked", "_popup": "1"}),
        (f"{one}?_to_field=id", {"status": "Revoked", "_to_field": "id"}),
        (one.replace("/change/", "/delete/"), {"post": "yes"}),
        (one.replace("/change/", "/history/"), {}),
        (one.replace("/change/", "/"), {"status": "Revoked"}),
        (f"{every}add/", {"status": "Active"}),
        (f"{every}add/?_popup=1", {"status": "Active", "_popup": "1"}),
        (every, {"action": "delete_selected", "post": "yes", **chosen}),
        (f"{every}?waiting=overdue", {"action": "delete_selected", "post": "yes", **chosen}),
        (every, {"_save": "Save", **formset}),
        (backlog(), {"action": "delete_selected", "post": "yes", **chosen}),
        (f"{backlog()}add/", {"status": "Active"}),
        (f"{backlog()}{row.pk}/change/", {"status": "Revoked"}),
        (f"{backlog()}{row.pk}/delete/", {"post": "yes"}),
    ]


@pytest.mark.parametrize("who", ["superuser", "privacy"])
def test_every_way_to_write_is_refused_and_leaves_both_tables_as_they_were(who, both, request):
    client, before = request.getfixturevalue(who), rows.checksum()
    for row in both:
        for address, data in writes(row):
            assert client.post(address, data).status_code in (403, 404, 405), address
    assert rows.checksum() == before
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS"])
def test_only_get_and_head_reach_a_page(method, superuser, both):
    for address in [backlog(), changelist(SESSIONS), changelist(REQUESTS), *map(change, both)]:
        assert superuser.generic(method, address).status_code == 405


def test_the_views_for_writing_are_refused_to_a_superuser_who_only_looks(superuser, both):
    for row in both:
        for view in ("delete", "history"):
            assert superuser.get(change(row).replace("/change/", f"/{view}/")).status_code == 403
        assert superuser.get(f"{changelist(row._meta.model_name)}add/").status_code == 403


def test_no_page_offers_to_add_save_delete_act_or_show_a_history(superuser, both):
    pages = [changelist(SESSIONS), changelist(REQUESTS), *map(change, both)]
    for address in pages:
        content = superuser.get(address).content.decode()
        for offer in (
            'name="_save"',
            'name="action"',
            "deletelink",
            "historylink",
            "<select",
            "session/add/",
            "request/add/",
        ):
            assert offer not in content, (address, offer)


def test_the_backlog_has_no_page_but_its_own(superuser, both):
    for view in ("add/", f"{both[0].pk}/change/", f"{both[0].pk}/delete/", f"{both[0].pk}/history/"):
        assert superuser.get(f"{backlog()}{view}").status_code == 404


def test_a_popup_shows_the_list_and_still_refuses_to_write(superuser, both):
    assert superuser.get(changelist(SESSIONS, _popup=1)).status_code == 200
    assert superuser.get(changelist(SESSIONS, _popup=1, _to_field="id")).status_code == 200
    assert superuser.get(changelist(SESSIONS, _to_field="token_hash")).status_code == 400
