"""Every recorded store of 0.6 to 0.8, migrated to 0.9 and read with the package.

The levels, chunks, objects, links, groups and attributes that the package reads, and the results of its readers
of whole stores, are compared with `expected.json`, recorded by the package of that generation.
`validate(level=5)` must find no errors.
"""

import json
import tarfile

import numpy as np
import pytest
from zarr_vectors import building
from zarr_vectors.composite import read_composite
from zarr_vectors.core import arrays as low
from zarr_vectors.types.graphs import read_graph
from zarr_vectors.types.lines import read_lines
from zarr_vectors.types.meshes import read_mesh
from zarr_vectors.types.parametric import read_parametric_objects
from zarr_vectors.types.points import read_points
from zarr_vectors.types.polylines import read_polylines
from zarr_vectors.validate import validate

from corpus import TESTDATA
from program import differences
from recorded import key as key_of

ARCHIVES = ["zvf-06", "zvf-07", "zvf-08"]
END = ".expected.json"
REPORT = "migrated: {stores} stores, {values} values equal"


def plain(value):
    """Returns a value in JSON form, with NaN as text."""
    if isinstance(value, np.ndarray) or isinstance(value, np.generic):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, float) and value != value:
        return "nan"
    if isinstance(value, bytes):
        return value.hex()
    return value


class Store:
    """A migrated store and its record."""

    def __init__(self, path, expected, said, report, differ):
        self.path, self.expected, self.said = str(path), expected, said
        self.report, self.differ = report, differ
        self.root = building.open_store(self.path)
        self.axes = len(expected["root_attrs"]["multiscales"][0]["axes"])

    def same(self, what, found, given):
        found, given = plain(found), plain(given)
        self.report["values"] += np.asarray(given, dtype=object).size
        if found != given:
            self.differ(f"{what}: found {str(found)[:300]}, recorded {str(given)[:300]}")

    def all(self):
        self.validate()
        for name, level in (self.expected.get("levels") or {}).items():
            self.level(int(name), level)
        self.reads()

    def validate(self):
        for found in validate(self.path, level=5).errors:
            self.differ(f"validate: {found}")

    def level(self, number, recorded):
        level = building.get_resolution_level(self.root, number)
        chunks = {tuple(one) for one in recorded["chunk_keys"]}
        empty = {
            key_of(key)
            for key, one in recorded["chunks"].items()
            if isinstance(one["vertices"], list) and not any(map(len, one["vertices"]))
        }
        found = {tuple(one) for one in building.list_chunk_keys(level)}
        self.same(f"{number}: chunks", sorted(found), sorted(chunks - empty))
        dtype = low.vertices_dtype(level)
        for key, one in recorded["chunks"].items():
            if not isinstance(one["vertices"], list) or key_of(key) in empty:
                continue
            read = building.read_chunk_vertices(level, key_of(key), dtype=dtype, ndim=self.axes)
            self.same(f"{number}: vertices of {key}", read, one["vertices"])
        for name, one in recorded.get("vertex_attributes", {}).items():
            for key, values in one["chunks"].items():
                if isinstance(values, list):
                    read = building.read_chunk_attributes(level, name, key_of(key))
                    self.same(f"{number}: {name} of {key}", flat(read), flat(values))
        self.objects(number, level, recorded)
        self.links(number, level, recorded)

    def objects(self, number, level, recorded):
        manifests = recorded.get("manifests")
        if manifests is not None:
            read = low.read_all_object_manifests(level)
            read = [[[list(chunk), fragment] for chunk, fragment in one] for one in read]
            self.same(f"{number}: manifests", read, manifests)
            dtype = low.vertices_dtype(level)
            for at, given in enumerate(recorded["object_vertices"]):
                if given and isinstance(given, list):
                    read = low.read_object_vertices(level, at, dtype=dtype, ndim=self.axes)
                    self.same(f"{number}: object {at}", read, given)
        for name, one in recorded.get("object_attributes", {}).items():
            values = one.get("values", one)
            if not isinstance(values, dict) or "data" not in values:
                continue
            read = np.asarray(low.read_object_attributes(level, name))
            given = np.asarray(values["data"], dtype=object).reshape(values["shape"])
            mask = low.read_object_attribute_present_mask(level, name)
            present = one.get("present_mask")
            rows = range(len(given)) if present is None else np.flatnonzero(present)
            if present is not None:
                # Without a mask, all are present.
                mask = np.ones(len(given)) if mask is None else mask
                self.same(f"{number}: presence of {name}", np.asarray(mask, int), present)
            self.same(f"{number}: {name} of objects", read[list(rows)], given[list(rows)].tolist())
        groups = recorded.get("groups")
        if groups:
            read = [sorted(map(int, one)) for one in low.read_all_groupings(level)]
            self.same(f"{number}: groups", read, [sorted(one) for one in groups["members"]])
        for name, one in recorded.get("group_attributes", {}).items():
            read = low.read_groupings_attributes(level, name)
            self.same(f"{number}: {name} of groups", read, one["values"]["data"])

    def links(self, number, level, recorded):
        inside, between = recorded.get("links", {}), recorded.get("cross_chunk_links", {})
        for delta in sorted({*inside, *between}, key=int):
            given, widths = [], set()
            for key, groups in inside.get(delta, {}).get("chunks", {}).items():
                rows = [row for group in groups for row in group]
                given += [[[list(key_of(key)), end] for end in row] for row in rows]
                widths |= {len(row) for row in rows}
            records = between.get(delta, {}).get("records", [])
            if widths and records and len(records[0]) not in widths:
                self.report["migrated families with links of two numbers of ends, of which 0.9 has one"] += 1
                records = []
            given += records
            if not given:
                continue
            read = low.read_links(level, delta=int(delta))
            read = [[[list(chunk), int(row)] for chunk, row in record] for record in read]
            if self.says("links between pieces of paths with wrong rows") and delta == "0":
                # The recorded rows are wrong; the paths give the correct ones.
                self.bridges(number, recorded, read)
                only = lambda links: [[chunk for chunk, _ in record] for record in links]
                read, given = only(read), only(given)
            meta = between.get(delta, {}).get("meta", {})
            if meta.get("store") == "duplicate" and delta != "0":
                # From 0.9 on, cross-level links have no copies.
                once = {json.dumps(record) for record in given}
                given = [json.loads(record) for record in once]
            self.same(f"{number}: links {delta}", sorted(read), sorted(given))

    def bridges(self, number, recorded, read):
        """Derives the links between pieces of paths from the manifests."""
        fragments = {}
        for key, chunk in recorded["chunks"].items():
            for at, one in enumerate(chunk["fragments"]):
                rows = one.get("explicit")
                if rows is None:
                    start, count = one["range"]
                    rows = list(range(start, start + count))
                fragments[key, at] = rows
        given = []
        for pieces in recorded["manifests"]:
            for (chunk, fragment), (to, other) in zip(pieces, pieces[1:]):
                if chunk != to:
                    last = fragments[".".join(map(str, chunk)), fragment][-1]
                    first = fragments[".".join(map(str, to)), other][0]
                    given.append([[chunk, last], [to, first]])
        self.same(f"{number}: links of paths", sorted(read), sorted(given))

    def says(self, what):
        return any(what in one["what"] for one in self.said["repaired"] + self.said["lost"])

    def reads(self):
        """Compares the results of readers of whole stores."""
        recorded = self.expected.get("reads") or {}
        names = [
            name
            for level in (self.expected.get("levels") or {}).values()
            for name in level.get("vertex_attributes", {})
        ]
        whole = recorded.get("all")
        if whole and "polylines" in whole:
            read = read_polylines(self.path)
            found = [np.concatenate([*one, np.zeros((0, self.axes))]) for one in read["polylines"]]
            given = [[row for piece in one for row in rows_of(piece)] for one in whole["polylines"]]
            self.same("paths", found, given)
        elif whole and "endpoints" in whole:
            read = read_lines(self.path)
            self.same("lines", flat(read["endpoints"]), flat(data(whole["endpoints"])))
        elif whole and "faces" in whole:
            self.linked(read_mesh(self.path), whole, "vertices", "faces")
        elif whole and "edges" in whole:
            self.linked(read_graph(self.path), whole, "positions", "edges")
        elif whole:
            read = read_points(self.path, attribute_names=names)
            # In the order of chunks, which is numeric here and alphabetical there.
            found, given = flat_rows(read["positions"]), flat_rows(data(whole["positions"]))
            self.same("points", sorted(found), sorted(given))
        if "parametric" in recorded:
            read = read_parametric_objects(self.path)
            found = [[one["type"], one["type_id"], plain(one["coefficients"]), one["name"]] for one in read]
            given = [[one["type"], one["type_id"], one["coefficients"], one["name"]] for one in recorded["parametric"]]
            self.same("parametric objects", found, given)
        for kind, one in recorded.get("composite", {}).items():
            read = read_composite(self.path)[kind]
            found, given = flat_rows(read["positions"]), flat_rows(data(one["positions"]))
            self.same(f"composite {kind}", sorted(found), sorted(given))
            if "links" in one:
                self.same(f"composite {kind} links", read["links"], data(one["links"]))

    def linked(self, read, whole, positions, links):
        found, given = flat_rows(read[positions]), flat_rows(data(whole[positions]))
        self.same(positions, found, given)
        read_links = [list(map(int, one)) for one in read[links]]
        given = [list(map(int, one)) for one in data(whole[links])]
        if links == "edges":
            # Skeletons have each edge once, in either direction.
            read_links, given = map(sorted, ([*read_links], [*given]))
        # In the order of arrays, which differs between generations.
        self.same(links, sorted(read_links), sorted(given))


