"""Results as tables of pyarrow and pandas, with one value in each column."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

from ._result import Result


def arrow_table(result: Result, name: Literal["vertices", "objects", "links"]) -> Any:
    """Return a table whose types depend on the store only: text is plain, and attributes of
    several values have a column for each."""
    pyarrow: Any = import_module("pyarrow")
    found = pyarrow.table(result.table(name))
    columns: dict[str, Any] = {}
    for label, column in zip(found.column_names, found.columns, strict=True):
        kind = column.type
        if pyarrow.types.is_dictionary(kind):
            columns[label] = column.cast(kind.value_type)
        elif pyarrow.types.is_fixed_size_list(kind):
            values = column.combine_chunks().flatten()
            for at in range(kind.list_size):
                columns[f"{label}[{at}]"] = values[at :: kind.list_size]
        else:
            columns[label] = column
    return pyarrow.table(columns)


def frame(result: Result, name: Literal["vertices", "objects", "links"]) -> Any:
    """Return a table of pandas."""
    return arrow_table(result, name).to_pandas()
