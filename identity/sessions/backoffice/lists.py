"""Lists that answer on tables of any size: paged within a cap, counted no further, cut off by a time limit."""

from functools import cached_property
from typing import Any

from django.contrib import messages
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.db.models.expressions import Combinable
from django.http import HttpRequest

from identity.sessions.backoffice.bounded import NotInTime, bounded
from identity.sessions.backoffice.filters import Choice, WaitingFilter

# A person reads no further; a deep page would cost an OFFSET as long as the way there.
CAP = 5_000
TOO_SLOW = "The list was not ready in time, so it is empty here. Search for an id, or take another filter."


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # not generic when it runs
    """Count and page no further than CAP rows; a page behind the last one is the last one."""

    @cached_property
    def found(self) -> int:
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        # Without an order, so that the first rows found will do.
        return rows.order_by()[: CAP + 1].count()

    @cached_property
    def count(self) -> int:
        return min(self.found, CAP)

    def page(self, number: int | str) -> Page[Any]:
        return super().page(min(max(int(number), 1), self.num_pages))


class BoundedChangeList(ChangeList):
    """A list in the order of its filter, read within the time limit, or empty with a sentence that says why."""

    more = unordered = False

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[str | Combinable]:
        """Return the order of the filter, else of the model admin; what the query string asks for is not heard.

        What a search finds is in the order of the index that finds it: another would be walked from its begin.
        """
        orders = [choice.order for choice in self._chosen()]
        if self.query and not orders:
            return ["pk"]
        return [*(orders or self.model_admin.get_ordering(request)), "pk"]

    def get_results(self, request: HttpRequest) -> None:
        try:
            with bounded():
                paginator, page = self._page(self.queryset)
        except NotInTime:
            messages.warning(request, TOO_SLOW)
            paginator, page = self._page(self.queryset.none())
        self.more = paginator.found > CAP
        # Equal, so that no page offers to show all.
        self.result_count = self.full_result_count = paginator.count
        self.show_full_result_count = self.show_admin_actions = False
        self.can_show_all, self.multi_page = False, paginator.num_pages > 1
        self.result_list, self.paginator, self.page_num = page.object_list, paginator, page.number

    def _page(self, rows: QuerySet[Any]) -> tuple[CappedPaginator, Page[Any]]:
        """Read a page. Many rows that no index has in order are not sorted: that would read and compare them all."""
        paginator = CappedPaginator(rows, self.list_per_page)
        self.unordered = paginator.found > CAP and not all(choice.indexed for choice in self._chosen())
        if self.unordered:
            paginator.object_list = rows.order_by("pk")
        page = paginator.page(self.page_num)
        page.object_list = list(page.object_list)
        return paginator, page

    def _chosen(self) -> list[Choice]:
        return [spec.chosen for spec in self.filter_specs if isinstance(spec, WaitingFilter) and spec.chosen]
