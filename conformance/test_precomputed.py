"""The output of `zvf export precomputed` and the responses of `zvf serve`, read by cloud-volume and tensorstore.

Every index of annotations is decoded here: the cells of all spatial levels together hold each annotation, the
index by id and the relationships agree with them, and coordinates and properties are those of `zvf query`.
Neuroglancer's own reader decodes the annotations whose order of properties it supports. The responses of a
server are copied into a folder and read in the same way.
"""

import functools
import io
import json
import re
import struct
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import DracoPy
import numpy as np
import pytest
import requests
import tensorstore as ts
import trimesh
from cloudvolume import CloudVolume
from cloudvolume.datasource.precomputed.common import compressed_morton_code
from cloudvolume.datasource.precomputed.mesh.multilod import MultiLevelPrecomputedMeshManifest

from created_cases import grid
from surfaces import edge_counts

TYPES = {
    "uint8": "<u1", "int8": "<i1", "uint16": "<u2", "int16": "<i2", "uint32": "<u4",
    "int32": "<i4", "float32": "<f4", "rgb": "3u1", "rgba": "4u1",
}
ALIGNED = [("uint32", "int32", "float32"), ("uint16", "int16"), ("uint8", "int8", "rgb", "rgba")]
POINTS = {"point": 1, "line": 2}


def open_shards(folder, sharding):
    base = f"file://{folder.resolve()}/"
    return ts.KvStore.open({"driver": "neuroglancer_uint64_sharded", "metadata": sharding, "base": base}).result()


class Index:
    """The values of a folder, as files or in shards."""

    def __init__(self, layer, member):
        self.folder = layer / member["key"]
        self.sharding = member.get("sharding")
        if self.sharding and self.folder.exists():
            self.store = open_shards(self.folder, self.sharding)

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
        cells = list(np.ndindex(*shape))
        names = (compressed_morton_code(cells, shape).tolist() if level.get("sharding")
                 else ["_".join(map(str, cell)) for cell in cells])
        cells = dict(zip(names, cells))
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
    elif "links" in truth:
        ends = truth["links"]
        assert np.array_equal(np.stack([found[id][0] for id in ids]), positions[ends])
        check_properties(info, found, truth, "link", ids)
        CHECKED.add("edges")
    else:
        offsets = truth["part_offsets"]
        for path, id in enumerate(ids):
            assert np.array_equal(found[id][0], positions[offsets[path]:offsets[path + 1]]), id
        check_properties(info, found, truth, "object", ids)
    check_groups(layer, info, truth, ids)
    if not served:
        check_with_neuroglancer(layer, info, found)
    return len(ids)


def groups_of(truth):
    """Returns the members of groups that have some."""
    groups = {int(key[6:]): set(values.tolist()) for key, values in truth.items() if re.fullmatch(r"group\.\d+", key)}
    return {number: members for number, members in groups.items() if members}


def check_groups(layer, info, truth, ids):
    """Compares the index of annotations by group with the owners of vertices, paths or links."""
    groups = groups_of(truth)
    relationships = {relationship["id"]: relationship for relationship in info["relationships"]}
    assert ("group" in relationships) == bool(groups), layer
    if not groups:
        return
    owners = truth["part_objects"] if "part_objects" in truth else truth["object_ids"]
    if "links" in truth:
        owners = owners[truth["links"][:, 0]]
    listed = {int(key): set(Layout(info).list(data)) for key, data in Index(layer, relationships["group"]).values().items()}
    wanted = {number: {id for id, owner in zip(ids, owners.tolist()) if owner in members}
              for number, members in groups.items()}
    assert listed == wanted
    CHECKED.add("groups")


def served_ids(info, truth):
    """Returns the ids of a server: addresses of points, and objects, which have one path each."""
    if info["annotation_type"] == "point":
        return truth["row_ids"].tolist()
    if "links" in truth:
        return list(range(len(truth["links"])))
    return truth["part_objects"].tolist()


def get(url):
    """Returns the response of a server; `None` if it has no such file."""
    response = requests.get(url, timeout=120)
    assert response.status_code in (200, 404), f"{url}: {response.status_code} {response.text}"
    return response.content if response.ok else None


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
                segments = groups_of(truth) if relationship["id"] == "group" else objects
                copy(f"{url}/{key}", out / key, map(str, segments))
        case "neuroglancer_skeletons":
            copy(url, out, map(str, groups_of(truth) if out.name == "groups" else objects or [1]))
        case "neuroglancer_multilod_draco":
            names = [f"{id}{end}" for id in objects or [1] for end in [".index", ""]]
            copy(url, out, names)
            for name in names:
                check_ranges(f"{url}/{name}", (out / name).read_bytes())


