"""Keyword arguments, as types."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = Sequence[float] | NDArray[Any]
"""A number for each axis."""
Bounds: TypeAlias = Numbers | Sequence[Numbers]
"""The lower bounds of all axes and the upper ones: two rows, or one row of both."""
Ids: TypeAlias = int | Sequence[int] | NDArray[Any]
"""One id or several."""


class OpenOptions(TypedDict, total=False):
    """Options for opening a store."""

    anonymous: bool
    """Send unsigned requests, for public buckets."""
    memory_budget: int
    """Maximum number of bytes that one call may read and one chunk may decode to; 1 GiB unless
    given."""
    cache: int
    """Size of the cache of decoded cells in bytes; a share of the machine's memory unless given.
    0 disables the cache."""
    concurrency: int
    """Maximum number of concurrent requests."""
    retries: int
    """Maximum number of retries of a request."""
    timeout: float
    """Time limit of a request in seconds."""
    node_copy: bool
    """Use the copy of the metadata in the root of a remote store."""
    check_seal: bool
    """Check a sealed store against its inventory; true unless given."""
    follow: Literal["never", "when_gone", "always"]
    """When queries use changes by other writers. `never`: a query fails once the state that was
    opened no longer exists. `when_gone`, the default: the store is then opened again. `always`:
    every query uses the newest state."""
    options: Mapping[str, str]
    """Options of the client of the bucket, by name."""


class Selecting(TypedDict, total=False):
    """Selection of a part of a store."""

    bbox: Bounds
    """Select by a box. Bounds may be infinite."""
    sphere: tuple[Numbers, float]
    """Select by a sphere: its centre and its radius."""
    nearest: Numbers
    """Select the vertices, paths or links nearest to a position."""
    k: int
    """Number of nearest vertices, paths or links."""
    whole: bool
    """Select the `k` objects nearest to the position, whole. They are returned in ascending order of
    distance."""
    mode: Literal["touch", "within", "clip"]
    """Treatment of geometry that crosses the border of the region: return it whole, drop it, or
    cut it."""
    clip: Literal["split", "drop"]
    """With `mode="clip"`: cut segments and faces at the border, or drop them."""
    objects: Ids
    """Select objects by id. They are returned in this order."""
    groups: Ids | str | Sequence[int | str]
    """Select the objects of groups, by number or name, in addition to `objects`."""
    chunks: Sequence[Sequence[int]]
    """Select by chunk."""
    where: str
    """Filter by attributes, such as "vertex.radius > 2 and kind = 'axon'"."""


class QueryOptions(Selecting, total=False):
    """Selection and contents of the result of a query. The result contains what all selections
    select, except that `groups` adds to `objects`."""

    chunked_by: object
    """Value of the attribute by which the level is chunked."""
    select: Sequence[str]
    """Attributes to read, such as "fa" or "object.length"; all unless given."""
    level: int
    """Level to read; 0, the finest, unless given."""
    scale: float
    """Read the coarsest level whose bins are at most this many times as large."""
    vertices: int
    """Read the finest level with at most this many vertices."""
    budget: int
    """Return at most this many vertices, as fine as possible."""
    focus: Numbers
    """Position around which a budget is spent first."""
    own_level: bool
    """Return what an additive level itself stores, without the levels that complete it."""
    drill: int
    """Return the vertices that the selection is linked to, this number of levels away."""
    geometry: str
    """Additional geometry of a composite store."""
    owners: bool
    """Return the object of each vertex; true unless given."""
    row_ids: bool
    """Return the address of each vertex, for `Dataset.write_attributes` and
    `Dataset.delete_vertices`. Requires level 0."""
    limit: int
    """Maximum number of vertices, paths or links to return."""
    keep_going: bool
    """Skip damaged parts and list them in `Result.skipped` instead of failing."""


class BatchOptions(QueryOptions, total=False):
    """Query and size of its batches."""

    batch_rows: int
    """Maximum number of vertices, or links, in a batch; 65,536 unless given. Paths are not cut."""
    batch_bytes: int
    """Approximate size of a batch in bytes; 16 MiB unless given."""


class GeometryArrays(TypedDict, total=False):
    """Geometry to add to a store: the arguments of `zvf.create`."""

    positions: Any
    """Coordinates, one row for each vertex."""
    part_offsets: Any
    """Paths: part p is the rows `part_offsets[p]` to `part_offsets[p + 1]`."""
    part_objects: Any
    """Object of each path."""
    object_ids: Any
    """Object of each vertex, for geometry other than paths."""
    links: Any
    """Edges or faces as rows of `positions`."""
    vertex: Any
    """Attributes of vertices."""
    link: Any
    """Attributes of links."""
    fragment: Any
    """Attributes of fragments, one row for each of `objects`."""
    fragment_rows: Any
    """Attributes of fragments, one row for each vertex; equal for all vertices of a fragment."""
    object: Any
    """Attributes of objects."""
    objects: Any
    """Ids of the objects that these rows describe."""
    groups: Mapping[int, Any] | None
    """Object ids by group number."""
    group: Any
    """Attributes of groups."""


class PyramidOptions(TypedDict, total=False):
    """Design of coarser levels."""

    method: Literal["bins", "subset", "simplify", "stride", "collapse"]
    """Method of reduction; depends on the kind of geometry unless given."""
    levels: int
    """Number of levels. Unless given, levels are built until one has fewer than 100,000 vertices or
    one chunk."""
    factors: Numbers
    """Growth of cells, tolerances or strides with each level."""
    cell: Numbers
    """Extent of the grid cells of the first level."""
    tolerance: float
    """Maximum displacement of lines in the first level, or of surfaces in every level."""
    medoid: bool
    """Represent a cell by the vertex nearest to the mean."""
    share: bool
    """Let objects share vertices."""
    keep: int
    """Number of points that a subset keeps in each cell."""
    seed: int
    """Seed of random choices."""
    cull: int
    """Drop connected components of meshes with fewer faces."""
    additive: bool
    """Omit the points of coarser levels from each level."""
    refinement: bool
    """Declare additive levels by `refinement: add`, a draft of the format after 0.9.2."""
    chunk_scale: int
    """Number of chunks along each axis that form one chunk of the next level."""
    sharding: Literal["auto", "none"] | Sequence[int]
    """Number of chunks along each axis of a shard; that of level 0 unless given."""
    sparsity: Numbers
    """Factor by which the number of objects shrinks with each level; 1 keeps all. Without a method, levels
    of paths keep a quarter by default, and at least 10,000."""
    sparsity_by: str
    """Objects to keep: random, length, coverage, group or attribute:NAME."""
    rules: Mapping[str, str]
    """Aggregation of attributes by name: own, mean, sum, min, max, mode or count."""
    cross_level: Literal["none", "implicit", "explicit"]
    """Links between levels."""
    depth: int
    """Maximum number of levels that a link spans; -1 for all."""
    overwrite: bool
    """Replace existing levels."""
    refresh: bool
    """Rebuild only the chunks of existing levels that are out of date."""


class SampleOptions(TypedDict, total=False):
    """Sampling of a volume."""

    interpolation: Literal["nearest", "linear", "cubic"]
    """Interpolation between voxels; linear unless given."""
    affine: Sequence[Sequence[float]] | NDArray[Any]
    """Matrix from positions to voxels. It has one row and one column more than there are axes."""
    outside: float | Literal["edge"]
    """Value outside the volume, or "edge" for the value of the nearest voxel; NaN, or 0 for
    integers, unless given."""
    reduce: Literal["mean", "sum", "min", "max"]
    """Store an attribute of objects, aggregated from their vertices."""
    dataset: str
    """Dataset of a `.tet` file."""
    overwrite: bool
    """Replace an existing attribute of this name."""
    memory: int
    """Maximum memory for voxels in bytes."""


class RenderOptions(Selecting, total=False):
    """Picture of a store, or of a part of it."""

    size: tuple[int, int]
    """Width and height in pixels; 1200 and 900 unless given."""
    view: str
    """axial, coronal, sagittal, iso, or azimuth and elevation in degrees, as "35,24"."""
    flip_y: bool
    """Draw the second axis downwards, as rows of images are."""
    perspective: bool
    """Draw in perspective."""
    color: str
    """orientation, object, #rrggbb, or the name of an axis or attribute."""
    palette: Literal["viridis", "cividis", "inferno"]
    """Colours of numbers."""
    range: tuple[float, float]
    """Values at the ends of the palette; percentiles 2 and 98 unless given."""
    background: Literal["dark", "light"]
    """Background."""
    level: int
    """Level to draw; chosen by the number of vertices unless given."""
    budget: int
    """Draw at most this many vertices, as fine as possible."""
    geometry: str
    """Additional geometry of a composite store."""
    stroke: float
    """Width of lines and diameter of points in pixels."""
    title: str
    """Title above the picture."""
    depth_cue: bool
    """Darken distant geometry; true unless given."""
    annotations: bool
    """Draw title, legend, scale bar and axes; true unless given."""


