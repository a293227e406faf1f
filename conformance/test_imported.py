"""Precomputed data of other programs, read with `zvf create`; all values are compared.

cloud-volume writes skeletons and meshes, as files and in shards, Neuroglancer's annotation writer points, lines and
polylines, DracoPy the fragments of multi-resolution meshes, and tensorstore the shards of annotations and skeletons.
What `zvf query` returns has to be what the programs were given.
"""

import gzip
import json
import shutil
import struct

import DracoPy
import numpy as np
import pytest
import trimesh
from cloudvolume import CloudVolume, Mesh, Skeleton
from cloudvolume.datasource.precomputed.common import compressed_morton_code
from cloudvolume.datasource.precomputed.mesh.multilod import MultiLevelPrecomputedMeshManifest
from cloudvolume.datasource.precomputed.sharding import ShardingSpecification
from neuroglancer import AnnotationPropertySpec, CoordinateSpace
from neuroglancer.write_annotations import AnnotationWriter

from surfaces import edge_counts
from test_precomputed import open_shards

SHARDING = {
    "@type": "neuroglancer_uint64_sharded_v1", "preshift_bits": 1, "hash": "murmurhash3_x86_128",
    "minishard_bits": 2, "shard_bits": 3, "minishard_index_encoding": "gzip", "data_encoding": "gzip",
}
IDS = [17, 4, 720575940625000003, 2**40 + 3]


class Import:
    """A store of a source."""

    def __init__(self, zvf, folder):
        self.zvf, self.folder = zvf, folder

    def read(self, source):
        """Returns the kind and all arrays of a store that is made from a source."""
        store = self.folder / "a.zv"
        shutil.rmtree(store, ignore_errors=True)
        self.zvf("create", store, "--from", source, "--quiet")
        found = self.zvf.query(store)
        return found | {"about": json.loads(str(found["metadata"][0]))}


@pytest.fixture
def work(zvf, tmp_path):
    return Import(zvf, tmp_path)


@pytest.fixture
def random():
    return np.random.default_rng(7)


def volume(folder, **members):
    info = CloudVolume.create_new_info(
        1, "segmentation", "uint64", "raw", [4, 4, 40], [0, 0, 0], [64, 64, 64], **members)
    vol = CloudVolume(f"file://{folder}", info=info, progress=False)
    vol.commit_info()
    return vol


def values_of(ids, column):
    return dict(zip(ids.tolist(), column.tolist(), strict=True))


def sharded(folder, sharding, values):
    store = open_shards(folder, sharding)
    for key, value in values.items():
        store[struct.pack(">Q", key)] = value


def trees(random):
    """Skeletons with branches, whose edges point from the root."""
    for id in IDS:
        count = int(random.integers(2, 60))
        parents = [int(random.integers(0, row)) for row in range(1, count)]
        edges = np.stack([parents, np.arange(1, count)], 1).astype("<u4")
        points = random.normal(0, 1e4, (count, 3)).astype("<f4")
        yield Skeleton(
            points, edges, radii=random.random(count).astype("<f4"),
            vertex_types=random.integers(0, 5, count).astype("u1"), segid=id, space="voxel")


def check_skeleton(found, skeleton, transform):
    id = skeleton.id
    rows = np.flatnonzero(found["object_ids"] == id)
    want = skeleton.vertices.astype("<f8") @ transform[:, :3].T + transform[:, 3]
    got = found["positions"][rows]
    order, place = np.lexsort(got.T), np.lexsort(want.T)
    assert np.array_equal(got[order], want[place].astype(got.dtype)), id
    for name in ["radius", "vertex_types"]:
        column = found[f"vertex.{name}"][rows]
        assert np.array_equal(column[order], getattr(skeleton, name)[place]), (id, name)
    number = np.empty(len(rows), "i8")
    number[order] = place
    back = {row: number[at] for at, row in enumerate(rows.tolist())}
    links = found["links"][np.isin(found["links"][:, 0], rows)]
    assert len(np.unique(links[:, 0])) == len(links), "a vertex has two parents"
    edges = sorted(sorted(map(int, (back[a], back[b]))) for a, b in links.tolist())
    assert edges == sorted(map(sorted, skeleton.edges.tolist())), id


