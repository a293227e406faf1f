"""Stores of random geometry, written by `zvf create` and by the reference, each read by the other.

Stores of `zvf create` are read by the package, decoded by zarr-python, and compared cell by cell with those of
the package, as `test_created` does with its cases. Stores of the package, of its older version and of `zvf
create` are queried through the runner of zvf. All must have the content that was written.
"""

import json
import shlex

import numpy as np
import pytest

import compare
import created_twin
import examples
import pack
import test_created
from content import queries, response
from created_cases import NUMBERS, Case, cloud, edges, generator, grid, numbers, tree, walks, words
from program import differences
from run import Runner
from serving import told

CASES = 40
REPORT = ("random stores: {stores} of zvf create with {values} values read by the reference, {cells} cells equal to "
          "those of {twins} stores it wrote, {responses} fields of responses of zvf as expected from {read} stores of "
          "all writers")
KINDS = ["points", "points", "lines", "polylines", "streamlines", "graphs", "skeletons", "mesh"]


def chance(random, percent):
    return random.integers(100) < percent


def columns(random, count, text=True):
    """Returns attributes of random types."""
    found = {}
    for number in range(random.integers(4)):
        width = [None, None, 2, 3][random.integers(4)]
        found[f"a{number}"] = numbers(random, count, random.choice(NUMBERS), width)
    if text and count and chance(random, 25):
        found["word"] = words(random, count)
    return found


def ids(random, count):
    """Returns ascending ids: 0..n-1, or with gaps."""
    if chance(random, 50):
        return np.arange(count)
    # In the output of `zvf query`, -1 and -2 stand for no object and for several.
    return np.sort(random.choice(np.setdiff1d(np.arange(-30, 300), [-1, -2]), count, replace=False))


def settings(random, axes):
    extents = random.integers(12, 50, axes) / 2
    found = {
        "chunk_shape": tuple(extents.tolist()),
        "compression": [None, None, "zstd", "zstd:7", "gzip:5", "blosc"][random.integers(6)],
    }
    if chance(random, 30):
        shape = random.integers(1, 4, axes)
        found["shard"] = ",".join(map(str, shape.tolist()))
    return found


def tables(random, own, found):
    """Adds attributes of objects, and groups."""
    count = len(own)
    if chance(random, 60):
        found["object"] = columns(random, count)
    if count > 1 and chance(random, 50):
        groups = random.integers(1, 4)
        found["groups"] = {
            number: sorted(random.choice(own, random.integers(1, count), replace=False).tolist())
            for number in range(groups)
        }
        if chance(random, 50):
            found["group"] = {"weight": numbers(random, groups, "f4")}


def points(random, axes, dtype, rest):
    count = int(random.integers(1, 120))
    rest["vertex"] = columns(random, count)
    if chance(random, 50):
        objects = ids(random, int(random.integers(1, 9)))
        rest["object_ids"] = own = random.choice(objects, count)
        tables(random, np.unique(own), rest)
    elif chance(random, 50):
        parts = random.choice([1, 2, 4], axes)
        rest["bin_shape"] = tuple((np.array(rest["chunk_shape"]) / parts).tolist())
    return Case("points", cloud(random, count, axes, dtype=dtype), rest.pop("chunk_shape"), **rest)


def paths(random, kind, axes, dtype, rest):
    count = int(random.integers(1, 15))
    lengths = [2] * count if kind == "lines" else random.integers(1, 20, count).tolist()
    positions, offsets = walks(random, lengths, axes, dtype, step=float(random.integers(2, 12)))
    own = ids(random, count)
    if own[-1] != count - 1 or own[0] != 0:
        rest["part_objects"] = own
    tables(random, own, rest)
    # The package accepts no text for lines.
    rest["vertex"] = columns(random, len(positions), text=kind != "lines")
    return Case(kind, positions, rest.pop("chunk_shape"), part_offsets=offsets, **rest)


def graphs(random, axes, dtype, rest):
    count = int(random.integers(8, 60))
    links = edges(random, count, int(random.integers(10, 90)))
    if chance(random, 50):
        rest["object_ids"] = own = random.choice(ids(random, 4), count)
        tables(random, np.unique(own), rest)
    rest["vertex"] = columns(random, count)
    rest["link"] = columns(random, len(links))
    if chance(random, 25):
        rest["policy"] = [["directed"], ["duplicate"]][random.integers(2)]
    positions = cloud(random, count, axes, -9, 19, dtype)
    return Case("graphs", positions, rest.pop("chunk_shape"), links=links, **rest)


def skeletons(random, axes, dtype, rest):
    trees = random.integers(1, 25, int(random.integers(1, 4))).tolist()
    positions, offsets = walks(random, trees, axes, dtype, step=4.0)
    links = [tree(random, count, preorder=True) + first for count, first in zip(trees, offsets)]
    own = ids(random, len(trees))
    rest["object_ids"] = np.repeat(own, trees)
    tables(random, own, rest)
    rest["vertex"] = columns(random, len(positions))
    links = np.concatenate(links)
    return Case("skeletons", positions, rest.pop("chunk_shape"), links=links, **rest)