class PrecomputedOptions(TypedDict, total=False):
    """Export to Neuroglancer."""

    layers: Sequence[Literal["annotations", "skeletons", "meshes", "segments", "groups"]]
    """Layers to write; all that the kind of geometry has unless given."""
    properties: Sequence[str]
    """Attributes to write; all unless given."""
    sharded: bool
    """Write every index as shards."""
    mesh_format: Literal["draco", "legacy"]
    """Format of meshes: `draco`, the default, writes Draco fragments with levels of detail, and
    `legacy` writes level 0 without compression."""
    url: str
    """Address at which the folder will be served, for a link to Neuroglancer."""


class ValidateOptions(OpenOptions, total=False):
    """Extent of a validation."""

    level: Literal[1, 2, 3, 4]
    """Depth of the validation: 1 nodes, 2 metadata, 3 cells, 4 geometry; 4 unless given."""
    limit: int
    """Maximum number of listed findings of each rule."""


class MigrateOptions(OpenOptions, total=False):
    """Form of a migrated store."""

    profile: Literal["0.9", "0.10", "0.8"]
    """Generation of the new store; 0.9 unless given. 0.10 is a preview."""
    compression: str
    """Compression of cells: none, auto, zstd, zstd:LEVEL, blosc, gzip or gzip:LEVEL."""
    name: str
    """Name of the new store, if the old one has none."""
    skip_damaged: bool
    """Leave out parts that cannot be read, and list them."""
    seal: bool
    """Write an inventory of all files, against which every read is checked; true unless given."""
    overwrite: bool
    """Replace an existing store, which may be the one that is migrated."""


