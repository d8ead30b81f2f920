"""What the pages of both tables have in common: a bounded list, and a row told in facts."""

from collections.abc import Callable
from typing import Any, ClassVar, cast

from django.contrib.admin import ShowFacets
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.http import HttpRequest

from identity.sessions.backoffice import personal
from identity.sessions.backoffice.facts import Column, column, fact
from identity.sessions.backoffice.filters import WaitingFilter
from identity.sessions.backoffice.lists import BoundedChangeList, CappedPaginator
from identity.sessions.backoffice.readonly import ReadOnlyAdmin
from identity.sessions.backoffice.wording import age, age_and_moment

Fieldsets = list[tuple[str, list[Column]]]


class RowsAdmin(ReadOnlyAdmin):
    """List a table within bounds; search by id and user id only, filter by what the jobs wait for, sort not at all."""

    waiting_filter: ClassVar[type[WaitingFilter]]
    search: ClassVar[Callable[[QuerySet[Any], str], QuerySet[Any]]]
    personal_in_list: ClassVar[tuple[str, str]]
    # The hash of a secret has no place on a page: it is not even read.
    secret: ClassVar[str]

    list_per_page = 50
    list_max_show_all = 0
    paginator = CappedPaginator
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    sortable_by = ()
    search_fields = ("id", "user_id")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows with the moment they are read at; what this user may not see stays in the database."""
        own = {field.name for field in self.opts.get_fields()}
        hidden = own.intersection(() if personal.may_see(request) else personal.FIELDS)
        read = super().get_queryset(request).defer(self.secret, *hidden).annotate(read_at=Now())
        return cast(QuerySet[Any], read)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return BoundedChangeList

    def get_list_filter(self, request: HttpRequest) -> list[Any]:
        return [self.waiting_filter]

    def get_list_display(self, request: HttpRequest) -> Any:
        return [
            "id",
            "user_id",
            "status",
            column("created", "Created", lambda row: age(row.created_at, row.read_at)),
            column("changed", "Changed", lambda row: age(row.updated_at, row.read_at)),
            column("expires", "Expires", lambda row: age(row.expires_at, row.read_at)),
            personal.personal_column(*self.personal_in_list, request),
        ]

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        return (type(self).search(queryset, search_term) if search_term.strip() else queryset), False

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Allow the filter alone: any other look-up could spell out a masked value, character by character."""
        return lookup == self.waiting_filter.parameter_name

    def facts(self, request: HttpRequest, row: Any) -> Fieldsets:
        """Return what the row's page says, in groups."""
        raise NotImplementedError

    def common_facts(self, row: Any) -> list[Column]:
        """Return what both tables have: who, the status and the moments."""
        return [
            fact("User id", str(row.user_id or "-")),
            fact("Status", row.status),
            fact("Created", age_and_moment(row.created_at, row.read_at)),
            fact("Changed", age_and_moment(row.updated_at, row.read_at)),
            fact("Expires", age_and_moment(row.expires_at, row.read_at)),
        ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the facts in the form that Django's page of a row takes; none of it is a field of a form."""
        return [(title, {"fields": facts}) for title, facts in self.facts(request, obj)] if obj else []
