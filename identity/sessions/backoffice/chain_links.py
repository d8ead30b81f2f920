"""A session's chain as links: where it came from, what came after it, and where it ends."""

from collections.abc import Iterable
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from identity.sessions.backoffice.descent import Descent
from identity.sessions.models import RefreshSession

# A session has one child by nature; more come from forks, and a page need not list thousands.
SHOWN = 10


def link(session_id: UUID | None, status: str = "") -> SafeString | str:
    """Return a link to a session's page."""
    if session_id is None:
        return "none"
    address = reverse("admin:identity_sessions_refreshsession_change", args=[session_id])
    return format_html('<a href="{}">{}</a> {}', address, session_id, status)


def links(sessions: Iterable[RefreshSession]) -> SafeString | str:
    """Return links to sessions, the first ones if they are many, with their status."""
    everyone = list(sessions)
    listed = format_html_join("\n", "<li>{}</li>", ((link(each.pk, each.status),) for each in everyone[:SHOWN]))
    more = f"and {len(everyone) - SHOWN:,} more" if len(everyone) > SHOWN else ""
    return format_html('<ul class="chain">{}</ul>{}', listed, more) if everyone else "none"


def tip(descent: Descent) -> SafeString | str:
    """Return links to the end of the chain; there are several where a session was rotated twice."""
    if not descent.complete:
        return "not read to the end"
    return links(descent.tips) if descent.descendants else "this session"
