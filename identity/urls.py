"""The web process answers two things: the admin, and /metrics for Prometheus."""

from django.conf import settings
from django.contrib import admin
from django.urls import include, path
from django.views.generic import RedirectView

urlpatterns = [
    path("admin/", admin.site.urls),
    # Browsers ask for it whatever a page says, and would log an error.
    path("favicon.ico", RedirectView.as_view(url=f"{settings.STATIC_URL}identity_sessions/icon.svg")),
    path("", include("django_prometheus.urls")),
]