@pytest.mark.parametrize("sharding", [None, SHARDING], ids=["files", "shards"])
def test_skeletons(sharding, work, random, tell):
    transform = np.array([[2, 0, 0, 5], [0, 3, 0.5, -7], [0, 0, 40, 0.25]], "<f8")
    folder = work.folder / "skeletons"
    vol = volume(folder, skeletons="skeletons")
    info = vol.skeleton.meta.default_info()
    info["transform"] = transform.reshape(-1).tolist()
    info["vertex_attributes"] = [
        {"id": "radius", "data_type": "float32", "num_components": 1},
        {"id": "vertex_types", "data_type": "uint8", "num_components": 1},
    ]
    info["segment_properties"] = "properties"
    vol.skeleton.meta.info = info
    vol.skeleton.meta.commit_info()
    given = list(trees(random))
    if sharding:
        info["sharding"] = sharding
        (folder / "skeletons/info").write_text(json.dumps(info))
        binary = {s.id: s.to_precomputed() for s in given}
        sharded(folder / "skeletons", sharding, binary)
    else:
        vol.skeleton.upload(given)
        assert list(folder.glob("skeletons/17*")), "cloud-volume wrote no file"
    numbers = random.integers(-100, 100, len(IDS)).tolist()
    properties = [
        {"id": "label", "type": "label", "values": ["a", "", "c d", "e"]},
        {"id": "about", "type": "description", "values": ["1", "2", "3", "4"]},
        {"id": "side", "type": "string", "values": ["left", "right", "left", "right"]},
        {"id": "size", "type": "number", "data_type": "int8", "values": numbers},
        {"id": "mean", "type": "number", "data_type": "float32", "values": [0.5, 1.25, -3, 7]},
        {"id": "tags", "type": "tags", "tags": ["x", "y"], "tag_descriptions": ["", ""],
         "values": [[0], [0, 1], [], [1]]},
    ]
    (folder / "skeletons/properties").mkdir()
    (folder / "skeletons/properties/info").write_text(json.dumps({
        "@type": "neuroglancer_segment_properties",
        "inline": {"ids": [str(id) for id in IDS], "properties": properties}}))
    for source in [folder, folder / "skeletons"]:
        found = work.read(source)
        assert found["about"]["geometry"] == "skeleton", found["about"]
        assert {axis["unit"] for axis in found["about"]["axes"]} == {"nanometer"}
        assert found["objects"].tolist() == sorted(IDS)
        for skeleton in given:
            check_skeleton(found, skeleton, transform)
        for p in properties[2:5]:
            column = values_of(found["objects"], found[f"object.{p['id']}"])
            assert column == dict(zip(IDS, p["values"])), (p, column)
        tags = values_of(found["objects"], found["object.tags"])
        assert tags == dict(zip(IDS, ["x", "x y", "", "y"])), tags
        assert found["object.size"].dtype == "i1"
    tell(f"imported {len(given)} skeletons of cloud-volume{', shards of tensorstore' if sharding else ''}")


def corners(points, faces):
    """The triangles as positions, each from its least corner, sorted."""
    turns = np.stack([np.roll(points[faces], turn, 1).reshape(-1, 9) for turn in range(3)])
    return np.array(sorted(map(min, zip(*map(np.ndarray.tolist, turns)))))


def is_closed(faces):
    return (edge_counts(faces) == 2).all()


def of_object(found, id):
    links = found["links"]
    return found["positions"], links[found["object_ids"][links[:, 0]] == id]


def test_legacy_meshes(work, tell):
    folder = work.folder / "meshes"
    vol = volume(folder, mesh="mesh")
    sphere, given = trimesh.creation.icosphere(3), {}
    for at, id in enumerate(IDS):
        given[id] = sphere.vertices * (100.0 + at) + [1e3 * at, 0, 7], np.array(sphere.faces)
    meshes = [Mesh(points.astype("<f4"), faces.astype("<u4"), None, segid=id) for id, (points, faces) in given.items()]
    vol.mesh.put(meshes)
    (folder / "mesh/info").write_text(json.dumps({"@type": "neuroglancer_legacy_mesh"}))
    # A mesh in two fragments that share vertices, as tasks for parts of a volume write them.
    points, faces = given[17]
    half = faces[:, 0] % 2 == 0
    names = []
    for at, part in enumerate([faces[half], faces[~half]]):
        used, place = np.unique(part, return_inverse=True)
        part = Mesh(points[used].astype("<f4"), place.reshape(-1, 3).astype("<u4"), None)
        names.append(f"17:0:part{at}")
        (folder / f"mesh/{names[-1]}.gz").write_bytes(gzip.compress(part.to_precomputed()))
    for old in folder.glob("mesh/17:0*"):
        if "part" not in old.name:
            old.unlink()
    (folder / "mesh/17:0").write_text(json.dumps({"fragments": names}))
    found = work.read(folder / "mesh")
    assert found["about"]["geometry"] == "mesh" and found["objects"].tolist() == sorted(IDS)
    for id, (points, faces) in given.items():
        got, links = of_object(found, id)
        assert is_closed(links), id
        assert np.array_equal(corners(got, links), corners(points.astype("<f4"), faces)), id
        assert (found["object_ids"] == id).sum() == len(points), id
    tell(f"imported {len(given)} single-resolution meshes of cloud-volume")


