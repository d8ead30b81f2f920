"""Settings of the applications that the jobs are compared with, on a database of their own."""

from settings.base import DATABASES

__all__ = ["DATABASES"]

SECRET_KEY = "benchmarks-only-not-a-secret"
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "oauth2_provider",
    "rest_framework_simplejwt.token_blacklist",
]
# All as installed, but for this: without it cleartokens leaves what has run out where it is.
OAUTH2_PROVIDER = {"REFRESH_TOKEN_EXPIRE_SECONDS": 3600}
