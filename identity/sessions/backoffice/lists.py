"""Lists that answer on tables of any size: paged within a cap, counted no further, cut off by a time limit."""

from functools import cached_property
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest

from identity.sessions.backoffice.bounded import NotInTime, bounded
from identity.sessions.backoffice.filters import WaitingFilter

# A person reads no further; a deep page would cost an OFFSET as long as the way there.
CAP = 5_000
UUID_DIGITS = 32
TOO_SLOW = "The list was not ready in time, so it is empty here. Search for an id, or take another filter."


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # not generic when it runs
    """Count and page no further than CAP rows; a page behind the last one is the last one."""

    @cached_property
    def found(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows[: CAP + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self.found, CAP)

    def page(self, number: int | str) -> Page[Any]:
        return super().page(min(max(int(number), 1), self.num_pages))


class BoundedChangeList(ChangeList):
    """A list in the order of its filter, read within the time limit, or empty with a sentence that says why."""

    more = False

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        """Return the order of the filter, else of the model admin; what the query string asks for is not heard."""
        orders = [spec.order() for spec in self.filter_specs if isinstance(spec, WaitingFilter) and spec.value()]
        return [*(orders or self.model_admin.get_ordering(request)), "pk"]

    def get_results(self, request: HttpRequest) -> None:
        paginator = CappedPaginator(self.queryset, self.list_per_page)
        try:
            with bounded():
                page = paginator.page(self.page_num)
                self.result_list = list(page.object_list)
        except NotInTime:
            messages.warning(request, TOO_SLOW)
            paginator = CappedPaginator(self.queryset.none(), self.list_per_page)
            page, self.result_list = paginator.page(1), []
        self.more = paginator.found > CAP
        # Equal, so that no page offers to show all.
        self.result_count = self.full_result_count = paginator.count
        self.show_full_result_count = self.show_admin_actions = False
        self.can_show_all, self.multi_page = False, paginator.num_pages > 1
        self.paginator, self.page_num = paginator, page.number


def id_range(text: str) -> tuple[UUID, UUID] | None:
    """Return the least and the greatest id that begins with a text, None if no id does."""
    digits = text.strip().replace("-", "").lower()
    if not 0 < len(digits) <= UUID_DIGITS or digits.strip("0123456789abcdef"):
        return None
    return UUID(digits.ljust(UUID_DIGITS, "0")), UUID(digits.ljust(UUID_DIGITS, "f"))


def search(rows: QuerySet[Any], text: str) -> QuerySet[Any]:
    """Select rows whose id or user id is or begins with a text: ranges, which an index answers, unlike LIKE."""
    if not text.strip():
        return rows
    ids = id_range(text)
    return rows.filter(Q(id__range=ids) | Q(user_id__range=ids)) if ids else rows.none()
