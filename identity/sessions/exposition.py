"""Where the metrics of a job can be read."""

from prometheus_client import REGISTRY, start_http_server

from identity.sessions.telemetry import Metrics


def serve(metrics: Metrics, *, port: int, address: str) -> None:
    REGISTRY.register(metrics.registry)
    start_http_server(port, address)


def leave(job: str, metrics: Metrics) -> None:
    pass
