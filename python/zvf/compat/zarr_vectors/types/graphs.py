"""Graphs and skeletons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._read import Bbox, inside, kept_links, read
from .._store import or_package
from .._write import same_chunk, write
from ..exceptions import ArrayError
from .points import renamed


@or_package
def write_graph(
    store_path: Any,
    positions: Any,
    edges: Any,
    *,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float] | None = None,
    bounds: tuple[Sequence[float], Sequence[float]] | None = None,
    kind: str = "graph",
    vertex_attributes: Mapping[str, Any] | None = None,
    link_attributes: Mapping[str, Any] | None = None,
    object_attributes: Mapping[str, Any] | None = None,
    fragment_attributes: Mapping[str, Any] | None = None,
    object_ids: Any = None,
    dtype: str = "float32",
    backend: str | None = None,
    chunk_by_attribute: str | None = None,
    out_of_bounds: str = "raise",
    compressor: Any = None,
    shard_shape: int | Sequence[int] | None = None,
    is_tree: bool | None = None,
    node_attributes: Mapping[str, Any] | None = None,
    edge_attributes: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Write a graph, or a skeleton, whose edges are pairs of child and parent."""
    if is_tree is not None:
        tree = renamed("skeleton" if is_tree else "graph", None, "is_tree", "kind")
        if kind != "graph":
            raise TypeError("got both `is_tree` and `kind`; pass only `kind`.")
        kind = tree
    vertex_attributes = renamed(
        node_attributes, vertex_attributes, "node_attributes", "vertex_attributes"
    )
    link_attributes = renamed(
        edge_attributes, link_attributes, "edge_attributes", "link_attributes"
    )
    if kind not in ("graph", "skeleton"):
        raise ValueError(f"kind must be 'graph' or 'skeleton', got {kind!r}")
    positions = np.asarray(positions, np.dtype(dtype))
    edges = np.asarray(edges, np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ArrayError(f"edges must be (M, 2), got shape {edges.shape}")
    if out_of_bounds == "ignore":
        raise ArrayError("out_of_bounds='ignore' is not supported for write_graph")
    owners = np.zeros(len(positions), np.int64) if object_ids is None else np.asarray(object_ids)
    if kind == "skeleton":
        _check_roots(edges, owners)
    geometry: dict[str, Any] = {
        "links": edges, "vertex": vertex_attributes, "link": link_attributes,
        "object_ids": owners, "object": object_attributes,
    }  # fmt: skip
    report, chunks = write(
        store_path, f"{kind}s", positions, geometry, chunk_shape=chunk_shape,
        bin_shape=bin_shape, bounds=bounds, out_of_bounds=out_of_bounds, compressor=compressor,
        shard_shape=shard_shape, backend=backend, chunk_by_attribute=chunk_by_attribute,
        fragment_attributes=fragment_attributes,
    )  # fmt: skip
    cross = int((~same_chunk(chunks, edges)).sum())
    return {
        "node_count": len(positions),
        "edge_count": len(edges),
        "chunk_count": report.chunks,
        "intra_edge_count": len(edges) - cross,
        "cross_edge_count": cross,
        "object_count": report.objects,
        "kind": kind,
    }


def _check_roots(edges: NDArray[np.int64], owners: NDArray[Any]) -> None:
    roots = np.ones(len(owners), bool)
    roots[edges[:, 0]] = False
    objects, counts = np.unique(owners[roots], return_counts=True)
    if (counts > 1).any():
        raise ArrayError(
            f"object {objects[counts > 1][0]} has {counts.max()} roots; a skeleton has one for "
            "each object. Give each tree one of object_ids, or write it with kind='graph'"
        )


@or_package
def read_graph(
    store_path: Any,
    *,
    level: int = 0,
    object_ids: Sequence[int] | None = None,
    bbox: Bbox | None = None,
    chunks: Iterable[Iterable[int]] | None = None,
    attribute_filter: Mapping[str, Any] | None = None,
    backend: str | None = None,
) -> dict[str, Any]:
    """Read the vertices in a box, and the edges between them."""
    _, found = read(
        store_path, level=level, object_ids=object_ids, bbox=bbox, chunks=chunks,
        attribute_filter=attribute_filter, backend=backend, select=[],
    )  # fmt: skip
    positions, edges = found.positions, found.links
    edges = np.zeros((0, 2), np.int64) if edges is None else edges
    if bbox is not None:
        kept = inside(found, bbox)
        positions, edges = positions[kept], kept_links(edges, kept)
    return {
        "positions": positions,
        "edges": edges,
        "node_count": len(positions),
        "edge_count": len(edges),
    }
