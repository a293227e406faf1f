"""Results of queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from html import escape
from importlib import import_module
from typing import Any, Literal, NoReturn, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from . import _zvf
from ._arrow import Table, column
from ._options import GeometryArrays
from ._raw import RawColumn, RawResult, values_of


class Columns(Mapping[str, NDArray[Any]]):
    """Attributes by name, one row for each vertex, link or object.

    Numbers are read-only arrays in the memory of the result. A column with missing values is a
    masked array. Text is an array of `str`, with `None` for missing values, and is created when it
    is first used. `categories` returns text without creating this array.
    """

    __slots__ = ("_raw", "_made")

    def __init__(self, columns: list[RawColumn]) -> None:
        self._raw = {column[0]: column for column in columns}
        self._made: dict[str, NDArray[Any]] = {}

    def __getitem__(self, name: str) -> NDArray[Any]:
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = values_of(self._raw[name])
        return made

    def __iter__(self) -> Iterator[str]:
        return iter(self._raw)

    def __len__(self) -> int:
        return len(self._raw)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self._raw)

    def __repr__(self) -> str:
        return f"Columns({', '.join(self._raw)})"

    def _columns(self, family: str) -> list[RawColumn]:
        return [(f"{family}.{name}", *column[1:]) for name, column in self._raw.items()]

    def categories(self, name: str) -> tuple[NDArray[np.uint32], list[str]]:
        """Return the codes of a text column and its words; a missing value has a code above
        all words."""
        _, codes, words, _ = self._raw[name]
        if words is None:
            raise TypeError(f"{name} is a column of numbers; only text has categories")
        return codes, words


NO_COLUMNS = Columns([])

NO_OBJECT = -1
"""The object id of vertices without an object."""


def _are_equal(one: NDArray[Any], other: NDArray[Any]) -> bool:
    equal = one == other
    if one.dtype.kind == "f":
        equal |= np.isnan(one) & np.isnan(other)
    return bool(np.all(equal))


Origin: TypeAlias = tuple[_zvf.Dataset, dict[str, Any], int]
"""The store of a result, its query, and its level."""


class Result:
    """The result of a query, as columns.

    Arrays are read-only and own the memory that the engine filled: nothing is copied. A result is
    also the Arrow table of its vertices: `polars.DataFrame(result)`. See `table`.

    Attributes:
        positions: Coordinates, one row for each vertex.
        part_offsets: Paths: part p is the rows `part_offsets[p]` to `part_offsets[p + 1]`.
        part_objects: Object of each part.
        object_ids: Object of each vertex, for geometry other than paths; -1 for none, -2 for
            several.
        row_ids: Address of each vertex, if the query requests it.
        transaction: The transaction to which these addresses belong.
        links: Edges or faces as rows of `positions`; (child, parent) for skeletons.
        objects: Objects of the result, one for each row of `object`.
        vertex: Attributes of vertices.
        fragment: Attributes of the fragment of each vertex.
        link: Attributes of links.
        object: Attributes of objects.
        distances: Distances of the nearest vertices, paths or links, if the query selects these.
        groups: Members of the groups that the query names.
        level: The level; the finest one if there are several.
        levels: Level and number of vertices, if the rows come from several levels.
        first_row: Number of vertices in earlier batches.
        axes: Names of the axes.
        skipped: Key and reason of the parts that could not be read.
        damaged: Those of `skipped` that are damaged. The others are objects and groups that the
            query names and the level does not have.
        notes: Defects of the store that were worked around, and levels that are behind.
    """

    __slots__ = (
        "_origin", "axes", "damaged", "distances", "first_row", "fragment", "groups", "level",
        "levels", "link", "links", "notes", "object", "object_ids", "objects", "part_objects", "part_offsets",
        "positions", "row_ids", "skipped", "transaction", "vertex",
    )  # fmt: skip

    positions: NDArray[Any]
    part_offsets: NDArray[np.int64] | None
    part_objects: NDArray[np.int64] | None
    object_ids: NDArray[np.int64] | None
    row_ids: NDArray[np.uint64] | None
    transaction: int | None
    links: NDArray[np.int64] | None
    objects: NDArray[np.int64]
    vertex: Columns
    fragment: Columns
    link: Columns
    object: Columns
    distances: NDArray[np.float64] | None
    groups: dict[int, NDArray[np.int64]]
    level: int
    levels: list[tuple[int, int]]
    first_row: int
    axes: list[str]
    skipped: list[tuple[str, str]]
    damaged: list[tuple[str, str]]
    notes: list[str]

    def __init__(self, raw: RawResult, store: _zvf.Dataset, query: dict[str, Any]) -> None:
        (
            self.level, self.levels, self.first_row, self.axes, self.notes, self.positions,
            self.objects, self.part_offsets, self.part_objects, self.object_ids, self.row_ids,
            self.transaction, self.links, self.distances, vertex, fragment, link, object,
            self.groups, self.skipped, self.damaged,
        ) = raw  # fmt: skip
        self.vertex = Columns(vertex) if vertex else NO_COLUMNS
        self.fragment = Columns(fragment) if fragment else NO_COLUMNS
        self.link = Columns(link) if link else NO_COLUMNS
        self.object = Columns(object) if object else NO_COLUMNS
        self._origin: Origin | None = (store, query, self.level)

    def __getstate__(self) -> dict[str, Any]:
        # A copy in another process may not reach the store.
        return {name: getattr(self, name) for name in self.__slots__ if name != "_origin"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._origin = None

    def __len__(self) -> int:
        """Return the number of vertices."""
        return len(self.positions)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a result is no sequence of rows; use result.to_pandas(), polars.DataFrame(result) or "
            "pyarrow.table(result), or its columns, such as result.positions"
        )

    def __bool__(self) -> bool:
        """Return whether there are vertices."""
        return len(self.positions) > 0

    def paths(self) -> Iterator[NDArray[Any]]:
        """Return the positions of each path, as views of `positions`.

        >>> [len(path) for path in zvf.open("tracts.zv").query().paths()]
        [3, 2]
        """
        if self.part_offsets is None:
            raise TypeError("the result has no paths; it has positions, and links if any")
        offsets = self.part_offsets.tolist()
        positions = self.positions
        return (
            positions[start:end] for start, end in zip(offsets, offsets[1:], strict=False)
        )

    def arrays(self) -> GeometryArrays:
        """Return this result as arguments of `zvf.create` and of `Dataset.append`.

        `zvf.create("near.zv", source=result)` accepts the result itself, and keeps the units, the
        coordinate reference system, the headers and the groups of its store.

        Raises:
            ValueError: Some vertices belong to no object or to several, or an attribute of
                fragments differs within an object.

        >>> sorted(zvf.open("tracts.zv").query(objects=3).arrays())
        ['object', 'objects', 'part_objects', 'part_offsets', 'positions', 'vertex']
        """
        made: dict[str, Any] = {"positions": self.positions}
        ids = self.object_ids
        if self.part_objects is not None and self.part_offsets is not None:
            made["part_offsets"], made["part_objects"] = self.part_offsets, self.part_objects
            ids = np.repeat(self.part_objects, np.diff(self.part_offsets))
        elif ids is not None and (ids != NO_OBJECT).any():
            if (ids < 0).any():
                raise ValueError(
                    "some vertices belong to no object or to several; query by object to tell "
                    "them apart"
                )
            made["object_ids"] = ids
        if self.links is not None:
            made["links"] = self.links
        if len(self.objects):
            made["objects"] = self.objects
            if self.fragment:
                made["fragment"] = self._by_object(ids)
        for family in ("vertex", "link", "object"):
            if columns := getattr(self, family):
                made[family] = columns
        if self.groups:
            # Members of groups that are not in the result are left out.
            made["groups"] = {
                group: ids[np.isin(ids, self.objects)] for group, ids in self.groups.items()
            }
        return cast(GeometryArrays, made)

    def _by_object(self, ids: NDArray[np.int64] | None) -> dict[str, NDArray[Any]]:
        """Return attributes of fragments with a row for each object."""
        if ids is None:
            raise ValueError("attributes of fragments need the objects of vertices")
        order = np.argsort(self.objects, kind="stable")
        at = order[np.minimum(np.searchsorted(self.objects, ids, sorter=order), len(order) - 1)]
        first = np.zeros(len(self.objects), np.int64)
        first[at[::-1]] = np.arange(len(ids))[::-1]
        made = {}
        for name, column in self.fragment.items():
            rows = column[first]
            if not _are_equal(rows[at], column):
                raise ValueError(
                    f"fragment.{name} differs within an object; leave it out with select="
                )
            made[name] = rows
        return made

    def table(self, name: Literal["vertices", "objects", "links"] = "vertices") -> Table:
        """Return a table for pyarrow, polars, DuckDB and other packages that accept Arrow data.

        The columns are those of the files that `zvf query -o` writes. `vertices` has a column for
        each axis, then `row_id` if the query requests it, `part` for paths, `object_id`,
        `vertex.NAME` and `fragment.NAME`. `objects` has `object_id` and `object.NAME`. `links` has
        `links`, a list of rows of vertices, and `link.NAME`. A result itself is the table of its
        vertices.

        >>> zvf.open("tracts.zv").query().table("objects")
        Table(2 rows, object_id, object.length)
        """
        metadata = {"axes": self.axes, "level": self.level}
        if name == "vertices":
            return Table(self._vertices(), metadata)
        if name == "objects":
            columns = [column("object_id", self.objects), *self.object._columns("object")]
            return Table(columns, metadata)
        if name == "links":
            if self.links is None:
                raise TypeError("the result has no links")
            return Table([column("links", self.links), *self.link._columns("link")], metadata)
        raise ValueError(f"there is no table {name!r}; use vertices, objects or links")

    def to_pandas(self, name: Literal["vertices", "objects", "links"] = "vertices") -> Any:
        """Return a table of pandas, whose columns are those of `table`. Requires pyarrow.

        >>> zvf.open("tracts.zv").query().to_pandas("objects")["object_id"].tolist()
        [3, 8]
        """
        pyarrow: Any = import_module("pyarrow")
        return pyarrow.table(self.table(name)).to_pandas()

    def _repr_html_(self) -> str:
        shown = min(len(self), 5)
        columns: list[tuple[str, list[Any]]] = [
            (name, self.positions[:shown, at].tolist()) for at, name in enumerate(self.axes)
        ]
        if self.object_ids is not None:
            columns.append(("object_id", self.object_ids[:shown].tolist()))
        for name, values in self.vertex.items():
            columns.append((f"vertex.{name}", values[:shown].tolist()))
        heads = "".join(f"<th>{escape(name)}</th>" for name, _ in columns)
        rows = "".join(
            f"<tr>{''.join(f'<td>{escape(str(values[row]))}</td>' for _, values in columns)}</tr>"
            for row in range(shown)
        )
        more = f"<p>and {len(self) - shown:,} more rows</p>" if len(self) > shown else ""
        table = f"<caption>{escape(repr(self))}</caption><tr>{heads}</tr>{rows}"
        return f"<div><table>{table}</table>{more}</div>"

    def _vertices(self) -> list[RawColumn]:
        axes = np.ascontiguousarray(self.positions.T)
        columns = [column(name, axis) for name, axis in zip(self.axes, axes, strict=True)]
        if self.row_ids is not None:
            columns.append(column("row_id", self.row_ids))
        if self.part_offsets is not None and self.part_objects is not None:
            rows = np.diff(self.part_offsets)
            parts = np.arange(len(rows), dtype=np.int64)
            columns.append(column("part", np.repeat(parts, rows)))
            columns.append(column("object_id", np.repeat(self.part_objects, rows)))
        elif self.object_ids is not None:
            columns.append(column("object_id", self.object_ids))
        columns += self.vertex._columns("vertex") + self.fragment._columns("fragment")
        if self.distances is not None and len(self.distances) == len(self.positions):
            columns.append(column("distance", self.distances))
        return columns

    def __arrow_c_schema__(self) -> Any:
        return self.table().__arrow_c_schema__()

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.table().__arrow_c_array__(requested_schema)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self.table().__arrow_c_stream__(requested_schema)

    def rows_by_object(self) -> dict[int, int]:
        """Return the number of vertices of each object.

        >>> zvf.open("tracts.zv").query().rows_by_object()
        {3: 3, 8: 2}
        """
        counts: dict[int, int] = {}
        if self.part_objects is not None and self.part_offsets is not None:
            ids, rows = self.part_objects, np.diff(self.part_offsets)
        elif self.object_ids is not None:
            ids, rows = np.unique(self.object_ids, return_counts=True)
        else:
            return counts
        for at, vertices in zip(ids.tolist(), rows.tolist(), strict=True):
            counts[at] = counts.get(at, 0) + vertices
        return counts

    def __repr__(self) -> str:
        counts = [f"{len(self.positions)} vertices"]
        if self.part_objects is not None:
            counts.append(f"{len(self.part_objects)} paths")
        if self.links is not None:
            counts.append(f"{len(self.links)} links")
        counts.append(f"{len(self.objects)} objects")
        families = [
            ("vertex", self.vertex), ("fragment", self.fragment),
            ("link", self.link), ("object", self.object),
        ]  # fmt: skip
        names = [f"{family}.{name}" for family, columns in families for name in columns]
        return f"Result({', '.join(counts + names)})"


class Batches(Iterator[Result]):
    """The batches of a result. `close`, or the end of a `with` statement, ends the query.

    Before its first batch is taken, this is also a stream of Arrow with the columns of
    `Result.table`: `duckdb.sql("from batches")` and `pyarrow.RecordBatchReader.from_stream(batches)`
    run the query while they take its rows. Each of them runs a query of its own, from the first row.

    >>> batches = zvf.open("tracts.zv").batches(select=["fa"])
    >>> import pyarrow
    >>> reader = pyarrow.RecordBatchReader.from_stream(batches)
    >>> sum(batch.num_rows for batch in reader)
    5
    """

    __slots__ = ("_check", "_query", "_raw", "_store")

    def __init__(
        self,
        raw: _zvf.Batches,
        store: _zvf.Dataset,
        query: dict[str, Any],
        check: Callable[[], None] | None = None,
    ) -> None:
        self._raw = raw
        self._store = store
        self._query = query
        self._check = check

    @property
    def levels(self) -> list[tuple[int, int]]:
        """Level and number of vertices, if the rows come from several levels. Complete, as `skipped`,
        `damaged` and `notes` are, once all batches have been taken."""
        return self._reported("levels")

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Key and reason of the parts that could not be read."""
        return self._reported("skipped")

    @property
    def damaged(self) -> list[tuple[str, str]]:
        """Those of `skipped` that are damaged, as for `Result`."""
        return self._reported("damaged")

    @property
    def notes(self) -> list[str]:
        """Defects of the store that were worked around."""
        return self._reported("notes")

    def _reported(self, what: Literal["levels", "skipped", "damaged", "notes"]) -> list[Any]:
        report = self._raw.report()
        return [] if report is None else report[what]

    def __next__(self) -> Result:
        batch = self._raw.next()
        if self._check is not None:
            self._check()
        if batch is None:
            raise StopIteration
        return Result(batch, self._store, self._query)

    def __arrow_c_schema__(self) -> Any:
        return self._raw.schema()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._raw.stream(requested_schema, self._check)

    def close(self) -> None:
        """End the query."""
        self._raw.close()

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