def check_ranges(url, data):
    """Compares parts of a file with the whole, as a viewer requests them."""
    third = len(data) // 3
    for start, end in [(0, 1), (third, 2 * third), (len(data) - 1, len(data))]:
        response = requests.get(url, headers={"Range": f"bytes={start}-{end - 1}"}, timeout=120)
        assert response.status_code == 206
        assert response.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(data)}"
        assert response.content == data[start:end], url


class Serving:
    """A server of stores, on a free port."""

    def __init__(self, zvf, stores, *options):
        command = [zvf.path, "serve", *stores, "--port", "0", "--json", "--quiet", *options]
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, text=True)

    def __enter__(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"zvf serve ended with {self.process.wait()}")
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


def of_groups(truth):
    """Returns the contents of a store with groups in the place of objects."""
    groups, owners = groups_of(truth), truth["part_objects"].tolist()
    offsets, parts = truth["part_offsets"], []
    for number, members in groups.items():
        parts += [(number, part) for part, owner in enumerate(owners) if owner in members]
    rows = [np.arange(offsets[part], offsets[part + 1]) for _, part in parts]
    members = {"object.objects": np.array([len(members) for members in groups.values()])}
    attributes = {f"object.{key[16:]}": values[list(groups)] for key, values in truth.items()
                  if key.startswith("group_attribute.")}
    vertices = {key: values[np.concatenate(rows)] for key, values in truth.items() if key.startswith("vertex.")}
    return vertices | members | attributes | {
        "positions": truth["positions"][np.concatenate(rows)],
        "part_offsets": np.cumsum([0] + [len(part) for part in rows]),
        "part_objects": np.array([number for number, _ in parts]),
        "objects": np.array(list(groups)),
    }


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


def check_skeletons(folder, truth, layer="skeletons"):
    info = json.loads((folder / layer / "info").read_text())
    scale = np.diag(np.array(info["transform"]).reshape(3, 4)[:, :3])
    volume(folder, skeletons=layer)
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
    check_segments(folder / layer, info, truth)
    return len(ids_of(truth))


def scale_of(truth):
    """Returns nanometres per unit of each axis."""
    unit = {"millimeter": 1e6, "micrometer": 1e3, "nanometer": 1, None: 1}
    axes = json.loads(str(truth["metadata"][0]))["axes"]
    return np.array([unit[axis.get("unit")] for axis in axes])


def area(points, faces):
    return trimesh.triangles.area(points[faces].astype("<f8")).sum()


class Manifest:
    """The manifest of a multi-resolution mesh, with its fragments."""

    def __init__(self, binary, data):
        read = MultiLevelPrecomputedMeshManifest.from_binary(binary, 0)
        self.chunk, self.origin = read.chunk_shape, read.grid_origin
        assert (np.diff(read.lod_scales) > 0).all() and (read.lod_scales > 0).all() and not read.vertex_offsets.any()
        assert sum(map(np.sum, read.fragment_offsets)) == len(data), "bytes follow the fragments"
        rest = io.BytesIO(data)
        fragments = [[rest.read(size) for size in sizes.tolist()] for sizes in read.fragment_offsets]
        self.levels = [(nodes.astype("<i8"), data) for nodes, data in zip(read.fragment_positions, fragments)]
        for (nodes, fragments), (parents, _) in zip(self.levels, self.levels[1:]):
            stored = {tuple(node >> 1) for node, data in zip(nodes, fragments) if data}
            assert stored <= set(map(tuple, parents)), "a parent is missing"


def coarsening(tables):
    """Leaves out levels that have no fewer triangles than the one before, or no longer edges."""
    kept, lengths = [], []
    for table in tables:
        level, rows, faces = table
        corners = level["positions"][rows][faces].astype("<f8")
        length = np.linalg.norm(corners - np.roll(corners, 1, 1), axis=2).mean()
        if not kept or (len(faces) < len(kept[-1][2]) and length > lengths[-1]):
            kept.append(table)
            lengths.append(length)
    return kept