class CreateOptions(TypedDict, total=False):
    """Design of a new store, and options for writing it."""

    chunk_shape: Numbers
    """Extent of a chunk along each axis; chosen by the number of vertices unless given."""
    bin_shape: Numbers
    """Extent of a bin along each axis."""
    bounds: Bounds
    """Bounds of the store; those of the vertices unless given."""
    out_of_bounds: Literal["raise", "ignore", "expand"]
    """Treatment of vertices outside the bounds."""
    axes: (
        str
        | Mapping[str, str | None]
        | Sequence[str | tuple[str, str | None] | tuple[str, str | None, str]]
    )
    """Name of each axis, alone or with its unit, and the type space, time or channel; also as a dictionary of
    names and units, or a text such as "x:micrometer,y:micrometer"."""
    unit: str
    """Unit of the coordinates of a source that does not state it."""
    crs: object
    """Coordinate reference system, as JSON."""
    name: str
    """Name of the store."""
    dtype: str
    """Type of stored coordinates; that of the positions unless given."""
    compression: str
    """Compression of cells: none, auto, zstd, zstd:LEVEL, blosc, gzip or gzip:LEVEL."""
    table_compression: str
    """Compression of the tables of objects and groups; that of cells unless given."""
    checksums: bool
    """Store checksums of cells; true unless given."""
    sharding: Literal["auto", "none"] | Sequence[int]
    """Number of chunks along each axis of a shard; by default auto in a bucket, none in a folder."""
    profile: str
    """Generation of the format."""
    purpose: Literal["auto", "lookup", "scan"]
    """Reads that the size of chunks is chosen for."""
    directed: bool
    """Declare that the links of a graph have a direction; those of skeletons always have one."""
    winding: Literal["ccw", "cw"]
    """Order of the corners of the faces of a mesh, seen from outside; ccw unless given."""
    duplicate: bool
    """Store a link between chunks in both of them."""
    step_links: bool | Literal["between", "all"]
    """Store steps of paths also as links: those between chunks, as True does too, or all."""
    flat_link_attributes: bool
    """Store each attribute of links between chunks as one array, under a profile before 0.9."""
    fragment_owners: bool
    """Store the object of each fragment as the fragment attribute `object_id`."""
    seal: bool
    """Write an inventory of all files, against which every read is checked; true unless given."""
    overwrite: bool
    """Replace a store at the address."""
    node_copy: bool
    """Copy the metadata of all nodes into the root, so that remote stores open in one request."""
    memory: int
    """Maximum memory to use in bytes."""
    anonymous: bool
    """Send unsigned requests."""
    options: Mapping[str, str]
    """Options of the client of the bucket, by name."""


