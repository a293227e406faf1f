"""Open stores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import zvf

from .._api_version import parse_version, satisfies
from .._store import NotOfEngine, address_of, module_of_package
from ..exceptions import MetadataError, StoreError, ZVError, translated
from ..types.graphs import write_graph
from ..types.lines import write_lines
from ..types.meshes import write_mesh
from ..types.points import write_points
from ..types.polylines import write_polylines
from .level import Level
from .metadata import Metadata, NodeAttributes
from .objects import GroupCatalog
from .result import ReadResult
from .schema import SCOPES, Axis, Layout, Schema, SchemaConflict, StorageOptions
from .select import Query

FORMAT = "0.9.2"
OutOfBounds = Literal["raise", "ignore", "expand"]
Columns = Mapping[str, Any] | None


class FormatError(ZVError):
    """The store has another version of the format."""


@dataclass(frozen=True)
class RootFields:
    """What the root declares."""

    zv_version: str
    bounds: Any
    chunk_shape: Any
    base_bin_shape: Any
    geometry_types: list[str]
    spatial_index_dims: list[dict[str, str]]
    format_capabilities: list[str]
    attribute_specs: dict[str, Any]
    bin_ratios: dict[str, list[float]] = field(default_factory=dict)

    @property
    def sid_ndim(self) -> int:
        """The number of axes."""
        return len(self.spatial_index_dims) or len(self.chunk_shape or ()) or 3


@dataclass(frozen=True)
class ValidationResult:
    """What a validation found."""

    errors: list[str]
    warnings: list[str]
    passed: list[str]

    @property
    def ok(self) -> bool:
        """Whether there are no errors."""
        return not self.errors


class Dataset:
    """An open store."""

    __slots__ = ("_address", "_held", "_levels", "_storage", "_writable")

    def __init__(
        self, source: Any, *, storage: StorageOptions | None = None, mode: str = "r+"
    ) -> None:
        self._storage = storage or StorageOptions()
        self._writable = mode != "r"
        self._held: Any = None if isinstance(source, (str, Path, zvf.Dataset)) else source
        self._levels: dict[int, Level] = {}
        self._address: str | None = None
        try:
            if self._storage.backend in (None, "local", "obstore"):
                self._address = address_of(source)
        except NotOfEngine:
            pass
        if self._address is None and self._held is None:
            self._held = module_of_package("core.store").open_store(
                source, mode, backend=self._storage.backend,
                storage_options=dict(self._storage.options) or None,
            )  # fmt: skip

    @property
    def _is_folder(self) -> bool:
        return self._address is not None and Path(self._address).is_dir()

    @property
    def _client(self) -> dict[str, str]:
        return {name: str(value) for name, value in self._storage.options.items()}

    def _engine(self) -> zvf.Dataset:
        with translated():
            return zvf.open(str(self._address), options=self._client)

    @property
    def _group(self) -> Any:
        """The root as a group of the package."""
        if self._held is None:
            mode = "r+" if self._writable else "r"
            self._held = module_of_package("core.store").open_store(self._address, mode)
        return self._held

    @property
    def url(self) -> str:
        """The address of the store."""
        return str(self._held.url) if self._address is None else self._address

    def _attributes(self) -> Any:
        if self._is_folder:
            return NodeAttributes(Path(str(self._address)), writable=self._writable)
        return self._group.attrs

    @property
    def _root_meta(self) -> RootFields:
        if self._address is not None and not self._is_folder:
            root = self._engine()
            axes = [
                {"name": name, "type": "space"} | ({"unit": unit} if unit else {})
                for name, unit in zip(root.axes, root.units)
            ]
            return RootFields(
                root.generation, root.bounds, root.chunk_shape, None, root.kinds, axes, [], {}
            )
        attributes = self._attributes().to_dict()
        block = attributes.get("zarr_vectors")
        if not isinstance(block, dict):
            raise MetadataError(f"{self.url} has no metadata of Zarr Vectors")
        scales = (attributes.get("multiscales") or [{}])[0]
        ratios = {
            node.get("path"): step["scale"]
            for node in scales.get("datasets", ())
            for step in node.get("coordinateTransformations", ())
            if "scale" in step
        }
        return RootFields(
            block.get("zv_version") or "0.0.0", block.get("bounds"), block.get("chunk_shape"),
            block.get("base_bin_shape"), block.get("geometry_types") or [],
            scales.get("axes") or [], block.get("format_capabilities") or [],
            block.get("attribute_specs") or {}, ratios,
        )  # fmt: skip

    @property
    def format_version(self) -> tuple[int, ...]:
        """The version of the format."""
        return parse_version(self._root_meta.zv_version)

    @property
    def capabilities(self) -> frozenset[str]:
        """The optional features of the format that the store declares."""
        return frozenset(self._root_meta.format_capabilities)

    def supports(self, capability: str) -> bool:
        """Return whether the store declares a feature."""
        return capability in self.capabilities

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._root_meta.sid_ndim

    @property
    def bounds(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lower and upper bounds."""
        bounds = self._root_meta.bounds
        if not bounds:
            raise MetadataError(f"{self.url} declares no bounds")
        return np.asarray(bounds[0], np.float64), np.asarray(bounds[1], np.float64)

    @property
    def axes(self) -> tuple[dict[str, str], ...]:
        """Name, type and unit of each axis."""
        return tuple(dict(axis) for axis in self._root_meta.spatial_index_dims)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of geometry."""
        return tuple(self._root_meta.geometry_types)

    def kind_of(self, level: int = 0) -> str:
        """Return the kind of geometry of a level."""
        del level
        for kind in self.kinds:
            return kind
        raise MetadataError(
            f"{self.url} declares no geometry_types, so there is no way to know how to decode it. "
            "Write geometry to it first."
        )

    @property
    def levels(self) -> tuple[int, ...]:
        """The levels, finest first."""
        if self._is_folder:
            folders = Path(str(self._address)).iterdir()
            found = (at for at in folders if at.name.isdigit() and (at / "zarr.json").is_file())
            return tuple(sorted(int(at.name) for at in found))
        if self._address is not None:
            return tuple(self._engine().levels)
        return tuple(module_of_package("core.store").list_resolution_levels(self._group))

    def level(self, index: int = 0) -> Level:
        """Return a level."""
        return self._levels.setdefault(index, Level(self, index))

    def __getitem__(self, index: int) -> Level:
        return self.level(index)

    def __iter__(self) -> Iterator[Level]:
        return iter(self.level(index) for index in self.levels)

    def resolution(self, *, scale: float) -> Level:
        """Return the level whose chunks have an extent closest to a scale."""
        levels = [self.level(index) for index in self.levels]
        known = [level for level in levels if level.scale]
        if not known:
            raise MetadataError(f"{self.url} has no level with a known cell size")
        return min(known, key=lambda level: abs(float(np.mean(level.scale)) - scale))

    @property
    def metadata(self) -> Metadata:
        """The metadata of applications."""
        return Metadata(self._attributes())

    @property
    def groups(self) -> GroupCatalog:
        """The groups of level 0, by name."""
        return self.level(0).groups

    @property
    def headers(self) -> Any:
        """The headers of source files, by the package."""
        return module_of_package("headers.registry").HeaderRegistry(self._group)

    def select(self, **kw: Any) -> Query:
        """Return a query of level 0, or of `level`. `Selection` lists the arguments."""
        level = kw.get("level")
        return self.level(0 if level is None else int(level)).select(**kw)

    def read(self, **kw: Any) -> ReadResult:
        """Read a selection."""
        return self.select(**kw).read()

    async def aread(self, **kw: Any) -> ReadResult:
        """Read a selection on another thread."""
        return await self.select(**kw).aread()

    def add_points(
        self, positions: Any, *, attributes: Columns = None, object_ids: Any = None,
        object_attributes: Columns = None, groups: Mapping[int, Sequence[int]] | None = None,
        layout: Layout | None = None, on_out_of_bounds: OutOfBounds = "raise",
    ) -> dict[str, Any]:  # fmt: skip
        """Write points."""
        return self._write(
            write_points, positions, layout=layout, vertex_attributes=attributes,
            object_ids=object_ids, object_attributes=object_attributes, groups=groups,
            out_of_bounds=on_out_of_bounds,
        )  # fmt: skip

    def add_polylines(
        self, polylines: Sequence[Any], *, attributes: Columns = None,
        object_attributes: Columns = None, groups: Mapping[int, Sequence[int]] | None = None,
        layout: Layout | None = None, streamlines: bool = False,
        on_out_of_bounds: OutOfBounds = "raise",
    ) -> dict[str, Any]:  # fmt: skip
        """Write polylines or streamlines."""
        return self._write(
            write_polylines, polylines, layout=layout, vertex_attributes=attributes,
            object_attributes=object_attributes, groups=groups, out_of_bounds=on_out_of_bounds,
            geometry_type="streamline" if streamlines else "polyline",
        )  # fmt: skip

    def add_lines(
        self, endpoints: Any, *, attributes: Columns = None, object_attributes: Columns = None,
        layout: Layout | None = None, on_out_of_bounds: OutOfBounds = "raise",
    ) -> dict[str, Any]:  # fmt: skip
        """Write lines."""
        return self._write(
            write_lines, endpoints, layout=layout, vertex_attributes=attributes,
            object_attributes=object_attributes, out_of_bounds=on_out_of_bounds,
        )  # fmt: skip

    def add_mesh(
        self, vertices: Any, faces: Any, *, attributes: Columns = None,
        object_attributes: Columns = None, object_ids: Any = None, layout: Layout | None = None,
        on_out_of_bounds: OutOfBounds = "raise",
    ) -> dict[str, Any]:  # fmt: skip
        """Write a mesh."""
        return self._write(
            write_mesh, vertices, faces, layout=layout, vertex_attributes=attributes,
            object_attributes=object_attributes, object_ids=object_ids,
            out_of_bounds=on_out_of_bounds,
        )  # fmt: skip

    def add_graph(
        self, positions: Any, edges: Any, *, attributes: Columns = None,
        edge_attributes: Columns = None, object_attributes: Columns = None,
        object_ids: Any = None, tree: bool = False, layout: Layout | None = None,
        on_out_of_bounds: OutOfBounds = "raise",
    ) -> dict[str, Any]:  # fmt: skip
        """Write a graph or a skeleton."""
        return self._write(
            write_graph, positions, edges, layout=layout, vertex_attributes=attributes,
            link_attributes=edge_attributes, object_attributes=object_attributes,
            object_ids=object_ids, kind="skeleton" if tree else "graph",
            out_of_bounds=on_out_of_bounds,
        )  # fmt: skip

    def _write(
        self, writer: Any, *data: Any, layout: Layout | None, **given: Any
    ) -> dict[str, Any]:
        self._check_writable()
        schema = Schema.from_store(self._root_meta)
        resolved = (layout or schema.layout).resolve(schema, store_kind=self._store_kind())
        given = {name: value for name, value in given.items() if value is not None}
        _check_declared(schema, given)
        target = self._group if self._held is not None else self._address
        report: dict[str, Any] = writer(
            target, *data, chunk_shape=resolved.chunk_shape, bin_shape=resolved.bin_shape,
            shard_shape=resolved.shard_shape, compressor=resolved.compressor, **given,
        )  # fmt: skip
        self._annotate(schema, given)
        return report

    def _annotate(self, schema: Schema, given: Mapping[str, Any]) -> None:
        """Write units and descriptions that the schema declares to the attributes."""
        for scope in SCOPES:
            for name in given.get(f"{scope}_attributes") or ():
                spec = schema.spec_for(name, scope)
                extra = spec.array_metadata() if spec else {}
                if extra and self._is_folder:
                    self.level(0)._attributes(f"{scope}_attributes/{name}").update(extra)

    def _check_writable(self) -> None:
        if not self._writable:
            raise StoreError(f"{self.url} was opened read-only; use mode='r+'")

    def _store_kind(self) -> str:
        remote = self._address is not None and "://" in self._address
        return "object" if remote else "local"

    def editing(self, *, level: int = 0, in_place: bool = False, **kw: Any) -> Any:
        """Return a batch of edits, by the package."""
        del in_place
        return module_of_package("api.edit").EditPlan(self, level=level, **kw)

    def build_pyramid(
        self, *, factors: Sequence[tuple[float, float]], method: str = "per_object", **kw: Any
    ) -> dict[str, Any]:
        """Build coarser levels; each factor is that of the bins and that of the objects.

        The package builds those with other methods and options than `cross_level_storage` and
        `cross_level_depth`.
        """
        self._check_writable()
        known = kw.keys() <= {"cross_level_storage", "cross_level_depth"}
        if self._address is not None and method == "per_object" and known:
            return self._build_levels(factors, **kw)
        built: dict[str, Any] = module_of_package("multiresolution.coarsen").build_pyramid(
            self._group, factors=list(factors), method=method, **kw
        )
        return built

    def _build_levels(
        self, factors: Sequence[tuple[float, float]], cross_level_storage: Any = "implicit",
        cross_level_depth: int = 1,
    ) -> dict[str, Any]:  # fmt: skip
        with translated():
            built = self._engine().pyramid(
                method="bins", levels=len(factors), overwrite=True,
                factors=[float(bins) for bins, _ in factors],
                sparsity=[float(objects) for _, objects in factors],
                cross_level=cross_level_storage, depth=cross_level_depth,
            )  # fmt: skip
        return {
            "levels_created": len(built),
            "level_specs": [
                {"vertex_count": level.vertices, "object_count": level.objects}
                for level in built
            ],
            "method": "per_object", "cross_level_depth": cross_level_depth,
            "cross_level_storage": cross_level_storage,
        }  # fmt: skip

    def validate(self, *, level: int = 3) -> Any:
        """Check the store. Levels above 3 check the geometry."""
        if self._address is None:
            return module_of_package("validate").validate(self._group, level=level)
        depth: Any = min(max(1, level), 4)
        with translated():
            found = zvf.validate(self._address, level=depth)
        lines = [(str(one.severity), f"{one.path}: {one.message}") for one in found.findings]
        return ValidationResult(
            [text for severity, text in lines if severity == "error"],
            [text for severity, text in lines if severity != "error"],
            [f"{found.cells} cells"],
        )

    def commit(self, message: str = "zarr-vectors write") -> str | None:
        """Commit, for backends with transactions."""
        if self._address is not None:
            return None
        name: str | None = module_of_package("core.store").commit(self._group, message)
        return name

    @property
    def store(self) -> Any:
        """The root as a group of the package."""
        return self._group

    def __repr__(self) -> str:
        try:
            kinds = ", ".join(self.kinds) or "empty"
            return f"Dataset({self.url!r}, {kinds}, levels={list(self.levels)})"
        except ZVError:
            return f"Dataset({self.url!r})"


def _check_declared(schema: Schema, given: Mapping[str, Any]) -> None:
    for scope in SCOPES:
        for name, value in (given.get(f"{scope}_attributes") or {}).items():
            spec = schema.spec_for(name, scope)
            if spec is None:
                continue
            array = np.asarray(value[0] if isinstance(value, list) and value else value)
            if array.dtype != np.dtype(spec.dtype):
                raise SchemaConflict(
                    f"{scope} attribute {name!r} is declared {spec.dtype!r} but was given "
                    f"{array.dtype!r}. Pass the declared dtype, or change the declaration."
                )
            channels = array.shape[-1] if array.ndim > 1 else 1
            if channels != spec.channels:
                raise SchemaConflict(
                    f"{scope} attribute {name!r} is declared with {spec.channels} channel(s) but "
                    f"was given {channels}."
                )


def open(
    source: Any, *, mode: Literal["r", "r+"] = "r", storage: StorageOptions | None = None
) -> Dataset:
    """Open a store: a folder, a URL, or a store or group of zarr."""
    dataset = Dataset(source, storage=storage, mode=mode)
    address = dataset._address
    if address is not None and "://" not in address and not dataset._is_folder:
        raise StoreError(f"Store not found at {address}")
    _ = dataset._root_meta
    return dataset


def create(target: Any, *, schema: Schema, storage: StorageOptions | None = None) -> Dataset:
    """Create a store without geometry, which `add_points` and others write."""
    storage = storage or StorageOptions()
    try:
        address = address_of(target)
    except NotOfEngine:
        address = "://"
    resolved = schema.layout.resolve(schema, store_kind="object" if "://" in address else "local")
    axes = [axis.to_ngff() for axis in schema.axes or _axes(schema.ndim)]
    if "://" in address or storage.backend not in (None, "local", "obstore"):
        group = module_of_package("core.store").create_store(
            target, bounds=resolved.bounds, chunk_shape=resolved.chunk_shape,
            base_bin_shape=resolved.bin_shape, compressor=resolved.compressor, ndim=schema.ndim,
            vertex_dtype=schema.position_dtype, axes=axes, geometry_types=[schema.kind],
            attribute_specs=schema.to_root_block() or None, backend=storage.resolve_backend(""),
            storage_options=dict(storage.options) or None,
        )  # fmt: skip
        return Dataset(group, storage=storage)
    folder = Path(address)
    if folder.exists() and any(folder.iterdir()):
        raise StoreError(f"{address} exists already; open_or_create opens it")
    block: dict[str, Any] = {
        "zv_version": FORMAT, "bounds": [list(corner) for corner in resolved.bounds],
        "chunk_shape": list(resolved.chunk_shape), "base_bin_shape": list(resolved.bin_shape),
        "geometry_types": [schema.kind] if schema.kind else [], "format_capabilities": [],
    }  # fmt: skip
    if declared := schema.to_root_block():
        block["attribute_specs"] = declared
    scales = {"version": "0.4", "name": "default", "axes": axes, "datasets": []}
    document = {
        "zarr_format": 3, "node_type": "group",
        "attributes": {"zarr_vectors": block, "multiscales": [scales]},
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "zarr.json").write_text(json.dumps(document, indent=2))
    return Dataset(address, storage=storage)


def _axes(ndim: int) -> list[Axis]:
    if ndim > 4:
        raise MetadataError(f"a store of {ndim} axes needs their names: Schema(axes=...)")
    names = ("x", "y", "z") if ndim < 4 else ("t", "x", "y", "z")
    return [Axis(name, type="time" if name == "t" else "space") for name in names[:ndim]]


def open_or_create(
    target: Any, *, schema: Schema, storage: StorageOptions | None = None,
    on_conflict: Literal["raise", "keep"] = "raise",
) -> Dataset:  # fmt: skip
    """Open a store, or create it if there is none.

    Raises:
        SchemaConflict: The store disagrees with the schema, and `on_conflict` is not `keep`.
    """
    try:
        dataset = open(target, mode="r+", storage=storage)
    except (StoreError, MetadataError, FileNotFoundError, KeyError):
        return create(target, schema=schema, storage=storage)
    differences = schema.diff(Schema.from_store(dataset._root_meta))
    if differences and on_conflict != "keep":
        raise SchemaConflict(
            f"{dataset.url} already exists and disagrees with the schema it was opened with:\n  "
            + "\n  ".join(differences)
            + "\nPass on_conflict='keep' to use the store's own values."
        )
    return dataset


async def aopen(source: Any, *, storage: StorageOptions | None = None) -> Dataset:
    """Open a store on another thread."""
    import asyncio

    return await asyncio.to_thread(open, source, storage=storage)


def require_format(dataset: Dataset, spec: str) -> None:
    """Check the version of the format, as `">=0.9,<0.11"`.

    Raises:
        FormatError: The store has another version.
    """
    found = dataset.format_version
    if satisfies(found, spec) is not None:
        raise FormatError(
            f"{dataset.url} is on-disk format {'.'.join(map(str, found))}, which does not satisfy "
            f"{spec!r}; zvf.migrate rewrites a store as {FORMAT}"
        )
