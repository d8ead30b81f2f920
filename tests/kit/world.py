"""A world for the loop: a clock that only waiting and working move, so that a night costs no time."""

from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import chain
from itertools import repeat as forever

from identity.sessions.jobs.stopping import Stop
from identity.sessions.worker.schedule import Moment, Schedule, repeat


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


class World(Stop):
    """A clock and a wait that moves it, until a stop after `lasting`.

    `jumps` are what happens to the host: at a time of UTC, it becomes another.
    """

    def __init__(self, start: datetime, lasting: timedelta, jumps: dict[datetime, datetime] | None = None) -> None:
        super().__init__()
        self.utc, self.steady, self.lasting = start, 0.0, lasting.total_seconds()
        self.jumps = jumps or {}
        self.waits: list[float] = []

    def clock(self) -> Moment:
        return Moment(utc=self.utc, steady=self.steady)

    def work(self, duration: timedelta) -> None:
        self.utc += duration
        self.steady += duration.total_seconds()

    def wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        self.work(timedelta(seconds=max(seconds, 0.001)))
        for moment in [moment for moment in self.jumps if moment <= self.utc]:
            self.utc = self.jumps.pop(moment)
        if self.steady >= self.lasting:
            self.request("SIGTERM")
        return self.requested


def starts(
    world: World,
    schedule: Schedule,
    interval: timedelta,
    *,
    lengths: Iterable[timedelta] = (),
    succeeds: Callable[[int], bool] = lambda run: True,
) -> list[datetime]:
    """Return when runs started; each takes the next of `lengths`, then no time at all."""
    begun: list[datetime] = []
    length = chain(lengths, forever(timedelta()))

    def task() -> bool:
        begun.append(world.utc)
        world.work(next(length))
        return succeeds(len(begun))

    repeat(task, schedule=schedule, interval=interval, stop=world, clock=world.clock)
    return begun