@pytest.mark.parametrize("is_sharded", [False, True], ids=["files", "shards"])
@pytest.mark.parametrize("bits", [10, 16])
def test_multilod_meshes(bits, is_sharded, work, tell):
    """A mesh that is cut by its faces at nodes of a grid, so that its surface stays closed."""
    last, chunk, origin = 2**bits - 1, np.array([50, 60, 70], "<f4"), np.array([-3, 2, 1], "<f4")
    transform = [4, 0, 0, 100, 0, 4, 0, 0, 0, 0, 40, -9]
    folder = work.folder / "multilod"
    folder.mkdir()
    info = {"@type": "neuroglancer_multilod_draco", "vertex_quantization_bits": bits,
            "transform": transform, "lod_scale_multiplier": 1}
    meshes, manifests, written = {}, {}, {}
    for at, id in enumerate(IDS):
        # Boxes on the lattice: every face lies within the nodes that it crosses.
        low, size = np.array([1 + at, 2, 1]), np.array([2, 1, 2])
        nodes = low + np.array(list(np.ndindex(*size)))
        nodes = nodes[np.argsort(compressed_morton_code(nodes, [256] * 3))]
        parts = [box_part(node, low, size, last) for node in nodes]
        written[id] = [DracoPy.encode(q.astype("<u4"), faces.astype("<u4")) for q, faces in parts]
        whole = [(q + node * last)[faces] for node, (q, faces) in zip(nodes, parts)]
        manifests[id] = MultiLevelPrecomputedMeshManifest(
            id, chunk, origin, 1, [1], [[0, 0, 0]], [len(nodes)], [nodes], list(map(len, written[id]))).to_binary()
        steps = np.concatenate(whole).reshape(-1, 3)
        model = origin.astype("<f8") + chunk.astype("<f8") * steps / last
        matrix = np.array(transform).reshape(3, 4)
        meshes[id] = (model @ matrix[:, :3].T + matrix[:, 3], np.arange(len(steps)).reshape(-1, 3))
    files = {f"{id}.index": manifest for id, manifest in manifests.items()}
    files |= {str(id): b"".join(data) for id, data in written.items()}
    if is_sharded:
        info["sharding"] = {**SHARDING, "data_encoding": "raw"}
        # The fragments of a mesh are directly before its manifest.
        files = ShardingSpecification.from_dict(info["sharding"]).synthesize_shards(
            {id: files[str(id)] + manifest for id, manifest in manifests.items()},
            {id: len(manifest) for id, manifest in manifests.items()})
    for name, data in files.items():
        (folder / name).write_bytes(data)
    (folder / "info").write_text(json.dumps(info))
    found = work.read(folder)
    assert found["about"]["geometry"] == "mesh" and found["objects"].tolist() == sorted(IDS)
    for id, (points, faces) in meshes.items():
        got, links = of_object(found, id)
        assert is_closed(links), f"{id} has gaps"
        assert np.allclose(corners(got, links), corners(points, faces), rtol=0, atol=1e-9), id
    tell(f"imported {len(meshes)} multi-resolution meshes of {bits} bits, fragments of DracoPy"
         f"{', in shards' if is_sharded else ''}")


def box_part(node, low, size, last):
    """The part of the surface of a box of nodes that lies at one node, as two triangles for a side."""
    box = trimesh.creation.box(bounds=[[0] * 3, [last] * 3])
    sides = box.face_normals.round()
    is_border = (sides < 0) & (node == low) | (sides > 0) & (node == low + size - 1)
    used, place = np.unique(box.faces[is_border.any(1)], return_inverse=True)
    return box.vertices[used].astype(int), place.reshape(-1, 3)


def space(scales, units):
    return CoordinateSpace(names=["x", "y", "z"], scales=scales, units=units)


