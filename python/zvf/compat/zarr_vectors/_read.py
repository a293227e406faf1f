"""Reading stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

import zvf

from ._store import LOG, NotOfEngine, level_block, opened
from .exceptions import ArrayError, StoreError, translated

Bbox = tuple[Any, Any]


def read(
    source: Any,
    *,
    level: int,
    bbox: Bbox | None = None,
    object_ids: Iterable[int] | None = None,
    group_ids: Iterable[int] | None = None,
    chunks: Iterable[Iterable[int]] | None = None,
    attribute_filter: Mapping[str, Any] | None = None,
    backend: str | None = None,
    select: list[str] | None = None,
    limit: int | None = None,
    owners: bool = True,
    client: Mapping[str, str] | None = None,
) -> tuple[zvf.Dataset, zvf.Result]:
    """Run a query. Objects and groups that do not exist are left out."""
    if backend not in (None, "local", "obstore"):
        raise NotOfEngine(f"backend={backend!r}")
    store = opened(source, client)
    options: dict[str, Any] = {"level": level, "limit": limit, "owners": owners}
    if bbox is not None:
        options["bbox"] = tuple(np.asarray(corner, np.float64).tolist() for corner in bbox)
    if object_ids is not None:
        options["objects"] = np.asarray(list(object_ids), np.int64)
    if group_ids is not None:
        options["groups"] = [int(group) for group in group_ids]
    if chunks is not None:
        options["chunks"] = [tuple(int(at) for at in chunk) for chunk in chunks]
    if select is not None:
        options["select"] = select
    if attribute_filter:
        options["chunked_by"] = _value(attribute_filter, level_block(store, level))
    with translated():
        try:
            found = store.query(**options)
        except zvf.NoSuchObjectError:
            found = store.query(**options, keep_going=True)
            if found.damaged:
                raise StoreError(": ".join(found.damaged[0])) from None
    LOG.debug("engine read %s", ",".join(store.kinds))
    return store, found


def _value(attribute_filter: Mapping[str, Any], block: dict[str, Any]) -> Any:
    known = block.get("chunk_attribute_name")
    if known is None:
        raise ArrayError(
            "attribute_filter requires a store written with chunk_by_attribute; the level has no "
            "chunk_attribute_name"
        )
    if len(attribute_filter) != 1:
        raise ArrayError(
            f"attribute_filter must specify exactly one attribute (got {len(attribute_filter)})"
        )
    ((name, value),) = attribute_filter.items()
    if name != known:
        raise ArrayError(
            f"attribute_filter key {name!r} does not match the store's chunk_attribute_name "
            f"{known!r}"
        )
    return value.item() if isinstance(value, np.generic) else value


def columns(found: zvf.Result) -> dict[str, NDArray[Any]]:
    """Return the attributes of vertices."""
    return {name: text_of(values) for name, values in found.vertex.items()}


def text_of(values: NDArray[Any]) -> NDArray[Any]:
    """Return text as the package does, as an array of `str`."""
    if values.dtype.kind != "O" or any(value is None for value in values):
        return values
    return values.astype(str)


def inside(found: zvf.Result, bbox: Bbox) -> NDArray[np.bool_]:
    """Return whether each vertex is in a box."""
    low, high = (np.asarray(corner) for corner in bbox)
    kept = np.all((found.positions >= low) & (found.positions <= high), axis=1)
    return np.asarray(kept)


def kept_links(links: NDArray[Any], kept: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number links by the kept vertices, without those that lost one."""
    number = np.cumsum(kept) - 1
    whole = kept[links].all(axis=1)
    return np.asarray(number[links[whole]], np.int64)
