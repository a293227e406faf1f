"""Parts of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _zvf
from ._errors import ConflictError
from ._options import plain
from ._result import Batches, Result

if TYPE_CHECKING:
    from ._dataset import Dataset


class Partition:
    """An independent part of a query, which can be pickled and run on any machine.

    `Dataset.partitions` returns them. A part is of one state of the store: it cannot be run once
    the store has changed.

    Attributes:
        rows: Number of vertices; an estimate if the query has a region or a predicate. `None` if
            they were not counted.
        bytes: Approximate size of the positions and vertex attributes in memory.
        bounds: Lower and upper bounds of the vertices, if known.
    """

    __slots__ = (
        "_address", "_options", "_query", "_raw", "_text", "_transaction", "bounds", "bytes", "rows",
    )  # fmt: skip

    rows: int | None
    bytes: int | None
    bounds: tuple[list[float], list[float]] | None

    def __init__(
        self, dataset: Dataset, query: dict[str, Any], raw: dict[str, Any], transaction: int
    ) -> None:
        self._raw: _zvf.Dataset | None = dataset._raw
        self._address = dataset._raw.address
        self._options = dict(dataset._options)
        self._query = query
        self._transaction = transaction
        self._text = raw["text"]
        self.rows = raw["rows"]
        self.bytes = raw["bytes"]
        self.bounds = raw["bounds"]

    def __getstate__(self) -> dict[str, Any]:
        # The copy opens the store when it is first used.
        return {name: getattr(self, name) for name in self.__slots__ if name != "_raw"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._raw = None

    def query(self) -> Result:
        """Run the query of this part and return its whole result.

        >>> parts = zvf.open("tracts.zv").partitions(2, select=[])
        >>> [part.query().objects.tolist() for part in parts]
        [[3], [8]]

        Raises:
            ConflictError: The store was changed since the query was divided.
        """
        dataset = self._opened()
        query = {**self._query, "partition": self._text}
        found = dataset.query(query)
        self._check(dataset)
        return Result(found, dataset, query)

    def batches(
        self, *, batch_rows: int | None = None, batch_bytes: int | None = None
    ) -> Batches:
        """Run the query of this part and return its result in batches, as `Dataset.batches` does.

        Raises:
            ConflictError: The store was changed since the query was divided. Taking a batch raises
                it as well.
        """
        dataset = self._opened()
        sizes = {"batch_rows": batch_rows, "batch_bytes": batch_bytes}
        query = {**self._query, "partition": self._text}
        raw = dataset.batches({**query, **sizes})
        # The query may follow to another transaction before its first batch.
        return Batches(raw, dataset, query, lambda: self._check(dataset))

    def _opened(self) -> _zvf.Dataset:
        if self._raw is None:
            self._raw = _zvf.open(self._address, plain({**self._options, "follow": "never"}))
        self._check(self._raw)
        return self._raw

    def _check(self, dataset: _zvf.Dataset) -> None:
        if (found := dataset.root()["transaction"]) != self._transaction:
            raise ConflictError(
                f"{self._address} is at transaction {found}, and its query was divided at "
                f"transaction {self._transaction}; divide the query again"
            )

    def __repr__(self) -> str:
        rows = "?" if self.rows is None else self.rows
        return f"Partition({self._address!r}, {rows} rows)"
