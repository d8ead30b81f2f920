"""Perform runs of a job in a process of its own, and print what each was like as a line of JSON.

It calls `perform`, as the command and the worker do, with the options of the environment and the settings of a
deployment: the start of Python and Django is not measured, everything behind it is.
"""

import json
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import django
from django.db import connections

from benchmarks.rig.watch import peak_memory


def main(name: str, times: int, wait: bool) -> None:
    from identity.sessions.jobs.expiry import EXPIRE_SESSIONS
    from identity.sessions.jobs.retention import SESSION_RETENTION
    from identity.sessions.options import load

    job = {"expire_sessions": EXPIRE_SESSIONS, "session_retention": SESSION_RETENTION}[name]
    options: Any = load(job.options)
    if wait:  # until all copies are ready to start
        connections["default"].ensure_connection()
        print("ready", flush=True)
        sys.stdin.readline()
    for _ in range(times):
        print(json.dumps(one_run(job, options)), flush=True)
        connections["default"].close()  # as the worker does


def one_run(job: Any, options: Any) -> dict[str, Any]:
    """Perform one run; return its times, rows, when each batch ended, seconds by statement, and peak memory in MB."""
    from identity.sessions.jobs.job import perform
    from identity.sessions.jobs.stopping import Stop

    began = time.time()
    batches: list[tuple[float, int]] = []
    spent: defaultdict[str, float] = defaultdict(float)
    started = time.perf_counter()
    processor = time.process_time()

    def timed(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        before = time.perf_counter()
        try:
            return execute(sql, params, many, context)
        finally:
            spent[sql] += time.perf_counter() - before

    with connections["default"].execute_wrapper(timed):
        report = perform(
            job,
            options,
            alias="default",
            stop=Stop(),
            progress=lambda rows: batches.append((time.perf_counter() - started, rows)),
        )
    return {
        "began": began,
        "seconds": report.seconds,
        "changed": {phase.name: rows for phase, rows in report.changed.items()},
        "left": report.left.remaining,
        "outcome": report.outcome,
        "problems": report.problems,
        "batches": batches,
        "statements": spent,
        "processor": time.process_time() - processor,
        "memory": peak_memory("self"),
    }


if __name__ == "__main__":
    django.setup()
    main(sys.argv[1], int(sys.argv[2]), "--wait" in sys.argv)
