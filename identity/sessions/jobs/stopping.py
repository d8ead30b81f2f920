"""Stop in order on the first SIGTERM or SIGINT; the second one kills."""

import os
import queue
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

# A signal that comes in the instant before the wait begins is not seen by it: Python runs handlers between its own
# instructions only. So a wait is a chain of short ones.
_LONGEST_DEAF = 0.25


class Stop:
    """A request to stop, and a wait that it ends early.

    Not threading.Event: its lock is not re-entrant, and a handler that interrupts its own wait can hang for ever.
    SimpleQueue.put is made for that.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self._bell: queue.SimpleQueue[None] = queue.SimpleQueue()

    @property
    def requested(self) -> bool:
        return self.reason is not None

    def request(self, reason: str) -> None:
        self.reason = reason
        self._bell.put(None)

    def wait(self, seconds: float) -> bool:
        """Wait up to so many seconds; return True at once when a stop is or becomes requested."""
        end = time.monotonic() + seconds
        while not self.requested and (left := end - time.monotonic()) > 0:
            with suppress(queue.Empty):
                self._bell.get(timeout=min(left, _LONGEST_DEAF))
        return self.requested


def _second() -> Callable[[int, FrameType | None], None] | signal.Handlers:
    """Return what a second signal does: it ends the process, and the open batch rolls back.

    Process 1, the only one of a container, is spared the default by the kernel: it has to leave by itself.
    """
    return signal.SIG_DFL if os.getpid() != 1 else lambda number, _: os._exit(128 + number)


@contextmanager
def stopping() -> Iterator[Stop]:
    """Yield a Stop that SIGTERM and SIGINT request; the handlers before are put back at the end."""
    stop = Stop()
    signals = (signal.SIGTERM, signal.SIGINT)

    def handle(number: int, _: FrameType | None) -> None:
        for each in signals:
            signal.signal(each, _second())
        stop.request(signal.Signals(number).name)

    before = {each: signal.signal(each, handle) for each in signals}
    try:
        yield stop
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
