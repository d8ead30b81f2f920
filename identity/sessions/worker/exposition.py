"""Where the metrics of a job can be read: at a worker's own endpoint, or where a one-shot run has left them.

A one-shot run is gone before anyone could ask it, so it leaves its metrics with a Pushgateway, in a file for the
textfile collector of the node exporter, or both: those of its own job alone, for those of its process mean nothing once
it has ended. What is left replaces metrics of the same name and spares all others, and what has no value is not left,
so that a run that failed does not wipe out when the last success was. Neither place can make a job fail or wait long.
"""

import logging
import math
import os
from collections.abc import Iterable, Iterator
from datetime import timedelta
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from prometheus_client import REGISTRY, CollectorRegistry, Metric, pushadd_to_gateway, start_http_server
from prometheus_client.exposition import write_to_textfile
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from identity.deadline import bounded
from identity.sessions.jobs.telemetry import Metrics

logger = logging.getLogger(__name__)

# For a Pushgateway that does not answer; and for one that answers drop by drop, or whose name is looked up for long.
PUSH_TIMEOUT = timedelta(seconds=3)
LONGEST_PUSH = timedelta(seconds=4)


def serve(metrics: Metrics, *, name: str, port: int, address: str) -> None:
    """Answer GET /metrics with the metrics of one job and of this process, until the process ends.

    Raises ImproperlyConfigured, in the name of the setting, if the port cannot be opened.
    """
    both = CollectorRegistry(support_collectors_without_names=True)
    both.register(metrics.registry)
    both.register(REGISTRY)
    try:
        server, _ = start_http_server(port, addr=address, registry=both)
    except OSError as error:
        raise ImproperlyConfigured(
            f"{name}={port} is refused: port {port} of {address} cannot be opened ({_reason(error)}); "
            "give a port that is free, and in METRICS_ADDRESS an address of this host."
        ) from None
    # It would write a traceback to stderr, in between the log lines, whenever a client breaks off.
    server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]


def leave(job: str, metrics: Metrics) -> None:
    """Leave the metrics of `job` where the settings say; a place that does not take them is a warning."""
    if settings.METRICS_TEXTFILE is not None:
        _write(metrics.registry, Path(settings.METRICS_TEXTFILE))
    url = settings.PROMETHEUS_PUSHGATEWAY_URL
    if url is not None and not bounded(lambda: _push(metrics.registry, job, url), at_most=LONGEST_PUSH):
        logger.warning("The metrics were not pushed: the Pushgateway did not answer in time.")


class _Left:
    """The metrics of a registry that have a value, then those of `others` of which it has none."""

    def __init__(self, registry: CollectorRegistry, *, others: Iterable[Metric] = ()) -> None:
        self._registry = registry
        self._others = others

    def collect(self) -> Iterator[Metric]:
        names = set()
        for metric in self._registry.collect():
            metric.samples = [sample for sample in metric.samples if _has_value(sample)]
            if metric.samples:
                names.add(metric.name)
                yield metric
        yield from (metric for metric in self._others if metric.name not in names)


def _has_value(sample: Sample) -> bool:
    # Gauges are NaN until they are known, times 0. When a counter was created matters to no one after the process.
    unknown = math.isnan(sample.value) or (sample.value == 0 and sample.name.endswith("_timestamp_seconds"))
    return not unknown and not sample.name.endswith("_created")


def _push(registry: CollectorRegistry, job: str, url: str) -> None:
    try:
        pushadd_to_gateway(url, job=job, registry=_Left(registry), timeout=PUSH_TIMEOUT.total_seconds())
    # ValueError is a host's name that is none, HTTPException an answer that is not HTTP, OSError all the rest.
    except (OSError, HTTPException, ValueError) as error:
        logger.warning("The metrics were not pushed: the Pushgateway did not take them (%s).", _reason(error))


def _write(registry: CollectorRegistry, path: Path) -> None:
    try:
        write_to_textfile(str(path), _Left(registry, others=_read(path)))
    except OSError as error:
        logger.warning("The metrics were not written to METRICS_TEXTFILE: it cannot be replaced (%s).", _reason(error))


def _read(path: Path) -> list[Metric]:
    try:
        return list(text_string_to_metric_families(path.read_text()))
    except (FileNotFoundError, ValueError):  # ValueError: no metrics, so nothing that would be lost
        return []


def _reason(error: Exception) -> str:
    """Return what an error says without the hosts, paths and credentials that its text may name."""
    if isinstance(error, HTTPError):
        return f"HTTP {error.code}"
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, OSError) and cause.errno is not None and cause.errno > 0:
        return os.strerror(cause.errno)
    return type(cause).__name__
