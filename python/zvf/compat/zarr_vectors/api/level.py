"""Levels."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import zvf

from .._read import inside, read, text_of
from .._store import module_of_package
from ..exceptions import ZVError
from .grid import CellRef, CellSet, Grid
from .metadata import Metadata, NodeAttributes
from .objects import GroupCatalog, ObjectCatalog
from .result import Attributes, ReadResult, slices_of
from .schema import Corners
from .select import Query, Selection

if TYPE_CHECKING:
    from .dataset import Dataset

# The readers of `types` for each kind.
_READERS = {
    "point_cloud": ("points", "read_points"),
    "line": ("lines", "read_lines"),
    "polyline": ("polylines", "read_polylines"),
    "streamline": ("polylines", "read_polylines"),
    "mesh": ("meshes", "read_mesh"),
    "graph": ("graphs", "read_graph"),
    "skeleton": ("graphs", "read_graph"),
}
_LINKED = ("mesh", "graph", "skeleton")
_ATTR_GROUPS = {
    family: f"{family}_attributes" for family in ("vertex", "fragment", "object", "group", "link")
}


def attribute_families() -> tuple[str, ...]:
    """Return the families of attributes."""
    return tuple(sorted(_ATTR_GROUPS))


class Level:
    """A level of a store."""

    __slots__ = ("_dataset", "_index")

    def __init__(self, dataset: Dataset, index: int) -> None:
        self._dataset = dataset
        self._index = int(index)

    @property
    def index(self) -> int:
        """The number of the level."""
        return self._index

    @property
    def dataset(self) -> Dataset:
        """The store."""
        return self._dataset

    @property
    def kind(self) -> str:
        """The kind of geometry."""
        return self._dataset.kind_of(self._index)

    def _attributes(self, path: str = "") -> Any:
        """Return the attributes of a node of this level."""
        dataset = self._dataset
        if dataset._is_folder:
            folder = Path(str(dataset._address)) / str(self._index) / path
            return NodeAttributes(folder, writable=dataset._writable)
        node = self.store[path] if path and path in self.store else self.store
        return node.attrs if not path or node is not self.store else {}

    def _block(self) -> dict[str, Any]:
        if not self._dataset._is_folder and self._dataset._address is not None:
            return {}
        block = self._attributes().get("zarr_vectors_level")
        return block if isinstance(block, dict) else {}

    @property
    def vertex_count(self) -> int:
        """The number of vertices, as stored."""
        declared = self._block().get("vertex_count")
        if declared is None and self._dataset._address is not None:
            return self._dataset._engine().count(level=self._index).vertices or 0
        return int(declared or 0)

    @property
    def scale(self) -> tuple[float, ...]:
        """The extent of a chunk."""
        shape = self._block().get("chunk_shape") or self._dataset._root_meta.chunk_shape
        return tuple(map(float, shape or ()))

    @property
    def resolution(self) -> tuple[float, ...]:
        """The extent of a bin."""
        own, root = self._block().get("bin_shape"), self._dataset._root_meta
        if own:
            return tuple(map(float, own))
        if not root.base_bin_shape:
            return self.scale
        ratio = root.bin_ratios.get(str(self._index)) or [1.0] * len(root.base_bin_shape)
        return tuple(float(bin) * by for bin, by in zip(root.base_bin_shape, ratio))

    @property
    def objects(self) -> ObjectCatalog:
        """The objects."""
        return ObjectCatalog(self)

    @property
    def groups(self) -> GroupCatalog:
        """The groups, by name."""
        return GroupCatalog(self)

    @property
    def metadata(self) -> Metadata:
        """The metadata of applications."""
        return Metadata(self._attributes())

    @property
    def grid(self) -> Grid:
        """The grid of chunks."""
        bounds, scale = self._dataset._root_meta.bounds, self.scale
        return Grid.plan(bounds, cell_size=scale) if bounds and scale else Grid((), scale)

    @property
    def store(self) -> Any:
        """The level as a group of the package."""
        store = module_of_package("core.store")
        return store.get_resolution_level(self._dataset._group, self._index)

    def attribute_names(self, kind: str = "vertex") -> tuple[str, ...]:
        """Return the names of the attributes of a family, in order."""
        if kind not in _ATTR_GROUPS:
            raise ValueError(
                f"unknown attribute family {kind!r}; expected one of {sorted(_ATTR_GROUPS)}"
            )
        dataset = self._dataset
        if dataset._is_folder:
            folder = Path(str(dataset._address)) / str(self._index) / _ATTR_GROUPS[kind]
            nodes = folder.iterdir() if folder.is_dir() else ()
            return tuple(sorted(node.name for node in nodes if node.is_dir()))
        if dataset._address is not None:
            found = dataset._engine().attributes(self._index)
            return tuple(sorted(one.name for one in found if one.family == kind))
        group = self.store
        return (
            tuple(sorted(group[_ATTR_GROUPS[kind]].children()))
            if _ATTR_GROUPS[kind] in group
            else ()
        )

    def select(self, **kw: Any) -> Query:
        """Return a query, which reads nothing yet. `Selection` lists the arguments."""
        kw.setdefault("level", self._index)
        return Query(self, Selection(**kw))

    def read(self, **kw: Any) -> ReadResult:
        """Read a selection."""
        return self.select(**kw).read()

    async def aread(self, **kw: Any) -> ReadResult:
        """Read a selection on another thread."""
        return await self.select(**kw).aread()

    def cells(self, bbox: Corners | None = None) -> CellSet:
        """Return the chunks that hold vertices, or those of them that a box touches."""
        arrays = module_of_package("core.arrays")
        if bbox is None:
            coords = arrays.list_chunk_keys(self.store)
        else:
            corners = tuple(np.asarray(corner, np.float64) for corner in bbox)
            coords = arrays.resolve_chunk_keys(self.store, self.scale, bbox=corners)
        return CellSet(CellRef(tuple(map(int, at))) for at in coords)

    def plan(self, selection: Selection) -> Any:
        """Return the reads of the package for a selection."""
        planner = module_of_package("_engine.resolve")
        return planner.resolve(selection, planner.context_from_level(self))

    def _at(self, selection: Selection) -> Level:
        number = selection.level
        return self if number in (None, self._index) else self._dataset.level(int(number or 0))

    def _reader(self) -> tuple[str, str]:
        if self.kind not in _READERS:
            raise ZVError(
                f"no reader for geometry type {self.kind!r}; this store declares "
                f"{self._dataset.kinds}"
            )
        return _READERS[self.kind]

    def _wanted(self, selection: Selection) -> list[str]:
        if selection.attributes == "all":
            return list(self.attribute_names())
        one = isinstance(selection.attributes, str)
        return [str(selection.attributes)] if one else list(selection.attributes)

    def _execute(self, selection: Selection) -> ReadResult:
        level = self._at(selection)
        return level._post_filter(level._read(selection), selection)

    def _arguments(self, selection: Selection) -> dict[str, Any]:
        """Return the arguments of a reader."""
        kind = self.kind
        found: dict[str, Any] = {"level": self._index}
        box: Any = selection.bbox
        if selection.near is not None:
            centre, radius = np.asarray(selection.near[0], np.float64), float(selection.near[1])
            low, high = centre - radius, centre + radius
            if box is not None:
                low, high = np.maximum(low, box[0]), np.minimum(high, box[1])
            box = (low, high)
        if box is not None:
            found["bbox"] = box
        if selection.objects is not None:
            found["object_ids"] = list(selection.objects)
        if selection.groups is not None:
            found["group_ids"] = list(selection.groups)
        if selection.where:
            found["attribute_filter"] = dict(selection.where)
        if selection.cells is not None and selection.cells_split and kind != "line":
            found["chunks"] = [getattr(ref, "coords", ref) for ref in selection.cells]
        return found

    def _read(self, selection: Selection) -> ReadResult:
        names, arguments = self._wanted(selection), self._arguments(selection)
        kind = self.kind
        self._reader()
        if self._dataset._address is None:
            return self._read_by_package(arguments, names)
        named = selection.objects is not None or selection.groups is not None
        if kind == "point_cloud":
            arguments["owners"] = named
            if selection.limit is not None and selection.near is None and (
                selection.cells is None or selection.cells_split
            ):
                arguments["limit"] = selection.limit + 1
        _, found = read(
            self._dataset._address, select=[f"vertex.{name}" for name in names],
            client=self._dataset._client, **arguments,
        )  # fmt: skip
        result = self._result(found, names, named)
        if "bbox" not in arguments or kind in ("point_cloud", "polyline", "streamline"):
            return result
        keep = inside(found, arguments["bbox"])
        if kind == "line":
            keep = np.repeat(keep.reshape(-1, 2).any(axis=1), 2)
        return result.restrict(keep)

    def _result(self, found: zvf.Result, names: list[str], named: bool) -> ReadResult:
        kind, rows = self.kind, len(found)
        whole = (slice(0, rows),) if rows else ()
        parts: tuple[slice, ...] = whole
        objects, edges, faces = None, None, None
        if found.part_offsets is not None and found.part_objects is not None:
            lengths = np.diff(found.part_offsets)
            parts = slices_of(lengths[lengths > 0].tolist())
            objects = found.part_objects[lengths > 0]
            if kind == "line":
                edges, objects = np.arange(rows).reshape(-1, 2), None
        elif kind in _LINKED:
            width = 3 if kind == "mesh" else 2
            links = np.zeros((0, width), np.int64) if found.links is None else found.links
            edges, faces = (None, links) if kind == "mesh" else (links, None)
        return ReadResult(
            kind, found.positions, parts,
            part_objects=objects if objects is not None and len(objects) else None,
            object_ids=found.object_ids if named and kind == "point_cloud" else None,
            edges=edges, faces=faces,
            attributes=Attributes({name: text_of(found.vertex[name]) for name in names}),
            # As the package: without attributes, its readers of links do not look for any.
            attributes_read=bool(names) or kind not in _LINKED,
        )  # fmt: skip

    def _read_by_package(self, arguments: dict[str, Any], names: list[str]) -> ReadResult:
        """Read a store that is an object of Python."""
        module, name = self._reader()
        reader = getattr(module_of_package(f"types.{module}"), name)
        kind = self.kind
        if kind == "point_cloud":
            arguments = arguments | {"attribute_names": names}
        raw: Mapping[str, Any] = reader(self._dataset._group, **arguments)
        attributes = Attributes(raw.get("vertex_attributes"))
        if kind in ("polyline", "streamline"):
            arrays = [np.concatenate(runs) for runs in raw["polylines"]]
            empty = np.zeros((0, raw["ndim"]), np.float32)
            return ReadResult(
                kind, np.concatenate(arrays) if arrays else empty,
                slices_of([len(array) for array in arrays]),
                part_objects=np.asarray(raw["object_ids"]) if arrays else None,
                attributes=attributes,
            )  # fmt: skip
        if kind == "line":
            ends = raw["endpoints"]
            rows = 2 * len(ends)
            return ReadResult(
                kind, ends.reshape(rows, -1), slices_of([2] * len(ends)),
                edges=np.arange(rows).reshape(-1, 2), attributes=attributes,
            )  # fmt: skip
        positions = raw["vertices" if kind == "mesh" else "positions"]
        return ReadResult(
            kind, positions, (slice(0, len(positions)),) if len(positions) else (),
            object_ids=raw.get("object_ids"), edges=raw.get("edges"), faces=raw.get("faces"),
            attributes=attributes, attributes_read="vertex_attributes" in raw,
        )  # fmt: skip

    def _post_filter(self, result: ReadResult, selection: Selection) -> ReadResult:
        if not selection.needs_post_filter:
            return result
        keep = np.ones(result.vertex_count, bool)
        if selection.cells is not None and "chunks" not in self._arguments(selection):
            keep &= self._in_cells(result.positions, selection)
        if selection.near is not None:
            centre, radius = selection.near
            offset = result.positions - np.asarray(centre, result.positions.dtype)
            keep &= (offset**2).sum(axis=1) <= float(radius) ** 2
        rows = np.flatnonzero(keep)
        truncated = selection.limit is not None and len(rows) > selection.limit
        if truncated:
            keep[rows[selection.limit :]] = False
        return result.restrict(keep, truncated=truncated)

    def _in_cells(self, positions: NDArray[Any], selection: Selection) -> NDArray[np.bool_]:
        cells = np.floor(positions.astype(np.float64) / self.scale).astype(np.int64)
        wanted: list[Any] = [getattr(ref, "coords", ref) for ref in selection.cells or ()]
        row = np.dtype([(f"axis{axis}", np.int64) for axis in range(cells.shape[1])])
        chosen = np.array([tuple(map(int, coords)) for coords in wanted], row)
        return np.isin(np.ascontiguousarray(cells).view(row).ravel(), chosen)

    def _explain(self, selection: Selection) -> str:
        arguments = sorted(self._arguments(selection))
        note = " then filtered in memory" if selection.needs_post_filter else ""
        return f"{self._reader()[1]}({', '.join(arguments)}){note}"

    def __repr__(self) -> str:
        return f"Level({self._index}, kind={self.kind!r}, vertices={self.vertex_count})"


def _narrows(selection: Selection) -> bool:
    return selection.narrows
