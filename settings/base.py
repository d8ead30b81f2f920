"""Settings that every environment shares. Each variable is listed in the README."""

from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from psycopg import IsolationLevel

from identity import database_url, environment, logs

BASE_DIR = Path(__file__).resolve().parent.parent
DATABASE_SCHEMA: str = environment.read("DATABASE_SCHEMA", environment.SCHEMA, "identity")
# A pooler refuses start-up options: behind one the role carries the search_path (docs/database.md).
DATABASE_SCHEMA_OPTION: bool = environment.read("DATABASE_SCHEMA_OPTION", environment.BOOLEAN, "on")


def database() -> dict[str, Any] | None:
    """Return the DATABASES entry of DATABASE_URL, None if unset. Its value is not repeated: it holds a password."""
    written = environment.secret("DATABASE_URL", database_url.ACCEPTED)
    if written is None:
        return None
    try:
        return database_url.parse(written)
    except (ValueError, TypeError):
        raise ImproperlyConfigured(f"DATABASE_URL is refused: give {database_url.ACCEPTED}.") from None


# libpq waits two minutes for a host that does not answer, and for hours on a connection whose other end is gone: a job
# would neither fail nor stop meanwhile. Parameters of DATABASE_URL go before these.
_PATIENCE = {
    "connect_timeout": 5,
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}


def on_schema(entry: dict[str, Any]) -> dict[str, Any]:
    """Return the entry with search_path set to DATABASE_SCHEMA alone, beside the options that it already has."""
    options = {**_PATIENCE, **entry.get("OPTIONS", {})}
    if DATABASE_SCHEMA_OPTION:
        options["options"] = f"{options.get('options', '')} -c search_path={DATABASE_SCHEMA}".strip()
    # A guarded change that lost a race has to look at the row again; at a stricter level it would be an error instead.
    options["isolation_level"] = IsolationLevel.READ_COMMITTED
    # Cursors and prepared statements end with the transaction behind a pooler in transaction mode.
    return {**entry, "OPTIONS": options, "DISABLE_SERVER_SIDE_CURSORS": True}


_entry = database()
DATABASES = {"default": on_schema(_entry)} if _entry else {}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_prometheus",
    "identity.sessions",
]
MIDDLEWARE = [
    "django_prometheus.middleware.PrometheusBeforeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_prometheus.middleware.PrometheusAfterMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
ROOT_URLCONF = "identity.urls"
WSGI_APPLICATION = "identity.wsgi.application"
STATIC_URL = "static/"
LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_TZ = True

# django-prometheus would open a port in every manage.py call: the worker opens its own instead.
PROMETHEUS_METRICS_EXPORT_PORT = None
PROMETHEUS_EXPORT_MIGRATIONS = False
METRICS_PORT: int | None = environment.read("METRICS_PORT", environment.PORT)
METRICS_ADDRESS: str = environment.read("METRICS_ADDRESS", environment.ADDRESS, "127.0.0.1")
METRICS_TEXTFILE: str | None = environment.read("METRICS_TEXTFILE", environment.PATH)
PROMETHEUS_PUSHGATEWAY_URL: str | None = environment.read("PROMETHEUS_PUSHGATEWAY_URL", environment.URL)

LOGGING = logs.configuration(environment.read("LOG_LEVEL", environment.LEVEL, "INFO"))
