"""Exports stores with `zvf export precomputed` and reads them with cloud-volume and tensorstore.

Every index of annotations is decoded here: the cells of all spatial levels together hold each
annotation, the index by id and the relationships agree with them, and coordinates and properties
are those of `zvf query`. Neuroglancer's own reader decodes the annotations whose order of
properties it supports.
"""

import json
import shutil
import struct
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import tensorstore as ts
from cloudvolume import CloudVolume

TYPES = {
    "uint8": "<u1", "int8": "<i1", "uint16": "<u2", "int16": "<i2", "uint32": "<u4",
    "int32": "<i4", "float32": "<f4", "rgb": "3u1", "rgba": "4u1",
}
ALIGNED = [("uint32", "int32", "float32"), ("uint16", "int16"), ("uint8", "int8", "rgb", "rgba")]
POINTS = {"point": 1, "line": 2}


def run(*command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{command}: {done.stderr}")
    return done.stdout


class Index:
    """The values of a folder, as files or in shards."""

    def __init__(self, layer, member):
        self.folder = layer / member["key"]
        self.sharding = member.get("sharding")
        if self.sharding and self.folder.exists():
            self.store = ts.KvStore.open({
                "driver": "neuroglancer_uint64_sharded",
                "metadata": self.sharding,
                "base": f"file://{self.folder.resolve()}/",
            }).result()

    def values(self):
        """Returns values by name, or by key in shards."""
        if not self.folder.exists():
            return {}
        if self.sharding:
            keys = self.store.list().result()
            return {int.from_bytes(key, "big"): self.store[key] for key in keys}
        return {file.name: file.read_bytes() for file in self.folder.iterdir()}


class Layout:
    """Records of annotations."""

    def __init__(self, info):
        self.rank = len(info["dimensions"])
        self.points = POINTS.get(info["annotation_type"])
        named = [p for types in ALIGNED for p in info["properties"] if p["type"] in types]
        self.dtype = np.dtype([(p["id"], TYPES[p["type"]]) for p in named])

    def record(self, data, at):
        points = self.points
        if points is None:
            (points,) = struct.unpack_from("<I", data, at)
            at += 4
        size = points * self.rank * 4
        points = np.frombuffer(data, "<f4", points * self.rank, at).reshape(-1, self.rank)
        at += size
        values = np.frombuffer(data, self.dtype, 1, at)[0] if self.dtype.itemsize else None
        return (points, values), at + -(-self.dtype.itemsize // 4) * 4

    def list(self, data):
        (count,) = struct.unpack_from("<Q", data)
        at, records = 8, []
        for _ in range(count):
            record, at = self.record(data, at)
            records.append(record)
        ids = np.frombuffer(data, "<u8", count, at)
        assert at + 8 * count == len(data), "bytes follow the list"
        return dict(zip(ids.tolist(), records, strict=True))


def morton(cell, shape):
    code = out = 0
    for bit in range(32):
        for at, extent in zip(cell, shape):
            if (extent - 1) >> bit:
                code |= (at >> bit & 1) << out
                out += 1
    return code


def same(a, b):
    return np.array_equal(a[0], b[0]) and (a[1] is None or a[1].tobytes() == b[1].tobytes())


def annotations(layer):
    """Reads all annotations and checks that the indexes agree."""
    info = json.loads((layer / "info").read_text())
    layout = Layout(info)
    found = {}
    for level in info["spatial"]:
        shape = level["grid_shape"]
        if level.get("sharding"):
            cells = {morton(c, shape): c for c in np.ndindex(*shape)}
        else:
            cells = {"_".join(map(str, c)): c for c in np.ndindex(*shape)}
        assert len(cells) == np.prod(shape)
        here, longest = {}, 0
        for name, data in Index(layer, level).values().items():
            cell = np.array(cells[name])
            listed = layout.list(data)
            longest = max(longest, len(listed))
            lower = info["lower_bound"] + cell * level["chunk_size"]
            upper = lower + level["chunk_size"]
            slack = 1e-5 * np.array(level["chunk_size"])
            for id, record in listed.items():
                low, high = record[0].min(0), record[0].max(0)
                assert (low <= upper + slack).all() and (high >= lower - slack).all(), (id, cell)
                assert layout.points != 1 or id not in here, f"point {id} twice"
                assert id not in here or same(here[id], record)
                here[id] = record
        assert longest <= level["limit"], (longest, level["limit"])
        assert not here.keys() & found.keys(), "an annotation on two levels"
        found |= here
    related = defaultdict(set)
    by_id = Index(layer, info["by_id"]).values()
    assert {int(key) for key in by_id} == found.keys()
    for id, data in by_id.items():
        record, at = layout.record(data, 0)
        assert same(record, found[int(id)])
        for relationship in info["relationships"]:
            (count,) = struct.unpack_from("<I", data, at)
            objects = np.frombuffer(data, "<u8", count, at + 4)
            at += 4 + 8 * count
            for object in objects.tolist():
                related[relationship["id"], object].add(int(id))
        assert at == len(data)
    for relationship in info["relationships"]:
        for key, data in Index(layer, relationship).values().items():
            listed = layout.list(data)
            assert listed.keys() == related.pop((relationship["id"], int(key)))
            assert all(same(record, found[id]) for id, record in listed.items())
    assert not related
    return info, found


def property_values(info, column):
    """Returns what a property holds for a column of `zvf query`."""
    labels = info.get("enum_labels")
    if labels:
        return np.array([labels.index(word) for word in column])
    return column


def check_properties(info, found, truth, scope):
    ids = sorted(found)
    for property in info["properties"]:
        name = property.get("description", property["id"])
        if property["id"] == "orientation":
            continue
        column, channel = truth.get(f"{scope}.{name}"), None
        if column is None:
            name, _, channel = name.rpartition("_")
            column = truth[f"{scope}.{name}"][:, int(channel)]
        got = np.array([found[id][1][property["id"]] for id in ids])
        want = property_values(property, column)
        assert np.array_equal(got, want.astype(got.dtype)), property["id"]


def check_annotations(layer, truth):
    info, found = annotations(layer)
    ids = sorted(found)
    assert ids == list(range(len(ids)))
    positions = truth["positions"].astype("<f4")
    if info["annotation_type"] == "point":
        assert np.array_equal(np.concatenate([found[id][0] for id in ids]), positions)
        check_properties(info, found, truth, "vertex")
    else:
        offsets = truth["part_offsets"]
        for id in ids:
            assert np.array_equal(found[id][0], positions[offsets[id]:offsets[id + 1]]), id
        check_properties(info, found, truth, "object")
    check_with_neuroglancer(layer, info, found)
    return len(ids)


def check_with_neuroglancer(layer, info, found):
    """Compares with Neuroglancer's reader, which takes properties in the order of the document."""
    from neuroglancer.read_precomputed_annotations import AnnotationReader

    order = [p["type"] for p in info["properties"]]
    ranked = [next(at for at, types in enumerate(ALIGNED) if kind in types) for kind in order]
    if ranked != sorted(ranked) or "uint32" in order:
        return
    reader = AnnotationReader(f"file://{layer.resolve()}")
    for id in list(found)[:50]:
        read = reader.by_id[id]
        names = [name for name in ("points", "point", "pointA", "pointB") if hasattr(read, name)]
        points = getattr(read, names[0]) if names == ["points"] else [getattr(read, n) for n in names]
        points = np.array(points)
        assert np.array_equal(points.astype("<f4"), found[id][0]), id
    CHECKED.add("neuroglancer")


CHECKED = set()


def volume(folder, **members):
    """Opens a folder as cloud-volume does: below the document of a volume."""
    info = {
        "type": "segmentation", "data_type": "uint64", "num_channels": 1,
        "scales": [{"key": "1", "size": [1, 1, 1], "resolution": [1, 1, 1],
                    "voxel_offset": [0, 0, 0], "chunk_sizes": [[1, 1, 1]], "encoding": "raw"}],
        **members,
    }
    (folder / "info").write_text(json.dumps(info))
    return CloudVolume(f"precomputed://file://{folder.resolve()}", progress=False)


def rows_of(truth, object):
    """Returns the rows of an object."""
    if "part_objects" in truth:
        offsets = truth["part_offsets"]
        parts = np.flatnonzero(truth["part_objects"] == object)
        return np.concatenate([np.arange(offsets[p], offsets[p + 1]) for p in parts])
    if "object_ids" not in truth:
        return np.arange(len(truth["positions"]))
    return np.flatnonzero(truth["object_ids"] == object)


def ids_of(truth):
    return truth["objects"].tolist() if "objects" in truth else [1]


def links_of(truth, rows):
    links = truth["links"]
    links = links[np.isin(links[:, 0], rows)]
    place = np.full(len(truth["positions"]), -1)
    place[rows] = np.arange(len(rows))
    return place[links]


def check_skeletons(folder, truth):
    info = json.loads((folder / "skeletons/info").read_text())
    scale = np.diag(np.array(info["transform"]).reshape(3, 4)[:, :3])
    volume(folder, skeletons="skeletons")
    read = CloudVolume(f"precomputed://file://{folder.resolve()}", progress=False).skeleton
    for id in ids_of(truth):
        skeleton, rows = read.get(id), rows_of(truth, id)
        want = truth["positions"][rows].astype("<f4")
        got = np.asarray(skeleton.vertices) / (scale if skeleton.space == "physical" else 1)
        assert np.allclose(got, want, rtol=1e-6, atol=1e-4), id
        if "part_objects" in truth:
            inside = np.isin(truth["part_offsets"][1:-1] - 1, rows)
            assert len(skeleton.edges) == len(rows) - (truth["part_objects"] == id).sum(), inside
        else:
            edges = np.sort(links_of(truth, rows), 1)
            assert np.array_equal(np.unique(np.sort(skeleton.edges, 1), axis=0), np.unique(edges, axis=0))
        for attribute in info["vertex_attributes"]:
            column = truth.get(f"vertex.{attribute['id']}")
            if column is not None and column.dtype.kind in "fiu":
                got = getattr(skeleton, attribute["id"]).reshape(len(rows), -1)
                assert np.array_equal(got, column[rows].reshape(len(rows), -1).astype("<f4")), id
    check_segments(folder / "skeletons", info, truth)
    return len(ids_of(truth))


def check_meshes(folder, truth):
    info = json.loads((folder / "meshes/info").read_text())
    read = volume(folder, mesh="meshes").mesh
    unit = {"millimeter": 1e6, "micrometer": 1e3, "nanometer": 1, None: 1}
    axes = json.loads(str(truth["metadata"][0]))["axes"]
    scale = np.array([unit[axis.get("unit")] for axis in axes])
    for id in ids_of(truth):
        mesh, rows = read.get(id, remove_duplicate_vertices=False), rows_of(truth, id)
        mesh = mesh[id] if isinstance(mesh, dict) else mesh
        want = truth["positions"][rows].astype("<f8") * scale
        assert np.allclose(mesh.vertices, want, rtol=1e-6), id
        faces = links_of(truth, rows)
        assert np.array_equal(np.asarray(mesh.faces).reshape(-1, 3), faces), id
    check_segments(folder / "meshes", info, truth)
    return len(ids_of(truth))


def check_segments(layer, info, truth):
    columns = {key[7:]: values for key, values in truth.items() if key.startswith("object.")}
    if not columns:
        assert "segment_properties" not in info
        return
    read = json.loads((layer / info["segment_properties"] / "info").read_text())["inline"]
    assert [int(id) for id in read["ids"]] == truth["objects"].tolist()
    by_name = {property["description"]: property for property in read["properties"]}
    for name, values in columns.items():
        got = np.array(by_name[name]["values"])
        assert np.array_equal(got, values.astype(got.dtype) if got.dtype.kind != "f" else
                              np.array([float(str(v)) for v in values.astype("<f4")])), name


def made(zvf, folder):
    """Writes further stores: all types of properties, many objects, and no unit."""
    seed = np.random.default_rng(7)
    n = 30_000
    owner = np.sort(seed.integers(0, 40, n))
    cloud = {
        "positions": (seed.normal(size=(n, 3)) ** 3 * 100).astype("<f8"),
        "object_ids": owner,
        "objects": np.arange(40),
        "object.size": np.bincount(owner, minlength=40).astype("<i8"),
        "object.label": np.array([f"cell {i}" for i in range(40)]),
        "vertex.kind": seed.integers(0, 9, n).astype("u1"),
        "vertex.Count": seed.integers(0, 2**32, n).astype("<u4"),
        "vertex.color": seed.integers(0, 256, (n, 3)).astype("u1"),
        "vertex.gene": np.array([f"g{i}" for i in range(300)])[seed.integers(0, 300, n)],
        "vertex.depth": seed.integers(-5, 5, n).astype("<i2"),
        "vertex.big": seed.integers(-(2**31), 2**31, n).astype("<i8"),
        "vertex.normal": seed.normal(size=(n, 3)).astype("<f4"),
        "vertex.exact": seed.normal(size=n),
    }
    trees, size = 300, 20
    edges = np.concatenate([
        np.stack([np.arange(1, size), np.arange(size - 1)], 1) + tree * size for tree in range(trees)
    ])
    forest = {
        "positions": seed.normal(size=(trees * size, 3)).astype("<f4") * 50,
        "links": edges,
        "object_ids": np.repeat(np.arange(trees), size),
        "objects": np.arange(trees),
        "object.volume": seed.normal(size=trees).astype("<f4"),
        "vertex.radius": seed.random(trees * size).astype("<f4"),
        "vertex.kind": seed.integers(0, 5, trees * size).astype("u1"),
    }
    lines = {
        "positions": seed.random((400, 3)).astype("<f4") * 1000,
        "part_offsets": np.arange(0, 401, 2),
        "part_objects": np.arange(200),
    }
    stores = []
    for name, kind, arrays in [("cloud", "points", cloud), ("forest", "skeletons", forest),
                               ("segments", "lines", lines)]:
        np.savez(folder / f"{name}.in.npz", **arrays)
        store = folder / f"{name}.zv"
        run(zvf, "create", store, "--kind", kind, "--from", folder / f"{name}.in.npz", "--quiet")
        stores.append(store)
    return stores


def main():
    zvf, folder = Path(sys.argv[1]).resolve(), Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    run(zvf, "demo", folder / "demo", "--small", "--quiet")
    stores = sorted((folder / "demo").glob("*.zv")) + made(zvf, folder)
    counts = defaultdict(int)
    for store in stores:
        answer = folder / f"{store.stem}.npz"
        run(zvf, "query", store, "-o", answer)
        with np.load(answer) as arrays:
            truth = {key: arrays[key] for key in arrays}
        for form in ["files", "shards"]:
            out = folder / f"{store.stem}.{form}"
            options = ["--sharded"] if form == "shards" else []
            report = json.loads(run(zvf, "export", "precomputed", store, out, "--json", *options))
            for layer in report["layers"]:
                match layer["layer"]:
                    case "annotations":
                        count = check_annotations(out / "annotations", truth)
                    case "skeletons":
                        count = check_skeletons(out, truth)
                    case "meshes":
                        count = check_meshes(out, truth)
                    case "segments":
                        info = {"segment_properties": "."}
                        check_segments(out / "segments", info, truth)
                        count = len(truth["objects"])
                assert layer["items"] == count, (store, layer, count)
                counts[layer["layer"]] += count
    assert "neuroglancer" in CHECKED
    text = ", ".join(f"{count} {layer}" for layer, count in sorted(counts.items()))
    print(f"precomputed: {len(stores)} stores as files and shards: {text}")


if __name__ == "__main__":
    main()
