"""Stores that Polars scans."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Unpack, cast

import polars
from polars.io.plugins import register_io_source

from ._dataset import Dataset
from ._dataset import open as open_store
from ._options import BatchOptions, QueryOptions, listed

OPERATORS = {"Eq": "=", "NotEq": "!=", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
FLIPPED = {"Eq": "Eq", "NotEq": "NotEq", "Lt": "Gt", "LtEq": "GtEq", "Gt": "Lt", "GtEq": "LtEq"}

ATTRIBUTES = ("vertex.", "fragment.")

IDS = ("row_id", "object_id", "distance")

ROUNDING = 1e-6
"""More than the relative error of a float32, to which Polars may round a number that it compares."""

WHOLE = ("limit", "nearest", "k", "vertices", "drill", "geometry")
"""Arguments whose result would differ if the query had a further predicate."""


@listed(QueryOptions)
def scan(
    store: str | os.PathLike[str] | Dataset, /, **query: Unpack[QueryOptions]
) -> polars.LazyFrame:
    """Return the vertices of a query as a LazyFrame, which reads only what it needs, in batches.

    The columns are those of `Result.table`. Attributes that the LazyFrame does not use are not read.
    `head` ends the query. In stores of points, comparisons of coordinates and attributes with
    numbers or text that `filter` joins by `&` become part of the predicate `where`, which skips
    chunks; Polars applies every filter by itself as well.

    Args:
        store: A store or its address.
        **query: What to select and to read; `QueryOptions` lists the arguments.

    >>> import polars, zvf.polars
    >>> tracts = zvf.polars.scan("tracts.zv", where="fa > 0.4")
    >>> tracts.filter(polars.col("x") > 1).select("vertex.fa").collect()["vertex.fa"].to_list()
    [0.6, 0.7, 0.8]
    """
    dataset = store if isinstance(store, Dataset) else open_store(store)
    none: QueryOptions = {**query, "limit": 0}
    empty = dataset.query(**none)
    schema = polars.DataFrame(empty).schema
    is_cut = empty.part_offsets is not None or empty.links is not None
    is_filtered = not is_cut and all(query.get(name) is None for name in WHOLE)

    def batches(
        columns: list[str] | None,
        predicate: polars.Expr | None,
        rows: int | None,
        batch_rows: int | None,
    ) -> Iterator[polars.DataFrame]:
        options = cast("BatchOptions", {**query})
        if columns is not None:
            options["select"] = [name for name in columns if name.startswith(ATTRIBUTES)]
        if predicate is not None and is_filtered:
            conditions = _conditions(predicate, schema)
            if (own := query.get("where")) is not None:
                conditions.insert(0, f"({own})")
            if conditions:
                options["where"] = " and ".join(conditions)
        if rows is not None and predicate is None:
            limit = query.get("limit")
            options["limit"] = rows if limit is None else min(rows, limit)
        if batch_rows is not None:
            options["batch_rows"] = batch_rows
        left = rows
        with dataset.batches(**options) as found:
            for batch in found:
                frame = polars.DataFrame(batch)
                if predicate is not None:
                    frame = frame.filter(predicate)
                if columns is not None:
                    frame = frame.select(columns)
                if left is not None:
                    frame = frame.head(left)
                    left -= len(frame)
                yield frame
                if left == 0:
                    break

    return register_io_source(batches, schema=schema, is_pure=True)


def _conditions(predicate: polars.Expr, schema: Mapping[str, polars.DataType]) -> list[str]:
    """Return conditions that hold for all rows for which a predicate does."""
    try:
        tree = json.loads(predicate.meta.serialize(format="json"))
        return list(_of_tree(tree, schema))
    except (KeyError, TypeError, ValueError, polars.exceptions.PolarsError):
        # The form of the tree may change with any release.
        return []


def _of_tree(tree: Any, schema: Mapping[str, polars.DataType]) -> Iterator[str]:
    if function := tree.get("Function"):
        if "IsBetween" in function["function"].get("Boolean", {}):
            column, low, high = function["input"]
            yield from _comparison(column, "GtEq", low, schema)
            yield from _comparison(column, "LtEq", high, schema)
        return
    operation = tree.get("BinaryExpr")
    if operation is None:
        return
    left, of, right = operation["left"], operation["op"], operation["right"]
    if of in ("And", "LogicalAnd"):
        yield from _of_tree(left, schema)
        yield from _of_tree(right, schema)
    elif of in OPERATORS:
        if "Column" in left:
            yield from _comparison(left, of, right, schema)
        else:
            yield from _comparison(right, FLIPPED[of], left, schema)


def _comparison(
    column: Any, of: str, literal: Any, schema: Mapping[str, polars.DataType]
) -> Iterator[str]:
    name, values = column.get("Column"), literal.get("Literal", {}).get("Scalar", {})
    if name is None or len(values) != 1:
        return
    [value], kind, label = values.values(), schema[name], _label(name, schema)
    if label is None:
        return
    if isinstance(value, str):
        if of in ("Eq", "NotEq") and (kind == polars.String or isinstance(kind, polars.Categorical)):
            text = value.replace("'", "''")
            yield f"{label} {OPERATORS[of]} '{text}'"
    elif type(value) in (int, float) and math.isfinite(value):
        if kind.is_integer() and type(value) is int:
            yield f"{label} {OPERATORS[of]} {value}"
        elif kind.is_float() and of != "NotEq":
            margin = ROUNDING * abs(value) + sys.float_info.min
            low, high = repr(value - margin), repr(value + margin)
            if of == "Eq":
                yield f"{label} between {low} and {high}"
            elif of in ("Lt", "LtEq"):
                yield f"{label} <= {high}"
            elif name.startswith("vertex."):
                # NaN is above all numbers for Polars.
                yield f"({label} >= {low} or {label} is null)"
            else:
                yield f"{label} >= {low}"


def _label(name: str, schema: Mapping[str, polars.DataType]) -> str | None:
    """Return a column in the language of predicates; `None` for one that is no operand there."""
    attribute = name.removeprefix("vertex.")
    if attribute == name:
        # An axis, unless an attribute has its name.
        others = {other.removeprefix("vertex.").lower() for other in schema if other != name}
        if name in IDS or name.startswith("fragment.") or name.lower() in others:
            return None
    quoted = attribute.replace('"', '""')
    return f'vertex."{quoted}"'
