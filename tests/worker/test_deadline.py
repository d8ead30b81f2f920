"""Giving up on what hangs."""

from datetime import timedelta
from threading import Event

from identity.deadline import bounded


def test_a_call_that_ends_in_time_is_waited_for():
    done: list[int] = []
    assert bounded(lambda: done.append(1), at_most=timedelta(seconds=60))
    assert done == [1]


def test_a_call_that_hangs_is_given_up():
    release = Event()
    assert not bounded(release.wait, at_most=timedelta(milliseconds=10))
    release.set()
