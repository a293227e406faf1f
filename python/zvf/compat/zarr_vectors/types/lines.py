"""Lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._read import Bbox, columns, inside, read
from .._store import or_package
from .._write import same_chunk, write
from ..exceptions import ArrayError
from .points import renamed


@or_package
def write_lines(
    store_path: Any,
    endpoints: Any,
    *,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float] | None = None,
    bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    vertex_attributes: Mapping[str, Any] | None = None,
    object_attributes: Mapping[str, Any] | None = None,
    dtype: str = "float32",
    backend: str | None = None,
    chunk_by_attribute: str | None = None,
    out_of_bounds: str = "raise",
    compressor: Any = None,
    shard_shape: int | Sequence[int] | None = None,
    attributes: Mapping[str, Any] | None = None,
    line_attributes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write one object for each line; `endpoints` has the shape (lines, 2, axes)."""
    vertex_attributes = renamed(attributes, vertex_attributes, "attributes", "vertex_attributes")
    object_attributes = renamed(
        line_attributes, object_attributes, "line_attributes", "object_attributes"
    )
    endpoints = np.asarray(endpoints, np.dtype(dtype))
    if endpoints.ndim != 3 or endpoints.shape[1] != 2:
        raise ArrayError(f"endpoints must be (N, 2, D), got shape {endpoints.shape}")
    lines, _, axes = endpoints.shape
    if out_of_bounds == "ignore":
        raise ArrayError("out_of_bounds='ignore' is not supported for write_lines")
    vertex: dict[str, Any] = {}
    for name, values in (vertex_attributes or {}).items():
        array = np.asarray(values)
        if array.shape[:2] != (lines, 2) or array.ndim > 3:
            raise ArrayError(
                f"vertex_attributes[{name!r}] must be (N, 2) or (N, 2, C) with N=n_lines={lines} "
                f"-- one value per endpoint; got shape {array.shape}"
            )
        vertex[name] = array.reshape(2 * lines, *array.shape[2:])
    geometry: dict[str, Any] = {
        "part_offsets": np.arange(0, 2 * lines + 1, 2), "vertex": vertex,
        "object": object_attributes,
    }  # fmt: skip
    report, chunks = write(
        store_path, "lines", endpoints.reshape(-1, axes), geometry, chunk_shape=chunk_shape,
        bin_shape=bin_shape, bounds=bounds, out_of_bounds=out_of_bounds, compressor=compressor,
        shard_shape=shard_shape, backend=backend, chunk_by_attribute=chunk_by_attribute,
    )  # fmt: skip
    pairs = np.arange(2 * lines).reshape(-1, 2)
    return {
        "line_count": lines,
        "chunk_count": report.chunks,
        "cross_chunk_count": int((~same_chunk(chunks, pairs)).sum()),
    }


@or_package
def read_lines(
    store_path: Any,
    *,
    level: int = 0,
    object_ids: Sequence[int] | None = None,
    bbox: Bbox | None = None,
    attribute_filter: Mapping[str, Any] | None = None,
    backend: str | None = None,
) -> dict[str, Any]:
    """Read lines; a box returns those with an end in it."""
    _, found = read(
        store_path, level=level, object_ids=object_ids, bbox=bbox,
        attribute_filter=attribute_filter, backend=backend,
    )  # fmt: skip
    endpoints = found.positions.reshape(-1, 2, found.positions.shape[1])
    attributes = columns(found)
    if bbox is not None:
        kept = inside(found, bbox).reshape(-1, 2).any(axis=1)
        endpoints = endpoints[kept]
        attributes = {name: values[np.repeat(kept, 2)] for name, values in attributes.items()}
    return {
        "endpoints": endpoints,
        "vertex_attributes": attributes,
        "line_count": len(endpoints),
    }
