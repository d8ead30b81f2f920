"""The filter of both lists: the sets that the jobs work on, by the same QuerySets."""

from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from django.contrib.admin import SimpleListFilter
from django.db.models import QuerySet
from django.http import HttpRequest

from identity.sessions.backoffice.bounded import clock
from identity.sessions.options import SessionRetentionOptions, load


class Choice(NamedTuple):
    """A choice of the filter: its words, the set it selects at a moment, the key of which the oldest come first.

    `indexed` tells whether an index has the set in that order.
    """

    words: str
    select: Callable[[Any, datetime, SessionRetentionOptions], QuerySet[Any]]
    order: str
    indexed: bool = True


class WaitingFilter(SimpleListFilter):
    """Select rows by what the jobs make of them now."""

    title = "work for the jobs"
    parameter_name = "waiting"
    choices_by_value: dict[str, Choice]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(value, choice.words) for value, choice in self.choices_by_value.items()]

    @property
    def chosen(self) -> Choice | None:
        return self.choices_by_value.get(self.value() or "")

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the chosen set, none for a choice that does not exist."""
        if not self.value():
            return queryset
        if self.chosen is None:
            return queryset.none()
        return self.chosen.select(queryset, clock(), load(SessionRetentionOptions))


class SessionsFilter(WaitingFilter):
    choices_by_value = {
        "overdue": Choice("overdue", lambda rows, now, _: rows.due(now), "expires_at"),
        "deletable": Choice(
            "past retention: deletable",
            lambda rows, now, options: rows.to_delete(now - options.refresh_terminal_retention),
            "updated_at",
            indexed=False,
        ),
        "blocked": Choice(
            "past retention: blocked by a descendant",
            lambda rows, now, options: rows.blocked(now - options.refresh_terminal_retention),
            "updated_at",
            indexed=False,
        ),
    }


class RequestsFilter(WaitingFilter):
    choices_by_value = {
        "overdue": Choice("overdue", lambda rows, now, _: rows.due(now), "expires_at"),
        "deletable": Choice(
            "past retention: deletable",
            lambda rows, now, options: rows.older_than(now - options.sicr_retention),
            "created_at",
        ),
    }
