"""What a database error means for a job, told by its SQLSTATE, and the sentence for the person who reads it."""

from enum import Enum, auto

from django.conf import settings
from django.db import Error, InterfaceError, OperationalError

from identity.logs import describe


class Kind(Enum):
    """What to do about an error."""

    OUTAGE = auto()  # the connection is lost, or leads to a server that takes no writes: drop it, come back later
    CUT = auto()  # a time limit or a deadlock ended the batch: the same in smaller pieces
    HOPELESS = auto()  # a missing table or privilege, a full disk: no batch of any size will do
    ROW = auto()  # a constraint, a trigger: some row of the batch is the cause


STATEMENT_TIMEOUT = "57014"
_CUT = {STATEMENT_TIMEOUT, "55P03", "40P01", "40001"}  # and lock timeout, deadlock, serialization
_HOPELESS_CLASSES = {"0A", "28", "3D", "3F", "42", "53", "54", "55", "58", "XX"}


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
    if state is None:
        return Kind.OUTAGE if isinstance(error, OperationalError | InterfaceError) else Kind.HOPELESS
    if state in _CUT:
        return Kind.CUT
    if state.startswith(("08", "57P")) or state in {"25006", "53300"}:
        return Kind.OUTAGE
    return Kind.HOPELESS if state[:2] in _HOPELESS_CLASSES else Kind.ROW


def explain(error: Error, *, table: str) -> str:
    """Return one sentence: what failed and the remedy. It names the table, never a value of a row."""
    name = f"{settings.DATABASE_SCHEMA}.{table}"
    state = sqlstate(error)
    if state in {"42P01", "3F000"}:
        return (
            f"Table {name} was not found: run `manage.py migrate`, or check DATABASE_SCHEMA and the role's USAGE on it."
        )
    if state == "42501":
        return f"The database role lacks a privilege on {name}: grant it what docs/database.md lists."
    if state == "25006":
        return f"The server takes no writes to {name}: it is a standby, or was made read-only."
    if "unsupported startup parameter" in str(error):
        return "The pooler refuses start-up options: set DATABASE_SCHEMA_OPTION=off, as docs/database.md describes."
    if kind(error) is Kind.OUTAGE:
        return f"The database was not reached or the connection was lost: {_reason(error)} ({describe(error)})."
    if kind(error) is Kind.CUT:
        cause = "look for locks and slow triggers, and at the time limits of the role"
        return f"A statement on {name} did not end in time ({describe(error)}): {cause}."
    return f"Rows of {name} could not be changed ({describe(error)}): see docs/runbook.md."
