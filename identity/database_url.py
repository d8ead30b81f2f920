"""Read a database URL, and refuse what could only fail later: another scheme, no name, odd parameters."""

from typing import Any

from environ import Env
from psycopg import ProgrammingError
from psycopg.conninfo import make_conninfo, timeout_from_conninfo
from psycopg.pq import PGconn

ACCEPTED = "postgres://user:password@host:port/name, or postgres://user:password@:port//socket/folder/name"


def parse(url: str) -> dict[str, Any]:
    """Return the entry of DATABASES, query parameters as its OPTIONS; raise ValueError for what is not accepted."""
    if not url.startswith(("postgres://", "postgresql://")):
        raise ValueError("scheme")
    url.encode()  # bytes that are no UTF-8 could not be sent to the server either; the error is a ValueError
    entry: dict[str, Any] = Env.db_url_config(url, engine="django_prometheus.db.backends.postgresql")
    if not entry["NAME"]:
        raise ValueError("name")
    _refuse_parameters(entry.get("OPTIONS", {}))
    return entry


def _refuse_parameters(options: dict[str, Any]) -> None:
    try:
        timeout_from_conninfo(options)
        # libpq looks at the values before it connects; there is no server in this folder.
        attempt = PGconn.connect_start(make_conninfo(**{**options, "host": "/"}).encode())
    except ProgrammingError as unknown:
        raise ValueError("parameter") from unknown
    if attempt.error_message.startswith(b"invalid"):
        raise ValueError("value of a parameter")