@pytest.mark.parametrize("relation", [[], ["cell"]], ids=["plain", "related"])
@pytest.mark.parametrize("is_sharded", [False, True], ids=["files", "shards"])
@pytest.mark.parametrize("geometry, kind", [("point", "point_cloud"), ("line", "line"), ("polyline", "polyline")])
def test_annotations(geometry, kind, is_sharded, relation, work, random, tell):
    specs = [
        AnnotationPropertySpec(id="kind", type="uint8", enum_values=[0, 3], enum_labels=["soma", "axon"]),
        AnnotationPropertySpec(id="size", type="uint32"),
        AnnotationPropertySpec(id="shade", type="rgb"),
        AnnotationPropertySpec(id="depth", type="int16", description="Depth in the tissue"),
    ]
    named = {0: "soma", 3: "axon"}
    folder = work.folder / "annotations"
    writer = AnnotationWriter(space([4, 4, 40], ["nm"] * 3), geometry, relation, specs)
    given = {}
    for id in random.permutation(IDS).tolist() + list(range(50)):
        if id in given:
            continue
        count = {"point": 1, "line": 2}.get(geometry, int(random.integers(2, 9)))
        points = random.integers(0, 1000, (count, 3)).astype("<f4")
        values = dict(kind=int(random.choice([0, 3])), size=int(random.integers(2**32)),
                      shade=tuple(random.integers(0, 256, 3).tolist()), depth=int(random.integers(-9, 9)))
        cell = int(random.integers(1, 5))
        more = dict(cell=[cell]) if relation else {}
        if geometry == "point":
            writer.add_point(points[0].tolist(), id=id, **values, **more)
        elif geometry == "line":
            writer.add_line(*points.tolist(), id=id, **values, **more)
        else:
            writer.add_polyline(points.tolist(), id=id, **values, **more)
        given[id] = (points, values, cell)
    writer.write(folder)
    if is_sharded:
        into_shards(folder)
    found = work.read(folder)
    about = found["about"]
    assert about["geometry"] == kind
    assert [axis["unit"] for axis in about["axes"]] == ["nanometer"] * 3
    scope = "vertex" if geometry == "point" else "object"
    ids = found["vertex.annotation_id" if geometry == "point" else "objects"]
    assert sorted(ids.tolist()) == sorted(given)
    for at, id in enumerate(ids.tolist()):
        points, values, cell = given[id]
        if geometry == "point":
            got = found["positions"][at:at + 1]
        else:
            (part,) = np.flatnonzero(found["part_objects"] == id)
            got = found["positions"][found["part_offsets"][part]:found["part_offsets"][part + 1]]
        assert np.array_equal(got, points.astype("<f8") * [4, 4, 40]), id
        row = {name: found[f"{scope}.{name}"][at] for name in values}
        assert row["kind"] == named[values["kind"]] and row["size"] == values["size"]
        assert tuple(row["shade"]) == values["shade"] and row["depth"] == values["depth"]
        if relation:
            column = found["object_ids" if geometry == "point" else "object.cell"]
            assert column[at] == cell, id
    described = about["attributes"][scope]["depth"]["description"]
    assert described == "Depth in the tissue"
    tell(f"imported {geometry} annotations of Neuroglancer's writer{', in shards' if is_sharded else ''}")


@pytest.mark.parametrize("geometry", ["ellipsoid", "axis_aligned_bounding_box"])
def test_refused_annotations(geometry, work):
    folder = work.folder / "annotations"
    writer = AnnotationWriter(space([1, 1, 1], ["um"] * 3), geometry)
    getattr(writer, f"add_{geometry}")([1, 2, 3], [4, 5, 6], id=1)
    writer.write(folder)
    done = work.zvf.run("create", work.folder / "b.zv", "--from", folder)
    assert done.returncode and f"annotation_type is {geometry}" in done.stderr, done.stderr


def into_shards(folder):
    """Moves the values of all indexes into shards."""
    info = json.loads((folder / "info").read_text())
    indexes = [info["by_id"], *info["relationships"]]
    for member in indexes:
        values = {int(file.name): file.read_bytes() for file in (folder / member["key"]).iterdir()}
        shutil.rmtree(folder / member["key"])
        (folder / member["key"]).mkdir()
        sharded(folder / member["key"], SHARDING, values)
        member["sharding"] = SHARDING
    for level in info["spatial"]:
        (cell,) = (folder / level["key"]).iterdir()
        value = cell.read_bytes()
        cell.unlink()
        sharded(folder / level["key"], SHARDING, {0: value})
        level["sharding"] = SHARDING
    (folder / "info").write_text(json.dumps(info))