F = TypeVar("F", bound=Callable[..., Any])


def listed(options: type) -> Callable[[F], F]:
    """List the keyword arguments of a class of options in the signature of a function, for `help`
    and for completion."""

    def decorate(function: F) -> F:
        signature = inspect.signature(function)
        own = signature.parameters.values()
        named = [one for one in own if one.kind is not inspect.Parameter.VAR_KEYWORD]
        known = {one.name for one in named}
        more = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=kind)
            for name, kind in arguments_of(options).items()
            if name not in known
        ]
        function.__signature__ = signature.replace(parameters=[*named, *more])  # type: ignore[attr-defined]
        return function

    return decorate


def arguments_of(options: type) -> dict[str, str]:
    """Return the types of the arguments of a class of options, as text."""
    kinds = options.__annotations__.items()
    return {name: getattr(kind, "__forward_arg__", str(kind)) for name, kind in kinds}


def _describe() -> None:
    """Add the arguments to the docstrings of the classes of options, for `help`: the texts that
    follow the arguments do not exist at run time."""
    try:
        tree = ast.parse(Path(__file__).read_text(encoding="utf-8"))
    except OSError:
        return
    texts: dict[str, dict[str, str]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            own = texts[node.name] = {}
            for base in node.bases:
                own |= texts.get(getattr(base, "id", ""), {})
            for field, text in zip(node.body, node.body[1:]):
                if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                    own[ast.unparse(field.target)] = ast.literal_eval(text.value)
    for name, described in texts.items():
        options = globals()[name]
        types = arguments_of(options)
        lines = [
            f"    {field}: {types[field]}\n        {' '.join(text.split())}"
            for field, text in described.items()
        ]
        options.__doc__ = f"{options.__doc__}\n\nArguments:\n" + "\n".join(lines)


_describe()


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return keyword arguments with the options of the client as a list, and axes as names or tuples."""
    keywords = dict(options)
    if (axes := keywords.get("axes")) is not None:
        keywords["axes"] = named_axes(axes)
    if (named := keywords.get("options")) is not None:
        keywords["options"] = list(dict(named).items())
    return keywords


def named_axes(axes: Any) -> list[Any]:
    """Return axes as names, or as tuples of name, unit and type. They may be a dictionary of names and
    units, or texts such as "x:micrometer", also joined by commas."""
    if isinstance(axes, Mapping):
        return list(axes.items())
    if isinstance(axes, str):
        axes = axes.split(",") if "," in axes or ":" in axes else axes
    return [_axis(axis) for axis in axes]


def _axis(axis: Any) -> Any:
    if not isinstance(axis, str) or ":" not in axis:
        return axis.strip() if isinstance(axis, str) else axis
    name, unit, *more = [word.strip() for word in axis.split(":")]
    if not name or len(more) > 1:
        raise ValueError(
            f"axes has {axis!r}; an axis is its name, or its name and unit, such as 'x:micrometer'"
        )
    return (name, unit or None, *more)


def sampling(into: str, options: SampleOptions) -> dict[str, Any]:
    """Return keyword arguments for sampling, with the matrix as a list of numbers."""
    keywords: dict[str, Any] = {**options, "into": into}
    if (affine := keywords.get("affine")) is not None:
        keywords["affine"] = np.asarray(affine, np.float64).reshape(-1).tolist()
    return keywords
