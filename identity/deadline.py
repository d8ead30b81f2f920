"""Call something that may hang, and give up on it after a while."""

from collections.abc import Callable
from datetime import timedelta
from threading import Thread


def bounded(call: Callable[[], object], *, at_most: timedelta) -> bool:
    """Call it and return True, or return False once the time is over; it goes on by itself, and ends with the process.

    A timeout of the call's own does not do: looking up a host's name has none, and an answer may come drop by drop.
    """
    thread = Thread(target=call, name="bounded", daemon=True)
    thread.start()
    thread.join(at_most.total_seconds())
    return not thread.is_alive()
