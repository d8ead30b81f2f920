"""Spans leave the process only where the standard OTEL variables ask for it."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def exporting() -> Iterator[None]:
    yield
