"""Open stores."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from html import escape
from io import BytesIO
from typing import Any, Literal, Unpack
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from . import _zvf
from ._async import awaited
from ._errors import ConflictError, Error, NoSuchObjectError, NotFoundError, ZvfWarning
from ._geometry import array_of, columns, geometry, integers
from ._info import (
    AttributeInfo,
    Counts,
    GroupInfo,
    LevelInfo,
    LinkInfo,
    Operator,
    Plan,
    StoredLinks,
    StoreInfo,
)
from ._options import (
    BatchOptions,
    GeometryArrays,
    Ids,
    Numbers,
    OpenOptions,
    PrecomputedOptions,
    PyramidOptions,
    QueryOptions,
    RenderOptions,
    SampleOptions,
    listed,
    plain,
    sampling,
)
from ._partition import Partition
from ._picture import Picture
from ._progress import Progress, shown
from ._raw import values_of
from ._reports import (
    AttributeReport,
    BuiltLevel,
    ChangeReport,
    PrecomputedReport,
    SampleReport,
    SavedFiles,
)
from ._result import Batches, Result
from ._sources import arrays_of_source, crs_of, is_tractogram, reference_grid, with_joined_paths


class Dataset:
    """An open store.

    `zvf.open` returns one. It may be used by several threads, and may be pickled: the copy opens
    the same address with the same options, so it does not contain a store in `memory:`. Changes
    made by the dataset are visible at once, and `reload` makes those of others visible.
    """

    __slots__ = ("_address", "_options", "_raw", "_root")

    def __init__(self, address: str, options: OpenOptions) -> None:
        self._address = address
        self._options = options
        self._raw = _zvf.open(address, plain(options))
        self._root = self._raw.root()

    def reload(self) -> None:
        """Open the present state of the store, with changes made since it was opened."""
        self._raw.reload()
        self._root = self._raw.root()

    def __reduce__(self) -> tuple[type[Dataset], tuple[str, OpenOptions]]:
        return Dataset, (self._raw.address, self._options)

    @property
    def address(self) -> str:
        """The address that the store was opened at."""
        return self._address

    @property
    def generation(self) -> str:
        """The generation of the format, such as `0.9`."""
        return self._root["generation"]

    @property
    def kinds(self) -> list[str]:
        """The kinds of geometry in the store."""
        return list(self._root["kinds"])

    @property
    def axes(self) -> list[str]:
        """The names of the axes."""
        return [name for name, _ in self._root["axes"]]

    @property
    def units(self) -> list[str | None]:
        """The unit of each axis."""
        return [unit for _, unit in self._root["axes"]]

    @property
    def bounds(self) -> tuple[list[float], list[float]] | None:
        """The declared lower and upper bounds; `None` if malformed."""
        return self._root["bounds"]

    @property
    def chunk_shape(self) -> list[float]:
        """The extent of a chunk along each axis."""
        return list(self._root["chunk_shape"])

    @property
    def winding(self) -> str | None:
        """The order of the corners of faces, seen from outside: ccw or cw; `None` without meshes."""
        return self._root["winding"]

    @property
    def capabilities(self) -> list[str]:
        """The capabilities that the root declares."""
        return list(self._root["capabilities"])

    @property
    def conventions(self) -> dict[str, str]:
        """The conventions that the root declares, by the name of the field."""
        return dict(self._root["conventions"])

    @property
    def crs(self) -> Any:
        """The coordinate reference system, as JSON."""
        return self._root["crs"]

    @property
    def levels(self) -> list[int]:
        """The levels, finest first."""
        return list(self._root["levels"])

    @property
    def notes(self) -> list[str]:
        """Faults of the root that do not prevent reading."""
        return list(self._root["notes"])

    @property
    def transaction(self) -> int:
        """The number of the transaction that the next query shows."""
        return self._raw.root()["transaction"]

    @property
    def activity(self) -> dict[str, int]:
        """The requests made for this store so far, and the bytes read."""
        return self._raw.activity()

    def info(self) -> StoreInfo:
        """Count the contents of every level. The store must support listing.

        >>> zvf.open("tracts.zv").info().levels[0].vertices
        5
        """
        found = self._raw.info()
        levels = [LevelInfo(**level) for level in found["levels"]]
        return StoreInfo(found["profile"], levels, found["notes"])

    def attributes(self, level: int = 0) -> list[AttributeInfo]:
        """Describe the attributes of a level.

        >>> [(one.family, one.name, one.dtype) for one in zvf.open("tracts.zv").attributes()]
        [('vertex', 'fa', 'float64'), ('object', 'length', 'float32')]
        """
        return [AttributeInfo(**found) for found in self._raw.attributes(level)]

    def groups(self, level: int = 0) -> list[GroupInfo]:
        """List the groups of a level that have members or a name.

        >>> [(group.id, group.name, group.size) for group in zvf.open("tracts.zv").groups()]
        [(0, None, 1), (1, None, 2)]
        """
        sizes, columns = self._raw.group_table(level)
        attributes = {column[0]: values_of(column) for column in columns}
        names = attributes.get("name")
        groups = []
        for number, size in enumerate(sizes):
            values = {
                name: column[number] for name, column in attributes.items() if number < len(column)
            }
            name = values.pop("name", None) if names is not None else None
            if size or name is not None:
                groups.append(GroupInfo(number, name, size, values))
        return groups

    def link_info(self, level: int = 0) -> list[LinkInfo]:
        """List the links of a level, by the level that they lead to. The store must support listing.

        >>> made = zvf.create("pair.zv", kind="graphs", positions=np.eye(2), links=[[0, 1]])
        >>> zvf.open("pair.zv").link_info()
        [LinkInfo(delta=0, families={'0/links/0': 2}, attributes={})]
        """
        found = self._raw.link_info(level)
        return [LinkInfo(delta, dict(nodes), dict(names)) for delta, nodes, names in found]

    def stored_links(self, level: int = 0, delta: int = 0) -> list[StoredLinks]:
        """Read all links of a level to the level `delta` levels on, as they are stored.

        Returns one part for each node of `link_info`. `query` returns links by rows of its result
        instead.

        >>> made = zvf.create("pair.zv", kind="graphs", positions=np.eye(2), links=[[0, 1]])
        >>> zvf.open("pair.zv").stored_links()[0].rows
        array([[0, 0]])
        """
        parts = []
        for ends, chunks, rows, columns in self._raw.stored_links(level, delta):
            links = len(rows) // max(ends, 1)
            arity = len(chunks) // max(len(rows), 1)
            values = {column[0]: values_of(column) for column in columns}
            shape = (links, ends)
            parts.append(StoredLinks(chunks.reshape(*shape, arity), rows.reshape(shape), values))
        return parts

    @listed(QueryOptions)
    def query(self, **options: Unpack[QueryOptions]) -> Result:
        """Run a query and return its whole result. `QueryOptions` lists the arguments.

        >>> tracts = zvf.open("tracts.zv")
        >>> tracts.query(bbox=((0, 0, 0), (2, 2, 2)), select=["length"])
        Result(3 vertices, 1 paths, 1 objects, object.length)
        """
        query = self._query(options)
        return Result(self._raw.query(query), self._raw, query)

    @listed(QueryOptions)
    async def aquery(self, **options: Unpack[QueryOptions]) -> Result:
        """Run a query without blocking the event loop of asyncio: `await tracts.aquery(...)`.

        Several queries may run concurrently. Cancelling the task ends the query.

        >>> import asyncio
        >>> async def both(tracts):
        ...     return await asyncio.gather(tracts.aquery(objects=3), tracts.aquery(objects=8))
        >>> [len(found) for found in asyncio.run(both(zvf.open("tracts.zv")))]
        [3, 2]
        """
        query = self._query(options)
        raw = await awaited(lambda done: _zvf.start_query(self._raw, query, done))
        return Result(raw, self._raw, query)

    @listed(QueryOptions)
    def save(
        self,
        file: str | os.PathLike[str],
        /,
        *,
        strict: bool = False,
        unit: str | None = None,
        reference: Any = None,
        **options: Unpack[QueryOptions],
    ) -> SavedFiles:
        """Run a query and write its whole result to a file.

        The extension selects the format: .csv, .npz, .arrow, .parquet, .ply, .obj, .trk, .tck,
        .trx, .swc, .stl, .las, .laz, .gii or .glb. Tables have additional files for links, objects
        and groups. If the name of a `.swc` file contains `{object}` or `{name}`, each object is
        written to a file of its own.

        Args:
            file: The file, which is replaced if it exists.
            strict: Fail, and write nothing, if the format cannot hold the whole result.
            unit: Unit in which coordinates are written, such as micrometer; that of the format, or
                else of the store, unless given.
            reference: The image in whose voxel grid a `.trk` or `.trx` file is written: the path of a
                NIfTI file, an image of nibabel, or a pair of its affine and its shape; by default that of
                the file that the store was made of.
            **options: The query; `QueryOptions` lists the arguments.

        >>> saved = zvf.open("tracts.zv").save("near.csv", bbox=((0, 0, 0), (2, 2, 2)))
        >>> saved.files
        ['near.csv', 'near.objects.csv', 'near.groups.csv', 'near.metadata.json']
        """
        query = self._query(options)
        grid = None if reference is None else reference_grid(reference)
        found = _zvf.save_result(self._raw, os.fspath(file), strict, query, unit, grid)
        notes = [f"skipped {part['key']}: {part['reason']}" for part in found["missing"]]
        return SavedFiles(
            found["files"], found["vertices"], found["left_out"], found["notes"] + notes
        )

    @listed(PrecomputedOptions)
    def export_precomputed(
        self,
        folder: str | os.PathLike[str],
        /,
        *,
        progress: Progress = None,
        **options: Unpack[PrecomputedOptions],
    ) -> PrecomputedReport:
        """Write the store as sources of Neuroglancer, which any static file server can serve.

        `folder` is a new folder, or the address of an empty prefix of a bucket.
        `PrecomputedOptions` lists the arguments.

        >>> zvf.open("tracts.zv").export_precomputed("tracts.precomputed").layers
        [('annotations', 2), ('skeletons', 2), ('groups', 2)]
        """
        with shown(progress, f"exporting {self._address}") as callback:
            keywords = {**options, "progress": callback}
            raw = _zvf.export_precomputed(self._raw, os.fspath(folder), keywords)
        return PrecomputedReport(**raw)

    @listed(BatchOptions)
    def batches(self, **options: Unpack[BatchOptions]) -> Batches:
        """Run a query and return its result in batches.

        The query runs while batches are taken, so memory is bounded by the size of a batch. Paths
        are not cut. DuckDB and other packages take the batches as a stream of Arrow; see `Batches`.

        >>> [len(batch) for batch in zvf.open("tracts.zv").batches(batch_rows=3)]
        [3, 2]
        """
        given = self._query(options)
        query = {name: value for name, value in given.items() if name not in BATCH_SIZES}
        return Batches(self._raw.batches(given), self._raw, query)

    @listed(QueryOptions)
    def partitions(self, parts: int, /, **options: Unpack[QueryOptions]) -> list[Partition]:
        """Divide a query into at most `parts` independent parts of similar size, for other
        processes. Each vertex, path and link of the result is in one of them.

        Points are divided by chunk, paths by object, and geometry with links by groups of chunks
        that no link leaves, which may be one group. Object and row numbers refer to the part.

        >>> [part.rows for part in zvf.open("tracts.zv").partitions(2)]
        [3, 2]
        """
        while True:
            # A query of another thread may follow to another transaction meanwhile.
            transaction = self.transaction
            query = self._query(options)
            found = _zvf.partitions(self._raw, parts, query)
            if self.transaction == transaction:
                return [Partition(self, query, part, transaction) for part in found]

    @listed(QueryOptions)
    def nearest(
        self, position: Numbers, k: int | None = None, /, **options: Unpack[QueryOptions]
    ) -> Result:
        """Return the `k` vertices, paths or links nearest to a position, with their `distances`.

        With `whole=True`, return the `k` objects nearest to it, whole and without distances.

        >>> zvf.open("tracts.zv").nearest((9, 9, 9)).objects
        array([8])
        """
        if "nearest" in options or (k is not None and "k" in options):
            raise TypeError("nearest takes one position and one k")
        given = self._query({"k": 1 if k is None else k, **options, "nearest": position})
        return Result(self._raw.query(given), self._raw, given)

    @listed(QueryOptions)
    def count(self, **options: Unpack[QueryOptions]) -> Counts:
        """Count what a query selects, without reading data that only the result needs.

        >>> zvf.open("tracts.zv").count(where="fa > 0.3").vertices
        5
        """
        return Counts(**self._raw.count(self._query(options)))

    @listed(QueryOptions)
    def explain(self, **options: Unpack[QueryOptions]) -> Plan:
        """Plan a query without running it.

        >>> plan = zvf.open("tracts.zv").explain(bbox=((0, 0, 0), (2, 2, 2)))
        >>> plan.requests > 0
        True
        """
        found = self._raw.explain(self._query(options))
        found["operators"] = [Operator(**operator) for operator in found["operators"]]
        return Plan(**found)

    @listed(QueryOptions)
    def analyze(self, **options: Unpack[QueryOptions]) -> list[Operator]:
        """Run a query, discard its result, and return its operators with the requests they made.

        >>> len(zvf.open("tracts.zv").analyze()) > 0
        True
        """
        return [Operator(**operator) for operator in self._raw.analyze(self._query(options))]

    @listed(GeometryArrays)
    def append(
        self,
        *,
        source: Any = None,
        ids: Literal["keep", "new"] | None = None,
        unit: str | None = None,
        assume_crs: bool = False,
        out_of_bounds: Literal["raise", "ignore", "expand"] = "raise",
        progress: Progress = None,
        **arrays: Unpack[GeometryArrays],
    ) -> ChangeReport:
        """Add objects, in one transaction. `GeometryArrays` lists the arguments.

        Objects without ids get new ids above all others. Groups with a name are those of the store
        with this name, or new ones. Lists of numbers are converted to the types of the store. Arrays
        must have these types.

        Args:
            source: A file or the address of a store, a result of a query, also of another store, a
                table, or a tractogram of nibabel or dipy, as for `zvf.create`.
            unit: Unit of the coordinates; that of a result or a tractogram, or else of the store,
                unless given.
            assume_crs: Add coordinates of another reference system as they are.
            ids: `keep` the ids of objects, or give all of them `new` ones, the next that are free.
            out_of_bounds: Treatment of vertices outside the bounds of the store.
            progress: A function of the work done and all work known so far, or `True` for a bar.
            **arrays: The geometry, unless it is in `source`.

        >>> tracts = zvf.open("tracts.zv")
        >>> added = tracts.append(positions=[[4, 4, 4], [5, 5, 5]], part_offsets=[0, 2],
        ...                       vertex={"fa": [0.1, 0.9]}, object={"length": [1.7]})
        >>> added.objects
        array([9])
        >>> len(tracts.query())
        7
        """
        made, origin, crs = dict(arrays), None, None
        if isinstance(source, (str, os.PathLike)):
            if arrays:
                raise TypeError(f"source is a file; leave out {', '.join(arrays)}")
            words = [f"--out-of-bounds={out_of_bounds}"]
            words += [f"--ids={ids}"] if ids is not None else []
            words += [f"--unit={unit}"] if unit is not None else []
            words += ["--assume-crs"] if assume_crs else []
            return self._append_file(os.fspath(source), words)
        if source is not None:
            crs = crs_of(source)
            kind = self.kinds[0] if self.kinds else None
            made, origin = arrays_of_source(source, made, self.axes, kind)
            if is_tractogram(source):
                unit = unit or "millimeter"
        given = self._geometry(with_joined_paths(made))
        with shown(progress, f"appending to {self._address}") as callback:
            options = {
                "out_of_bounds": out_of_bounds, "ids": ids, "unit": unit,
                "assume_crs": assume_crs, "crs": crs, "progress": callback,
            }  # fmt: skip
            return self._changed(_zvf.append(self._raw, given, options, origin))

    def _append_file(self, source: str, words: list[str]) -> ChangeReport:
        if "://" not in source and not os.path.exists(source):
            raise NotFoundError(f"{source} does not exist")
        words = ["zvf", "append", f"--from={source}", *words, "--json", "--", self._raw.address]
        found, told = _zvf.command(words)
        for text in told:
            warn(text, ZvfWarning, stacklevel=3)
        names = {"transaction": "transaction", "added": "vertices", "removed": "removed",
                 "chunks": "chunks", "severed": "severed", "bytes": "bytes_written", "notes": "notes"}  # fmt: skip
        raw = {name: found[key] for name, key in names.items()}
        return self._changed({**raw, "objects": np.asarray(found["object_ids"], np.int64)})

    @listed(GeometryArrays)
    def replace(
        self,
        remove: Ids | None = None,
        /,
        *,
        out_of_bounds: Literal["raise", "ignore", "expand"] = "raise",
        progress: Progress = None,
        **arrays: Unpack[GeometryArrays],
    ) -> ChangeReport:
        """Replace objects, in one transaction.

        The objects of the arrays replace those with equal ids, or the objects `remove`, whose ids
        may then differ. Objects with equal ids stay in their groups and keep object attributes that
        the arrays lack.

        >>> tracts = zvf.open("tracts.zv")
        >>> changed = tracts.replace(positions=[[1, 1, 1], [2, 2, 2]], part_offsets=[0, 2],
        ...                          part_objects=[3], vertex={"fa": [0.1, 0.9]})
        >>> tracts.query(objects=3).vertex["fa"]
        array([0.1, 0.9])
        """
        given = self._geometry(arrays)
        with shown(progress, f"replacing objects of {self._address}") as callback:
            options = {"out_of_bounds": out_of_bounds, "remove": remove, "progress": callback}
            return self._changed(_zvf.replace(self._raw, given, options))

    @listed(QueryOptions)
    def delete(
        self, *, progress: Progress = None, **options: Unpack[QueryOptions]
    ) -> ChangeReport | None:
        """Delete the objects that a query finds any part of, and links to them, in one transaction.

        With `mode="within"`, objects that lie within the region entirely are deleted. Returns
        `None` if there is nothing to delete. A query without a selection is refused.

        If others change the store between the query and the deletion, the query is run again: the
        objects that it found may have been replaced.

        >>> tracts = zvf.open("tracts.zv")
        >>> tracts.delete(where="object.length < 2").removed
        2
        >>> tracts.query().objects
        array([3])

        Raises:
            ConflictError: Others kept changing the store.
        """
        query: dict[str, Any] = {**options}
        by_id = all(query.get(name) is None for name in SELECTIONS if name != "objects")
        left = RETRIES
        while True:
            transaction = self.transaction
            try:
                ids = self._deleted(query)
                if not len(ids):
                    return None
                found_at = None if by_id else transaction
                with shown(progress, f"deleting from {self._address}") as callback:
                    keywords = {"progress": callback}
                    return self._changed(_zvf.remove(self._raw, ids, found_at, keywords))
            except ConflictError:
                if not left:
                    raise
            except NoSuchObjectError:
                # The second query of the mode `within` may run after the deletion of an object.
                if not left or self.transaction == transaction:
                    raise
            left -= 1
            self.reload()

    def _deleted(self, options: dict[str, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
        _check_selection(options)
        if options.get("mode") == "clip":
            raise ValueError("mode clip cuts objects, which are deleted whole; use touch or within")
        if options.get("keep_going"):
            raise ValueError("keep_going would hide objects from the deletion")
        found = self.query(**{**options, "select": []})
        if found.object_ids is None and found.part_objects is None:
            raise ValueError(
                f"{self._address} has no objects; delete its points with delete_vertices"
            )
        ids = found.objects
        if options.get("mode") == "within" and len(ids):
            # The query found parts and links within the region, not only whole objects.
            parts, whole = found.rows_by_object(), self.query(objects=ids, select=[])
            counts = whole.rows_by_object()
            ids = np.array([at for at in ids.tolist() if parts.get(at) == counts.get(at)], np.int64)
        return np.ascontiguousarray(ids)

    @listed(QueryOptions)
    def delete_vertices(
        self,
        row_ids: NDArray[np.uint64] | None = None,
        transaction: int | None = None,
        /,
        *,
        progress: Progress = None,
        **options: Unpack[QueryOptions],
    ) -> ChangeReport | None:
        """Delete vertices, and all links that end at them, in one transaction. Objects stay.

        Deletes the vertices that a query selects, or those with given addresses. Vertices of paths
        and skeletons cannot be deleted. Returns `None` if there is nothing to delete. A query
        without a selection is refused.

        Args:
            row_ids: Addresses of vertices: `Result.row_ids`, or a part of it.
            transaction: The transaction to which they belong: `Result.transaction`.
            progress: A function of the work done and all work known so far, or `True` for a bar.
            **options: The query; `QueryOptions` lists the arguments.

        >>> _ = zvf.create("cloud.zv", kind="points", positions=np.eye(3), vertex={"q": [1, 2, 3]})
        >>> cloud = zvf.open("cloud.zv")
        >>> cloud.delete_vertices(where="q > 2").removed
        1
        >>> found = cloud.query(row_ids=True)
        >>> cloud.delete_vertices(found.row_ids[:1], found.transaction).removed
        1

        Raises:
            ConflictError: The store is at another transaction.
        """
        with shown(progress, f"deleting from {self._address}") as callback:
            keywords = {"progress": callback}
            if row_ids is not None:
                if options:
                    raise TypeError("give row_ids or a query, not both")
                raw = _zvf.remove_rows(self._raw, *_addresses(row_ids, transaction), keywords)
            else:
                _check_selection(options)
                raw = _zvf.remove_selected(self._raw, self._query(options), keywords)
        return self._changed(raw) if raw["removed"] else None

    def write_attributes(
        self,
        *,
        vertex: Any = None,
        row_ids: NDArray[np.uint64] | None = None,
        transaction: int | None = None,
        object: Any = None,
        objects: Any = None,
        fragment: Any = None,
        replace: bool = False,
    ) -> AttributeReport:
        """Add attributes of vertices, objects or fragments, or change values, in one transaction.

        Items without a row keep their values. In new attributes they have NaN or no text.

        Args:
            vertex: Attributes of vertices by name, one row for each of `row_ids`.
            row_ids: Addresses of vertices: `Result.row_ids`, or a part of it.
            transaction: The transaction at which the store must be: `Result.transaction`. Required
                with `row_ids`, which belong to it; not checked for objects unless given.
            object: Attributes of objects by name, one row for each of `objects`.
            objects: Ids of objects.
            fragment: Attributes of the fragments that contain the vertices of `row_ids`, with equal rows
                for all vertices of a fragment.
            replace: Replace attributes of another type. Their other rows are lost.

        >>> tracts = zvf.open("tracts.zv")
        >>> found = tracts.query(where="fa > 0.5", row_ids=True)
        >>> written = tracts.write_attributes(vertex={"high": np.ones(len(found))},
        ...                                   row_ids=found.row_ids, transaction=found.transaction)
        >>> tracts.query(objects=3).vertex["high"]
        array([nan, nan,  1.])
        >>> written = tracts.write_attributes(object={"side": ["left"]}, objects=[8])
        >>> tracts.query().object["side"].tolist()
        [None, 'left']

        Raises:
            ConflictError: The store is at another transaction.
        """
        families = {"vertex": vertex, "object": object, "fragment": fragment}
        given = [(family, values) for family, values in families.items() if values is not None]
        if len(given) != 1:
            raise TypeError("give attributes of vertices, of objects or of fragments")
        [(family, values)] = given
        table = columns(family, values, self._types())
        if family == "object":
            if objects is None or row_ids is not None:
                raise TypeError("attributes of objects need objects, the ids of their rows")
            keys = integers("objects", objects, 1)
            raw = _zvf.write_object_attributes(self._raw, keys, table, transaction, replace)
        else:
            if row_ids is None or objects is not None:
                raise TypeError("attributes of vertices and fragments need row_ids, addresses of vertices")
            rows, at = _addresses(row_ids, transaction)
            is_fragment = family == "fragment"
            write = _zvf.write_fragment_attributes if is_fragment else _zvf.write_vertex_attributes
            raw = write(self._raw, rows, table, at, replace)
        self.reload()
        return AttributeReport(**raw)

    def drop_attributes(self, *names: str | Sequence[str]) -> AttributeReport:
        """Remove attributes from all levels, in one transaction, such as "fa" or "object.length". Names may be
        arguments or in a list.

        >>> tracts = zvf.open("tracts.zv")
        >>> tracts.drop_attributes("length").transaction
        1
        >>> [one.name for one in tracts.attributes()]
        ['fa']

        Raises:
            ConflictError: Others changed the store meanwhile.
        """
        listed = [name for own in names for name in ([own] if isinstance(own, str) else own)]
        if not listed:
            raise TypeError("give the names of attributes")
        parts = [(name.partition("."), name) for name in listed]
        given: list[tuple[str | None, str]] = [
            (scope, rest) if dot and rest and scope in FAMILIES else (None, name)
            for (scope, dot, rest), name in parts
        ]
        raw = _zvf.drop_attributes(self._raw, given)
        self.reload()
        return AttributeReport(**raw)

    def compact(self, *, progress: Progress = None) -> ChangeReport:
        """Remove what deleted objects left, merge fragmented links, and sort objects. A store that
        is compact already is not changed.

        >>> zvf.open("tracts.zv").compact().chunks
        0
        """
        with shown(progress, f"compacting {self._address}") as callback:
            return self._changed(_zvf.compact(self._raw, {"progress": callback}))

    @listed(PyramidOptions)
    def pyramid(
        self, *, progress: Progress = None, **options: Unpack[PyramidOptions]
    ) -> list[BuiltLevel]:
        """Build coarser levels; `PyramidOptions` lists the arguments. Each level appears once it is
        complete.

        >>> tracts = zvf.open("tracts.zv")
        >>> built = tracts.pyramid(levels=1, method="stride", factors=[2])
        >>> tracts.levels, built[0].method
        ([0, 1], 'stride')
        """
        with shown(progress, f"building levels of {self._address}") as callback:
            levels = _zvf.pyramid(self._raw, {**options, "progress": callback})
        self.reload()
        return [BuiltLevel(**level) for level in levels]

    @listed(SampleOptions)
    def sample(
        self,
        volume: Any,
        /,
        into: str,
        *,
        progress: Progress = None,
        **options: Unpack[SampleOptions],
    ) -> SampleReport:
        """Sample a volume at every vertex of level 0, and store the values as an attribute.

        Axis i of the store, after the affine, is axis i of the volume, and the centre of voxel n is
        at n. If the volume has additional axes, each vertex gets several values. The attribute is
        written in one transaction.

        Args:
            volume: An array, an image of nibabel, or a `.npy`, `.nii`, `.nii.gz`, `.b2nd` or `.tet`
                file. Images and NIfTI files have an affine and a unit, mm by default. Masked floats are NaN, and masked integers are refused.
            into: Name of the attribute.
            progress: A function of the work done and all work known so far, or `True` for a bar.
            **options: `SampleOptions` lists the arguments.

        >>> tracts = zvf.open("tracts.zv")
        >>> tracts.sample(np.arange(1000.0).reshape(10, 10, 10), into="t1").vertices
        5
        >>> tracts.query(objects=3).vertex["t1"]
        array([  0., 111., 211.])
        """
        keywords = sampling(into, options)
        if hasattr(volume, "dataobj") and hasattr(volume, "affine"):
            # An image of nibabel, whose matrix maps voxels to positions.
            if "affine" not in keywords:
                to_voxels = np.linalg.inv(np.asarray(volume.affine, np.float64))
                keywords |= {"affine": to_voxels.reshape(-1).tolist(), "metres": _unit_of(volume)}
            volume = volume.dataobj
        if isinstance(volume, (str, os.PathLike)):
            given: Any = os.fspath(volume)
        else:
            file = BytesIO()
            np.save(file, array_of("volume", np.asanyarray(volume)), allow_pickle=False)
            given = np.frombuffer(file.getbuffer(), np.uint8)
        with shown(progress, f"sampling into {self._address}") as callback:
            report = _zvf.sample(self._raw, given, {**keywords, "progress": callback})
        self.reload()
        return SampleReport(**report)

    @listed(RenderOptions)
    def render(
        self, *, progress: Progress = None, **options: Unpack[RenderOptions]
    ) -> Picture:
        """Draw the store, or what `where`, `groups`, `bbox` and other arguments of queries select.

        `RenderOptions` lists the arguments. A box clips unless `mode` is given. Notebooks show the
        picture.

        >>> picture = zvf.open("tracts.zv").render(size=(320, 240), color="fa")
        >>> picture.save("tracts.png")
        >>> np.asarray(picture).shape
        (240, 320, 3)
        """
        with shown(progress, f"drawing {self._address}") as callback:
            query = {**self._query(options), "selected": _described(options)}
            return Picture(_zvf.draw(self._raw, {**query, "progress": callback}))

    def _query(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a query, with the numbers of the groups that it names, and the ids of
        objects near a position that are selected whole."""
        query: dict[str, Any] = dict(options)
        groups = query.get("groups")
        if isinstance(groups, str):
            groups = [groups]
        if groups is not None and not isinstance(groups, int | np.ndarray):
            names = [name for name in groups if isinstance(name, str)]
            if names:
                numbers = [number for number in groups if not isinstance(number, str)]
                query["groups"] = numbers + self._raw.group_numbers(names)
        if query.pop("whole", None):
            if query.get("nearest") is None:
                raise ValueError("whole needs nearest, a position")
            search = {name: query.get(name) for name in SEARCH}
            query = {name: value for name, value in query.items() if name not in SEARCH}
            levels: dict[str, Any] = {name: query[name] for name in ("level", "geometry") if name in query}
            query["objects"], _ = self._raw.nearest_objects({**search, **levels})
        return query

    def _geometry(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        return geometry(arrays, self._types())

    def _types(self) -> dict[str, np.dtype[Any]]:
        return {
            f"{found.family}.{found.name}": np.dtype(found.dtype)
            for found in self.attributes()
            if found.dtype != "text"
        }

    def _changed(self, raw: dict[str, Any]) -> ChangeReport:
        self.reload()
        return ChangeReport(**raw)

    def __repr__(self) -> str:
        levels = self._root["levels"]
        word = "level" if len(levels) == 1 else "levels"
        bounds = ""
        if self.bounds is not None:
            corners = (" ".join(f"{value:g}" for value in corner) for corner in self.bounds)
            bounds = f"bounds {' to '.join(corners)}, "
        return (
            f"zvf.open({self._address!r}): {', '.join(self._root['kinds']) or 'no geometry'}, "
            f"axes {' '.join(self.axes)}, {bounds}{word} {' '.join(map(str, levels))}, "
            f"format {self.generation}"
        )

    def _repr_html_(self) -> str:
        rows = {
            "kinds": ", ".join(self.kinds),
            "format": self.generation,
            "axes": ", ".join(
                f"{name} ({unit})" if unit else name for name, unit in self._root["axes"]
            ),
            "bounds": "unknown"
            if self.bounds is None
            else f"{tuple(self.bounds[0])} to {tuple(self.bounds[1])}",
            "levels": ", ".join(map(str, self.levels)),
        }
        cells = "".join(
            f"<tr><th>{name}</th><td>{escape(value)}</td></tr>" for name, value in rows.items()
        )
        table = f"<table><caption>{escape(self._address)}</caption>{cells}</table>"
        return f"<div>{self._picture()}{table}</div>"

    def _picture(self) -> str:
        """Return a small picture of a local store as HTML; empty if it cannot be drawn."""
        if "://" in self._address:  # A look at a handle must not cost requests.
            return ""
        try:
            picture = self.render(size=(360, 270), budget=100_000, annotations=False)
        except Error:
            return ""
        data = b64encode(picture._repr_png_()).decode()
        return f'<img alt="the store" src="data:image/png;base64,{data}">'


FAMILIES = ("vertex", "fragment", "link", "object", "group")

RETRIES = 16
"""Maximum number of retries of a deletion after changes by others."""

BATCH_SIZES = ("batch_rows", "batch_bytes")

SEARCH = ("nearest", "k", "bbox", "sphere", "mode", "clip", "objects", "groups", "chunks", "where")
"""Arguments that restrict a search for objects near a position, but not the objects it finds."""

SELECTIONS = ("objects", "groups", "where", "bbox", "sphere", "nearest", "chunks")


METRES = {"meter": 1.0, "mm": 1e-3, "micron": 1e-6}
"""Sizes in metres of the units of images."""


def _unit_of(image: Any) -> float:
    """Return the size in metres of the unit of an image of nibabel: mm unless its header names another."""
    units = getattr(getattr(image, "header", None), "get_xyzt_units", None)
    return METRES.get(units()[0] if units else "mm", 1e-3)


def _described(options: Mapping[str, Any]) -> str:
    """Describe what is selected beside a region, below the title of a picture."""
    parts = []
    for what in ("object", "group"):
        given = options.get(f"{what}s")
        if given is not None:
            names = [given] if isinstance(given, int | str) else list(given)
            listed = f"{what} {', '.join(map(str, names))}"
            parts.append(listed if len(names) <= 5 else f"{len(names):,} {what}s")
    if (where := options.get("where")) is not None:
        parts.append(where)
    return ", ".join(parts)


def _check_selection(options: Mapping[str, Any]) -> None:
    # A query treats `None` as an argument that was not given.
    if all(options.get(name) is None for name in SELECTIONS):
        raise ValueError("no selection; give objects, groups, where, bbox or another one")


def _addresses(
    row_ids: NDArray[np.uint64], transaction: int | None
) -> tuple[NDArray[np.uint64], int]:
    """Check the addresses of vertices and their transaction."""
    rows = np.asarray(row_ids)
    if rows.ndim != 1 or (rows.dtype != np.uint64 and rows.size):
        raise TypeError(f"row_ids is a {rows.dtype} array; use row_ids of a result")
    if transaction is None:
        raise TypeError("row_ids belong to a transaction; give that of their result")
    return np.ascontiguousarray(rows, np.uint64), transaction


@listed(OpenOptions)
def open(store: str | os.PathLike[str], /, **options: Unpack[OpenOptions]) -> Dataset:
    """Open a store: a folder, a `.zip` file, or a URL with the scheme http, https, s3, gs or az.

    `OpenOptions` lists the arguments. Any generation from 0.6 to 0.10 is read.

    >>> zvf.open("tracts.zv").kinds
    ['streamline']

    Raises:
        NotFoundError: There is no store at the address.
        UnsupportedError: The generation of the store is not supported.
        DamagedError: The metadata of the store are not valid.
    """
    return Dataset(os.fspath(store), options)
