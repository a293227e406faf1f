"""New stores from arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

from . import _zvf
from ._geometry import geometry
from ._options import CreateOptions, listed, plain
from ._progress import Progress, shown
from ._result import Result
from ._sources import (
    MILLIMETERS,
    PATHS,
    arrays_of_source,
    crs_of,
    grid_of,
    is_stream,
    is_tractogram,
    reference_grid,
    with_joined_paths,
)
from ._streams import (
    POINTS,
    HeldTable,
    held_bytes,
    is_in_batches,
    removed,
    temporary_folder,
)


@dataclass(frozen=True)
class CreateReport:
    """Contents of a new store."""

    vertices: int
    objects: int
    links: int
    chunks: int
    chunk_shape: list[float]
    bytes: int
    notes: list[str]
    """Reasons for choices that the design left open."""


@listed(CreateOptions)
def create(
    store: str | os.PathLike[str],
    /,
    *,
    kind: str | None = None,
    source: Any = None,
    positions: Any = None,
    part_offsets: Any = None,
    part_objects: Any = None,
    object_ids: Any = None,
    links: Any = None,
    vertex: Any = None,
    link: Any = None,
    fragment: Any = None,
    fragment_rows: Any = None,
    object: Any = None,
    objects: Any = None,
    groups: Mapping[Any, Any] | None = None,
    group: Any = None,
    companions: Sequence[str | os.PathLike[str]] = (),
    ids: Literal["name", "number"] | Sequence[int] | None = None,
    rename: Mapping[str, str] | None = None,
    missing: Literal["refuse", "nan"] = "refuse",
    reference: Any = None,
    progress: Progress = None,
    **options: Unpack[CreateOptions],
) -> CreateReport:
    """Write geometry as a new store, which appears once it is complete.

    The geometry comes from arrays, from a file, from a result of a query, or from a table with one
    row for each vertex.

    Arrays may have any stride, byte order and number type, and may be lists or Arrow arrays.
    Attributes are mappings of names to columns: a dictionary, or a table of pandas, polars, pyarrow,
    DuckDB or another package with Arrow's PyCapsules. Columns hold numbers, one or more to a row, or
    text.

    Args:
        store: Address of the new store.
        kind: points, lines, polylines, streamlines, skeletons, graphs or mesh, or a word of
            `Dataset.kinds`. Required for arrays and tables; results, their files, and files of
            other formats have a kind of their own.
        source: A .trk, .tck, .trx, .swc, .ply, .obj, .stl, .glb, .las, .laz or .gii file, also
            compressed with gzip, a FreeSurfer surface, a folder of .swc files or meshes, or a folder of
            precomputed data of Neuroglancer; a .npz, .csv, .arrow or .parquet file with the tables beside it, as
            `Dataset.save` writes them; a result of a query, with the axes, the coordinate reference
            system, the headers and the groups of its store; a tractogram of nibabel or dipy in
            millimeters; or a table whose columns x, y, z (or
            those that `axes` names) are coordinates. The columns `object_id`, and `part` for
            paths, group the rows of a table. Other columns are attributes of vertices. Arrays may
            be given in addition to a table. A table of points with Arrow's PyCapsules that takes more
            than a sixth of `memory` is read in batches: those of a stream, such as a
            `pyarrow.RecordBatchReader`, are in memory one at a time, and the rows wait in a temporary file
            beside the store.
        positions: Coordinates, one row for each vertex, or a list of paths with such rows.
        part_offsets: Paths: part p is the rows `part_offsets[p]` to `part_offsets[p + 1]`.
        part_objects: Object of each path; paths are numbered from 0 unless given.
        object_ids: Object of each vertex, for geometry other than paths.
        links: Edges or faces as rows of `positions`; (child, parent) for skeletons.
        vertex: Attributes of vertices.
        link: Attributes of links.
        fragment: Attributes of fragments, one row for each of `objects`.
        fragment_rows: Attributes of fragments, one row for each vertex; the vertices of a fragment, the
            part of an object in a chunk, have the same value.
        object: Attributes of objects, one row for each of `objects`.
        objects: Ids of the objects that these rows describe; all, ascending, unless given.
        groups: Object ids by group number, or by name; names become the attribute `name`.
        group: Attributes of groups, one row for each group.
        companions: Files that belong to `source`, such as the .tsf files of a .tck file.
        ids: Ids of the objects of .swc files and meshes, of which each is one: the `name` of the file,
            a `number` from 0, or a list. By default the names, if all are different numbers.
        rename: New names of attributes of a file.
        missing: Treatment of missing numbers of a file: `refuse` it, or store `nan`, which turns
            integers into floats.
        reference: The image of streamlines, in whose voxel grid `.trk` and `.trx` files of the store are
            written: the path of a NIfTI file, an image of nibabel, or a pair of its affine and its shape.
            By default that of the file or the tractogram, if it has one.
        progress: A function of the cells written and of all cells, or `True` for a bar.
        **options: `CreateOptions` lists the design of the store.

    >>> report = zvf.create("cloud.zv", kind="points", positions=[[0.0, 0], [1, 1], [2, 2]],
    ...                     vertex={"label": ["a", "b", None]})
    >>> report.vertices
    3
    >>> zvf.open("cloud.zv").query().vertex["label"].tolist()
    ['a', 'b', None]

    Raises:
        InputError: The geometry is inconsistent or does not match the design, or the file is not
            valid.
        ExistsError: Something exists at the address.
    """
    given = {
        "positions": positions, "part_offsets": part_offsets, "part_objects": part_objects,
        "object_ids": object_ids, "links": links, "vertex": vertex, "link": link,
        "fragment": fragment, "fragment_rows": fragment_rows, "object": object, "objects": objects, "groups": groups,
        "group": group,
    }  # fmt: skip
    arrays = {name: values for name, values in given.items() if values is not None}
    with shown(progress, f"writing {os.fspath(store)}") as callback:
        keywords = {**plain(options), "kind": kind, "progress": callback}
        if reference is not None:
            keywords["reference"] = reference_grid(reference)
        if isinstance(source, (str, os.PathLike)):
            if arrays:
                raise TypeError(f"source is a file; leave out {', '.join(arrays)}")
            keywords["companions"] = [os.fspath(path) for path in companions]
            if ids is not None:
                keywords["ids"] = ids
            keywords |= {"rename": dict(rename or {}), "missing": missing}
            file = os.fspath(source)
            return CreateReport(**_zvf.create_from_file(os.fspath(store), file, keywords))
        if companions or rename or missing != "refuse" or ids is not None:
            raise TypeError("companions, ids, rename and missing belong to a source that is a file")
        origin = None
        if is_stream(source) and kind in POINTS and not arrays and is_in_batches(options):
            address = os.fspath(store)
            taken = _zvf.taken_table(source, held_bytes(options), temporary_folder(address))
            if isinstance(taken, _zvf.SpooledTable):
                with removed(taken.path):
                    return CreateReport(**_zvf.create_from_file(address, os.fspath(taken.path), keywords))
            source = HeldTable(taken)
        if source is not None:
            axes = [axis if isinstance(axis, str) else axis[0] for axis in keywords.get("axes") or ()]
            arrays, origin = arrays_of_source(source, arrays, axes, kind)
            if is_tractogram(source):
                keywords.setdefault("axes", MILLIMETERS)
                keywords["kind"] = kind or "streamlines"
                if keywords["kind"] in PATHS and (grid := grid_of(source)) is not None:
                    keywords.setdefault("reference", grid)
            if (crs := crs_of(source)) is not None:
                keywords.setdefault("crs", crs)
        made = geometry(with_joined_paths(arrays))
        if origin is None and keywords.get("unit") is not None:
            # A store of arrays has these axes unless it gets others.
            keywords.setdefault("axes", list("xyzw"[: made["positions"][1]]))
        report = CreateReport(**_zvf.create(os.fspath(store), made, keywords, origin))
        if isinstance(source, Result) and origin is None:
            report.notes.append(
                "the result comes from another process, without units, the coordinate reference "
                "system, headers and names of groups; pass axes, crs and group, or save the "
                "result to a .npz file there"
            )
        return report
