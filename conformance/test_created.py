"""Stores of `zvf create`, read by the reference package and by zarr-python.

Every case of `created_cases` is written with and without checksums:

* zarr-python decodes every array;
* the package reads the input back, bit by bit, and `validate(level=5)` finds no error;
* the package writes the same geometry, and all decoded cells are equal, except cells that
  `created_twin.EXCUSED` names.

Some cases are also written in older profiles, and zarr-python reads those. `--sample` writes cases with and
without checksums in turn, each once.
"""

import json

import numpy as np
import pytest
import zarr
from zarr_vectors.core.arrays import (
    build_fragment_owner_column, read_chunk_fragment_attributes, read_fragment_owners,
)
from zarr_vectors.core.store import get_resolution_level, open_store
from zarr_vectors.encoding.fragments import decode_fragments, encode_fragments
from zarr_vectors.types.points import read_points
from zarr_vectors.validate import validate

import created_twin
from created_cases import CASES, built
from created_reads import Reads
from program import differences

OLDER = """
points_plain points_2d_bins points_attributes points_zstd points_sharded_zstd lines_2d streamlines graph_3d
skeleton_one mesh_triangles
""".split()


REPORT = ("zvf create: {stores} stores, {arrays} arrays decoded by zarr-python, {values} values read by the reference, "
          "{cells} cells and {nodes} nodes equal to those of {twins} stores it wrote")


def compare(zvf, folder, case, name, report, ways=(True, False)):
    """Compares the stores of a case, with checksums or without, as `ways` says."""
    twin = folder / f"{name}.twin"
    written = created_twin.write(case, str(twin))
    theirs = created_twin.decoded(twin) if written else None
    report["twins"] += written
    for checksums in ways:
        store = folder / f"{name}{'' if checksums else '.bare'}.zv"
        with differences() as differ:
            zvf.create(store, case.arrays(), *case.arguments(), *([] if checksums else ["--no-checksum"]))
            report["stores"] += 1
            check_codecs(store, checksums, differ)
            ours = created_twin.decoded(store)
            report["arrays"] += len(ours)
            report["values"] += Reads(case, str(store), differ).all()
            if theirs is None:
                reason = created_twin.excuse(case, "")
                assert reason, "the package wrote no twin, and nothing excuses that"
                report[created_twin.excused(reason)] += sum(map(len, ours.values()))
            else:
                report["cells"] += created_twin.compare(case, ours, theirs, differ, report)
                says = created_twin.nodes(store), created_twin.nodes(twin)
                report["nodes"] += created_twin.compare_nodes(case, *says, differ)


def check_codecs(store, checksums, differ):
    """Checks that cells have checksums exactly if requested."""
    for name in created_twin.arrays(store):
        codecs = json.loads((store / name / "zarr.json").read_text())["codecs"]
        if codecs[0]["name"] == "sharding_indexed":
            codecs = codecs[0]["configuration"]["codecs"]
        if (codecs[-1]["name"] == "crc32c") != checksums:
            differ(f"{name}: codecs {codecs}")


@pytest.mark.parametrize("name", CASES)
def test_created(name, zvf, tmp_path, seed, sample, report):
    number = list(CASES).index(name)
    ways = [(number + seed) % 2 == 0] if sample else (True, False)
    compare(zvf, tmp_path, built(name, seed), name, report, ways)


@pytest.mark.parametrize("profile", ["0.8", "0.8-padded"])
@pytest.mark.parametrize("name", OLDER)
def test_older(name, profile, zvf, tmp_path, seed, report):
    case = built(name, seed)
    case.shard = None
    store = tmp_path / "older.zv"
    zvf.create(store, case.arrays(), *case.arguments(), "--profile", profile)
    report["stores"] += 1
    root = zarr.open(str(store), mode="r")
    for array in created_twin.arrays(store):
        root[array][...]
        report["arrays"] += 1
    columns = {"vertices": [], **{f"vertex_attributes/{one}": [] for one in case.vertex}}
    for chunk in sorted(root["0/vertex_fragments"].array_keys()):
        rows = max(map(sum, ranges(root[f"0/vertex_fragments/{chunk}"][...].tobytes())), default=0)
        for family, found in columns.items():
            found.append(older_cell(root, family, chunk, rows, profile))
    numbers = {family: b"".join(cells) for family, cells in columns.items()}
    tags = np.frombuffer(numbers["vertex_attributes/tag"], "<i4")
    row_of = {int(tag): row for row, tag in enumerate(case.vertex["tag"])}
    order = [row_of.get(int(tag), -1) for tag in tags]
    assert sorted(order) == list(range(len(case.positions))), f"tags {tags.tolist()}"
    given = {"vertices": case.stored()[order]}
    given |= {f"vertex_attributes/{one}": values[order] for one, values in case.vertex.items()}
    for family, values in given.items():
        report["values"] += values.size
        assert numbers[family] == values.tobytes(), f"{family} is not what went in"
    if profile == "0.8-padded" and case.kind in ("polylines", "streamlines"):
        report["values"] += check_pairs(root, case)


