"""Tables with one row for each vertex, as the arguments of `zvf.create`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._geometry import array_of, columns_of, is_arrow

AXES = ("x", "y", "z", "w")
PARTS = ("part", "object", "object_id")


def is_table(source: Any) -> bool:
    """Return whether this is a mapping of columns, or a table of pandas or of any package with
    Arrow's PyCapsules."""
    return isinstance(source, Mapping) or hasattr(source, "columns") or is_arrow(source)


def arrays_of(table: Any, axes: Sequence[str] | None, is_path: bool) -> dict[str, Any]:
    """Return the arrays of a table.

    The columns with the names of axes are coordinates. `object_id`, or for paths `part` and
    `object_id`, group the rows; all others are attributes of vertices. Older tables have `object`
    in the place of `object_id`.

    Raises:
        ValueError: There are no coordinates, a column of integers has missing values, columns
            that group the rows do not fit the kind or each other, or two columns have one name.
    """
    columns = dict(columns_of("source", table))
    names = list(axes) if axes else [name for name in AXES if name in columns]
    missing = [name for name in names if name not in columns]
    if missing or not names:
        wanted = missing or list(AXES[:3])
        raise ValueError(
            f"the table has no column {wanted[0]!r}; it has {', '.join(columns)}; name the columns "
            "of coordinates with axes="
        )
    positions = np.stack([array_of(name, columns.pop(name)) for name in names], axis=1)
    arrays: dict[str, Any] = {"positions": positions}
    groups = {name: array_of(name, columns.pop(name)) for name in PARTS if name in columns}
    if "object" in groups and "object_id" in groups:
        raise ValueError(
            "the table has the columns object and object_id, which both group the rows; leave out "
            "one, or rename object to vertex.object"
        )
    if "part" in groups and not is_path:
        raise ValueError(
            "the column part defines paths; choose the kind lines, polylines or streamlines, or "
            "rename it to vertex.part"
        )
    if is_path:
        objects = groups.get("object", groups.get("object_id"))
        parts = groups.get("part", objects)
        if parts is None:
            raise ValueError("paths need a column part or object_id, which tells the rows of a path")
        if objects is None:
            objects = parts
        changes = (parts[1:] != parts[:-1]) | (objects[1:] != objects[:-1])
        starts = np.concatenate([[0], np.flatnonzero(changes) + 1])[: len(parts)]
        arrays["part_offsets"] = np.append(starts, len(parts))
        arrays["part_objects"] = objects[starts]
    elif groups:
        arrays["object_ids"] = groups.get("object_id", groups.get("object"))
    if columns:
        arrays["vertex"] = _attributes(columns)
    return arrays


def _attributes(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes of vertices by their names, without the prefix that a column may have."""
    made: dict[str, Any] = {}
    for column, values in columns.items():
        name = column.removeprefix("vertex.")
        if name in made:
            raise ValueError(
                f"the table has the columns {name} and vertex.{name}, which both are the attribute "
                f"{name}; rename or drop one"
            )
        made[name] = values
    return made
