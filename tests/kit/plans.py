"""What the server makes of a statement: the plans of everything that runs inside a block."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

Node = dict[str, Any]


def nodes(plan: Node) -> Iterator[Node]:
    """Yield a plan's node and all below it."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def explain(sql: str, params: Any = None, *, analyze: bool = False) -> Node:
    """Return the plan of a statement; with `analyze` it is executed, in the caller's transaction."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (FORMAT JSON{', ANALYZE' if analyze else ''}) {sql}", params)
        [found] = cursor.fetchone()
    plan: Node = (json.loads(found) if isinstance(found, str) else found)[0]["Plan"]
    return plan


@contextmanager
def plans() -> Iterator[dict[str, Node]]:
    """Collect the plan of each SELECT, UPDATE, DELETE and WITH that the block sends, by its text."""
    collected: dict[str, Node] = {}

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().startswith(("SELECT", "UPDATE", "DELETE", "WITH")) and sql not in collected:
            with connection.connection.cursor() as plain:
                plain.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
                collected[sql] = plain.fetchone()[0][0]["Plan"]
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        yield collected


def on_table(plan: Node, table: str) -> list[Node]:
    """Return the scans of a table in a plan."""
    return [node for node in nodes(plan) if node.get("Relation Name") == table]


def indexes(plan: Node) -> set[str]:
    return {node["Index Name"] for node in nodes(plan) if "Index Name" in node}
