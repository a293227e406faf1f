"""Geometry in memory of other packages, as the arguments of `zvf.create` and `Dataset.append`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import NotFoundError
from ._geometry import array_of, is_arrow, with_index
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
    if hasattr(source, "collect") and hasattr(source, "collect_schema"):
        raise TypeError("source is a LazyFrame of polars; pass source.collect()")
    if is_tractogram(source):
        arrays = _tractogram(source)
    elif is_geographic(source):
        arrays = _geographic(source, axes)
    elif is_table(source):
        arrays = arrays_of(source, axes, kind in PATHS)
    else:
        raise TypeError(
            f"source is a {type(source).__name__}; use the path of a file, a result, a table of "
            "pandas, polars or pyarrow, a tractogram of nibabel, dipy or trx, or a GeoDataFrame of "
            "points"
        )
    if both := [name for name in given if name in arrays]:
        raise TypeError(f"{', '.join(both)} are in the source as well")
    return {**arrays, **given}, None


def is_stream(source: Any) -> bool:
    """Return whether this is a table with Arrow's PyCapsules, and nothing that they do not describe."""
    is_more = isinstance(source, (Result, Mapping)) or is_geographic(source) or is_tractogram(source)
    return is_arrow(source) and not is_more and not hasattr(source, "collect_schema")


def is_tractogram(source: Any) -> bool:
    """Return whether this is a tractogram of nibabel, dipy or another package with their names."""
    return hasattr(source, "streamlines") and hasattr(source, "data_per_streamline")


def _tractogram(source: Any) -> dict[str, Any]:
    space = getattr(getattr(source, "space", None), "value", "rasmm")
    origin = getattr(getattr(source, "origin", None), "value", "center")
    to_world = getattr(source, "affine_to_rasmm", None)
    # Reading a file, nibabel rounds a product of affines to float32.
    is_world = to_world is None or np.allclose(to_world, np.eye(4), rtol=0, atol=1e-6)
    if space != "rasmm" or origin != "center" or not is_world:
        raise ValueError(
            "the tractogram is not in millimeters of the world; convert it with to_rasmm() and "
            "to_center(), or with to_world() of nibabel"
        )
    arrays = joined(source.streamlines)
    # trx-python has other names for two of them.
    vertex = getattr(source, "data_per_point", None) or getattr(source, "data_per_vertex", None)
    arrays["vertex"] = {
        name: joined(values)["positions"] for name, values in (vertex or {}).items()
    }
    arrays["object"] = {
        name: np.asarray(values) for name, values in source.data_per_streamline.items()
    }
    groups = getattr(source, "groups", None)
    if isinstance(groups, Mapping) and groups:
        arrays["groups"] = {
            name: np.asarray(members).astype(np.int64) for name, members in groups.items()
        }
    return arrays


def is_geographic(source: Any) -> bool:
    """Return whether this is a table of geopandas."""
    return hasattr(source, "geometry") and hasattr(source, "crs") and hasattr(source, "columns")


def crs_of(source: Any) -> Any:
    """Return the coordinate reference system of a table of geopandas, as PROJJSON."""
    crs = source.crs if is_geographic(source) else None
    return None if crs is None else crs.to_json_dict()


def _geographic(source: Any, axes: Sequence[str] | None) -> dict[str, Any]:
    geometry = source.geometry
    kinds = sorted(set(geometry.geom_type.dropna()))
    if kinds != ["Point"] or geometry.isna().any():
        found = ", ".join(kinds) or "no geometry"
        raise TypeError(
            f"source is a GeoDataFrame of {found}; only points are taken as a table: write it with "
            'to_parquet("a.geoparquet"), and pass the path of this file'
        )
    names = ["x", "y", "z"] if geometry.has_z.all() else ["x", "y"]
    if axes and len(axes) != len(names):
        raise ValueError(f"axes has {len(axes)} names; the points have {len(names)}")
    table = with_index(source)
    columns = {name: table[name] for name in table.columns if name != geometry.name}
    positions = np.stack([getattr(geometry, name).to_numpy() for name in names], axis=1)
    arrays: dict[str, Any] = {"positions": positions}
    if columns:
        arrays["vertex"] = columns
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