def check_level(manifest, level, positions, faces, last=65535):
    """Compares the triangles of a level with those of a query, and returns them in steps."""
    nodes, fragments = manifest.levels[level]
    codes = compressed_morton_code(nodes, [1 << 20] * 3).tolist()
    assert codes == sorted(set(codes)), "not in Z order"
    points, corners, total = [], [], 0
    for node, data in zip(nodes, fragments):
        if not data:
            continue
        decoded = DracoPy.decode(data)
        q = decoded.points.astype("<i8")
        assert (q >= 0).all() and (q <= last).all()
        if level > 0:
            middle = (last + 1) // 2
            sides = q[decoded.faces]
            assert ((sides <= middle).all(1) | (sides >= middle).all(1)).all(), "crosses a middle plane"
        points.append(q + node * last)
        corners.append(decoded.faces.astype("<i8") + total)
        total += len(q)
    points, corners = np.concatenate(points), np.concatenate(corners)
    extent = manifest.chunk.astype("<f8") * 2.0**level
    used = positions[np.unique(faces)].astype("<f4")
    steps = (used.astype("<f8") - manifest.origin) / extent * last
    wanted = {tuple(row) for row in np.floor(steps + 0.5).astype("<i8").tolist()}
    got = {tuple(row) for row in points.tolist()}
    assert wanted <= got, f"{len(wanted - got)} vertices are missing"
    cut = np.array(sorted(got - wanted)).reshape(-1, 3) % last
    on_plane = (cut == 0) | ((level > 0) & (cut == (last + 1) // 2))
    assert on_plane.any(1).all(), "a vertex that is neither of the store nor on a plane"
    assert np.abs(np.floor(steps + 0.5) - steps).max() <= 0.5
    # Each triangle has its corners in the lattice: the areas are equal but for the rounding.
    found = area(points * extent / last, corners)
    assert np.isclose(found, area(positions, faces), rtol=2e-3), (level, found, area(positions, faces))
    places = np.unique(points, axis=0, return_inverse=True)[1].reshape(-1)
    open_edges, given = edge_counts(places[corners]) % 2, edge_counts(faces) % 2
    assert given.any() or not open_edges.any(), "a closed surface has gaps"
    return manifest.origin + points * extent / last


def check_meshes(folder, truth, levels=()):
    """Compares meshes with the results of queries of level 0 and the coarser levels."""
    info = json.loads((folder / "meshes/info").read_text())
    read = volume(folder, mesh="meshes").mesh
    scale, ids = scale_of(truth), ids_of(truth)
    is_legacy = info["@type"] == "neuroglancer_legacy_mesh"
    if not is_legacy:
        assert np.allclose(np.array(info["transform"]).reshape(3, 4), np.diag([*scale, 0])[:3])
        if "sharding" in info:
            index = Index(folder, {"key": "meshes", "sharding": info["sharding"]}).values()
            assert sorted(index) == ids, "the shards have other keys"
    for id in ids:
        if is_legacy:
            mesh, rows = read.get(id, remove_duplicate_vertices=False), rows_of(truth, id)
            mesh = mesh[id] if isinstance(mesh, dict) else mesh
            want = truth["positions"][rows].astype("<f8") * scale
            assert np.allclose(mesh.vertices, want, rtol=1e-6), id
            faces = links_of(truth, rows)
            assert np.array_equal(np.asarray(mesh.faces).reshape(-1, 3), faces), id
            continue
        if "sharding" in info:
            manifest, data = sharded_mesh(read, folder, id, index[id])
        else:
            manifest, data = [(folder / f"meshes/{id}{end}").read_bytes() for end in [".index", ""]]
        manifest = Manifest(manifest, data)
        tables = [(level, rows_of(level, id)) for level in [truth, *levels]]
        tables = [(level, rows, links_of(level, rows)) for level, rows in tables if len(rows)]
        tables = coarsening([table for table in tables if len(table[2])])
        assert len(manifest.levels) == len(tables), (id, len(manifest.levels), len(tables))
        for lod, (level, rows, faces) in enumerate(tables):
            ours = check_level(manifest, lod, level["positions"][rows], faces)
            theirs = read.get([id], lod=lod)[id]
            theirs = np.asarray(theirs.vertices)
            slack = 1e-6 * np.abs(ours * scale).max()
            assert np.allclose(np.sort(theirs, 0), np.sort(ours * scale, 0), rtol=0, atol=slack), (id, lod)
            CHECKED.add(f"level of detail {lod}")
        if len(manifest.levels[0][1]) > 3:
            CHECKED.add("octree")
    check_segments(folder / "meshes", info, truth)
    return len(ids)


def sharded_mesh(read, folder, id, binary):
    """Returns the manifest of a mesh in shards, and the fragments directly before it."""
    manifest = read.get_manifest(id)
    size = int(sum(int(np.sum(sizes)) for sizes in manifest.fragment_offsets))
    shard, start = (folder / manifest.path).read_bytes(), manifest.shard_offset
    assert shard[start:start + len(binary)] == binary
    return binary, shard[start - size:start]


def check_segments(layer, info, truth):
    columns = {key[7:]: values for key, values in truth.items() if key.startswith("object.")}
    groups = groups_of(truth)
    if not columns and not groups:
        assert "segment_properties" not in info
        return
    read = json.loads((layer / info["segment_properties"] / "info").read_text())["inline"]
    assert [int(id) for id in read["ids"]] == truth["objects"].tolist()
    by_name = {property.get("description", property["id"]): property for property in read["properties"]}
    if groups:
        tags = by_name["tags"]
        tagged = [{at for at in own if at < len(groups)} for own in tags["values"]]
        assert tagged == [{at for at, members in enumerate(groups.values()) if id in members}
                          for id in truth["objects"].tolist()]
        assert all(" " not in tag for tag in tags["tags"])
        CHECKED.add("tags")
    for name, values in columns.items():
        got = np.array(by_name[name]["values"])
        assert np.array_equal(got, values.astype(got.dtype) if got.dtype.kind != "f" else
                              np.array([float(str(v)) for v in values.astype("<f4")])), name


def check_group_layer(folder, truth):
    """Compares the skeletons and properties of groups."""
    if "part_objects" in truth:
        CHECKED.add("skeletons of groups")
        return check_skeletons(folder, of_groups(truth), "groups")
    read = json.loads((folder / "groups/info").read_text())["inline"]
    assert [int(id) for id in read["ids"]] == list(groups_of(truth))
    return len(read["ids"])


def further():
    """Returns geometry of further stores: all types of properties, many objects, and no unit."""
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
    network = {
        "positions": seed.normal(size=(4000, 3)).astype("<f4") * 50,
        "links": seed.integers(0, 4000, (9000, 2)),
        "link.weight": seed.random(9000).astype("<f4"),
        "link.kind": np.array(["axon", "dendrite"])[seed.integers(0, 2, 9000)],
        "vertex.degree": seed.integers(0, 9, 4000).astype("u1"),
    }
    network["links"] = network["links"][network["links"][:, 0] != network["links"][:, 1]]
    for name in ["link.weight", "link.kind"]:
        network[name] = network[name][: len(network["links"])]
    cloud |= {"group.0": np.arange(0, 40, 3), "group.1": np.array([4, 6])}
    return {"network": ("graphs", network), "cloud": ("points", cloud), "forest": ("skeletons", forest),
            "segments": ("lines", lines), "bodies": ("mesh", bodies())}


def bodies():
    """Returns meshes of several sizes: a torus of several nodes, a flat sheet, a tetrahedron, and
    triangles that share edges at random."""
    torus = trimesh.creation.torus(30, 10, major_sections=240, minor_sections=120)
    sheet, squares, _ = grid(40, 50, step=0.5)
    tetrahedron = np.array([[0, 0, 0], [3, 0, 0], [0, 3, 0], [0, 0, 3]]) + 40
    seed = np.random.default_rng(3)
    shards = seed.random((30, 3)) * 20 - 60
    faces = seed.permuted(np.tile(np.arange(30), (50, 1)), axis=1)[:, :3]
    parts = [
        (torus.vertices, torus.faces),
        (sheet * [1, 1, 0] + [0, 0, 20], squares),
        (tetrahedron, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])),
        (shards, faces),
    ]
    first = np.cumsum([0] + [len(points) for points, _ in parts])
    return {
        "positions": np.concatenate([points for points, _ in parts]).astype("<f4") + np.float32([1000, -500, 200]),
        "links": np.concatenate([faces + at for (_, faces), at in zip(parts, first)]),
        "object_ids": np.repeat(np.arange(len(parts)), [len(points) for points, _ in parts]),
        "objects": np.arange(len(parts)),
        "object.volume": np.arange(len(parts)).astype("<f4"),
    }


