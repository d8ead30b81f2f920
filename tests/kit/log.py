"""Log lines, parsed."""

from typing import Any


class Log(list[dict[str, Any]]):
    """The lines of a log in order."""

    def events(self, name: str) -> list[dict[str, Any]]:
        return [line for line in self if line["event"] == name]
