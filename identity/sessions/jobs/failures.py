"""What a database error means for a job, told by its SQLSTATE, and the sentence for the person who reads it."""

from enum import Enum, auto

from django.conf import settings
from django.db import DatabaseError, Error, InterfaceError, OperationalError

from identity.logs import describe
from identity.sessions.jobs.database import Unanswered


class Kind(Enum):
    """What to do about an error."""

    OUTAGE = auto()  # the connection is lost, or leads to a server that takes no writes: drop it, come back later
    LOCKED = auto()  # somebody else is in the way: the row is left for the next run
    SLOW = auto()  # a time limit ended the batch: the same in smaller pieces
    REFUSED = auto()  # a constraint, a trigger, a missing privilege: a row is the cause, or all of the table
    BUG = auto()  # not from the server: no batch of any size will do


class Dropped(DatabaseError):
    """Rows stayed as they are although the statement succeeded and they were locked for it: a trigger dropped it.

    `others` of the same batch did change, before it was rolled back.
    """

    def __init__(self, *, others: int) -> None:
        super().__init__("dropped")
        self.others = others


_LOCKED = {"55P03", "40P01", "40001"}  # lock timeout, deadlock, serialization
_SLOW = {"57014", "25P04"}  # statement_timeout or a cancel, transaction_timeout
# A server that takes no writes, no connection left, idle in a transaction for too long.
_OUTAGE = {"25006", "53300", "25P03"}
_FOREIGN_KEY = {"23503", "23001"}

# What libpq says when there is no SQLSTATE, and what it means. Its own text is not repeated: it names hosts and roles.
_REASONS = {
    "authentication failed": "the role or its password was refused, check DATABASE_URL",
    "no password supplied": "DATABASE_URL holds no password",
    "Connection refused": "no server listens at the host and port of DATABASE_URL",
    "No such file or directory": "no server listens in the socket folder of DATABASE_URL",
    "translate host name": "the host name of DATABASE_URL is unknown",
    "timeout": "the host of DATABASE_URL did not answer in time",
    "does not exist": "DATABASE_URL names a database or role that does not exist",
    "too many": "the server has no connection left",
    "certificate": "the TLS certificate was not accepted",
    "invalid connection option": "a query parameter of DATABASE_URL is not taken by libpq",
    "invalid integer value": "a query parameter of DATABASE_URL is no number",
    "the database system is": "the server is starting up or shutting down",
}


def _reason(error: Error) -> str:
    text = str(error)
    return next((reason for phrase, reason in _REASONS.items() if phrase in text), "look at the server and the network")


def sqlstate(error: BaseException) -> str | None:
    """Return the SQLSTATE of a database error; None if the server did not send one."""
    return getattr(error.__cause__ or error, "sqlstate", None)


def kind(error: Error) -> Kind:
    """Tell the kind of an error. Inside atomic() a terminated backend leaves the connection looking open: ask here."""
    state = sqlstate(error)
    if isinstance(error, Dropped):
        return Kind.REFUSED
    if isinstance(error, Unanswered) or (state is None and isinstance(error, OperationalError | InterfaceError)):
        return Kind.OUTAGE
    if state is None:
        return Kind.BUG
    if state in _LOCKED:
        return Kind.LOCKED
    if state in _SLOW:
        return Kind.SLOW
    return Kind.OUTAGE if state.startswith(("08", "57P")) or state in _OUTAGE else Kind.REFUSED


def is_lost_race(error: Error, *, table: str) -> bool:
    """Tell whether a child arrived while its parent was being deleted: the constraint is the table's own."""
    return sqlstate(error) in _FOREIGN_KEY and _other_table(error) in (table, None)


def _other_table(error: Error) -> str | None:
    return getattr(getattr(error.__cause__, "diag", None), "table_name", None)


def explain(error: Error, *, table: str) -> str:
    """Return one sentence: what failed and the remedy. It names tables, never a value of a row."""
    name = f"{getattr(settings, 'DATABASE_SCHEMA', 'public')}.{table}"
    state = sqlstate(error)
    if isinstance(error, Unanswered):
        return str(error)
    if isinstance(error, Dropped):
        return f"Rows of {name} did not change although none was locked: a trigger drops the statement."
    if state in {"42P01", "3F000"}:
        return (
            f"Table {name} was not found: run `manage.py migrate`, or check DATABASE_SCHEMA and the role's USAGE on it."
        )
    if state == "42501":
        return (
            f"The database role lacks a privilege on {name}, or row security would hide rows from it: "
            "grant it what docs/database.md lists, or BYPASSRLS."
        )
    if state == "25006":
        return f"The server takes no writes to {name}: it is a standby, or was made read-only."
    if state in _FOREIGN_KEY and _other_table(error):
        return f"Rows of {name} are referenced by table {_other_table(error)} ({describe(error)}): remove what refers."
    if "unsupported startup parameter" in str(error):
        return "The pooler refuses start-up options: set DATABASE_SCHEMA_OPTION=off, as docs/database.md describes."
    if kind(error) is Kind.OUTAGE:
        return f"The database was not reached or the connection was lost: {_reason(error)} ({describe(error)})."
    if kind(error) in (Kind.LOCKED, Kind.SLOW):
        cause = "look for locks and slow triggers, and at the time limits of the role"
        return f"A statement on {name} did not end in time ({describe(error)}): {cause}."
    return f"Rows of {name} could not be changed ({describe(error)}): see docs/runbook.md."
