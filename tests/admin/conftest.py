"""Users of the admin, each with a client that has logged in as them."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

PASSWORD = "correct horse"


def user(name, *codenames, superuser=False):
    made = User.objects.create_user(name, password=PASSWORD, is_staff=True, is_superuser=superuser)
    made.user_permissions.set(
        Permission.objects.filter(content_type__app_label="identity_sessions", codename__in=codenames)
    )
    return made


VIEWS = ["view_backlog", "view_refreshsession", "view_signinconfirmationrequest"]


def logged_in(someone):
    client = Client(raise_request_exception=True)
    client.force_login(someone)
    return client


@pytest.fixture
def viewer(db):
    return logged_in(user("viewer", *VIEWS))


@pytest.fixture
def privacy(db):
    return logged_in(user("privacy", *VIEWS, "view_personal_data"))


@pytest.fixture
def superuser(db):
    return logged_in(user("superuser", superuser=True))


@pytest.fixture
def nobody(db):
    return logged_in(user("nobody"))
