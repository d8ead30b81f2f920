"""The lookup `any_of`: `id = ANY(array)`, the array being a list or a subquery that runs once.

`pk__in=<subquery with LIMIT>` is not safe for a batch: as the inner side of a nested loop PostgreSQL runs it again for
every outer row and changes more rows than the limit. `= ANY(ARRAY(SELECT ...))` is an InitPlan: it runs once.
"""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Lookup, UUIDField
from django.db.models.sql.compiler import SQLCompiler


@UUIDField.register_lookup
class AnyOf(Lookup):
    """Match rows whose value is in an array: `pk__any_of=[uuid, ...]` or `pk__any_of=ArraySubquery(queryset)`."""

    lookup_name = "any_of"

    def get_prep_lookup(self) -> Any:
        return self.rhs

    def get_db_prep_lookup(self, value: Any, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        return "%s::uuid[]", (value,)

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        left, left_params = self.process_lhs(compiler, connection)
        right, right_params = self.process_rhs(compiler, connection)
        return f"{left} = ANY({right})", (*left_params, *right_params)
