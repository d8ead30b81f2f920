"""Signals: the first asks to stop, the second has its default effect, and none of them can hang a wait."""

import os
import random
import signal
import threading

import pytest

from identity.sessions.jobs.stopping import Stop, stopping

# A wait that a signal does not end would go on for ten minutes.
pytestmark = pytest.mark.timeout(30)
FOREVER = 600


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_requests_a_stop_and_gives_its_name(number: signal.Signals) -> None:
    with stopping() as stop:
        assert not stop.requested
        assert not stop.wait(0)
        os.kill(os.getpid(), number)
        assert stop.wait(FOREVER)
        assert (stop.requested, stop.reason) == (True, number.name)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_after_the_first_signal_either_one_kills(number: signal.Signals) -> None:
    with stopping():
        os.kill(os.getpid(), number)
        assert {signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)} == {signal.SIG_DFL}


def test_the_handlers_before_are_put_back() -> None:
    before = [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)]
    with stopping():
        os.kill(os.getpid(), signal.SIGTERM)
    assert [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_wait_ends_by_itself_without_a_request() -> None:
    assert not Stop().wait(0.001)


def test_every_wait_after_a_request_returns_at_once() -> None:
    stop = Stop()
    stop.request("SIGTERM")
    assert [stop.wait(FOREVER) for _ in range(3)] == [True] * 3


def test_a_signal_at_any_moment_of_a_wait_ends_it() -> None:
    moments = random.Random(10)
    for _ in range(200):
        with stopping() as stop:
            sender = threading.Timer(moments.random() / 500, os.kill, (os.getpid(), signal.SIGTERM))
            sender.start()
            assert stop.wait(FOREVER)
            sender.join()


def test_a_signal_that_the_wait_itself_has_not_seen_ends_it_all_the_same() -> None:
    stop = Stop()
    threading.Timer(0.05, setattr, (stop, "reason", "SIGTERM")).start()  # and no bell rings
    assert stop.wait(FOREVER)
