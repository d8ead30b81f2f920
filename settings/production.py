"""Settings of a deployment: nothing has a default that would be unsafe, what is missing is said at the start."""

from django.core.exceptions import ImproperlyConfigured

from identity import environment

from .base import *  # noqa: F403
from .base import DATABASES

if not DATABASES:
    raise ImproperlyConfigured("DATABASE_URL is not set: settings.production needs postgres://user:password@host/name.")

SECRET_KEY = environment.secret("DJANGO_SECRET_KEY", "a long random text")
if SECRET_KEY is None:
    raise ImproperlyConfigured("DJANGO_SECRET_KEY is not set: settings.production needs a long random text.")

ALLOWED_HOSTS = environment.read("DJANGO_ALLOWED_HOSTS", environment.HOSTS)
if ALLOWED_HOSTS is None:
    raise ImproperlyConfigured(
        "DJANGO_ALLOWED_HOSTS is not set: settings.production needs host names separated by commas."
    )

DEBUG: bool = environment.read("DJANGO_DEBUG", environment.BOOLEAN, "off")
SECURE_SSL_REDIRECT = True
# Prometheus scrapes the process itself, behind the proxy that ends TLS.
SECURE_REDIRECT_EXEMPT = [r"^metrics$"]
SECURE_HSTS_SECONDS = 31_536_000
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
STATIC_ROOT = "static"
