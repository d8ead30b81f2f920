"""Pages to look at: nobody changes a row here, superusers included."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied

from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.views.decorators.http import require_safe


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic when it runs
    """Refuse every way to write, by permission and once more by method: only GET and HEAD reach a view."""

    actions = None

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Refuse: nothing is changed here, so that there is no history but rows of somebody else's making."""
        raise PermissionDenied

    def get_urls(self) -> list[URLPattern]:
        urls: list[URLPattern] = super().get_urls()
        for url in urls:
            url.callback = require_safe(url.callback)
        return urls
