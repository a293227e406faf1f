"""Declarations of stores: what the data are, and how they are stored."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ..exceptions import MetadataError

TARGET_CELL_BYTES = 64 << 20
SUBCELLS = 4
SCOPES = ("vertex", "object", "link")

Corners = tuple[Sequence[float], Sequence[float]]


class SchemaConflict(MetadataError):
    """A store disagrees with a schema."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Name and unit of an axis."""

    name: str
    unit: str | None = None
    type: str = "space"

    def to_ngff(self) -> dict[str, str]:
        """Return the axis as metadata have it."""
        found = {"name": self.name, "type": self.type}
        return found | {"unit": self.unit} if self.unit else found


@dataclass(frozen=True, slots=True)
class AttributeSpec:
    """Type of an attribute; `channels` is the number of values in a row."""

    dtype: str = "float32"
    channels: int = 1
    categorical: bool = False
    unit: str | None = None
    description: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return what differs from the defaults, and the type."""
        plain = AttributeSpec()
        return {
            name: value
            for name, value in asdict(self).items()
            if name == "dtype" or (value or None) != (getattr(plain, name) or None)
        }

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> AttributeSpec:
        """Return the declaration that `to_dict` made."""
        return cls(
            str(d.get("dtype", "float32")), int(d.get("channels", 1) or 1),
            bool(d.get("categorical", False)), d.get("unit"), d.get("description"),
        )  # fmt: skip

    def array_metadata(self) -> dict[str, Any]:
        """Return what belongs to the array of the attribute."""
        found: dict[str, Any] = {}
        if self.unit:
            found["unit"] = self.unit
        if self.description:
            found["description"] = self.description
        if self.categorical:
            found["declared_categorical"] = True
        return found


@dataclass(frozen=True, slots=True)
class SizeHints:
    """Estimates that the layout is chosen by."""

    n_vertices: int | None = None
    n_objects: int | None = None
    vertices_per_object: float | None = None


@dataclass(frozen=True, slots=True)
class ResolvedLayout:
    """Chunks, bins, shards and compression."""

    chunk_shape: tuple[float, ...]
    bin_shape: tuple[float, ...]
    shard_shape: int | tuple[int, ...] | None
    compressor: Any
    bounds: tuple[list[float], list[float]]


@dataclass(frozen=True, slots=True)
class Layout:
    """How data are stored. `cells` is the number of chunks along each axis, `cell_size` their
    extent, `subcells` the number of bins along an axis of a chunk; `pack` makes shards."""

    cells: int | Sequence[int] | Literal["auto"] = "auto"
    cell_size: Sequence[float] | None = None
    subcells: int | Literal["auto"] = "auto"
    pack: bool | Literal["auto"] = "auto"
    compression: str | None | Literal["auto"] = "auto"
    target_object_bytes: int = 16 << 20

    def resolve(self, schema: Schema, *, store_kind: str = "local") -> ResolvedLayout:
        """Compute the layout. Stores in buckets have shards unless `pack` is false."""
        if schema.bounds is None:
            raise MetadataError("Layout.resolve needs Schema.bounds, of which chunks are parts")
        low, high = ([float(value) for value in corner] for corner in schema.bounds)
        extent = [to - start for start, to in zip(low, high)]
        chunks = self._chunk_shape(extent, schema)
        bins = SUBCELLS if self.subcells == "auto" else max(1, int(self.subcells))
        pack = store_kind != "local" if self.pack == "auto" else self.pack
        compressor: Any = self.compression
        if compressor == "auto":
            compressor = os.environ.get("ZARR_VECTORS_COMPRESSION") or "zstd"
        return ResolvedLayout(
            chunks, tuple(side / bins for side in chunks),
            self._shard_shape(extent, chunks, schema) if pack else None, compressor, (low, high),
        )  # fmt: skip

    def _chunk_shape(self, extent: list[float], schema: Schema) -> tuple[float, ...]:
        if self.cell_size is not None:
            size = tuple(map(float, self.cell_size))
            if len(size) != len(extent):
                raise MetadataError(
                    f"Layout.cell_size has {len(size)} axes but the bounds have {len(extent)}."
                )
            return size
        cells: Any = self.cells
        if cells == "auto":
            hint = (schema.expected.n_vertices if schema.expected else None) or 0
            wanted = max(1.0, hint * len(extent) * 4 / TARGET_CELL_BYTES)
            cells = math.ceil(wanted ** (1 / len(extent)))
        counts = [cells] * len(extent) if isinstance(cells, int) else list(map(int, cells))
        if len(counts) != len(extent):
            raise MetadataError(
                f"Layout.cells has {len(counts)} axes but the bounds have {len(extent)}."
            )
        return tuple(
            (side / count if count > 0 else side) or 1.0 for side, count in zip(extent, counts)
        )

    def _shard_shape(
        self, extent: list[float], chunks: tuple[float, ...], schema: Schema
    ) -> tuple[int, ...]:
        grid = [max(1, math.ceil(side / chunk)) for side, chunk in zip(extent, chunks)]
        hint = schema.expected.n_vertices if schema.expected else None
        side = 4
        if hint:
            bytes = hint / math.prod(grid) * len(grid) * 4
            side = max(1, round((self.target_object_bytes / max(1.0, bytes)) ** (1 / len(grid))))
        return tuple(min(cells, side) for cells in grid)


@dataclass(frozen=True, slots=True)
class StorageOptions:
    """Where a store is, and options of its client."""

    backend: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    branch: str | None = None

    def resolve_backend(self, url: str) -> str | None:
        """Return the given backend, or that of the environment; `None` leaves the choice."""
        del url
        return self.backend or os.environ.get("ZARR_VECTORS_BACKEND") or None


@dataclass(frozen=True, slots=True)
class Schema:
    """What the data are."""

    ndim: int = 3
    bounds: Corners | None = None
    axes: tuple[Axis, ...] | None = None
    kind: str = "point_cloud"
    position_dtype: str = "float32"
    vertex_attributes: Mapping[str, AttributeSpec] = field(default_factory=dict)
    object_attributes: Mapping[str, AttributeSpec] = field(default_factory=dict)
    link_attributes: Mapping[str, AttributeSpec] = field(default_factory=dict)
    expected: SizeHints | None = None
    layout: Layout = field(default_factory=Layout)

    def __post_init__(self) -> None:
        if self.bounds is not None:
            low, high = self.bounds
            if len(low) != len(high):
                raise MetadataError(f"bounds corners disagree: {len(low)} vs {len(high)} axes.")
            object.__setattr__(self, "ndim", len(low))
        if self.axes is not None and len(self.axes) != self.ndim:
            raise MetadataError(f"{len(self.axes)} axes declared but ndim is {self.ndim}.")

    def with_bounds(self, lo: Sequence[float], hi: Sequence[float]) -> Schema:
        """Return the schema with other bounds."""
        return replace(self, bounds=(tuple(lo), tuple(hi)))

    def specs(self, scope: str) -> Mapping[str, AttributeSpec]:
        """Return the declared attributes of vertices, objects or links."""
        return {
            "vertex": self.vertex_attributes, "object": self.object_attributes,
            "link": self.link_attributes,
        }[scope]  # fmt: skip

    def to_root_block(self) -> dict[str, dict[str, Any]]:
        """Return the declared attributes as the root has them."""
        return {
            scope: {name: spec.to_dict() for name, spec in self.specs(scope).items()}
            for scope in SCOPES
            if self.specs(scope)
        }

    def spec_for(self, name: str, scope: str = "vertex") -> AttributeSpec | None:
        """Return the declaration of an attribute."""
        return self.specs(scope).get(name)

    @classmethod
    def from_store(cls, root_meta: Any, level_meta: Any = None) -> Schema:
        """Return what a store declares."""
        del level_meta
        bounds, chunks = root_meta.bounds, root_meta.chunk_shape
        bins = getattr(root_meta, "base_bin_shape", None)
        ratios = {round(chunk / bin) for chunk, bin in zip(chunks or (), bins or ()) if bin}
        declared = getattr(root_meta, "attribute_specs", None) or {}
        vertex, object_, link = (
            {n: AttributeSpec.from_dict(spec) for n, spec in (declared.get(scope) or {}).items()}
            for scope in SCOPES
        )
        return cls(
            ndim=int(root_meta.sid_ndim or 3),
            bounds=(tuple(bounds[0]), tuple(bounds[1])) if bounds else None,
            kind=next(iter(root_meta.geometry_types or ()), "point_cloud"),
            vertex_attributes=vertex, object_attributes=object_, link_attributes=link,
            layout=Layout(
                cell_size=tuple(chunks) if chunks else None,
                subcells=ratios.pop() if len(ratios) == 1 else "auto",
            ),
        )  # fmt: skip

    def diff(self, other: Schema) -> list[str]:
        """Return the fields that both declare, differently."""
        found = []
        if self.ndim != other.ndim:
            found.append(f"ndim: {self.ndim} != {other.ndim}")
        if self.kind and other.kind and self.kind != other.kind:
            found.append(f"kind: {self.kind} != {other.kind}")
        for corner, mine, theirs in zip(("min", "max"), self.bounds or (), other.bounds or ()):
            if list(map(float, mine)) != list(map(float, theirs)):
                found.append(f"bounds {corner}: {list(mine)} != {list(theirs)}")
        cell, other_cell = self.layout.cell_size, other.layout.cell_size
        if cell and other_cell and list(map(float, cell)) != list(map(float, other_cell)):
            found.append(f"cell size: {list(cell)} != {list(other_cell)}")
        for scope in SCOPES:
            specs, others = self.specs(scope), other.specs(scope)
            for name in sorted(specs.keys() & others.keys()):
                one, two = specs[name].to_dict(), others[name].to_dict()
                if one != two:
                    found.append(f"{scope} attribute {name!r}: {one} != {two}")
        return found
