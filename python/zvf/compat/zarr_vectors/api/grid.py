"""The grid of chunks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .schema import TARGET_CELL_BYTES, Corners


@dataclass(frozen=True, slots=True, order=True)
class CellRef:
    """A chunk, by its coordinates in the store."""

    coords: tuple[int, ...]

    @property
    def key(self) -> str:
        """The coordinates as text, as `3.1.2`."""
        return ".".join(map(str, self.coords))

    def __repr__(self) -> str:
        return f"CellRef({self.key})"


class CellSet(frozenset[CellRef]):
    """A set of chunks."""

    def keys(self) -> tuple[str, ...]:
        """Return the keys, in order."""
        return tuple(sorted(ref.key for ref in self))

    def __repr__(self) -> str:
        return f"CellSet({len(self)} cell(s))"


@dataclass(frozen=True, slots=True)
class GridCapacity:
    """Whether a grid suits an amount of data."""

    cells: int
    shape: tuple[int, ...]
    est_bytes_per_cell: float
    fits: bool
    reason: str | None = None

    def __str__(self) -> str:
        verdict = "fits" if self.fits else f"does not fit: {self.reason}"
        size = self.est_bytes_per_cell / 1e6
        shape = "x".join(map(str, self.shape))
        return f"{shape} = {self.cells} cells, ~{size:.1f} MB/cell -- {verdict}"


@dataclass(frozen=True, slots=True)
class Grid:
    """Number and extent of chunks along each axis, and the lower corner of the bounds."""

    shape: tuple[int, ...]
    cell_shape: tuple[float, ...]
    origin: tuple[float, ...] = ()

    @classmethod
    def plan(
        cls, bounds: Corners, *, cell_size: Sequence[float] | None = None,
        target_cells: int | Sequence[int] | None = None,
    ) -> Grid:  # fmt: skip
        """Return the grid of a store with these bounds, which a chunk may touch from above."""
        low, high = ([float(value) for value in corner] for corner in bounds)
        extent = [to - start for start, to in zip(low, high)]
        if cell_size is not None:
            size = tuple(map(float, cell_size))
        else:
            counts = target_cells if target_cells is not None else 1
            each = [counts] * len(low) if isinstance(counts, int) else list(map(int, counts))
            size = tuple((e / c if c > 0 else e) or 1.0 for e, c in zip(extent, each))
        shape = (
            math.floor(to / side) - math.floor(start / side) + 1
            for start, to, side in zip(low, high, size)
        )
        return cls(tuple(shape), size, tuple(low))

    @property
    def cells(self) -> int:
        """The number of chunks."""
        return math.prod(self.shape) if self.shape else 0

    @property
    def anchor(self) -> tuple[int, ...]:
        """The coordinates of the first chunk."""
        origin = self.origin or (0.0,) * len(self.cell_shape)
        return tuple(math.floor(start / side) for start, side in zip(origin, self.cell_shape))

    def cell_of(self, point: Sequence[float]) -> CellRef:
        """Return the chunk of a position."""
        place = np.floor(np.asarray(point, np.float64) / self.cell_shape)
        return CellRef(tuple(int(at) for at in place))

    def cells_in(self, bbox: Corners) -> CellSet:
        """Return the chunks that a box touches, whether they hold data or not."""
        first, last = self.cell_of(bbox[0]).coords, self.cell_of(bbox[1]).coords
        ranges = (range(a, b + 1) for a, b in zip(first, last))
        return CellSet(map(CellRef, itertools.product(*ranges)))

    def __iter__(self) -> Iterator[CellRef]:
        if self.shape:
            ranges = (range(at, at + count) for at, count in zip(self.anchor, self.shape))
            yield from map(CellRef, itertools.product(*ranges))

    def capacity(
        self, *, n_vertices: int | None = None, ndim: int = 3, bytes_per_coordinate: int = 4,
        target_cell_bytes: int = TARGET_CELL_BYTES,
    ) -> GridCapacity:  # fmt: skip
        """Return whether chunks of this size suit a number of vertices."""
        cells = self.cells
        size = (n_vertices or 0) / cells * ndim * bytes_per_coordinate if cells else 0.0
        reason = None
        if cells == 0:
            reason = "the grid has no cells"
        elif size > target_cell_bytes:
            reason = (
                f"~{size / 1e6:.0f} MB per cell exceeds the {target_cell_bytes / 1e6:.0f} MB "
                "target; use more cells"
            )
        return GridCapacity(cells, self.shape, size, reason is None, reason)

    def holds(self, ref: CellRef) -> bool:
        """Return whether a chunk is in the grid."""
        given: Any = getattr(ref, "coords", ref)
        coords, anchor = tuple(given), self.anchor
        return len(coords) == len(self.shape) == len(anchor) and all(
            first <= at < first + count for at, first, count in zip(coords, anchor, self.shape)
        )

    def __repr__(self) -> str:
        return f"Grid({'x'.join(map(str, self.shape))} cells of {self.cell_shape})"
