"""Results as Arrow tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _zvf
from ._raw import RawColumn


class Table:
    """Columns of equal length with the interfaces of Arrow PyCapsules.

    `pyarrow.table`, `pyarrow.record_batch`, `polars.DataFrame` and DuckDB take it. Columns of
    attributes share the memory of the result, except booleans, which Arrow packs. Text is a
    dictionary of UTF-8, and several values in a row are a list of fixed size.
    """

    __slots__ = ("_columns", "_made", "_metadata")

    def __init__(self, columns: list[RawColumn], metadata: Mapping[str, Any]) -> None:
        self._columns = columns
        self._metadata = {name: json.dumps(value) for name, value in metadata.items()}
        self._made: _zvf.RecordBatch | None = None

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return [column[0] for column in self._columns]

    def __len__(self) -> int:
        return len(self._columns[0][1]) if self._columns else 0

    def __arrow_c_schema__(self) -> object:
        return self._batch().schema()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        return self._batch().array(requested_schema)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._batch().stream(requested_schema)

    def _batch(self) -> _zvf.RecordBatch:
        if self._made is None:
            self._made = _zvf.RecordBatch([_plain(*one) for one in self._columns], self._metadata)
        return self._made

    def __repr__(self) -> str:
        return f"Table({len(self)} rows, {', '.join(self.names)})"


def column(name: str, values: NDArray[Any]) -> RawColumn:
    """Return a column of numbers."""
    return name, values, None, None


def _plain(
    name: str, values: NDArray[Any], words: list[str] | None, nulls: NDArray[np.bool_] | None
) -> dict[str, Any]:
    """Return a column in the form that the extension module accepts."""
    if words is not None:
        missing = values >= len(words)
        if nulls is not None:
            missing |= nulls
        if missing.any():
            values, nulls = np.where(missing, np.uint32(0), values), missing
        else:
            nulls = None
    if values.dtype.kind == "c":
        width = values.shape[1] if values.ndim == 2 else 1
        # -1 would have no meaning without rows.
        values = values.view(f"f{values.itemsize // 2}").reshape(len(values), 2 * width)
    bytes = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    return {
        "name": name,
        "dtype": values.dtype.name,
        "width": values.shape[1] if values.ndim == 2 else None,
        "bytes": bytes if len(bytes) else np.zeros(0, np.uint8),
        "rows": len(values),
        "words": words,
        "nulls": None if nulls is None else nulls.tolist(),
    }
