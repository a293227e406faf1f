"""Reads what `zvf export precomputed` writes and `zvf serve` answers with cloud-volume and
tensorstore.

Every index of annotations is decoded here: the cells of all spatial levels together hold each
annotation, the index by id and the relationships agree with them, and coordinates and properties
are those of `zvf query`. Neuroglancer's own reader decodes the annotations whose order of
properties it supports. What a server answers is copied into a folder and read in the same way.
"""

import json
import shutil
import struct
import subprocess
import sys
import urllib.error
import urllib.request
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
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


def annotations(layer, is_sample=False):
    """Reads all annotations and checks that the indexes agree. A sample has a part of the index by
    id, and limits that are the mean of all samples."""
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
        slack = 4 * level["limit"] ** 0.5 if is_sample else 0
        assert longest <= level["limit"] + slack, (longest, level["limit"])
        assert not here.keys() & found.keys(), "an annotation on two levels"
        found |= here
    related = defaultdict(set)
    by_id = Index(layer, info["by_id"]).values()
    by_id_keys = {int(key) for key in by_id}
    assert by_id_keys <= found.keys() if is_sample else by_id_keys == found.keys()
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
            known = related.pop((relationship["id"], int(key)), set())
            assert known <= listed.keys() if is_sample else listed.keys() == known
            assert all(same(record, found[id]) for id, record in listed.items())
    assert not related
    return info, found


def property_values(info, column):
    """Returns what a property holds for a column of `zvf query`."""
    labels = info.get("enum_labels")
    if labels:
        return np.array([labels.index(word) for word in column])
    return column


def check_properties(info, found, truth, scope, ids):
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


def check_annotations(layer, truth, served=False):
    info, found = annotations(layer, served)
    ids = sorted(found)
    if served:
        ids = served_ids(info, truth)
        assert sorted(ids) == sorted(found)
    else:
        assert ids == list(range(len(ids)))
    positions = truth["positions"].astype("<f4")
    if info["annotation_type"] == "point":
        assert np.array_equal(np.concatenate([found[id][0] for id in ids]), positions)
        check_properties(info, found, truth, "vertex", ids)
    else:
        offsets = truth["part_offsets"]
        for path, id in enumerate(ids):
            assert np.array_equal(found[id][0], positions[offsets[path]:offsets[path + 1]]), id
        check_properties(info, found, truth, "object", ids)
    if not served:
        check_with_neuroglancer(layer, info, found)
    return len(ids)


def served_ids(info, truth):
    """Returns the ids of a server: addresses of points, and objects with the number of the path."""
    if info["annotation_type"] == "point":
        return truth["row_ids"].tolist()
    seen, ids = defaultdict(int), []
    for object in truth["part_objects"].tolist():
        ids.append(seen[object] << 40 | object)
        seen[object] += 1
    return ids


def get(url):
    """Returns what a server answers; `None` for nothing."""
    try:
        with urllib.request.urlopen(url, timeout=120) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return None
        raise SystemExit(f"{url}: {error.code} {error.read()}") from error


def copy(url, out, names):
    """Copies files of a server into a folder."""
    out.mkdir(parents=True, exist_ok=True)
    names = list(names)
    with ThreadPoolExecutor(8) as pool:
        for name, data in zip(names, pool.map(lambda name: get(f"{url}/{name}"), names)):
            if data is not None:
                (out / name).write_bytes(data)


def copy_layer(url, out, truth):
    """Copies a layer of a server, with a sample of the index of annotations by id."""
    copy(url, out, ["info"])
    info = json.loads((out / "info").read_text())
    objects = truth["objects"].tolist() if "objects" in truth else []
    properties = info.get("segment_properties")
    if properties:
        copy(f"{url}/{properties}", out / properties, ["info"])
    match info["@type"]:
        case "neuroglancer_annotations_v1":
            for level in info["spatial"]:
                cells = ["_".join(map(str, cell)) for cell in np.ndindex(*level["grid_shape"])]
                copy(f"{url}/{level['key']}", out / level["key"], cells)
            ids = served_ids(info, truth)
            by_id = info["by_id"]["key"]
            copy(f"{url}/{by_id}", out / by_id, map(str, ids[:: max(len(ids) // 300, 1)]))
            for relationship in info["relationships"]:
                key = relationship["key"]
                copy(f"{url}/{key}", out / key, map(str, objects))
        case "neuroglancer_skeletons":
            copy(url, out, map(str, objects or [1]))
        case "neuroglancer_legacy_mesh":
            copy(url, out, [f"{id}{end}" for id in objects or [1] for end in [":0", ":0:0"]])


class Serving:
    """A server of stores, on a free port."""

    def __init__(self, zvf, stores, *options):
        command = [zvf, "serve", *stores, "--port", "0", "--json", "--quiet", *options]
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"zvf serve ended with {self.process.wait()}")
        return json.loads(line)

    def __exit__(self, *_):
        self.process.send_signal(2)
        assert self.process.wait(20) == 0, "zvf serve did not end well"


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


def check_served(zvf, stores, folder, counts):
    """Compares the answers of a server with those of queries."""
    with Serving(zvf, stores) as served:
        for store in stores:
            answer = folder / f"{store.stem}.rows.npz"
            is_points = not (folder / f"{store.stem}.files/skeletons").exists()
            is_points &= not (folder / f"{store.stem}.files/meshes").exists()
            is_points &= "part_objects" not in np.load(folder / f"{store.stem}.npz")
            run(zvf, "query", store, "-o", answer, *(["--row-ids"] if is_points else []))
            with np.load(answer) as arrays:
                truth = {key: arrays[key] for key in arrays}
            out = folder / f"{store.stem}.served"
            for layer in ["annotations", "skeletons", "meshes", "segments"]:
                if not (folder / f"{store.stem}.files/{layer}").exists():
                    continue
                copy_layer(f"{served['address']}/{store.stem}/{layer}", out / layer, truth)
                match layer:
                    case "annotations":
                        count = check_annotations(out / "annotations", truth, served=True)
                    case "skeletons":
                        count = check_skeletons(out, truth)
                    case "meshes":
                        count = check_meshes(out, truth)
                    case "segments":
                        check_segments(out / "segments", {"segment_properties": "."}, truth)
                        count = len(truth["objects"])
                counts[f"served {layer}"] += count


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
    check_served(zvf, stores, folder, counts)
    assert "neuroglancer" in CHECKED
    text = ", ".join(f"{count} {layer}" for layer, count in sorted(counts.items()))
    print(f"precomputed: {len(stores)} stores as files, as shards and from a server: {text}")


if __name__ == "__main__":
    main()
