"""Selections and queries."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..exceptions import ZVError
from .grid import CellRef, CellSet
from .result import ReadResult
from .schema import Corners

if TYPE_CHECKING:
    from .level import Level


class SelectionError(ZVError):
    """A selection does not fit the store."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What to read; every field but `level` and `attributes` narrows.

    Attributes:
        level: The level.
        bbox: The lower and upper corner of a box.
        near: Centre and radius of a sphere.
        objects: Ids of objects.
        groups: Ids of groups.
        where: The value of the attribute that the store is chunked by.
        cells: Chunks, as `Grid.cells_in` returns them.
        cells_split: Whether each run of a path in the chunks is a part of its own.
        attributes: Names of attributes of vertices, or `all`.
        limit: The largest number of vertices.
    """

    level: int | None = None
    bbox: Corners | None = None
    near: tuple[Sequence[float], float] | None = None
    objects: Sequence[int] | None = None
    groups: Sequence[int] | None = None
    where: Mapping[str, Any] | None = None
    cells: Iterable[CellRef] | None = None
    cells_split: bool = True
    attributes: Sequence[str] | str = "all"
    limit: int | None = None

    def intersect(self, other: Selection) -> Selection:
        """Return what both select."""
        bbox = other.bbox if self.bbox is None else self.bbox
        if self.bbox is not None and other.bbox is not None:
            low = np.maximum(self.bbox[0], other.bbox[0])
            bbox = (low.tolist(), np.minimum(self.bbox[1], other.bbox[1]).tolist())
        limits = [limit for limit in (self.limit, other.limit) if limit is not None]
        return Selection(
            level=self.level if other.level is None else other.level,
            bbox=bbox,
            near=self.near if other.near is None else other.near,
            objects=_both(self.objects, other.objects),
            groups=_both(self.groups, other.groups),
            where={**(self.where or {}), **(other.where or {})} or None,
            cells=self.cells if other.cells is None else other.cells,
            cells_split=self.cells_split and other.cells_split,
            attributes=self.attributes if other.attributes == "all" else other.attributes,
            limit=min(limits, default=None),
        )

    @property
    def narrows(self) -> bool:
        """Whether less than a level is selected, but for a limit."""
        terms = (self.bbox, self.near, self.objects, self.groups, self.where, self.cells)
        return any(term is not None for term in terms)

    @property
    def needs_post_filter(self) -> bool:
        """Whether vertices are left out after the read."""
        return self.near is not None or self.limit is not None or self.cells is not None


def _both(one: Sequence[int] | None, two: Sequence[int] | None) -> Sequence[int] | None:
    if one is None or two is None:
        return two if one is None else one
    wanted = set(two)
    return [at for at in one if at in wanted]


class Query:
    """A selection of a level, which `read` reads."""

    __slots__ = ("_level", "_selection")

    def __init__(self, level: Level, selection: Selection) -> None:
        self._level = level
        self._selection = selection

    def select(self, **kw: Any) -> Query:
        """Return a narrower query."""
        return Query(self._level, self._selection.intersect(Selection(**kw)))

    def limit(self, n: int) -> Query:
        """Return the query with a largest number of vertices."""
        return Query(self._level, replace(self._selection, limit=int(n)))

    @property
    def selection(self) -> Selection:
        """What is selected."""
        return self._selection

    def read(self) -> ReadResult:
        """Read the selection."""
        return self._level._execute(self._selection)

    async def aread(self) -> ReadResult:
        """Read the selection on another thread."""
        return await asyncio.to_thread(self.read)

    def count(self) -> int:
        """Return the number of vertices; that of a whole level is stored."""
        if not self._selection.narrows and self._selection.limit is None:
            return self._level.vertex_count
        return self.read().vertex_count

    def object_ids(self) -> NDArray[Any]:
        """Return the ids of the objects, ascending."""
        result = self.read()
        found = result.object_ids if result.part_objects is None else result.part_objects
        return np.zeros(0, np.int64) if found is None else np.unique(found)

    def explain(self) -> str:
        """Return a description of the read."""
        chosen = self._selection
        bits = [f"level {chosen.level}"]
        if chosen.bbox is not None:
            low, high = (np.asarray(corner, np.float64).tolist() for corner in chosen.bbox)
            bits.append(f"bbox {low}..{high}")
        if chosen.near is not None:
            bits.append(f"within {chosen.near[1]} of {list(chosen.near[0])}")
        for ids, name in ((chosen.objects, "object id(s)"), (chosen.groups, "group(s)")):
            if ids is not None:
                bits.append(f"{len(ids)} {name}")
        if chosen.where:
            bits.append(f"where {dict(chosen.where)}")
        if chosen.limit is not None:
            bits.append(f"limit {chosen.limit}")
        kind = self._level.kind
        return f"{kind} read: {', '.join(bits)}\n  via {self._level._explain(chosen)}"

    def plan(self) -> Any:
        """Return the reads of the package for this selection."""
        return self._level.plan(self._selection)

    def cells(self) -> CellSet:
        """Return the chunks that the selection touches, from the lists of chunks."""
        return CellSet(
            CellRef(tuple(map(int, request.key.split("."))))
            for request in self.plan().cells
            if request.key.replace(".", "").replace("-", "").isdigit()
        )

    def iter_cells(self) -> Iterator[tuple[CellRef, ReadResult]]:
        """Read the selection chunk by chunk, in order of their keys."""
        for cell in sorted(self.cells(), key=lambda cell: cell.key):
            yield cell, self.select(cells=[cell]).read()

    def __repr__(self) -> str:
        return f"Query({self.explain().splitlines()[0]})"
