"""The hours in which retention may run: UTC, may cross midnight."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_DAY = 24 * 60


@dataclass(frozen=True, kw_only=True)
class NightWindow:
    """A daily window from `opens` to `closes`, in minutes after midnight UTC; `closes` <= `opens` crosses midnight."""

    opens: int
    closes: int

    def __str__(self) -> str:
        return f"{self.opens // 60:02}:{self.opens % 60:02}-{self.closes // 60:02}:{self.closes % 60:02}"

    @property
    def length(self) -> timedelta:
        return timedelta(minutes=(self.closes - self.opens) % _DAY or _DAY)

    @property
    def always(self) -> bool:
        """Tell whether it is the whole day: there is no opening to wait for, and no end."""
        return self.length == timedelta(days=1)

    def opening(self, moment: datetime) -> datetime:
        """Return the last opening at or before the moment."""
        midnight = moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        opening = midnight + timedelta(minutes=self.opens)
        return opening if opening <= moment else opening - timedelta(days=1)

    def closing(self, moment: datetime) -> datetime:
        """Return the end of the window that opened last."""
        return self.opening(moment) + self.length

    def contains(self, moment: datetime) -> bool:
        return moment < self.closing(moment)

    def next_opening(self, moment: datetime) -> datetime:
        """Return the first opening after the moment."""
        return self.opening(moment) + timedelta(days=1)


def parse_night_window(value: str) -> NightWindow:
    """Return the window written as HH:MM-HH:MM, or raise ValueError. 24:00 is the end of a day, equal ends are none."""
    match = re.fullmatch(r"([0-9]{2}):([0-9]{2})-([0-9]{2}):([0-9]{2})", value)
    if not match:
        raise ValueError(value)
    hour, minute, end_hour, end_minute = map(int, match.groups())
    opens, closes = hour * 60 + minute, end_hour * 60 + end_minute
    if minute > 59 or end_minute > 59 or opens >= _DAY or closes > _DAY or opens == closes:
        raise ValueError(value)
    return NightWindow(opens=opens, closes=closes)
