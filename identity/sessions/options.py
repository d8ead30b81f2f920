"""The options of the two jobs: each is named, defaulted, documented and validated here and nowhere else.

An option is read from its environment variable; the flag of the same name goes before it, through the same validation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from datetime import timedelta
from typing import Any, ClassVar, NamedTuple, TypeVar

from identity import environment
from identity.environment import BATCH_SIZE, BOOLEAN, DURATION, DURATION_OR_ZERO, Form
from identity.sessions.night_window import NightWindow, parse_night_window

NIGHT_WINDOW = Form(
    parse_night_window, "HH:MM-HH:MM in UTC with different ends, such as 02:00-05:00, or 00:00-24:00 for always"
)


def option(default: str, form: Form, help: str, *, flag: bool = False, variable: str | None = None) -> Any:
    """Declare an option: its default and form as one writes them, and what it is for; `flag` gives it a flag too.

    Its variable is the job's prefix and the field's name in capitals, unless `variable` says otherwise.
    """
    return field(metadata={"default": default, "form": form, "help": help, "flag": flag, "variable": variable})


@dataclass(frozen=True, kw_only=True)
class ExpireSessionsOptions:
    """Options of job 1."""

    prefix: ClassVar = "EXPIRE_SESSIONS"
    polling_interval: timedelta = option("5m", DURATION, "from the start of one run to the next", flag=True)
    batch_size: int = option("5000", BATCH_SIZE, "rows that one transaction changes at the most", flag=True)
    max_run_duration: timedelta = option("2m", DURATION, "after this a run ends, the next takes the rest", flag=True)
    batch_pause: timedelta = option("0s", DURATION_OR_ZERO, "rest between two batches, outside any transaction")
    lock_timeout: timedelta = option("500ms", DURATION, "longest wait for a lock, then the job gives way")

    @property
    def interval(self) -> timedelta:
        return self.polling_interval

    def warnings(self) -> list[str]:
        """Return a sentence for each value that is legal and suspicious."""
        return [
            *_run_duration(self.prefix, "POLLING_INTERVAL", self.max_run_duration, self.polling_interval),
            *_lock_timeout(self.prefix, self.lock_timeout),
        ]


@dataclass(frozen=True, kw_only=True)
class SessionRetentionOptions:
    """Options of job 2."""

    prefix: ClassVar = "SESSION_RETENTION"
    sicr_retention: timedelta = option("30d", DURATION, "age of a confirmation request, by created_at")
    refresh_terminal_retention: timedelta = option("90d", DURATION, "age of an ended session, by updated_at")
    retention_interval: timedelta = option("24h", DURATION, "from the start of one run to the next", flag=True)
    batch_size: int = option("5000", BATCH_SIZE, "rows that one transaction deletes at the most", flag=True)
    max_run_duration: timedelta = option("30m", DURATION, "after this a run ends, the next takes the rest", flag=True)
    night_window: NightWindow = option(
        "02:00-05:00", NIGHT_WINDOW, "hours in which --loop may run", flag=True, variable="NIGHT_WINDOW_UTC"
    )
    batch_pause: timedelta = option("0s", DURATION_OR_ZERO, "rest between two batches, outside any transaction")
    lock_timeout: timedelta = option("500ms", DURATION, "longest wait for a lock, then the job gives way")
    redact_blocked: bool = option("off", BOOLEAN, "blank address and agent of old sessions that must stay")

    @property
    def interval(self) -> timedelta:
        return self.retention_interval

    def warnings(self) -> list[str]:
        """Return a sentence for each value that is legal and suspicious."""
        short = [
            f"{self.prefix}_{name.upper()} is {written(getattr(self, name))}: rows go in less than a day."
            for name in ("sicr_retention", "refresh_terminal_retention")
            if getattr(self, name) < timedelta(days=1)
        ]
        return [
            *short,
            *_run_duration(self.prefix, "RETENTION_INTERVAL", self.max_run_duration, self.retention_interval),
            *_lock_timeout(self.prefix, self.lock_timeout),
        ]


Options = ExpireSessionsOptions | SessionRetentionOptions
T = TypeVar("T", bound=Options)


class Declared(NamedTuple):
    """An option as declared: the field's name, its variable, its flag (None if it has none), default, form and help."""

    name: str
    variable: str
    flag: str | None
    default: str
    form: Form
    help: str


def declared(options: type[Any]) -> Iterator[Declared]:
    """Yield what a job's options class declares, in order: for loading, --help and the checks alike."""
    for each in fields(options):
        about = each.metadata
        yield Declared(
            each.name,
            f"{options.prefix}_{about['variable'] or each.name.upper()}",
            f"--{each.name.replace('_', '-')}" if about["flag"] else None,
            about["default"],
            about["form"],
            about["help"],
        )


def load(options: type[T], **flags: str | None) -> T:
    """Return the options in force: a flag that is given, else the environment, else the default.

    Raises ImproperlyConfigured with one sentence that names the flag or variable, the value and the accepted form.
    """
    values = {}
    for each in declared(options):
        written = flags.get(each.name)
        if written is None:
            values[each.name] = environment.read(each.variable, each.form, each.default)
        else:
            values[each.name] = environment.parse(str(each.flag), written, each.form)
    return options(**values)


def written(value: timedelta | int | bool | NightWindow) -> str:
    """Return a value the way one would write it in the environment: 90m, not 5400 seconds."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if not isinstance(value, timedelta):
        return str(value)
    milliseconds = value // timedelta(milliseconds=1)
    units = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
    unit = next(unit for unit, size in units.items() if milliseconds % size == 0 and (milliseconds or unit == "s"))
    return f"{milliseconds // units[unit]}{unit}"


def effective(options: Options) -> dict[str, str]:
    """Return the options in force by variable, as one writes them: for the worker's first log line and the admin."""
    return {each.variable: written(getattr(options, each.name)) for each in declared(type(options))}


def _run_duration(prefix: str, interval: str, longest: timedelta, between: timedelta) -> list[str]:
    found = f"{prefix}_MAX_RUN_DURATION is {written(longest)}"
    if longest < timedelta(seconds=1):
        return [f"{found}: a run may end before its first batch."]
    if longest > between:
        return [f"{found}, longer than {prefix}_{interval} ({written(between)}): a run may delay the next."]
    return []


def _lock_timeout(prefix: str, longest: timedelta) -> list[str]:
    if longest < timedelta(seconds=1):  # the default deadlock_timeout
        return []
    return [
        f"{prefix}_LOCK_TIMEOUT is {written(longest)}: PostgreSQL looks for deadlocks after a second,"
        " and may cancel a sign-in instead of the job."
    ]
