"""The OpenTelemetry SDK with the OTLP/HTTP exporter: imported only where spans are wanted, for it is an extra."""

import logging
from collections.abc import Sequence
from datetime import timedelta

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

logger = logging.getLogger(__name__)

# For one batch of spans, retries included. OTEL_EXPORTER_OTLP_TIMEOUT is not read: a stop has to stay short.
EXPORT_TIMEOUT = timedelta(seconds=3)


class OneWarningAnOutage(SpanExporter):
    """Send spans; when they are not taken say so once, in one sentence, until some are taken again."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._exporter.export(spans)
        failed = result is not SpanExportResult.SUCCESS
        if failed and not self._failing:
            logger.warning("Spans are lost: the collector that OTEL_EXPORTER_OTLP_ENDPOINT names does not take them.")
        self._failing = failed
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def set_up() -> TracerProvider:
    """Send the spans of this process from now on, as the standard OTEL variables say; the caller shuts it down.

    Raises ValueError where one of them has a value that the SDK refuses.
    """
    # The exporter writes a line for each attempt and a traceback for some errors: see OneWarningAnOutage instead.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    logging.getLogger("urllib3").setLevel(logging.CRITICAL)
    name = Resource({SERVICE_NAME: "identity"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=Resource.create().merge(name), shutdown_on_exit=False)
    exporter = OTLPSpanExporter(timeout=EXPORT_TIMEOUT.total_seconds())
    provider.add_span_processor(BatchSpanProcessor(OneWarningAnOutage(exporter)))
    trace.set_tracer_provider(provider)
    return provider
