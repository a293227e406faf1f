"""Results of reads, of one form for every kind of geometry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


class Attributes(Mapping[str, NDArray[Any]]):
    """Attributes of vertices by name."""

    __slots__ = ("_data",)

    def __init__(self, data: Mapping[str, NDArray[Any]] | None = None) -> None:
        self._data = dict(data or {})

    def __getitem__(self, key: str) -> NDArray[Any]:
        try:
            return self._data[key]
        except KeyError:
            known = sorted(self._data) or "none"
            raise KeyError(f"no attribute {key!r}; this result carries {known}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def names(self) -> tuple[str, ...]:
        """Return the names, in order."""
        return tuple(sorted(self._data))

    def __repr__(self) -> str:
        return f"Attributes({self.names()!r})"


@dataclass(frozen=True, slots=True)
class ReadError:
    """A cell that could not be read."""

    cell: str
    array: str
    error: str


def slices_of(lengths: Sequence[int]) -> tuple[slice, ...]:
    """Return the slices of consecutive parts."""
    ends = np.cumsum(lengths, dtype=np.int64).tolist()
    return tuple(map(slice, [0, *ends[:-1]], ends)) if ends else ()


@dataclass(frozen=True, slots=True)
class ReadResult:
    """Vertices, cut into parts.

    Attributes:
        kind: The kind of geometry.
        positions: Coordinates, one row for each vertex.
        parts: The rows of each path or line; other geometry is one part.
        part_objects: The object of each part.
        object_ids: The object of each vertex, for points read by object.
        edges: Rows of the ends of edges and lines.
        faces: Rows of the corners of faces.
        attributes: Attributes of vertices.
        attributes_read: Whether attributes were looked for.
        truncated: Whether a limit left vertices out.
        errors: Cells that could not be read; the engine raises instead.
    """

    kind: str
    positions: NDArray[Any]
    parts: tuple[slice, ...] = ()
    part_objects: NDArray[Any] | None = None
    object_ids: NDArray[Any] | None = None
    edges: NDArray[Any] | None = None
    faces: NDArray[Any] | None = None
    attributes: Attributes = field(default_factory=Attributes)
    attributes_read: bool = True
    truncated: bool = False
    errors: tuple[ReadError, ...] = ()

    @property
    def vertex_count(self) -> int:
        """The number of vertices."""
        return len(self.positions)

    @property
    def part_count(self) -> int:
        """The number of parts."""
        return len(self.parts)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return int(self.positions.shape[1]) if self.positions.ndim == 2 else 0

    @property
    def polylines(self) -> list[NDArray[Any]]:
        """The positions of each part, as views."""
        return [self.positions[part] for part in self.parts]

    @property
    def endpoints(self) -> NDArray[Any]:
        """The ends of lines, with the shape (lines, 2, axes)."""
        lengths = {part.stop - part.start for part in self.parts}
        if lengths - {2}:
            raise ValueError(
                "endpoints is only defined when every part is a vertex pair; this result has "
                f"parts of length {sorted(lengths)}. Use .polylines."
            )
        return self.positions.reshape(len(self.parts), 2, self.ndim)

    @property
    def complete(self) -> bool:
        """Whether nothing was left out."""
        return not self.errors and not self.truncated

    def restrict(self, keep: NDArray[np.bool_], *, truncated: bool = False) -> ReadResult:
        """Return the vertices of a mask, with the edges and faces that lost none."""
        keep = np.asarray(keep, bool)
        truncated |= self.truncated
        if keep.all():
            return replace(self, truncated=truncated)
        number = np.where(keep, np.cumsum(keep) - 1, -1)
        before = np.concatenate([[0], np.cumsum(keep)])
        lengths = np.array([before[part.stop] - before[part.start] for part in self.parts], int)
        return replace(
            self,
            positions=self.positions[keep],
            parts=slices_of(lengths[lengths > 0].tolist()),
            part_objects=None if self.part_objects is None else self.part_objects[lengths > 0],
            object_ids=None if self.object_ids is None else self.object_ids[keep],
            edges=_renumbered(self.edges, number),
            faces=_renumbered(self.faces, number),
            attributes=Attributes({n: column[keep] for n, column in self.attributes.items()}),
            truncated=truncated,
        )

    def __repr__(self) -> str:
        bits = [f"kind={self.kind!r}", f"vertices={self.vertex_count}"]
        if self.part_count != 1:
            bits.append(f"parts={self.part_count}")
        for name in ("edges", "faces", "attributes", "errors"):
            value = getattr(self, name)
            if value is not None and len(value):
                bits.append(f"{name}={len(value)}")
        return f"ReadResult({', '.join(bits)})"


def _renumbered(links: NDArray[Any] | None, number: NDArray[Any]) -> NDArray[Any] | None:
    if links is None or not len(links):
        return links
    moved = number[links]
    return np.asarray(moved[(moved >= 0).all(axis=1)])
