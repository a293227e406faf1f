"""Types of the values that the extension module returns, and its columns as arrays."""

from __future__ import annotations

from typing import Any, NotRequired, TypeAlias, TypedDict

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
    winding: str | None
    capabilities: list[str]
    conventions: dict[str, str]
    crs: Any
    levels: list[int]
    notes: list[str]
    transaction: int


class RawPlan(TypedDict):
    """A plan of tasks."""

    job: str
    phase: str
    store: str
    level: int | None
    tasks: int
    committed: dict[str, Any] | None


class RawPlanFile(TypedDict):
    """A plan of a validation or an export."""

    store: str
    level: NotRequired[int]
    target: NotRequired[str]
    tasks: int
    report: dict[str, Any] | None


class RawReport(TypedDict):
    """The report of a result in batches."""

    levels: list[tuple[int, int]]
    damaged: list[tuple[str, str]]
    skipped: list[tuple[str, str]]
    notes: list[str]


RawResult: TypeAlias = tuple[
    int,  # level
    list[tuple[int, int]],  # levels
    int,  # first_row
    list[str],  # axes
    list[str],  # notes
    NDArray[Any],  # positions
    NDArray[np.int64],  # objects
    NDArray[np.int64] | None,  # part_offsets
    NDArray[np.int64] | None,  # part_objects
    NDArray[np.int64] | None,  # object_ids
    NDArray[np.uint64] | None,  # row_ids
    int | None,  # transaction
    NDArray[np.int64] | None,  # links
    NDArray[np.float64] | None,  # distances
    list[RawColumn] | None,  # vertex
    list[RawColumn] | None,  # fragment
    list[RawColumn] | None,  # link
    list[RawColumn] | None,  # object
    dict[int, NDArray[np.int64]],  # groups
    list[tuple[str, str]],  # skipped
    list[tuple[str, str]],  # damaged
]
"""The attributes of a `Result`. A tuple is made and read faster than a dictionary."""


def values_of(column: RawColumn) -> NDArray[Any]:
    """Return a column as an array: text with `None` for missing values, and a masked array if
    numbers are missing."""
    _, values, words, nulls = column
    if words is not None:
        table = np.array([*words, None], dtype=object)
        text = table[np.minimum(values, len(words))]
        if nulls is not None:
            text[nulls] = None
        text.setflags(write=False)
        return text
    if nulls is not None:
        shape = nulls.shape + (1,) * (values.ndim - 1)
        mask = np.broadcast_to(nulls.reshape(shape), values.shape)
        masked: NDArray[Any] = np.ma.MaskedArray(values, mask=mask)
        return masked
    return values
