"""`make admin`: users for each degree of sight, on sample rows, in no database but the demo's own."""

import re
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from local.management.commands import demo_admin
from local.users import USERS, make_users
from tests.admin import rows
from tests.admin.addresses import backlog, change

SIGHT = {"admin": (200, True), "privacy": (200, True), "viewer": (200, False), "nobody": (403, False)}


@pytest.mark.django_db
@pytest.mark.parametrize("name", USERS)
def test_each_user_sees_what_is_said_of_them(name):
    make_users("first")
    make_users("second")
    row, client = rows.session(), Client()
    assert not client.login(username=name, password="first")
    assert client.login(username=name, password="second")
    status, personal = SIGHT[name]
    assert client.get(backlog()).status_code == status
    assert (rows.AGENT in client.get(change(row)).content.decode()) == personal


@pytest.fixture
def called(monkeypatch):
    """The commands that demo_admin calls, which are not carried out: a server would never return."""
    calls = []
    monkeypatch.setattr(demo_admin, "call_command", lambda *args, **options: calls.append((args, options)))
    return calls


@pytest.mark.django_db
def test_it_serves_this_machine_alone_and_prints_a_password_that_opens_the_admin(called, monkeypatch):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "local.embedded")
    monkeypatch.setitem(settings.DATABASES["default"], "HOST", "/var/postgres")
    out = StringIO()
    call_command("demo_admin", port="8765", stdout=out)
    assert called[-1] == (("runserver", "127.0.0.1:8765"), {"use_reloader": False})
    assert "http://127.0.0.1:8765/admin/" in out.getvalue()
    password = re.search(r"password of all four is (\S+)", out.getvalue())[1]
    client = Client()
    assert client.login(username="viewer", password=password)
    assert client.get(backlog()).context["verdict"].level == "late"


def test_it_refuses_a_database_that_may_be_real(called, monkeypatch):
    monkeypatch.setitem(settings.DATABASES["default"], "ENGINE", "django_prometheus.db.backends.postgresql")
    with pytest.raises(CommandError, match="unset DATABASE_URL"):
        call_command("demo_admin")
    with pytest.raises(CommandError, match="unset DATABASE_URL"):
        call_command("demo_screenshots")
    assert called == []