DEMO = ["cells", "neurons", "surface", "tracts"]
MESHES = ["surface", "bodies"]
FURTHER = ["network", "cloud", "forest", "segments", "bodies"]
# Each level of meshes has fewer objects than the one before.
PYRAMIDS = {"bodies": ["--levels", "2", "--sparsity", "1.5,2"], "forest": ["--levels", "1"]}
FORMS = {"files": [], "shards": ["--sharded"], "legacy": ["--mesh-format", "legacy"]}


class Stores:
    """The stores, with the results of queries of all their levels."""

    def __init__(self, zvf, folder):
        self.zvf, self.folder, self.counts, self.exports = zvf, folder, defaultdict(int), defaultdict(set)
        zvf("demo", folder / "demo", "--small", "--quiet")
        assert sorted(path.stem for path in (folder / "demo").glob("*.zv")) == DEMO
        self.paths = {name: folder / f"demo/{name}.zv" for name in DEMO}
        for name, (kind, arrays) in further().items():
            self.paths[name] = zvf.create(folder / f"{name}.zv", arrays, "--kind", kind)
            if name in PYRAMIDS:
                zvf("pyramid", self.paths[name], *PYRAMIDS[name], "--quiet")

    @functools.cache
    def levels(self, name):
        """Returns the results of queries of all levels of a store."""
        store = self.paths[name]
        numbers = range(len(self.zvf.json("info", store)["levels"]))
        return [self.zvf.query(store, *(["--level", level] if level else [])) for level in numbers]

    def export(self, name, form):
        """Exports a store once, and returns the folder and the report."""
        out = self.folder / f"{name}.{form}"
        if not out.exists():
            report = self.zvf.json("export", "precomputed", self.paths[name], out, *FORMS[form])
            out.with_suffix(".json").write_text(json.dumps(report))
        return out, report_of(out)


