"""Settings of the test suite: those of a developer's machine, fast and without its debugging."""

from .local import *  # noqa: F403

DEBUG = False
ALLOWED_HOSTS = ["*"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
