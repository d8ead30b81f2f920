"""A collector of spans: it takes OTLP over HTTP, as a real one does, and keeps what it was sent."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Span(NamedTuple):
    """One span as it arrived."""

    name: str
    id: bytes
    parent: bytes
    attributes: dict[str, Any]
    failed: bool
    description: str
    events: list[str]
    service: str


class Collector:
    """Listens on a port of its own; `refusing` answers each request with that status."""

    def __init__(self, *, refusing: int | None = None) -> None:
        self._bodies: SimpleQueue[bytes] = SimpleQueue()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._bodies, refusing or 200))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def raw(self) -> bytes:
        """Return everything that has arrived since the last look, as it came."""
        bodies = []
        while not self._bodies.empty():
            bodies.append(self._bodies.get())
        return b"".join(bodies)

    def spans(self) -> dict[str, Span]:
        """Return the spans that have arrived since the last look, by name."""
        # Messages that follow each other are one message, so a protobuf of repeated fields may be read in one go.
        request = ExportTraceServiceRequest.FromString(self.raw())
        return {
            span.name: _span(span, resource.resource)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }


def _span(span: Any, resource: Any) -> Span:
    return Span(
        name=span.name,
        id=span.span_id,
        parent=span.parent_span_id,
        attributes=_plain(span.attributes),
        failed=span.status.code == span.status.STATUS_CODE_ERROR,
        description=span.status.message,
        events=[event.name for event in span.events],
        service=_plain(resource.attributes)["service.name"],
    )


def _plain(attributes: Any) -> dict[str, Any]:
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in attributes}


def _handler(bodies: "SimpleQueue[bytes]", status: int) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.path == "/v1/traces" and status == 200:
                bodies.put(body)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    return Handler
