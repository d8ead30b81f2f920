"""Addresses of the admin's pages, by the names that Django gives them."""

from urllib.parse import urlencode

from django.urls import reverse

SESSIONS, REQUESTS = "refreshsession", "signinconfirmationrequest"


def changelist(model, **query):
    address = reverse(f"admin:identity_sessions_{model}_changelist")
    return f"{address}?{urlencode(query)}" if query else address


def change(row):
    return reverse(f"admin:identity_sessions_{row._meta.model_name}_change", args=[row.pk])


def backlog():
    return reverse("admin:identity_sessions_backlog_changelist")


def shown(response):
    """The ids that a list shows, in order."""
    assert response.status_code == 200
    return [row.pk for row in response.context["cl"].result_list]
