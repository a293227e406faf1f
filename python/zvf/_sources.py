"""Geometry in memory of other packages, as the arguments of `zvf.create` and `Dataset.append`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._geometry import array_of, is_arrow
from ._result import Origin, Result
from ._tables import arrays_of, is_table

PATHS = ("lines", "polylines", "streamlines", "line", "polyline", "streamline")
MILLIMETERS = [(name, "millimeter") for name in "xyz"]


def arrays_of_source(
    source: Any, given: Mapping[str, Any], axes: Sequence[str] | None, kind: str | None
) -> tuple[dict[str, Any], Origin | None]:
    """Return the arrays of a source, with those that are given beside it, and the origin of a result.

    Raises:
        TypeError: The source is of another type, or arrays are given twice.
    """
    if isinstance(source, Result):
        if given:
            raise TypeError(f"source is a result; leave out {', '.join(given)}")
        return {**source.arrays()}, source._origin
    if is_tractogram(source):
        arrays = _tractogram(source)
    elif is_table(source):
        arrays = arrays_of(source, axes, kind in PATHS)
    else:
        raise TypeError(
            f"source is a {type(source).__name__}; use the path of a file, a result, a table of "
            "pandas, polars or pyarrow, or a tractogram of nibabel or dipy"
        )
    if both := [name for name in given if name in arrays]:
        raise TypeError(f"{', '.join(both)} are in the source as well")
    return {**arrays, **given}, None


def is_tractogram(source: Any) -> bool:
    """Return whether this is a tractogram of nibabel, dipy or another package with their names."""
    return hasattr(source, "streamlines") and hasattr(source, "data_per_streamline")


def _tractogram(source: Any) -> dict[str, Any]:
    space = getattr(getattr(source, "space", None), "value", "rasmm")
    origin = getattr(getattr(source, "origin", None), "value", "center")
    to_world = getattr(source, "affine_to_rasmm", None)
    is_world = to_world is None or np.array_equal(to_world, np.eye(4))
    if space != "rasmm" or origin != "center" or not is_world:
        raise ValueError(
            "the tractogram is not in millimeters of the world; convert it with to_rasmm() and "
            "to_center(), or with to_world() of nibabel"
        )
    arrays = joined(source.streamlines)
    vertex = getattr(source, "data_per_point", {}) or {}
    arrays["vertex"] = {name: joined(values)["positions"] for name, values in vertex.items()}
    arrays["object"] = {
        name: np.asarray(values) for name, values in source.data_per_streamline.items()
    }
    return arrays


def joined(paths: Any) -> dict[str, Any]:
    """Return one array of the rows of all paths, and the offsets of paths."""
    rows = [np.asarray(path) for path in paths]
    lengths = [len(path) for path in rows]
    if not rows:
        raise ValueError("there are no paths")
    return {
        "positions": np.concatenate(rows),
        "part_offsets": np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    }


def with_joined_paths(arrays: dict[str, Any]) -> dict[str, Any]:
    """Join positions that are a list of paths, and attributes that are lists of their rows."""
    paths = arrays.get("positions")
    if "part_offsets" in arrays or not is_list_of_paths(paths):
        return arrays
    made = {**arrays, **joined(paths)}
    lengths = np.diff(made["part_offsets"])
    vertex = made.get("vertex")
    if isinstance(vertex, Mapping):
        made["vertex"] = {name: _rows(values, lengths) for name, values in vertex.items()}
    return made


def is_list_of_paths(values: Any) -> bool:
    """Return whether this is a sequence of two-dimensional arrays, as `ArraySequence` of nibabel."""
    if hasattr(values, "get_data") and hasattr(values, "_lengths"):
        return True
    if not isinstance(values, (list, tuple)) or not values or is_arrow(values):
        return False
    try:
        return all(np.ndim(path) == 2 for path in values)
    except ValueError:  # Rows of different lengths.
        return False


def _rows(values: Any, lengths: np.ndarray[Any, Any]) -> Any:
    """Return the rows of an attribute of vertices, which may be a sequence with rows of each path."""
    is_nested = is_list_of_paths(values) or (
        isinstance(values, (list, tuple))
        and len(values) == len(lengths)
        and all(np.ndim(own) == 1 and len(own) == rows for own, rows in zip(values, lengths))
    )
    return np.concatenate([array_of("vertex", own) for own in values]) if is_nested else values
