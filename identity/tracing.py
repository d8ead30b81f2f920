"""Spans leave the process only where the standard OTEL variables ask for it; without them they cost nothing.

OTEL_EXPORTER_OTLP_ENDPOINT or OTEL_EXPORTER_OTLP_TRACES_ENDPOINT says where to, by OTLP over HTTP, and thereby that
spans are wanted. OTEL_TRACES_EXPORTER=otlp asks too, =none forbids; OTEL_SDK_DISABLED=true forbids, whatever is set.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

from identity.deadline import bounded

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

logger = logging.getLogger(__name__)

# How late an exit may be for the sake of the last spans. Longer than the exporter tries, see identity.otlp.
LONGEST_FLUSH = timedelta(seconds=4)

_ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_PROTOCOLS = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")


@contextmanager
def exporting() -> Iterator[None]:
    """Send the spans of this process if asked for, the last of them at the end; what hinders it is a warning."""
    provider = _provider() if _asked_for() else None
    try:
        yield
    finally:
        if provider is not None and not bounded(provider.shutdown, at_most=LONGEST_FLUSH):
            logger.warning("The last spans are lost: the collector did not answer in time.")


def _provider() -> "TracerProvider | None":
    try:
        from identity import otlp

        return otlp.set_up()
    except ImportError:
        logger.warning("Spans are not sent: an OTEL variable asks for it, but the extra `otlp` is not installed.")
    except ValueError as refusal:
        logger.warning("Spans are not sent: the OpenTelemetry SDK refuses an OTEL variable: %s", refusal)
    return None


def _asked_for() -> bool:
    """Tell whether the variables ask for spans; warn about those that ask for what there is not."""
    if _variable("OTEL_SDK_DISABLED") == "true":
        return False
    exporter = _variable("OTEL_TRACES_EXPORTER")
    if exporter not in ("", "none", "otlp"):
        logger.warning("Spans are not sent: OTEL_TRACES_EXPORTER is neither otlp nor none.")
        return False
    wanted = exporter == "otlp" or (exporter == "" and any(map(_variable, _ENDPOINTS)))
    if wanted and (protocol := next(filter(None, map(_variable, _PROTOCOLS)), None)) not in (None, "http/protobuf"):
        logger.warning("Spans are not sent: OTLP over %s is not supported, only http/protobuf.", protocol)
        return False
    return wanted


def _variable(name: str) -> str:
    return os.environ.get(name, "").strip().lower()
