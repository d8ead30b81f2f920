"""Personal data: shown to those who hold the permission; one and the same word stands in its place for all others."""

from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html

from identity.sessions.backoffice.facts import Column, column

PERMISSION = "identity_sessions.view_personal_data"
FIELDS = ("phone_number", "ip_address", "user_agent")


def may_see(request: HttpRequest) -> bool:
    """Return whether this user may see phone numbers, addresses and user agents."""
    return request.user.has_perm(PERMISSION)


def shown(row: Any, field: str, request: HttpRequest) -> str:
    """Return the field's value, or the mask.

    The mask is the same for every row, an empty value included: it gives away neither length nor presence nor a hash.
    """
    if may_see(request):
        return str(getattr(row, field) or "-")
    return format_html('<span class="masked" title="{}">hidden</span>', f"It takes the permission {PERMISSION}.")


def personal_column(field: str, label: str, request: HttpRequest) -> Column:
    """Return a column of a list that shows the field, or the mask."""
    return column(field, label, lambda row: shown(row, field, request))
