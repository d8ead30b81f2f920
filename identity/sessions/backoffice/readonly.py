"""Pages to look at: nobody changes a row here, superusers included."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured, PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django.template.response import TemplateResponse
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

    def history_view(self, request: HttpRequest, object_id: str, extra_context: Any = None) -> Any:
        """Refuse: nothing is changed here, so there is no history of changes."""
        raise PermissionDenied

    def get_urls(self) -> list[URLPattern]:
        urls: list[URLPattern] = super().get_urls()
        for url in urls:
            url.callback = require_safe(self._telling_refusals(url.callback))
        return urls

    def _telling_refusals(self, view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        """Return the view, with a page instead of a traceback where it finds an option that is refused."""

        @wraps(view)
        def tell(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            try:
                return view(request, *args, **kwargs)
            except ImproperlyConfigured as refusal:
                context = {"title": "Refused options", "opts": self.opts, "refusal": str(refusal)}
                page = "admin/identity_sessions/refused.html"
                return TemplateResponse(request, page, self.admin_site.each_context(request) | context, status=503)

        return tell
