"""The one way of the jobs to the database: short transactions that give way, and an end to calls nobody answers."""

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from django.db import DatabaseError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus

from identity.sessions.jobs.stopping import Stop

# A server that is alive ends a statement at its own limit; one that has not answered so much later is silent.
GRACE = timedelta(seconds=5)
# What an open call gets once a stop is requested: a batch is rolled back rather than a stop kept waiting.
PATIENCE_OF_A_STOP = timedelta(seconds=15)
# A client that was suspended holds its locks no longer than this.
IDLE_IN_TRANSACTION = timedelta(seconds=10)
# jit: compiling costs more than a batch takes, and the walk up chains always looks dear to the planner.
# Parallel workers: a scan that takes every core makes sign-ins wait for theirs.
# row_security: the server raises an error where a policy would hide rows. The check of the client ends the statement of
# a worker that was killed. A limit of the role's own, where it has one, is never exceeded.
_SETTINGS = """
    SELECT clock_timestamp(), set_config('jit', 'off', true), set_config('row_security', 'off', true),
        set_config('max_parallel_workers_per_gather', '0', true), set_config('DateStyle', 'ISO', true),
        set_config('client_connection_check_interval', '2s', true),
        set_config(name, (1000 * least(
            nullif(extract(epoch FROM current_setting(name)::interval), 0), seconds))::bigint || 'ms', true)
    FROM unnest(%s::text[], %s::numeric[]) AS limits (name, seconds)
"""
_LIMITS = ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"]


class Unanswered(OperationalError):
    """The server did not answer a call in time, and the connection was cut off."""


class Watch:
    """Cut a connection off when a call on it stays unanswered: the server's own limits end nothing once it is silent.

    An execute wrapper: each statement starts its time anew. The thread holds a duplicate of the socket, so that it
    never meets another connection that was given the same number meanwhile.
    """

    def __init__(self, connection: BaseDatabaseWrapper, *, limit: timedelta, stop: Stop) -> None:
        self.cut = False
        self._socket = socket.socket(fileno=os.dup(connection.connection.fileno()))
        self._patience = (limit + GRACE).total_seconds()
        self._stop = stop
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._look, name="watch", daemon=True)
        self.expect()
        self._thread.start()

    def expect(self) -> None:
        """Start the time of the next call."""
        self._until = time.monotonic() + self._patience

    def __call__(self, execute: Callable[..., Any], *call: Any) -> Any:
        self.expect()
        return execute(*call)

    def end(self) -> None:
        self._done.set()
        self._thread.join()
        self._socket.close()

    def _look(self) -> None:
        stopping = False
        while not self._done.wait(min(0.25, max(0, self._until - time.monotonic()))):
            if self._stop.requested and not stopping:
                stopping = True
                self._patience = min(self._patience, PATIENCE_OF_A_STOP.total_seconds())
                self._until = min(self._until, time.monotonic() + self._patience)
            if time.monotonic() >= self._until:
                self.cut = True
                with suppress(OSError):  # the other end may have gone by itself
                    self._socket.shutdown(socket.SHUT_RDWR)
                return


@contextmanager
def short_transaction(alias: str, *, lock_timeout: timedelta, limit: timedelta, stop: Stop) -> Iterator[datetime]:
    """Open a transaction whose statements take `limit` at the most, each; yield the database's clock.

    All settings are the transaction's own and end with it. Raises Unanswered when a call, COMMIT included, is not
    answered within `limit` and some seconds: what was committed in that moment is then unknown.
    """
    connection = connections[alias]
    connection.ensure_connection()
    # A guarded change that lost a race has to look at the row again; at a stricter level it would be an error instead.
    if connection.connection.info.transaction_status == TransactionStatus.IDLE:
        connection.connection.isolation_level = IsolationLevel.READ_COMMITTED
    seconds = [max(each.total_seconds(), 0.001) for each in (lock_timeout, limit, IDLE_IN_TRANSACTION)]
    watch, committing = Watch(connection, limit=limit, stop=stop), False
    try:
        with connection.execute_wrapper(watch), transaction.atomic(using=alias):
            with connection.cursor() as cursor:
                cursor.execute(_SETTINGS, [_LIMITS, [min(each, 2_000_000.0) for each in seconds]])
                now: datetime = cursor.fetchone()[0]
            yield now
            watch.expect()
            committing = True
    except DatabaseError as error:
        if not watch.cut:
            raise
        unknown = ": whether the last batch was kept is not known, the next run finds out" if committing else ""
        raise Unanswered(f"The server did not answer in time and the connection was cut off{unknown}.") from error
    finally:
        watch.end()
