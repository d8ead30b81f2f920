"""Settings of a developer's machine: an embedded PostgreSQL unless DATABASE_URL is set, sample data, no secrets."""

from identity import environment

from .base import *  # noqa: F403
from .base import BASE_DIR, DATABASES, INSTALLED_APPS, on_schema

if not DATABASES:
    DATABASES = {
        "default": on_schema(
            {
                "ENGINE": "local.embedded",
                "NAME": "postgres",
                "USER": "postgres",
                "HOST": str(BASE_DIR / "var" / "postgres"),
                "TEST": {"NAME": "test_identity"},
            }
        )
    }
INSTALLED_APPS = [*INSTALLED_APPS, "local"]
SECRET_KEY = environment.secret("DJANGO_SECRET_KEY", "a long random text") or "local-only-not-a-secret"
DEBUG: bool = environment.read("DJANGO_DEBUG", environment.BOOLEAN, "on")
ALLOWED_HOSTS: list[str] = environment.read("DJANGO_ALLOWED_HOSTS", environment.HOSTS, "localhost,127.0.0.1,[::1]")
