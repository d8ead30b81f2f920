"""System checks: the mistakes in the options that the commands refuse, and values that are legal and suspicious."""

from collections.abc import Iterable
from typing import Any

from django.core.checks import CheckMessage, Error, Warning, register
from django.core.exceptions import ImproperlyConfigured

from identity import environment
from identity.sessions.options import ExpireSessionsOptions, Options, SessionRetentionOptions, declared, load


@register()
def options_are_accepted(**_: Any) -> Iterable[CheckMessage]:
    """Report every refused variable as E001, and suspicious values as W001."""
    found: list[CheckMessage] = []
    jobs: tuple[type[Options], ...] = (ExpireSessionsOptions, SessionRetentionOptions)
    for job in jobs:
        refusals = list(_refusals(job))
        found += refusals or [
            Warning(sentence, hint="Change it unless it is meant.", id="identity_sessions.W001")
            for sentence in load(job).warnings()
        ]
    return found


def _refusals(job: type[Options]) -> Iterable[CheckMessage]:
    for each in declared(job):
        try:
            environment.read(each.variable, each.form, each.default)
        except ImproperlyConfigured as refusal:
            hint = f"Unset it for the default, {each.default}: {each.help}."
            yield Error(str(refusal), hint=hint, id="identity_sessions.E001")
