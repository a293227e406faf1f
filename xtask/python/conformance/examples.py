"""Makes `testdata/zvf-examples.tar.gz`: the ten examples of the specification's chapter 14, small.

usage: examples.py ZVF FOLDER ARCHIVE [--check]

ZVF is our program, which writes most of the stores; the reference package writes levels chunked by
an attribute, and fragments shared by objects. Next to each store is `expected.json` with queries
and their responses, derived from the geometry alone. The same programs make the same archive.
"""

import argparse
import gzip
import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile

import numpy as np
from zarr_vectors import building

sys.path.insert(1, str(pathlib.Path(__file__).resolve().parents[1]))

from content import Content, response, queries  # noqa: E402
from seeded import Random  # noqa: E402
from serving import rows, told  # noqa: E402

EXAMPLES = []


def example(build):
    """Registers an example by the name of the function that makes it."""
    EXAMPLES.append(build)
    return build


class Work:
    """The folder and the programs of an example."""

    def __init__(self, program, folder, name):
        self.program = program
        self.folder = folder / name
        self.folder.mkdir(parents=True)
        self.store = self.folder / "store.zarrvectors"
        self.scratch = folder / f"{name}.scratch"
        self.scratch.mkdir()
        self.random = Random(int.from_bytes(name.encode()[:8]))

    def create(self, kind, arrays, *words, store=None):
        source = self.scratch / "input.npz"
        np.savez(source, **arrays)
        line = [self.program, "create", store or self.store, "--from", source, "--kind", kind]
        # Levels are added by hand, which would make the copy of the nodes and the inventory stale.
        line += ["--quiet", "--no-node-copy", "--no-seal", *words]
        done = subprocess.run([str(word) for word in line], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{self.folder.name}: zvf create: {done.stderr}")

    def add_level(self, kind, arrays, chunk_shape, bins, says):
        """Adds the next coarser level, from geometry of its own written as a store."""
        levels = [int(one.name) for one in self.store.iterdir() if one.name.isdigit()]
        number, other = max(levels) + 1, self.scratch / "level.zarrvectors"
        shutil.rmtree(other, ignore_errors=True)
        self.create(kind, arrays, "--chunk-shape", comma(chunk_shape), store=other)
        shutil.move(other / "0", self.store / str(number))
        with Attributes(self.store / str(number)) as attributes:
            level = attributes["zarr_vectors_level"] | says
            level |= {"level": number, "parent_level": number - 1, "coarsening_method": "manual"}
            level["chunk_shape"] = [float(extent) for extent in chunk_shape]
            attributes["zarr_vectors_level"] = level
        with Attributes(self.store) as attributes:
            zv = attributes["zarr_vectors"]
            base = zv.get("base_bin_shape", zv["chunk_shape"])
            scale = [float(extent) / one for extent, one in zip(bins, base)]
            attributes["multiscales"][0]["datasets"].append(
                {
                    "path": str(number),
                    "coordinateTransformations": [
                        {"type": "scale", "scale": scale},
                        {"type": "translation", "translation": [float(one) / 2 for one in bins]},
                    ],
                }
            )
            attributes["ome"]["nodes"].append({"type": "zv:level", "name": str(number)})

    def numbers(self, count, low, high, columns=None):
        """Returns multiples of one eighth, which float32 represents exactly."""
        found = [
            [self.random.between(low * 8, high * 8) / 8 for _ in range(columns or 1)]
            for _ in range(count)
        ]
        return np.array(found, "f4").reshape((count, columns) if columns else count)


class Attributes:
    """The attributes of a node, written when the block ends."""

    def __init__(self, node):
        self.path = node / "zarr.json"

    def __enter__(self):
        self.node = json.loads(self.path.read_text())
        return self.node["attributes"]

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.path.write_text(json.dumps(self.node, indent=2))


def comma(numbers):
    return ",".join(repr(float(number)) for number in numbers)


def text(values):
    return np.array(values, "U")


def content(shape, arrays, axes="xyz", levels=(0,), groups=None):
    """Returns the content that the interchange arrays describe."""
    found = Content(shape, axes, levels)
    found.positions = rows(arrays["positions"])
    if "part_offsets" in arrays:
        offsets = arrays["part_offsets"].tolist()
        ids = arrays.get("part_objects", np.arange(len(offsets) - 1)).tolist()
        found.own([(id, range(*ends)) for id, *ends in zip(ids, offsets, offsets[1:])])
    elif "object_ids" in arrays:
        own = arrays["object_ids"].tolist()
        found.own([(id, [r for r, one in enumerate(own) if one == id]) for id in sorted(set(own))])
    if "links" in arrays:
        found.links = arrays["links"].tolist()
    scopes = {"vertex": "vertex", "link": "link", "object": "object", "group_attribute": "group"}
    for name, values in arrays.items():
        scope, _, name = name.partition(".")
        if name and scope in scopes:
            getattr(found, scopes[scope])[name] = told(values)
    members = [name for name in arrays if name.startswith("group.")]
    if members:
        found.groups = [arrays[f"group.{number}"].tolist() for number in range(len(members))]
    return found


# The examples. Each writes its store and returns its contents by level.


@example
def mouse_nuclei(work):
    """14.1: nuclei of a mouse brain with their volumes, grouped by region, at two levels"""
    count = 90
    arrays = {
        "positions": work.numbers(count, 0, 120, 3),
        "vertex.volume": work.numbers(count, 100, 900),
        "object_ids": np.arange(count),
        "object.confidence": work.numbers(count, 0, 1),
    }
    regions = [[] for _ in range(4)]
    for nucleus in range(count):
        regions[work.random.below(4)].append(nucleus)
    for number, members in enumerate(regions):
        arrays[f"group.{number}"] = np.array(members, "i8")
    arrays["group_attribute.name"] = text(["isocortex", "thalamus", "cerebellum", "pons"])
    work.create("points", arrays, "--chunk-shape", "60,60,60", "--axes", MICROMETERS)
    keep = np.arange(0, count, 3)
    coarse = {
        "positions": arrays["positions"][keep],
        "vertex.volume": arrays["vertex.volume"][keep],
        "object_ids": keep,
        "object.confidence": arrays["object.confidence"][keep],
    }
    says = {"object_sparsity": 1 / 3, "preserves_object_ids": True, "inherited_num_objects": count}
    work.add_level("points", coarse, (120, 120, 120), (120, 120, 120), says)
    with Attributes(work.store) as attributes:
        attributes["zarr_vectors"]["format_capabilities"] = ["preserved_object_ids"]
    fine = content("points", arrays, levels=(0, 1))
    return {0: fine, 1: content("points", coarse, levels=(0, 1))}


MICROMETERS = "x:micrometer,y:micrometer,z:micrometer"


def sheet(cells, step):
    """Returns a height field of triangles."""
    at = [(x * step, y * step) for y in range(cells + 1) for x in range(cells + 1)]
    positions = np.array([(x, y, (x * 3 + y * 5) % 16 / 2) for x, y in at], "f4")
    faces = []
    for y in range(cells):
        for x in range(cells):
            a = y * (cells + 1) + x
            b = a + cells + 1
            faces += [[a, a + 1, b + 1], [a, b + 1, b]]
    normals = np.array([(x % 3, y % 3, 1) for x, y in at], "f4")
    return {"positions": positions, "links": np.array(faces, "i8"), "vertex.normal": normals}


@example
def mesh_three_levels(work):
    """14.2: a mesh at three levels, whose chunks grow with the step of the mesh"""
    levels = (0, 1, 2)
    arrays = [sheet(8 // 2**level, 4 * 2**level) for level in levels]
    work.create("mesh", arrays[0], "--chunk-shape", "16,16,16", "--bin-shape", "8,8,8")
    for level in levels[1:]:
        bins, chunk = (8 * 2**level,) * 3, (16 * 2**level,) * 3
        work.add_level("mesh", arrays[level], chunk, bins, {"object_sparsity": 1.0})
    return {level: linked(arrays[level], levels) for level in levels}


def linked(arrays, levels=(0,)):
    """Returns the content without ids, where everything is object 0."""
    own = np.zeros(len(arrays["positions"]), "i8")
    return content("links", {"object_ids": own, **arrays}, levels=levels)


@example
def neurons(work):
    """14.3: branching skeletons of neurons that cross chunks"""
    positions, links, own, radius = [], [], [], []
    for neuron in range(3):
        first = len(positions)
        positions.append(np.array([20.0 + 30 * neuron, 40, 40], "f4"))
        for step in range(1, 30):
            # Occasionally a branch, otherwise the child of the previous vertex.
            parent = first + (work.random.below(step) if work.random.chance(20) else step - 1)
            positions.append(positions[parent] + work.numbers(3, -8, 8))
            links.append([first + step, parent])
        own += [neuron] * 30
    radius = work.numbers(len(positions), 0, 2)
    arrays = {
        "positions": np.array(positions, "f4"),
        "links": np.array(links, "i8"),
        "object_ids": np.array(own, "i8"),
        "vertex.radius": radius,
        "object.kind": text(["basket", "pyramidal", "pyramidal"]),
    }
    work.create("skeletons", arrays, "--chunk-shape", "40,40,40", "--axes", MICROMETERS)
    return {0: content("links", arrays)}


def walks(work, lengths, start, step):
    """Returns paths, one after the other, and the first vertex of each."""
    positions, offsets, axes = [], [0], len(start[0])
    for path, length in enumerate(lengths):
        place = np.array(start[path % len(start)], "f4")
        for _ in range(length):
            positions.append(place)
            place = place + work.numbers(axes, *step)
        offsets.append(len(positions))
    return np.array(positions, "f4"), np.array(offsets, "i8")


@example
def vessels_2d(work):
    """14.4: vessels in two dimensions, with their diameter at each vertex"""
    starts = [(5.0, 5.0), (90.0, 10.0), (10.0, 80.0)]
    positions, offsets = walks(work, [12, 9, 15, 7, 2], starts, (-9, 12))
    arrays = {
        "positions": positions,
        "part_offsets": offsets,
        "vertex.diameter": work.numbers(len(positions), 1, 9),
        "object.order": np.array([1, 2, 2, 3, 3], "i4"),
    }
    work.create("polylines", arrays, "--chunk-shape", "32,32", "--axes", "x:micrometer,y:micrometer")
    return {0: content("paths", arrays, "xy")}


@example
def tracks_xyzt(work):
    """14.5: tracks of particles through space and time"""
    starts = [(8.0, 8.0, 8.0, 0.0), (40.0, 30.0, 20.0, 3.0), (16.0, 48.0, 8.0, 5.0)]
    positions, offsets = walks(work, [14, 11, 8, 14], starts, (-6, 7))
    for first, end in zip(offsets, offsets[1:]):
        # One frame after the other.
        positions[first:end, 3] = positions[first, 3] + np.arange(end - first)
    arrays = {
        "positions": positions,
        "part_offsets": offsets,
        "part_objects": np.array([3, 10, 11, 400], "i8"),
        "vertex.intensity": np.array(work.random.numbers(len(positions), 65536), "u2"),
        "object.lineage": np.array([0, 3, 3, 10], "i4"),
    }
    axes = "x:micrometer,y:micrometer,z:micrometer,t:second:time"
    work.create("polylines", arrays, "--chunk-shape", "32,32,32,8", "--axes", axes)
    return {0: content("paths", arrays, "xyzt")}


@example
def cells_by_genes(work):
    """14.6: what cells express of three genes, chunked by gene"""
    cells, genes = 24, 3
    places = work.numbers(cells, 0, 60, 3)
    positions = np.repeat(places, genes, axis=0)
    gene = np.tile(np.array([2, 5, 11]), cells)
    expression = work.numbers(len(positions), 0, 30)
    own = np.repeat(np.arange(cells), genes)
    kinds = np.array(work.random.numbers(cells, 4), "i4")
    building.write_points(
        str(work.store),
        positions,
        chunk_shape=(30.0, 30.0, 30.0),
        vertex_attributes={"gene": gene, "expression": expression},
        chunk_by_attribute="gene",
        object_ids=own,
        object_attributes={"cell_type": kinds},
    )
    arrays = {
        "positions": positions,
        "object_ids": own,
        "vertex.expression": expression,
        "object.cell_type": kinds,
    }
    found = content("points", arrays)
    found.chunked_by = ("gene", gene.tolist())
    return {0: found}


@example
def spots_to_cells(work):
    """14.7: detected spots with the gene of each, assigned to cells, and cells to types"""
    count, names = 100, ["Gad1", "Slc17a7", "Pvalb", "Vip"]
    own = np.array([3 * work.random.below(10) for _ in range(count)], "i8")
    centre = work.numbers(30, 8, 88, 2)
    arrays = {
        "positions": centre[own] + work.numbers(count, -6, 6, 2),
        "object_ids": own,
        "vertex.gene": text([work.random.pick(names) for _ in range(count)]),
        "vertex.quality": work.numbers(count, 0, 40),
    }
    cells = np.unique(own)
    arrays["objects"] = cells
    arrays["object.area"] = work.numbers(len(cells), 40, 90)
    arrays["group.0"], arrays["group.1"] = cells[::2], cells[1::2]
    arrays["group_attribute.type"] = text(["excitatory", "inhibitory"])
    work.create("points", arrays, "--chunk-shape", "48,48", "--axes", "x:micrometer,y:micrometer")
    return {0: content("points", arrays, "xy")}


@example
def trx_aligned(work):
    """14.8: a small tractogram in one chunk, objects numbered as streamlines of TRX are"""
    starts = [(10.0, 10.0, 10.0), (50.0, 20.0, 30.0)]
    positions, offsets = walks(work, [10, 8, 12, 6, 9, 4], starts, (-1, 3))
    arrays = {
        "positions": positions,
        "part_offsets": offsets,
        "vertex.fa": work.numbers(len(positions), 0, 1),
        "object.length": np.diff(offsets).astype("f4"),
        "group.0": np.array([0, 2, 4], "i8"),
        "group.1": np.array([1, 5], "i8"),
        "group_attribute.name": text(["CST_left", "CST_right"]),
    }
    # One chunk, but large enough for bounds other than those of the vertices.
    words = ["--chunk-shape", "128,128,128", "--bounds", "0,0,0,127,127,127"]
    work.create("streamlines", arrays, *words, "--axes", MILLIMETERS)
    with Attributes(work.store) as attributes:
        attributes["zarr_vectors"]["object_index_convention"] = "identity"
    return {0: content("paths", arrays)}


MILLIMETERS = "x:millimeter,y:millimeter,z:millimeter"


@example
def dti_shared_segments(work):
    """14.9: streamlines through several chunks that share the segments of their trunk"""
    extent, pieces = 16.0, {}

    def piece(chunk, start, end, count):
        """Returns the number of a straight run of vertices inside a chunk."""
        line = np.linspace(start, end, count, dtype="f4") + np.array(chunk, "f4") * extent
        pieces.setdefault(chunk, []).append(np.round(line * 8) / 8)
        return chunk, len(pieces[chunk]) - 1

    trunk = [
        piece((0, 0, 0), (1, 8, 8), (15, 8, 8), 8),
        piece((1, 0, 0), (1, 8, 8), (15, 8, 8), 8),
    ]
    branches = [
        [piece((2, 0, 0), (1, 8, 8), (14, 3, 8), 6)],
        [piece((2, 0, 0), (1, 9, 8), (9, 15, 8), 5), piece((2, 1, 0), (9, 1, 8), (12, 9, 8), 4)],
        [piece((2, 0, 0), (1, 8, 9), (8, 8, 15), 5), piece((2, 0, 1), (9, 8, 1), (12, 8, 9), 4)],
    ]
    fibres = [trunk + branch for branch in branches] + [trunk[1:] + branches[0], trunk]
    root = building.create_store(
        str(work.store),
        axes=[{"name": name, "type": "space", "unit": "millimeter"} for name in "xyz"],
        bounds=([0.0] * 3, [48.0, 32.0, 32.0]),
        chunk_shape=(extent,) * 3,
        geometry_types=["streamline"],
        links_convention="implicit_sequential",
    )
    level = building.get_resolution_level(root, 0)
    building.create_vertices_array(level)
    building.create_attribute_array(level, "fa", dtype="float32")
    fa = {}
    for chunk, lines in pieces.items():
        building.write_chunk_vertices(level, chunk, lines)
        values = [work.numbers(len(line), 0, 1) for line in lines]
        building.write_chunk_attributes(level, "fa", chunk, values, dtype=np.dtype("f4"))
        fa |= {(chunk, number): one for number, one in enumerate(values)}
    building.create_object_index_array(level)
    building.write_object_index(level, dict(enumerate(fibres)), 3)
    # From each piece to the next one in another chunk, once for all objects that share it.
    rows_before = {
        (chunk, number): sum(map(len, lines[:number]))
        for chunk, lines in pieces.items()
        for number in range(len(lines))
    }
    crossings = {}
    for fibre in fibres:
        for one, other in zip(fibre, fibre[1:]):
            last = rows_before[one] + len(pieces[one[0]][one[1]]) - 1
            crossings[one, other] = [(one[0], last), (other[0], rows_before[other])]
    building.write_links(level, list(crossings.values()), 3)
    weights = work.numbers(len(fibres), 0, 2)
    building.write_object_attributes(level, "weight", weights)
    with Attributes(work.store) as attributes:
        attributes["zarr_vectors"]["format_capabilities"] = ["shared_fragments"]
    count = sum(len(line) for lines in pieces.values() for line in lines)
    present = ["vertices", "vertex_attributes", "object_index", "object_attributes", "links"]
    with Attributes(work.store / "0") as attributes:
        says = {"vertex_count": count, "arrays_present": present, "shared_fragments": True}
        attributes["zarr_vectors_level"] |= says
    found = Content("paths", "xyz")
    first, values = {}, []
    for chunk, lines in pieces.items():
        for number, line in enumerate(lines):
            first[chunk, number] = len(found.positions), len(line)
            found.positions += rows(line)
            values += told(fa[chunk, number])
    found.vertex["fa"] = values
    run = lambda at: range(first[at][0], sum(first[at]))  # noqa: E731
    found.own([(id, [row for at in fibre for row in run(at)]) for id, fibre in enumerate(fibres)])
    found.object["weight"] = told(weights)
    return {0: found}


@example
def distributed_write(work):
    """14.10: points that three processes wrote at the same time, in shards"""
    count = 300
    arrays = {
        "positions": work.numbers(count, 0, 128, 3),
        "vertex.score": work.numbers(count, 0, 10),
    }
    words = ["--chunk-shape", "32,32,32", "--shard=2,2,2", "--workers", "3"]
    work.create("points", arrays, *words)
    return {0: content("points", arrays)}


def expectations(build, contents):
    about = " ".join(build.__doc__.split())
    cases = []
    for number, level in sorted(contents.items()):
        wanted = queries(level)
        if number == 0:
            wanted.insert(0, {"kind": "info"})
        for query in wanted:
            cases.append({"level": number, "query": query, "answer": response(level, query)})
    return {"about": about, "queries": cases}


def packed(folder):
    """Returns a tar of the files below a folder that contains only names and contents."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                entry = tarfile.TarInfo(f"examples/{file.relative_to(folder).as_posix()}")
                data = file.read_bytes()
                entry.size, entry.mode = len(data), 0o644
                archive.addfile(entry, io.BytesIO(data))
    return tar.getvalue()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("archive", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    for build in EXAMPLES:
        work = Work(options.program, options.folder, build.__name__)
        contents = build(work)
        shutil.rmtree(work.scratch)
        said = json.dumps(expectations(build, contents), indent=None, sort_keys=True)
        (work.folder / "expected.json").write_text(said + "\n")
    tar = packed(options.folder)
    # Archives that differ only in compression are equal.
    if options.archive.exists() and gzip.decompress(options.archive.read_bytes()) == tar:
        print(f"{len(EXAMPLES)} examples are what is made of them")
        return
    if options.check:
        sys.exit(f"{options.archive.name} is not what is made now; `cargo xtask fixtures` makes it")
    with open(options.archive, "wb") as file:
        with gzip.GzipFile("", "wb", 9, file, mtime=0) as out:
            out.write(tar)


if __name__ == "__main__":
    main()
