"""What waits for the two jobs: four queues made of the sets of models.py, each with its objective."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Model, QuerySet

from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from identity.sessions.options import ExpireSessionsOptions, SessionRetentionOptions

# Rows overdue by more than so many intervals of their job break its objective.
ALLOWED_INTERVALS = 2


@dataclass(frozen=True, kw_only=True)
class Queue:
    """Rows that wait for a job: `sets` together, overdue since `key` + `threshold`; the oldest are read first."""

    job: str
    table: str
    waiting_for: str
    sets: Callable[[datetime], Iterable[QuerySet[Any]]]
    key: str
    threshold: timedelta
    interval: timedelta

    @property
    def limit(self) -> timedelta:
        """Return the age that no row of the queue may pass."""
        return self.threshold + ALLOWED_INTERVALS * self.interval


def queues(expiry: ExpireSessionsOptions, retention: SessionRetentionOptions) -> list[Queue]:
    """Return the four queues, each with its job's own definition of due or old."""
    return [*_expiry_queues(expiry), *_retention_queues(retention)]


def _expiry_queues(options: ExpireSessionsOptions) -> list[Queue]:
    def queue(manager: Any) -> Queue:
        return Queue(
            job="expire_sessions",
            table=manager.model._meta.db_table,
            waiting_for="due",
            sets=lambda now: [manager.due(now)],
            key="expires_at",
            threshold=timedelta(),
            interval=options.polling_interval,
        )

    return [queue(RefreshSession.objects), queue(SignInConfirmationRequest.objects)]


def _retention_queues(options: SessionRetentionOptions) -> list[Queue]:
    def queue(model: type[Model], sets: Callable[[datetime], list[QuerySet[Any]]], key: str, kept: timedelta) -> Queue:
        return Queue(
            job="session_retention",
            table=model._meta.db_table,
            waiting_for="deletable",
            sets=lambda now: sets(now - kept),
            key=key,
            threshold=kept,
            interval=options.retention_interval,
        )

    return [
        queue(RefreshSession, deletable_sessions, "updated_at", options.refresh_terminal_retention),
        queue(SignInConfirmationRequest, deletable_requests, "created_at", options.sicr_retention),
    ]


def deletable_sessions(cutoff: datetime) -> list[QuerySet[RefreshSession]]:
    """Return the deletable sessions: the old ones that no descendant keeps."""
    return [RefreshSession.objects.to_delete(cutoff)]


def deletable_requests(cutoff: datetime) -> list[QuerySet[SignInConfirmationRequest]]:
    """Return the deletable requests: nothing refers to one, so every old one is."""
    return [SignInConfirmationRequest.objects.older_than(cutoff)]