def data(json_array):
    return json_array["data"] if isinstance(json_array, dict) else json_array


def rows_of(piece):
    """Returns rows; a piece is a list of rows, or a row."""
    return [piece] if piece and not isinstance(piece[0], list) else piece


def flat(value):
    value = plain(value)
    if isinstance(value, list):
        return [one for part in value for one in flat(part)]
    return [value]


def flat_rows(value):
    return [flat(row) for row in plain(value)]


def recorded():
    """Lists the stores of the archives that have records."""
    for name in ARCHIVES:
        with tarfile.open(TESTDATA / f"{name}.tar.gz") as archive:
            for member in sorted(archive.getnames()):
                if member.endswith(END):
                    yield f"{name}/{member.removesuffix(END)}"


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recorded")
    for name in ARCHIVES:
        with tarfile.open(TESTDATA / f"{name}.tar.gz") as packed:
            packed.extractall(folder / name, filter="data")
    return folder


@pytest.mark.parametrize("name", recorded())
def test_migrated(name, zvf, archives, tmp_path, report):
    source, target = archives / f"{name}.zv", tmp_path / "migrated.zv"
    expected = json.loads((archives / f"{name}{END}").read_text())
    said = zvf.json("migrate", source, target, "--quiet")
    report["stores"] += 1
    with differences() as differ:
        Store(target, expected, said, report, differ).all()