def check_pairs(root, case):
    """Checks the steps between chunks: pairs of vertices, which are numbered by chunk and by row."""
    chunks = sorted(root["0/vertex_fragments"].array_keys(), key=lambda key: [*map(int, key.split("."))])
    row_of = {int(tag): row for row, tag in enumerate(case.vertex["tag"])}
    numbered, chunk_of = [], {}
    for chunk in chunks:
        rows = max(map(sum, ranges(root[f"0/vertex_fragments/{chunk}"][...].tobytes())), default=0)
        cell = older_cell(root, "vertex_attributes/tag", chunk, rows, "0.8-padded")
        own = [row_of[int(tag)] for tag in np.frombuffer(cell, "<i4")]
        numbered += own
        chunk_of |= dict.fromkeys(own, chunk)
    steps = [(int(one), int(other)) for path in case.paths() for one, other in zip(path[:-1], path[1:])]
    given = [step for step in steps if chunk_of[step[0]] != chunk_of[step[1]]]
    if not given:
        assert "cross_chunk_links" not in root["0"]
        return 0
    pairs = root["0/cross_chunk_links"][...]
    found = [(numbered[one], numbered[other]) for one, other in pairs.tolist()]
    assert found == given, "cross_chunk_links"
    return pairs.size


def ranges(index):
    """Returns the ranges of a fragment index; all fragments are ranges."""
    index = decode_fragments(index)
    return [index.range(fragment) for fragment in range(len(index))]


def older_cell(root, family, chunk, rows, profile):
    """Returns the bytes of a chunk's rows."""
    if profile == "0.8":
        return root[f"0/{family}/{chunk}"][...].tobytes()
    array = root[f"0/{family}"]
    coords = [int(one) for one in chunk.split(".")]
    origin = array.attrs.get("chunk_grid_origin", [0] * len(coords))
    return array[tuple(at - start for at, start in zip(coords, origin))][:rows].tobytes()


def test_bins_without_points(zvf, tmp_path):
    """The package takes the number of a fragment as that of its bin, so empty bins need fragments."""
    points = np.array([[1, 1], [19, 19]], "f4")
    bounds, box = "--bounds=0,0,19.5,19.5", ([15, 15], [19.4, 19.4])
    store = tmp_path / "bins.zv"
    zvf.create(store, {"positions": points}, "--kind", "points", "--chunk-shape", "20,20", "--bin-shape", "5,5", bounds)
    read = lambda: read_points(str(store), bbox=box)["positions"].tolist()
    assert read() == [[19, 19]]
    array = zarr.open_array(str(store / "0/vertex_fragments"), mode="r+")
    cells = array[...]
    cells[0, 0] = encode_fragments([one for one in ranges(bytes(cells[0, 0])) if one[1] > 0])
    array[...] = cells
    assert read() == [], "the package finds the points: write no fragments of empty bins"
    # zvf reads both forms.
    lower, upper = (",".join(map(str, corner)) for corner in box)
    found = zvf.json("query", store, "--bbox", f"{lower},{upper}", "--no-seal", "--no-node-copy")
    assert found["vertices"] == 1


def test_values_of_fragments(zvf, tmp_path):
    """The package reads a value for each fragment of each chunk, and the object that owns it."""
    table = tmp_path / "paths.csv"
    rows = [
        "1,1,0,7,0.5", "2,1,0,7,0.5", "11,1,0,7,1.5", "3,1,0,7,2.5", "12,2,1,9,3.5", "22,2,1,9,4.5",
    ]
    table.write_text("\n".join(["x,y,part,object_id,fragment.k", *rows, ""]))
    store = tmp_path / "paths.zv"
    zvf.json("create", store, "--kind", "streamlines", "--from", table, "--chunk-shape", "10,10",
             "--fragment-rows", "--fragment-owners")
    level = get_resolution_level(open_store(str(store)), 0)
    owners = build_fragment_owner_column(level)
    found = {
        chunk: read_chunk_fragment_attributes(level, "k", chunk, dtype=np.float64).tolist() for chunk in owners
    }
    assert found == {(0, 0): [0.5, 2.5], (1, 0): [1.5, 3.5], (2, 0): [4.5]}
    for chunk, expected in owners.items():
        stored = [read_fragment_owners(level, chunk, number) for number in range(len(expected))]
        assert stored == [[owner] for owner in expected], chunk
    assert not validate(str(store), level=5).errors
