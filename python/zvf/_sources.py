"""Geometry in memory of other packages, as the arguments of `zvf.create` and `Dataset.append`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ._errors import NotFoundError
from ._geometry import array_of, is_arrow, with_index
from ._result import Origin, Result
from ._tables import arrays_of, is_table

PATHS = ("lines", "polylines", "streamlines", "line", "polyline", "streamline")
RAS = {"frame": "RAS+", "unit": "millimeter"}
"""The system of all tractograms, as readers of files describe it."""
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
        values = getattr(source, "data_per_group", None)
        if isinstance(values, Mapping):
            arrays["group"] = _group_attributes(list(groups), values)
    return arrays


def _group_attributes(groups: list[Any], values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values of groups by attribute, with a row for each group: NaN for a group without."""
    rows = [
        {name: np.asarray(own).reshape(-1) for name, own in values.get(group, {}).items()}
        for group in groups
    ]
    attributes: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        own = [row.get(name) for row in rows]
        known = [value for value in own if value is not None]
        width = len(known[0])
        if any(len(value) != width for value in known):
            raise ValueError(f"data_per_group has {name!r} with different numbers of values")
        missing = np.full(width, np.nan)
        attributes[name] = np.stack([missing if value is None else value for value in own])
    return attributes


def grid_of(source: Any) -> tuple[list[float], list[int]] | None:
    """Return the affine and the dimensions of the image that a tractogram refers to; `None` for one
    without."""
    header = getattr(source, "header", None)
    if isinstance(header, Mapping) and "VOXEL_TO_RASMM" in header:
        return _grid(header["VOXEL_TO_RASMM"], header.get("DIMENSIONS", (1, 1, 1)))
    if hasattr(source, "affine") and hasattr(source, "dimensions"):
        return _grid(source.affine, source.dimensions)
    return None


def reference_grid(reference: Any) -> Any:
    """Return the affine and the dimensions of an image, or its path."""
    if isinstance(reference, (str, os.PathLike)):
        path = os.fspath(reference)
        if "://" not in path and not os.path.exists(path):
            raise NotFoundError(f"{path} does not exist")
        return path
    if hasattr(reference, "affine") and hasattr(reference, "shape"):
        return _grid(reference.affine, reference.shape[:3])
    if (grid := grid_of(reference)) is not None:
        return grid
    if isinstance(reference, (list, tuple)) and len(reference) == 2:
        return _grid(*reference)
    raise TypeError(
        f"reference is a {type(reference).__name__}; use the path of a NIfTI image, an image of "
        "nibabel, or a pair of its affine and its shape"
    )


def _grid(affine: Any, dimensions: Any) -> tuple[list[float], list[int]]:
    matrix = np.asarray(affine, np.float64)
    if matrix.shape != (4, 4):
        raise ValueError(f"the affine has the shape {matrix.shape}; it needs 4 rows and 4 columns")
    return matrix.reshape(-1).tolist(), [int(count) for count in dimensions]


def is_geographic(source: Any) -> bool:
    """Return whether this is a table of geopandas."""
    return hasattr(source, "geometry") and hasattr(source, "crs") and hasattr(source, "columns")


def crs_of(source: Any) -> Any:
    """Return the coordinate reference system of a table of geopandas, as PROJJSON, or of a tractogram."""
    if is_tractogram(source):
        return RAS
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
