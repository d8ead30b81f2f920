"""What the two commands share: flags, refusals, a dry run, one run, and the words at the end."""

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import Error, connections
from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from identity import environment, tracing
from identity.sessions.jobs import failures
from identity.sessions.jobs.database import short_transaction
from identity.sessions.jobs.job import Job, Report, perform
from identity.sessions.jobs.stopping import Stop, stopping
from identity.sessions.jobs.telemetry import TABLES, Outcome, Phase
from identity.sessions.options import Options, declared, load
from identity.sessions.worker import exposition
from identity.sessions.worker.worker import stay

# Who asks what a run would do waits for it; on a table where it takes longer, a run has to tell.
LONGEST_PREVIEW = timedelta(minutes=10)


def add_arguments(parser: ArgumentParser, options: type[Options]) -> None:
    """Add the flags of a job; each goes before its environment variable, through the same validation."""
    parser.add_argument("--loop", action="store_true", help="stay and run on schedule until SIGTERM or SIGINT")
    parser.add_argument("--dry-run", action="store_true", help="say what a run would change, and change nothing")
    parser.add_argument("--database", default="default", help="alias of the database (default: %(default)s)")
    parser.add_argument("--metrics-port", help="with --loop: serve /metrics on this port (METRICS_PORT)")
    for each in declared(options):
        if each.flag:
            parser.add_argument(each.flag, help=f"{each.help} ({each.variable}, default {each.default})")


def handle(job: Job, *, loop: bool, dry_run: bool, database: str, metrics_port: str | None, **flags: Any) -> str | None:
    """Run a command: exit 2 for what is refused, before any SQL, exit 1 if a phase failed, else return the summary."""
    try:
        _refuse_combinations(loop=loop, dry_run=dry_run, database=database, metrics_port=metrics_port)
        options = load(job.options, **{each.name: flags.get(each.name) for each in declared(job.options)})
        if loop:
            _serve(job, metrics_port)
    except ImproperlyConfigured as refusal:
        raise CommandError(str(refusal), returncode=2) from None
    if dry_run:
        return _preview(job, options, alias=database)
    # A signal while metrics and spans are handed over comes too late to stop anything, and must not lose them.
    with stopping() as stop, tracing.exporting():
        if loop:
            stay(job, options, alias=database, stop=stop)
            return None
        return _once(job, options, alias=database, stop=stop)


def _serve(job: Job, flag: str | None) -> None:
    name, port = "METRICS_PORT", settings.METRICS_PORT
    if flag is not None:
        name = "--metrics-port"
        port = environment.parse(name, flag, environment.PORT)
    if port:
        exposition.serve(job.metrics, name=name, port=port, address=settings.METRICS_ADDRESS)


def _refuse_combinations(*, loop: bool, dry_run: bool, database: str, metrics_port: str | None) -> None:
    if database not in connections.settings:
        known = ", ".join(connections.settings)
        raise ImproperlyConfigured(f"--database={database!r} is refused: give an alias of DATABASES ({known}).")
    if dry_run and loop:
        raise ImproperlyConfigured("--dry-run with --loop is refused: give one of them.")
    if metrics_port is not None and not loop:
        raise ImproperlyConfigured("--metrics-port without --loop is refused: a single run serves nothing.")


def _once(job: Job, options: Options, *, alias: str, stop: Stop) -> str:
    with _progress(job.name) as advance:
        report = perform(job, options, alias=alias, stop=stop, progress=advance)
    exposition.leave(job.name, job.metrics)
    summary = _summary(job, report)
    if report.outcome is Outcome.FAILED:
        sys.stdout.write(f"{summary}\n")
        raise CommandError(" ".join(report.problems), returncode=1)
    return summary


@contextmanager
def _progress(name: str) -> Iterator[Callable[[int], None]]:
    """Show a bar on a terminal, once a run has lasted a second; log lines then pass above it."""
    # There is no stderr at all where a caller has closed it.
    terminal = sys.stderr is not None and sys.stderr.isatty()
    started = time.monotonic()
    with ExitStack() as shown:
        bar: tqdm[Any] | None = None
        done = 0

        def advance(rows: int) -> None:
            nonlocal bar, done
            done += rows
            if bar is not None:
                bar.update(rows)
            # Only now: the redirection of the log redraws a bar after each line, however young it is.
            elif terminal and time.monotonic() - started > 1:
                bar = shown.enter_context(tqdm(desc=name, unit=" rows", initial=done, file=sys.stderr))
                shown.enter_context(logging_redirect_tqdm())

        yield advance


def _summary(job: Job, report: Report) -> str:
    left = "an unknown number" if report.left.remaining is None else report.left.remaining
    blocked = f" ({report.left.blocked} blocked by a descendant)" if report.left.blocked else ""
    changed = _counts(report.changed, "{}")
    return f"{job.name}: {changed} in {report.seconds:.1f} s, {left} left{blocked}, {report.outcome}."


def _counts(changes: dict[Phase, int], verb: str) -> str:
    """Return what phases change, grouped by what they do: "3 sessions and 4 confirmation requests deleted"."""
    done = list(dict.fromkeys(phase.done for phase in changes))
    rows = {each: [f"{rows} {phase.things}" for phase, rows in changes.items() if phase.done == each] for each in done}
    return ", ".join(f"{' and '.join(things)} {verb.format(each)}" for each, things in rows.items())


def _preview(job: Job, options: Options, *, alias: str) -> str:
    try:
        with short_transaction(alias, lock_timeout=options.lock_timeout, limit=LONGEST_PREVIEW, stop=Stop()) as now:
            preview = job.preview(alias, now, options)
    except Error as error:
        raise CommandError(failures.explain(error, table=TABLES[0]), returncode=1) from None
    kept = f" ({preview.blocked} more are blocked by a descendant)" if preview.blocked else ""
    return f"{job.name}: {_counts(preview.changes, 'would be {}')}{kept}; nothing was changed."
