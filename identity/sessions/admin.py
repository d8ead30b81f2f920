"""Django admin: the backlog page, and the two tables to look at."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import URLPattern

from identity.sessions.backoffice.chain_links import link, links, tip
from identity.sessions.backoffice.descent import descent
from identity.sessions.backoffice.facts import fact
from identity.sessions.backoffice.filters import RequestsFilter, SessionsFilter
from identity.sessions.backoffice.outlook import expiry_outlook, request_outlook, session_outlook
from identity.sessions.backoffice.overview import overview
from identity.sessions.backoffice.pages import Fieldsets, RowsAdmin
from identity.sessions.backoffice.personal import shown
from identity.sessions.backoffice.readonly import ReadOnlyAdmin
from identity.sessions.backoffice.searching import by_id_or_user_id, by_id_then_user_id
from identity.sessions.backoffice.wording import age_and_moment
from identity.sessions.models import Backlog, RefreshSession, SignInConfirmationRequest
from identity.sessions.options import ExpireSessionsOptions, SessionRetentionOptions, load

# There is no other site to view.
admin.site.site_url = None
# It slides in once its script runs and moves the page; breadcrumbs lead to the three entries that it has.
admin.site.enable_nav_sidebar = False
admin.site.site_header = admin.site.site_title = "Identity administration"


@admin.register(Backlog)
class BacklogAdmin(ReadOnlyAdmin):
    """The backlog page in the place of a list: the app's first entry, because it comes first in the alphabet."""

    def get_urls(self) -> list[URLPattern]:
        return [url for url in super().get_urls() if url.name == "identity_sessions_backlog_changelist"]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        context = self.admin_site.each_context(request) | {"title": "Backlog", "opts": self.opts} | overview()
        return TemplateResponse(request, "admin/identity_sessions/backlog.html", context)


@admin.register(RefreshSession)
class RefreshSessionAdmin(RowsAdmin):
    waiting_filter = SessionsFilter
    search = by_id_or_user_id
    search_help_text = "An id or a user id, or how it begins"
    personal_in_list = ("ip_address", "IP address")
    secret = "token_hash"
    ordering = ("pk",)

    def facts(self, request: HttpRequest, row: Any) -> Fieldsets:
        retention, now = load(SessionRetentionOptions), row.read_at
        below = descent(row, now=now, cutoff=now - retention.refresh_terminal_retention)
        return [
            (
                "What the jobs will do",
                [
                    fact("Expiry", expiry_outlook(row, due=below.due, now=now, options=load(ExpireSessionsOptions))),
                    fact("Retention", session_outlook(below, now=now, options=retention)),
                ],
            ),
            (
                "Chain",
                [
                    fact("Parent", link(row.parent_session_id)),
                    fact("Children", links(below.children)),
                    fact("Tip", tip(below)),
                ],
            ),
            (
                "Session",
                [
                    *self.common_facts(row),
                    fact("Revoked", age_and_moment(row.revoked_at, now)),
                    fact("Reason", row.revoked_reason or "-"),
                    fact("IP address", shown(row, "ip_address", request)),
                    fact("User agent", shown(row, "user_agent", request)),
                ],
            ),
        ]


@admin.register(SignInConfirmationRequest)
class SignInConfirmationRequestAdmin(RowsAdmin):
    waiting_filter = RequestsFilter
    search = by_id_then_user_id
    search_help_text = "An id, or how it begins; or a whole user id, which takes longer"
    personal_in_list = ("phone_number", "Phone number")
    secret = "code_hash"
    ordering = ("-created_at",)

    def facts(self, request: HttpRequest, row: Any) -> Fieldsets:
        retention, now = load(SessionRetentionOptions), row.read_at
        same = SignInConfirmationRequest.objects.filter(pk=row.pk)
        due, old = same.due(now).exists(), same.older_than(now - retention.sicr_retention).exists()
        return [
            (
                "What the jobs will do",
                [
                    fact("Expiry", expiry_outlook(row, due=due, now=now, options=load(ExpireSessionsOptions))),
                    fact("Retention", request_outlook(row, old=old, now=now, options=retention)),
                ],
            ),
            (
                "Request",
                [
                    *self.common_facts(row),
                    fact("Confirmed", age_and_moment(row.confirmed_at, now)),
                    fact("Attempts", str(row.attempts)),
                    fact("Phone number", shown(row, "phone_number", request)),
                    fact("IP address", shown(row, "ip_address", request)),
                    fact("User agent", shown(row, "user_agent", request)),
                ],
            ),
        ]