def report_of(out):
    return json.loads(out.with_suffix(".json").read_text())


@pytest.fixture(scope="module")
def stores(zvf, tmp_path_factory, tell):
    stores = Stores(zvf, tmp_path_factory.mktemp("precomputed"))
    yield stores
    counts = ", ".join(f"{count} {layer}" for layer, count in sorted(stores.counts.items()))
    tell(f"precomputed: {len(stores.paths)} stores as files, as shards and from a server: {counts}")


def check_layer(out, layer, truth, levels, at=0, served=False):
    """Compares a layer with the results of queries, and returns the number of its items."""
    match layer:
        case "annotations":
            return check_annotations(out / layer, truth, served)
        case "meshes":
            return check_meshes(out, truth, levels)
        case "segments":
            check_segments(out / layer, {"segment_properties": "."}, truth)
            return len(truth["objects"])
        case "groups":
            return check_group_layer(out, truth)
    CHECKED.add(f"skeletons of level {at}")
    return check_skeletons(out, [truth, *levels][at], layer)


@pytest.mark.parametrize(
    "name, form", [(name, form) for name in [*DEMO, *FURTHER] for form in FORMS if form != "legacy" or name in MESHES]
)
def test_exported(name, form, stores):
    (out, report), (truth, *levels) = stores.export(name, form), stores.levels(name)
    for layer in report["layers"]:
        kind = layer["layer"]
        folder = Path(layer["folder"]).name if kind == "skeletons" else kind
        count = check_layer(out, folder, truth, levels, layer.get("level", 0))
        assert layer["items"] == count, (layer, count)
        stores.counts[kind] += count


@pytest.mark.parametrize("name", [*DEMO, *FURTHER])
def test_served(name, stores):
    """Compares the responses of a server with the results of queries."""
    out, (truth, *levels) = stores.folder / f"{name}.served", stores.levels(name)
    layers = {layer["layer"] for layer in stores.export(name, "files")[1]["layers"]}
    if not layers & {"skeletons", "meshes"} and "part_objects" not in truth:
        truth = stores.zvf.query(stores.paths[name], "--row-ids")
    with Serving(stores.zvf, [stores.paths[name]]) as served:
        names = [(layer, layer, 0) for layer in sorted(layers)]
        if "skeletons" in layers and "part_objects" not in truth:
            names += [(f"skeletons_level{at}", "levels of skeletons", at) for at in range(1, len(levels) + 1)]
        for layer, kind, at in names:
            copy_layer(f"{served['address']}/{name}/{layer}", out / layer, [truth, *levels][at])
            stores.counts[f"served {kind}"] += check_layer(out, layer, truth, levels, at, served=True)


def test_features(request):
    """The stores together have everything that a layer can have."""
    ran = {item.name for item in request.session.items if item.path == request.path}
    if not all(f"test_exported[{name}-files]" in ran and f"test_served[{name}]" in ran for name in [*DEMO, *FURTHER]):
        pytest.skip("not all stores were read")
    needed = {"neuroglancer", "octree", "edges", "groups", "tags", "skeletons of groups", "skeletons of level 1"}
    needed |= {f"level of detail {level}" for level in range(3)}
    assert needed <= CHECKED, needed - CHECKED
