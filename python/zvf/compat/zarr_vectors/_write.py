"""Writing stores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import zvf

from ._store import LOG, NotOfEngine, address_of, root_attributes
from .exceptions import MetadataError, StoreError, translated

CODECS = {"none": "none", "zstd": "zstd", "gzip": "gzip", "blosc": "blosc"}


def write(
    target: Any,
    kind: str,
    positions: NDArray[Any],
    geometry: Mapping[str, Any],
    *,
    chunk_shape: Sequence[float],
    bin_shape: Sequence[float] | None,
    bounds: tuple[Sequence[float], Sequence[float]] | None,
    out_of_bounds: str,
    compressor: Any,
    shard_shape: int | Sequence[int] | None,
    backend: str | None,
    chunk_by_attribute: str | None,
    fragment_attributes: Mapping[str, Any] | None = None,
) -> tuple[zvf.CreateReport, NDArray[np.int64]]:
    """Write a store, and return the report and the chunk of each vertex.

    A store that has been created and holds no geometry keeps its bounds, chunks and attributes.
    """
    if out_of_bounds not in ("raise", "ignore", "expand"):
        raise MetadataError(
            f"unknown out_of_bounds policy {out_of_bounds!r}; valid: expand, ignore, raise"
        )
    if backend not in (None, "local", "obstore"):
        raise NotOfEngine(f"backend={backend!r}")
    if chunk_by_attribute is not None:
        raise NotOfEngine("chunk_by_attribute")
    if fragment_attributes:
        raise NotOfEngine("fragment_attributes of each chunk")
    address = address_of(target)
    before = None if "://" in address else root_attributes(address)
    options: dict[str, Any] = {"node_copy": False, "seal": False, "out_of_bounds": out_of_bounds}
    if before is not None:
        block = _empty_block(address, before)
        bounds = block["bounds"]
        chunk_shape = block["chunk_shape"]
        bin_shape = bin_shape if bin_shape is not None else block.get("base_bin_shape")
        axes = before["multiscales"][0]["axes"]
        if len(axes) != positions.shape[1]:
            raise MetadataError(
                f"Store ndim={len(axes)} does not match data ndim={positions.shape[1]}."
            )
        options["axes"] = [(axis["name"], axis.get("unit")) for axis in axes]
        options["overwrite"] = True
    options["chunk_shape"] = tuple(map(float, chunk_shape))
    if bin_shape is not None:
        options["bin_shape"] = tuple(map(float, bin_shape))
    if bounds is not None:
        options["bounds"] = (list(map(float, bounds[0])), list(map(float, bounds[1])))
    options["compression"] = _compression(compressor)
    options["sharding"] = "none"
    if shard_shape is not None:
        sides = positions.shape[1] * (shard_shape,) if isinstance(shard_shape, int) else shard_shape
        options["sharding"] = tuple(map(int, sides))
    with translated():
        report = zvf.create(
            address, kind=kind, positions=positions, **geometry, **options
        )
    LOG.debug("engine write %s", kind)
    if before is not None:
        _restore(address, before)
    _refresh(target, address)
    return report, chunks_of(positions, report.chunk_shape)


def chunks_of(positions: NDArray[Any], chunk_shape: Sequence[float]) -> NDArray[np.int64]:
    """Return the chunk of each vertex."""
    return np.asarray(np.floor(positions / np.asarray(chunk_shape, positions.dtype)), np.int64)


def same_chunk(chunks: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether the ends of each link are in one chunk."""
    found: NDArray[np.bool_] = (chunks[ends] == chunks[ends[:, :1]]).all(axis=(1, 2))
    return found


def _empty_block(address: str, attributes: dict[str, Any]) -> dict[str, Any]:
    block = attributes.get("zarr_vectors")
    if not isinstance(block, dict) or not block.get("bounds") or not block.get("chunk_shape"):
        raise StoreError(f"{address} exists, and is not a store of Zarr Vectors")
    cells = (Path(address) / "0" / "vertices").rglob("*")
    if any(cell.is_file() and cell.name != "zarr.json" for cell in cells):
        raise StoreError(
            f"{address} has geometry already, which the package would replace; "
            "zvf.open(...).append adds to it"
        )
    return block


def _compression(compressor: Any) -> str:
    if compressor is None:
        return "none"
    if isinstance(compressor, str) and compressor in CODECS:
        return CODECS[compressor]
    raise NotOfEngine(f"compressor={compressor!r}")


def _restore(address: str, before: dict[str, Any]) -> None:
    """Put back the attributes that the engine does not write."""
    file = Path(address) / "zarr.json"
    document = json.loads(file.read_bytes())
    attributes = document["attributes"]
    for name, value in before.items():
        attributes.setdefault(name, value)
    for name, value in before["zarr_vectors"].items():
        attributes["zarr_vectors"].setdefault(name, value)
    if "ome" in before:
        attributes["ome"]["name"] = before["ome"]["name"]
    staged = file.with_suffix(".new")
    staged.write_text(json.dumps(document, indent=2))
    staged.replace(file)


def _refresh(target: Any, address: str) -> None:
    """Bring the attributes that an open handle of the package holds up to date."""
    held = getattr(target, "attrs", None)
    if held is not None and hasattr(held, "put"):
        held.put(root_attributes(address))
    elif held is not None and hasattr(held, "update"):
        held.update(root_attributes(address))
