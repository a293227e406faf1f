"""What the extension module returns, as types."""

from __future__ import annotations

from typing import Any, TypeAlias, TypedDict

import numpy as np
from numpy.typing import NDArray

RawColumn: TypeAlias = tuple[str, NDArray[Any], list[str] | None, NDArray[np.bool_] | None]
"""Name, values or codes, words of text, and the mask of rows without a value."""


class RawRoot(TypedDict):
    """Metadata of the root."""

    generation: str
    kinds: list[str]
    axes: list[tuple[str, str | None]]
    bounds: tuple[list[float], list[float]] | None
    chunk_shape: list[float]
    crs: Any
    levels: list[int]
    notes: list[str]
    transaction: int


class RawReport(TypedDict):
    """The report of a result in batches."""

    levels: list[tuple[int, int]]
    skipped: list[tuple[str, str]]
    notes: list[str]


class RawResult(TypedDict, total=False):
    """Columns of a result."""

    level: int
    levels: list[tuple[int, int]]
    first_row: int
    axes: list[str]
    positions: NDArray[Any]
    row_ids: NDArray[np.uint64]
    transaction: int
    object_ids: NDArray[np.int64]
    part_offsets: NDArray[np.int64]
    part_objects: NDArray[np.int64]
    links: NDArray[np.int64]
    objects: NDArray[np.int64]
    vertex: list[RawColumn]
    fragment: list[RawColumn]
    link: list[RawColumn]
    object: list[RawColumn]
    distances: NDArray[np.float64]
    groups: dict[int, NDArray[np.int64]]
    skipped: list[tuple[str, str]]
    notes: list[str]
