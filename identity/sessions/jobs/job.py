"""The two jobs: what each is called, does and reports."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from identity.sessions.jobs import chains, telemetry
from identity.sessions.jobs.expiry import expire
from identity.sessions.jobs.left import Backlog
from identity.sessions.jobs.retention import retain
from identity.sessions.jobs.run import Run
from identity.sessions.jobs.telemetry import Metrics
from identity.sessions.models import RefreshSession, SignInConfirmationRequest
from identity.sessions.options import ExpireSessionsOptions, SessionRetentionOptions


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job: `changed` maps its phases to the names of their counts in the log; `done` is the verb of its summary."""

    name: str
    options: type[Any]
    metrics: Metrics
    changed: dict[str, str]
    done: str
    # What the run compares ages with, by its name in the log.
    cutoffs: Callable[[datetime, Any], dict[str, datetime]]
    work: Callable[[Run, dict[str, datetime]], Backlog]
    # How many rows a run would change now by phase, and how many sessions are blocked.
    preview: Callable[[str, datetime, dict[str, datetime]], tuple[dict[str, int], int]]


def _retention_cutoffs(now: datetime, options: SessionRetentionOptions) -> dict[str, datetime]:
    return {
        "cutoffSicr": now - options.sicr_retention,
        "cutoffRefresh": now - options.refresh_terminal_retention,
    }


def _retain(run: Run, cutoffs: dict[str, datetime]) -> Backlog:
    return retain(run, cutoff_sicr=cutoffs["cutoffSicr"], cutoff_refresh=cutoffs["cutoffRefresh"])


def _expiry_preview(alias: str, now: datetime, _: dict[str, datetime]) -> tuple[dict[str, int], int]:
    return {
        "refresh": RefreshSession.objects.using(alias).due(now).count(),
        "sicr": SignInConfirmationRequest.objects.using(alias).due(now).count(),
    }, 0


def _retention_preview(alias: str, _: datetime, cutoffs: dict[str, datetime]) -> tuple[dict[str, int], int]:
    blocked = chains.count_blocked(alias, cutoff=cutoffs["cutoffRefresh"])
    old = RefreshSession.objects.using(alias).older_than(cutoffs["cutoffRefresh"]).count()
    requests = SignInConfirmationRequest.objects.using(alias).older_than(cutoffs["cutoffSicr"]).count()
    return {"sicr": requests, "refresh": old - blocked}, blocked


EXPIRE_SESSIONS = Job(
    name="expire_sessions",
    options=ExpireSessionsOptions,
    metrics=telemetry.EXPIRE_SESSIONS,
    changed={"refresh": "refreshExpired", "sicr": "sicrExpired"},
    done="expired",
    cutoffs=lambda now, options: {},
    work=lambda run, cutoffs: expire(run),
    preview=_expiry_preview,
)
SESSION_RETENTION = Job(
    name="session_retention",
    options=SessionRetentionOptions,
    metrics=telemetry.SESSION_RETENTION,
    changed={"sicr": "sicrDeleted", "refresh": "refreshDeleted"},
    done="deleted",
    cutoffs=_retention_cutoffs,
    work=_retain,
    preview=_retention_preview,
)
