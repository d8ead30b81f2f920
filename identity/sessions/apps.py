"""The app. Its label is not "sessions": that one belongs to django.contrib.sessions."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.db import connections
from django.db.models.signals import pre_migrate


def create_schema(*, using: str, **_: Any) -> None:
    """Create the schema before the first migration: even django_migrations lives in it."""
    with connections[using].cursor() as cursor:
        # Asked first, because IF NOT EXISTS still demands the right to create one.
        cursor.execute("SELECT to_regnamespace(%s) IS NOT NULL", [settings.DATABASE_SCHEMA])
        if cursor.fetchone() != (True,):
            cursor.execute(f'CREATE SCHEMA "{settings.DATABASE_SCHEMA}"')


class SessionsConfig(AppConfig):
    name = "identity.sessions"
    label = "identity_sessions"
    verbose_name = "Identity sessions"

    def ready(self) -> None:
        from identity.sessions import checks  # noqa: F401

        pre_migrate.connect(create_schema, sender=self)
