"""Meshes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from .._read import Bbox, inside, kept_links, read
from .._store import NotOfEngine, or_package
from .._write import same_chunk, write
from ..exceptions import ArrayError


@or_package
def write_mesh(
    store_path: Any,
    vertices: Any,
    faces: Any,
    *,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float] | None = None,
    bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    encoding: str = "raw",
    vertex_attributes: Mapping[str, Any] | None = None,
    object_attributes: Mapping[str, Any] | None = None,
    object_ids: Any = None,
    dtype: str = "float32",
    draco_quantization_bits: int = 11,
    backend: str | None = None,
    chunk_by_attribute: str | None = None,
    out_of_bounds: str = "raise",
    compressor: Any = None,
    shard_shape: int | Sequence[int] | None = None,
) -> dict[str, Any]:
    """Write a mesh of triangles or of other faces with one number of corners."""
    vertices = np.asarray(vertices, np.dtype(dtype))
    faces = np.asarray(faces, np.int64)
    if faces.ndim != 2 or faces.shape[1] < 3:
        raise ArrayError(f"faces must be (F, L) with L >= 3, got shape {faces.shape}")
    if out_of_bounds == "ignore":
        raise ArrayError("out_of_bounds='ignore' is not supported for write_mesh")
    if encoding != "raw":
        raise NotOfEngine(f"encoding={encoding!r}")
    owners = np.zeros(len(vertices), np.int64) if object_ids is None else np.asarray(object_ids)
    geometry: dict[str, Any] = {
        "links": faces, "vertex": vertex_attributes, "object_ids": owners,
        "object": object_attributes,
    }  # fmt: skip
    report, chunks = write(
        store_path, "mesh", vertices, geometry, chunk_shape=chunk_shape, bin_shape=bin_shape,
        bounds=bounds, out_of_bounds=out_of_bounds, compressor=compressor,
        shard_shape=shard_shape, backend=backend, chunk_by_attribute=chunk_by_attribute,
    )  # fmt: skip
    intra = int(same_chunk(chunks, faces).sum())
    return {
        "vertex_count": len(vertices),
        "face_count": len(faces),
        "chunk_count": report.chunks,
        "intra_face_count": intra,
        "cross_face_count": len(faces) - intra,
        "encoding": encoding,
    }


@or_package
def read_mesh(
    store_path: Any,
    *,
    level: int = 0,
    bbox: Bbox | None = None,
    object_ids: Sequence[int] | None = None,
    chunks: Iterable[Iterable[int]] | None = None,
    attribute_filter: Mapping[str, Any] | None = None,
    backend: str | None = None,
) -> dict[str, Any]:
    """Read the vertices in a box, and the faces between them."""
    _, found = read(
        store_path, level=level, object_ids=object_ids, bbox=bbox, chunks=chunks,
        attribute_filter=attribute_filter, backend=backend, select=[],
    )  # fmt: skip
    vertices, faces = found.positions, found.links
    faces = np.zeros((0, 3), np.int64) if faces is None else faces
    if bbox is not None:
        kept = inside(found, bbox)
        vertices, faces = vertices[kept], kept_links(faces, kept)
    return {
        "vertices": vertices,
        "faces": faces,
        "vertex_count": len(vertices),
        "face_count": len(faces),
    }
