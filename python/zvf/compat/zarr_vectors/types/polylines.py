"""Polylines and streamlines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._read import Bbox, columns, read
from .._store import level_chunk_shape, or_package
from .._write import chunks_of, write
from ..exceptions import ArrayError


@or_package
def write_polylines(
    store_path: Any,
    polylines: Sequence[Any],
    *,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float] | None = None,
    bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    vertex_attributes: Mapping[str, Sequence[Any]] | None = None,
    object_attributes: Mapping[str, Any] | None = None,
    fragment_attributes: Mapping[str, Any] | None = None,
    groups: Mapping[int, Sequence[int]] | None = None,
    group_attributes: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    geometry_type: str = "streamline",
    backend: str | None = None,
    chunk_by_attribute: str | None = None,
    out_of_bounds: str = "raise",
    compressor: Any = None,
    shard_shape: int | Sequence[int] | None = None,
) -> dict[str, Any]:
    """Write one object for each polyline."""
    if len(polylines) == 0:
        raise ArrayError("Cannot write empty polyline list")
    if out_of_bounds == "ignore":
        raise ArrayError("out_of_bounds='ignore' is not supported for write_polylines")
    positions = np.concatenate([np.asarray(line, np.dtype(dtype)) for line in polylines])
    offsets = np.cumsum([0, *map(len, polylines)])
    geometry: dict[str, Any] = {
        "part_offsets": offsets, "object": object_attributes, "groups": groups,
        "group": group_attributes,
        "vertex": {
            name: np.concatenate([np.asarray(part) for part in parts])
            for name, parts in (vertex_attributes or {}).items()
        },
    }  # fmt: skip
    report, chunks = write(
        store_path, f"{geometry_type}s", positions, geometry, chunk_shape=chunk_shape,
        bin_shape=bin_shape, bounds=bounds, out_of_bounds=out_of_bounds, compressor=compressor,
        shard_shape=shard_shape, backend=backend, chunk_by_attribute=chunk_by_attribute,
        fragment_attributes=fragment_attributes,
    )  # fmt: skip
    return {
        "polyline_count": len(polylines),
        "vertex_count": report.vertices,
        "chunk_count": report.chunks,
        "cross_chunk_link_count": len(_cuts(chunks, offsets)) - len(_starts(offsets)),
        "group_count": len(groups or {}),
    }


@or_package
def read_polylines(
    store_path: Any,
    *,
    level: int = 0,
    object_ids: Sequence[int] | None = None,
    group_ids: Sequence[int] | None = None,
    bbox: Bbox | None = None,
    chunks: Iterable[Iterable[int]] | None = None,
    attribute_filter: Mapping[str, Any] | None = None,
    backend: str | None = None,
) -> dict[str, Any]:
    """Read polylines, each as the list of its runs in one chunk.

    `chunks` crops: each run of a polyline in those chunks is a polyline of its own. A box returns
    the whole polylines that enter it.
    """
    store, found = read(
        store_path, level=level, object_ids=object_ids, group_ids=group_ids, bbox=bbox,
        chunks=chunks, attribute_filter=attribute_filter, backend=backend,
    )  # fmt: skip
    offsets, objects = found.part_offsets, found.part_objects
    if offsets is None or objects is None:
        raise ArrayError(f"{store.address} has no polylines")
    cells = chunks_of(found.positions, level_chunk_shape(store, level))
    cuts = _cuts(cells, offsets)
    segments = np.split(found.positions, cuts[1:]) if len(found) else []
    whole = np.searchsorted(cuts, offsets).tolist()
    polylines = [segments[start:end] for start, end in zip(whole, whole[1:]) if end > start]
    lengths = np.diff(offsets)
    return {
        "polylines": polylines,
        "object_ids": objects[lengths > 0].tolist(),
        "vertex_attributes": columns(found),
        "ndim": found.positions.shape[1],
        "polyline_count": len(polylines),
        "vertex_count": len(found),
    }


def _starts(offsets: NDArray[Any]) -> NDArray[Any]:
    return offsets[:-1][np.diff(offsets) > 0]


def _cuts(chunks: NDArray[np.int64], offsets: NDArray[Any]) -> NDArray[Any]:
    """Return the first rows of runs in one chunk."""
    moved = np.flatnonzero((chunks[1:] != chunks[:-1]).any(axis=1)) + 1
    cuts: NDArray[Any] = np.union1d(moved, _starts(offsets))
    return cuts
