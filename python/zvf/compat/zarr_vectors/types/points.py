"""Points."""

from __future__ import annotations

import warnings

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._read import Bbox, columns, inside, read, text_of
from .._store import or_package
from .._write import write


@or_package
def write_points(
    store_path: Any,
    positions: Any,
    *,
    chunk_shape: Sequence[float] | None = None,
    bin_shape: Sequence[float] | None = None,
    bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    vertex_attributes: Mapping[str, Any] | None = None,
    object_ids: Any = None,
    object_attributes: Mapping[str, Any] | None = None,
    fragment_attributes: Mapping[str, Any] | None = None,
    groups: Mapping[int, Sequence[int]] | None = None,
    group_attributes: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    backend: str | None = None,
    chunk_by_attribute: str | None = None,
    out_of_bounds: str = "raise",
    compressor: Any = None,
    shard_shape: int | Sequence[int] | None = None,
    attributes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write points, one object for each of `object_ids`."""
    vertex_attributes = renamed(attributes, vertex_attributes, "attributes", "vertex_attributes")
    positions = np.asarray(positions, np.dtype(dtype))
    if chunk_shape is None:
        high, low = positions.max(axis=0), positions.min(axis=0)
        chunk_shape = (float((high - low).max()) + abs(float(high.max())) + 1.0,) * len(high)
    if object_ids is None and (object_attributes is not None or groups is not None):
        object_ids = np.arange(len(positions), dtype=np.int64)
    geometry: dict[str, Any] = {
        "vertex": vertex_attributes, "object_ids": object_ids,
        "object": object_attributes, "groups": groups, "group": group_attributes,
    }  # fmt: skip
    report, _ = write(
        store_path, "points", positions, geometry, chunk_shape=chunk_shape, bin_shape=bin_shape,
        bounds=bounds, out_of_bounds=out_of_bounds, compressor=compressor,
        shard_shape=shard_shape, backend=backend, chunk_by_attribute=chunk_by_attribute,
        fragment_attributes=fragment_attributes,
    )  # fmt: skip
    bins = [round(chunk / bin) for chunk, bin in zip(chunk_shape, bin_shape or chunk_shape)]
    return {
        "vertex_count": report.vertices,
        "chunk_count": report.chunks,
        "object_count": report.objects,
        "group_count": len(groups or {}),
        "bins_per_chunk": tuple(bins),
    }


@or_package
def read_points(
    store_path: Any,
    *,
    level: int = 0,
    bbox: Bbox | None = None,
    object_ids: Sequence[int] | None = None,
    group_ids: Sequence[int] | None = None,
    chunks: Iterable[Iterable[int]] | None = None,
    attribute_names: Sequence[str] | None = None,
    attribute_filter: Mapping[str, Any] | None = None,
    backend: str | None = None,
) -> dict[str, Any]:
    """Read points, with the attributes that `attribute_names` lists.

    Points of objects are in the order of `object_ids`.
    """
    _, found = read(
        store_path, level=level, bbox=bbox, object_ids=object_ids, group_ids=group_ids,
        chunks=chunks, attribute_filter=attribute_filter, backend=backend,
        select=[f"vertex.{name}" for name in attribute_names or ()],
    )  # fmt: skip
    result: dict[str, Any] = {
        "positions": found.positions,
        "vertex_attributes": {
            name: text_of(found.vertex[name]) for name in attribute_names or ()
        },
        "vertex_count": len(found),
    }
    if object_ids is not None or group_ids is not None:
        result["object_ids"] = found.object_ids
    return result


def renamed(old: Any, new: Any, old_name: str, new_name: str) -> Any:
    """Return the argument that has an old and a new name."""
    if old is None:
        return new
    if new is not None:
        raise TypeError(f"got both `{old_name}` and `{new_name}`; pass only `{new_name}`.")
    warnings.warn(f"{old_name}= is deprecated; use {new_name}=", DeprecationWarning, stacklevel=4)
    return old