def meshes(random, axes, dtype, rest):
    sides = random.integers(2, 8, 2).tolist()
    positions, triangles, quads = grid(*sides, step=float(random.integers(1, 5)), dtype=dtype)
    faces = quads if chance(random, 30) else triangles
    faces = np.concatenate([faces, faces[: len(faces) // 3, ::-1]])
    links = faces[random.permutation(len(faces))]
    rest["vertex"] = columns(random, len(positions))
    positions = np.ascontiguousarray(positions[:, :axes])
    return Case("mesh", positions, rest.pop("chunk_shape"), links=links, **rest)


def random_case(random):
    kind = KINDS[random.integers(len(KINDS))]
    axes = int(random.choice([2, 3] if kind == "mesh" else [2, 3, 3, 4]))
    dtype, rest = ["f4", "f4", "f8"][random.integers(3)], settings(random, axes)
    if kind == "points":
        return points(random, axes, dtype, rest)
    if kind in ("lines", "polylines", "streamlines"):
        return paths(random, kind, axes, dtype, rest)
    return {"graphs": graphs, "skeletons": skeletons, "mesh": meshes}[kind](random, axes, dtype, rest)


def content(case):
    """Returns the content of a case in the form of the protocol."""
    shape, arrays = "paths" if case.is_paths() else "links" if case.is_linked() else "points", case.arrays()
    if case.is_linked():
        arrays["object_ids"] = case.own()
    return examples.content(shape, arrays, "xyzw"[: case.axes])


def of_twin(case, level):
    """Returns the content as the package writes it: for words of links it stores only codes."""
    for name, values in case.link.items():
        if values.dtype.kind in "UO":
            level.link[name] = told(created_twin.codes(values)[0])
    return level


def older(case):
    """Returns the part of a case that zarr-vectors 0.2.0 can write."""
    ids = case.ids().tolist() if case.own() is not None else []
    rest = {"bin_shape": case.bin_shape, "part_offsets": case.part_offsets, "links": case.links}
    if case.kind in ("points", "lines", "polylines", "streamlines"):
        # Ids are row numbers, and those of paths are not stored.
        # It stores text in raw form that no reader decodes, except text of points.
        rest["object"] = numeric(case.object)
        if case.kind != "lines":
            rest["groups"] = {number: [ids.index(one) for one in members] for number, members in case.groups.items()}
            rest["group"] = case.group
        if case.object_ids is not None:
            rest["object_ids"] = np.searchsorted(ids, case.object_ids)
    elif case.kind == "skeletons":
        # One tree only, because it orders no other.
        rows = case.own() == case.own()[0]
        rest["links"] = case.links[rows[case.links[:, 0]]]
        case.positions = case.positions[rows]
        case.vertex = {name: values[rows] for name, values in case.vertex.items()}
    found = Case(case.kind, case.positions, case.chunk_shape, **rest)
    found.vertex = case.vertex if case.kind == "points" else numeric(case.vertex)
    if case.kind == "lines":
        # It accepts attributes of vertices but writes none.
        found.vertex = {}
    found.link = {}
    return found


def numeric(columns):
    return {name: values for name, values in columns.items() if values.dtype.kind not in "UO"}


def written_by_older(writer, case, folder):
    source, store = folder / "020.npz", folder / "020.zv"
    np.savez(source, **case.arrays())
    request = {"source": str(source), "store": str(store), "kind": case.kind}
    said = writer.send(request | {"chunk_shape": case.chunk_shape, "bin_shape": case.bin_shape})
    assert "error" not in said, said
    return store


def as_expected(runner, store, level):
    """Returns the number of fields, which are all as expected."""
    passed = 0
    with differences() as differ:
        for query in [{"kind": "info"}, *queries(level)]:
            found, wanted = runner.send({"store": str(store), "level": 0, "query": query}), response(level, query)
            for field, (outcome, why) in compare.compared(found, wanted).items():
                passed += outcome == compare.PASSED
                if outcome != compare.PASSED:
                    differ(f"{store.name}: {json.dumps(query)}: {field} {outcome}: {why}")
    return passed


@pytest.fixture(scope="module")
def runner(example):
    runner = Runner(shlex.quote(str(example("conformance"))))
    yield runner
    runner.close()


@pytest.fixture(scope="module")
def writer(environment):
    runner = Runner(shlex.join([str(environment("020")), "-B", str(pack.HERE / "writer_020.py")]))
    yield runner
    runner.close()


def test_random_store(number, zvf, runner, writer, tmp_path, seed, report):
    name = f"random_{number}"
    case = random_case(generator(name, seed))
    test_created.compare(zvf, tmp_path, case, name, report)
    case = random_case(generator(name, seed))
    written = [(tmp_path / f"{name}{end}", content(case)) for end in (".zv", ".bare.zv")]
    written.append((tmp_path / f"{name}.twin", of_twin(case, content(case))))
    before = older(case)
    written.append((written_by_older(writer, before, tmp_path), content(before)))
    for store, level in written:
        if store.exists():
            report["read"] += 1
            report["responses"] += as_expected(runner, store, level)
