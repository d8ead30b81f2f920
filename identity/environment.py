"""Read environment variables: an unset one means its default, a wrong one is refused in one sentence."""

import ipaddress
import os
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured

# A century: the largest age that a date can be moved back by without leaving the calendar.
LONGEST = timedelta(days=36500)
# One batch is one transaction and one array of ids in the server's memory.
LARGEST_BATCH = 1_000_000


class Form(NamedTuple):
    """An accepted form: `parse` raises ValueError for anything else, `accepted` says what to give.

    A `secret` value is not repeated in a refusal.
    """

    parse: Callable[[str], Any]
    accepted: str
    secret: bool = False


def refused(name: str, value: str, form: Form) -> ImproperlyConfigured:
    """Return the error for a value: one sentence with the name, the value and the accepted form."""
    shown = name if form.secret else f"{name}={value!r}"
    return ImproperlyConfigured(f"{shown} is refused: give {form.accepted}.")


def parse(name: str, value: str, form: Form) -> Any:
    """Return the parsed value of the option or variable `name`, or raise ImproperlyConfigured."""
    try:
        return form.parse(value)
    except (ValueError, OverflowError):
        raise refused(name, value, form) from None


def read(name: str, form: Form, default: str | None = None) -> Any:
    """Return the parsed value of a variable; None if it is unset and has no default.

    A value `$OTHER` stands for the value of OTHER, as django-environ has it; where OTHER is unset it is refused.
    """
    written = os.environ.get(name, default)
    if written is None:
        return None
    other = written.removeprefix("$")
    if other not in (written, name) and other in os.environ:
        # What the other one holds is not for a message about this one.
        return parse(name, os.environ[other], form._replace(secret=True))
    return parse(name, written, form)


def secret(name: str, accepted: str) -> str | None:
    """Return a variable as it is written, "$" included; None if unset; refused without its value if empty."""
    written = os.environ.get(name)
    if written is not None and not written.strip():
        raise ImproperlyConfigured(f"{name} is empty: give {accepted}.")
    return written


_UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_ISO = re.compile(
    r"P(?=.)(?:(?P<days>[0-9]+)D)?(?:T(?=.)(?:(?P<hours>[0-9]+)H)?(?:(?P<minutes>[0-9]+)M)?(?:(?P<seconds>[0-9]+)S)?)?"
)


def _duration_or_zero(value: str) -> timedelta:
    if short := re.fullmatch(r"([0-9]+)(ms|s|m|h|d)", value):
        parts = {_UNITS[short[2]]: int(short[1])}
    elif iso := _ISO.fullmatch(value):
        parts = {unit: int(count) for unit, count in iso.groupdict(default="0").items()}
    else:
        raise ValueError(value)
    duration = timedelta(**parts)
    if duration > LONGEST:
        raise ValueError(value)
    return duration


def _duration(value: str) -> timedelta:
    duration = _duration_or_zero(value)
    if not duration:
        raise ValueError(value)
    return duration


def _number(value: str, *, largest: int) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", value) or not 1 <= int(value) <= largest:
        raise ValueError(value)
    return int(value)


def _truth(value: str) -> bool:
    return {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}[value.lower()]


def _boolean(value: str) -> bool:
    try:
        return _truth(value)
    except KeyError:
        raise ValueError(value) from None


def _matching(pattern: str) -> Callable[[str], str]:
    def match(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(value)
        return value

    return match


_EXAMPLES = "a whole number with a unit (ms, s, m, h, d) such as 5m, or ISO 8601 such as PT5M, at most 36500d"
DURATION = Form(_duration, f"{_EXAMPLES} and above zero")
DURATION_OR_ZERO = Form(_duration_or_zero, f"{_EXAMPLES}; 0s is allowed")
BATCH_SIZE = Form(lambda value: _number(value, largest=LARGEST_BATCH), f"a whole number from 1 to {LARGEST_BATCH}")
PORT = Form(lambda value: _number(value, largest=65535), "a port number from 1 to 65535")
ADDRESS = Form(lambda value: str(ipaddress.ip_address(value)), "an IP address such as 127.0.0.1")
BOOLEAN = Form(_boolean, "true or false (also on, off, 1, 0)")
SCHEMA = Form(_matching(r"[a-z_][a-z0-9_]{0,62}"), "a schema name of lower-case letters, digits and underscores")
HOSTS = Form(
    lambda value: [_matching(r"[^\s,]+")(host.strip()) for host in value.split(",")],
    "host names separated by commas, such as id.example.org",
)
LEVEL = Form(_matching("DEBUG|INFO|WARNING|ERROR|CRITICAL"), "one of DEBUG, INFO, WARNING, ERROR, CRITICAL")
URL = Form(_matching(r"https?://[^\s/]+\S*"), "an address such as http://gateway:9091", secret=True)
PATH = Form(_matching(r"\S(.*\S)?"), "the path of a file")
