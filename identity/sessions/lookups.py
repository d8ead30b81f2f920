"""Address many rows at once: `any_of` is `= ANY(array)`, and RowAddress is where a row lies in its table (ctid).

`pk__in=<subquery with LIMIT>` is not safe for a batch: as the inner side of a nested loop PostgreSQL runs it again for
every outer row and changes more rows than the limit. `= ANY(ARRAY(SELECT ...))` is an InitPlan: it runs once.

An address is valid for one statement, or for as long as the row is locked: exactly what a batch needs. It finds the
row without a look into an index of random ids, which is most of what is left to save.
"""

from collections.abc import Sequence
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import BooleanField, Expression, F, Field, Lookup, QuerySet, UUIDField
from django.db.models.expressions import Combinable
from django.db.models.sql.compiler import SQLCompiler


class AddressField(Field):  # type: ignore[type-arg]  # not subscriptable when it runs
    """The type of a row's address."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        return "tid"


class RowAddress(Expression):
    """The address of a row in its table; for statements on one table."""

    output_field = AddressField()

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        return "ctid", ()


@AddressField.register_lookup
@UUIDField.register_lookup
class AnyOf(Lookup):
    """Match rows whose value is in an array, a list or an ArraySubquery: `pk__any_of=[uuid, ...]`."""

    lookup_name = "any_of"

    def get_prep_lookup(self) -> Any:
        return self.rhs

    def get_db_prep_lookup(self, value: Any, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        # In a subquery the list's length is unknown to the planner, which then looks every row up. Of a long list it
        # would think that reading the whole table is cheaper.
        return f"ARRAY(SELECT unnest(%s::{self.lhs.output_field.db_type(connection)}[]))", (value,)

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        left, left_params = self.process_lhs(compiler, connection)
        right, right_params = self.process_rhs(compiler, connection)
        return f"{left} = ANY({right})", (*left_params, *right_params)


class AmongIds(Expression):
    """The condition that a row's id is among those that a query of raw SQL returns."""

    output_field = BooleanField()

    def __init__(self, ids: str, params: Sequence[Any]) -> None:
        super().__init__()
        self.ids, self.params = ids, params
        self.pk: Any = F("pk")

    def get_source_expressions(self) -> list[Any]:
        return [self.pk]

    def set_source_expressions(self, exprs: Sequence[Any]) -> None:
        [self.pk] = exprs

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        column, params = compiler.compile(self.pk)
        return f"{column} IN ({self.ids})", (*params, *self.params)


class Hidden(Expression):
    """The conditions of a set, kept from the planner, so that it takes no index for them."""

    output_field = BooleanField()

    def __init__(self, rows: QuerySet[Any]) -> None:
        super().__init__()
        self.where = rows.query.where

    def as_sql(self, compiler: SQLCompiler, connection: BaseDatabaseWrapper) -> tuple[str, tuple[Any, ...]]:
        condition, params = compiler.compile(self.where)  # type: ignore[arg-type]  # it compiles nodes too
        return f"CASE WHEN {condition} THEN true ELSE false END", tuple(params)


def is_one_table(rows: QuerySet[Any]) -> bool:
    """Tell whether all rows lie in one table: an address is unique in one partition only."""
    with connections[rows.db].cursor() as cursor:
        cursor.execute(
            "SELECT relkind = 'r' AND NOT relhassubclass FROM pg_class WHERE oid = to_regclass(%s)",
            [rows.model._meta.db_table],
        )
        return bool(cursor.fetchone() == (True,))


def picked(rows: QuerySet[Any], chunk: QuerySet[Any], *, by: Combinable) -> QuerySet[Any]:
    """Select the rows that a locking subquery picks, and that still are in the set.

    The set's own conditions may look so selective (no statistics, or those of a quiet hour) that the planner goes by
    their index and compares each row with every address: a batch then takes time by the square of its size.
    """
    found: QuerySet[Any] = rows.model._base_manager.using(rows.db).filter(addressed(chunk, by=by), Hidden(rows))
    return found


def addressed(addresses: QuerySet[Any] | str, *, by: Combinable) -> AnyOf:
    """Return the condition that a row is one of those that a locking subquery picks, or has an address of the array.

    `by` is RowAddress, or the primary key where rows lie in several tables. The array is text, as PostgreSQL writes it:
    it comes from there, and thousands of values need not be taken apart.
    """
    if isinstance(addresses, QuerySet):
        return AnyOf(by, ArraySubquery(addresses.values_list(by)))
    return AnyOf(by, addresses)
