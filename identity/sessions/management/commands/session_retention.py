"""Adapter of the command: parse, perform, report."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from identity.sessions.jobs.retention import SESSION_RETENTION
from identity.sessions.worker import command_line


class Command(BaseCommand):
    help = "Delete confirmation requests and ended refresh sessions that are past retention."
    # A wrong option is refused here in one sentence and exit 2; `check` would answer before it in its own words.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        command_line.add_arguments(parser, SESSION_RETENTION.options)

    def handle(self, **flags: Any) -> str | None:
        return command_line.handle(SESSION_RETENTION, **flags)
