"""Programs written for zarr_vectors, without that package."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf
import zvf.compat.zarr_vectors as zv
from zvf.compat.zarr_vectors.exceptions import ArrayError, MetadataError, StoreError, ZVError
from zvf.compat.zarr_vectors.types.graphs import read_graph, write_graph
from zvf.compat.zarr_vectors.types.lines import read_lines, write_lines
from zvf.compat.zarr_vectors.types.meshes import read_mesh, write_mesh
from zvf.compat.zarr_vectors.types.points import read_points, write_points
from zvf.compat.zarr_vectors.types.polylines import read_polylines, write_polylines

CHUNKS = (100.0,) * 3


def test_polylines_are_lists_of_runs_in_one_chunk() -> None:
    lines = [
        np.array([[10, 50, 50], [50, 50, 50], [110, 50, 50], [210, 50, 50]], np.float32),
        np.array([[10, 10, 10], [20, 20, 20]], np.float32),
    ]
    fa = [[1, 2, 3, 4], [5, 6]]
    written = write_polylines(
        "lines.zv", lines, chunk_shape=CHUNKS, groups={0: [1]}, vertex_attributes={"fa": fa}
    )
    assert written["cross_chunk_link_count"] == 2 and written["polyline_count"] == 2
    found = read_polylines("lines.zv")
    assert [[len(run) for run in line] for line in found["polylines"]] == [[2, 1, 1], [2]]
    assert found["vertex_attributes"]["fa"].tolist() == [1, 2, 3, 4, 5, 6]
    assert read_polylines("lines.zv", object_ids=[1, 99, 0])["object_ids"] == [1, 0]
    assert read_polylines("lines.zv", group_ids=[0])["object_ids"] == [1]
    cropped = read_polylines("lines.zv", object_ids=[0], chunks=[(0, 0, 0), (2, 0, 0)])
    assert cropped["object_ids"] == [0, 0] and cropped["vertex_count"] == 3
    assert read_polylines("lines.zv", bbox=([0] * 3, [20] * 3))["object_ids"] == [1]
    nothing = read_polylines("lines.zv", bbox=([900] * 3, [950] * 3))
    assert (nothing["polyline_count"], nothing["ndim"]) == (0, 3)


def test_points_keep_the_order_of_objects() -> None:
    positions = np.random.default_rng(3).uniform(0, 300, (60, 3))
    ids = np.repeat(np.arange(6), 10)
    names = np.array(["a", "b", "c"] * 20)
    vertex = {"name": names}
    write_points(
        "points.zv", positions, chunk_shape=CHUNKS, object_ids=ids, vertex_attributes=vertex
    )
    found = read_points("points.zv", object_ids=[4, 1], attribute_names=["name"])
    assert found["object_ids"].tolist() == [4] * 10 + [1] * 10
    assert found["vertex_attributes"]["name"].dtype.kind == "U"
    wanted = np.sort(names[ids == 4])
    assert np.sort(found["vertex_attributes"]["name"][:10]).tolist() == wanted.tolist()
    assert read_points("points.zv")["vertex_attributes"] == {}


@pytest.mark.parametrize("ids", [[1, 2, 3], [5, 0, 900]])
@pytest.mark.parametrize("kind", ["points", "add_points", "graph", "skeleton", "mesh"])
def test_rows_of_object_attributes_are_in_the_order_of_the_ids(kind: str, ids: list[int]) -> None:
    positions = np.random.default_rng(5).uniform(0, 300, (9, 3))
    edges = [[1, 0], [2, 1], [4, 3], [5, 4], [7, 6], [8, 7]]
    given: dict[str, Any] = {
        "object_ids": np.repeat(ids, 3), "object_attributes": {"value": np.array([1.5, 2.5, 3.5])},
    }  # fmt: skip

    def write() -> None:
        if kind == "points":
            write_points("o.zv", positions, chunk_shape=CHUNKS, **given)
        elif kind == "add_points":
            zv.create("o.zv", schema=schema("point_cloud")).add_points(positions, **given)
        elif kind == "mesh":
            faces = np.arange(9).reshape(3, 3)
            write_mesh("o.zv", positions, faces, chunk_shape=CHUNKS, **given)
        else:
            write_graph("o.zv", positions, edges, chunk_shape=CHUNKS, kind=kind, **given)

    write()
    assert zv.open("o.zv").level(0).objects.slots == 3
    stored = zvf.open("o.zv").query()
    assert stored.objects is not None and stored.objects.tolist() == sorted(ids)
    assert stored.object["value"].tolist() == [1.5, 2.5, 3.5]
    shutil.rmtree("o.zv")
    given["object_attributes"] = {"value": np.array([1.5, 2.5, 3.5, 4.5])}
    with pytest.raises(ArrayError, match="value.*4 rows, but 3 are needed"):
        write()


def test_lines_and_links_are_those_inside_a_box() -> None:
    ends = np.array([[[0, 0, 0], [50, 0, 0]], [[150, 0, 0], [250, 0, 0]]], np.float32)
    assert write_lines("l.zv", ends, chunk_shape=CHUNKS)["cross_chunk_count"] == 1
    # The segment crosses the box, but has no end in it.
    assert read_lines("l.zv", bbox=([160, -1, -1], [200, 1, 1]))["line_count"] == 0
    assert read_lines("l.zv", bbox=([-1] * 3, [1] * 3))["endpoints"].tolist() == ends[:1].tolist()
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [150, 0, 0]], np.float32)
    faces = np.array([[0, 1, 2], [1, 2, 3]])
    written = write_mesh("m.zv", corners, faces, chunk_shape=CHUNKS)
    assert (written["intra_face_count"], written["cross_face_count"]) == (1, 1)
    mesh = read_mesh("m.zv", bbox=([-1] * 3, [2] * 3))
    assert (mesh["vertex_count"], mesh["face_count"]) == (3, 1)
    assert sorted(mesh["faces"][0].tolist()) == [0, 1, 2]
    write_graph("g.zv", corners, np.array([[0, 1], [2, 3]]), chunk_shape=CHUNKS)
    graph = read_graph("g.zv", bbox=([-1] * 3, [2] * 3))
    assert (graph["node_count"], graph["edge_count"]) == (3, 1)


def test_errors_are_those_of_the_package() -> None:
    positions = np.zeros((2, 3))
    with pytest.raises(MetadataError, match="outside the bounds"):
        write_points("p.zv", positions, chunk_shape=CHUNKS, bounds=([1] * 3, [2] * 3))
    assert not Path("p.zv").exists()
    with pytest.raises(MetadataError, match="out_of_bounds"):
        write_points("p.zv", positions, chunk_shape=CHUNKS, out_of_bounds="drop")
    with pytest.raises(ArrayError, match="roots.*kind='graph'"):
        edges = np.array([[1, 0]])
        write_graph("s.zv", np.zeros((3, 3)), edges, chunk_shape=CHUNKS, kind="skeleton")
    with pytest.raises(StoreError, match=r"none\.zv"):
        read_points("none.zv")
    write_points("p.zv", positions, chunk_shape=CHUNKS)
    with pytest.raises(StoreError, match="append"):
        write_points("p.zv", positions, chunk_shape=CHUNKS)
    assert len(zvf.open("p.zv").query()) == 2
    with pytest.raises(ArrayError, match="chunk_attribute_name"):
        read_points("p.zv", attribute_filter={"gene": "a"})


def test_damage_is_an_error() -> None:
    ids = np.arange(2)
    positions = np.array([[0, 0, 0], [150.0, 0, 0]])
    write_points("p.zv", positions, chunk_shape=CHUNKS, object_ids=ids)
    cells = [cell for cell in Path("p.zv/0/vertices").rglob("*") if cell.is_file()]
    cell = next(cell for cell in cells if cell.name != "zarr.json")
    cell.write_bytes(cell.read_bytes()[:5])
    with pytest.raises(StoreError, match="vertices"):
        read_points("p.zv", object_ids=[0, 1])
    with pytest.raises(StoreError, match="vertices"):
        read_points("p.zv", object_ids=[0, 1, 99])


def test_what_the_engine_does_not_do_needs_the_package(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "zvf.compat")
    with pytest.raises(ZVError, match="chunk_by_attribute; the package zarr-vectors does"):
        write_points("p.zv", [[0.0, 0, 0]], vertex_attributes={"g": [1]}, chunk_by_attribute="g")
    write_points("p.zv", [[0.0, 0, 0]])
    assert caplog.messages == ["engine write points"]


def schema(kind: str, **more: Any) -> Any:
    return zv.Schema(
        bounds=([0] * 3, [400] * 3), kind=kind, layout=zv.Layout(cell_size=CHUNKS), **more
    )


def test_datasets_without_the_package() -> None:
    fa = zv.AttributeSpec("float32", unit="1")
    declared = schema("streamline", vertex_attributes={"fa": fa})
    created = zv.create("t.zv", schema=declared)
    lines = [np.linspace((at, 0, 0), (at, 350, 0), 8, dtype=np.float32) for at in (10, 120, 130)]
    values = [np.full(8, at, np.float32) for at in range(3)]
    created.metadata.namespace("app")["run"] = 7
    with pytest.raises(zv.SchemaConflict, match="float32"):
        created.add_polylines(lines, attributes={"fa": [value.astype(float) for value in values]})
    created.add_polylines(lines, attributes={"fa": values}, groups={0: [2]}, streamlines=True)
    tracts = zv.open("t.zv")
    assert (tracts.kinds, tracts.levels, tracts.ndim) == (("streamline",), (0,), 3)
    assert zv.Schema.from_store(tracts._root_meta).diff(declared) == []
    assert tracts.metadata.namespace("app")["run"] == 7
    assert json.loads(Path("t.zv/0/vertex_attributes/fa/zarr.json").read_text())["attributes"][
        "unit"
    ] == "1"
    level = tracts.level(0)
    assert (level.vertex_count, level.scale) == (24, CHUNKS)
    assert level.grid.shape == (5, 5, 5) and len(level.objects) == level.objects.count == 3
    assert tracts.groups["group_0"].members.tolist() == [2]
    found = tracts.select(objects=[2, 0]).read()
    assert found.part_objects is not None and found.part_objects.tolist() == [2, 0]
    assert found.attributes["fa"].tolist() == [2] * 8 + [0] * 8
    assert [len(line) for line in found.polylines] == [8, 8] and found.complete
    cells = level.grid.cells_in(([0, 0, 0], [50, 150, 0]))
    assert tracts.select(cells=cells).count() == 4
    assert tracts.select(cells=cells, cells_split=False).read().part_count == 1
    near = tracts.select(near=([10, 0, 0], 60)).read()
    assert near.vertex_count == 2 and near.part_count == 1
    limited = tracts.select(limit=10).read()
    assert limited.vertex_count == 10 and limited.truncated
    assert asyncio.run(tracts.select(groups=[0]).aread()).vertex_count == 8
    assert "read_polylines(level, object_ids)" in tracts.select(objects=[1]).explain()
    with pytest.raises(StoreError, match="read-only"):
        tracts.add_polylines(lines)
    with pytest.raises(ZVError, match="core.store is a module of the package"):
        _ = tracts.store


def test_levels_validation_and_conflicts() -> None:
    points = zv.create("p.zv", schema=schema("point_cloud"))
    points.add_points(np.random.default_rng(1).uniform(0, 400, (5000, 3)), object_ids=[0] * 5000)
    assert zv.open("p.zv", mode="r+").build_pyramid(factors=[(2, 1)])["levels_created"] == 1
    assert points.levels == (0, 1) and points.level(1).vertex_count < 5000
    assert points.resolution(scale=100).index == 0
    assert points.validate(level=5).ok
    same = zv.open_or_create("p.zv", schema=schema("point_cloud"))
    assert same.read().vertex_count == 5000
    with pytest.raises(zv.SchemaConflict, match="kind"):
        zv.open_or_create("p.zv", schema=schema("mesh"))
    with pytest.raises(StoreError, match="exists"):
        zv.create("p.zv", schema=schema("mesh"))
    zv.require_format(same, ">=0.9,<0.11")
    with pytest.raises(zv.FormatError, match="migrate"):
        zv.require_format(same, ">=1.0")
    with pytest.raises(StoreError, match=r"none\.zv"):
        zv.open("none.zv")


def test_links_are_renumbered_and_objects_selected() -> None:
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [150, 0, 0], [151, 0, 0], [150, 1, 0]])
    mesh = zv.create("m.zv", schema=schema("mesh"))
    mesh.add_mesh(
        corners, [[0, 1, 2], [3, 4, 5]], object_ids=[0] * 3 + [1] * 3,
        attributes={"h": np.arange(6.0)},
    )  # fmt: skip
    one = mesh.select(objects=[1]).read()
    assert one.positions[:, 0].min() == 150 and one.faces is not None and len(one.faces) == 1
    assert one.attributes["h"].sum() == 3 + 4 + 5
    box = mesh.select(bbox=([-1] * 3, [0.5, 2, 2])).read()
    assert box.vertex_count == 2 and box.faces is not None and len(box.faces) == 0
    lines = zv.create("l.zv", schema=schema("line"))
    lines.add_lines(corners.reshape(3, 2, 3))
    found = lines.select(bbox=([149] * 2 + [-1], [152] * 3)).read()
    assert found.endpoints.shape == (len(found.parts), 2, 3)


def test_the_package_is_replaced() -> None:
    program = """
import warnings
warnings.simplefilter("ignore")
import numpy as np, zvf.compat
assert not zvf.compat.installed()
zvf.compat.install()
zvf.compat.install()
import zarr_vectors
from zarr_vectors.types.points import read_points, write_points
write_points("p.zv", np.zeros((2, 3)), chunk_shape=(1, 1, 1))
print(read_points("p.zv")["vertex_count"], zarr_vectors.exceptions.ZVError.__module__)
"""
    root = str(Path(zvf.__file__).parents[1])
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {root!r}){program}"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("2 zarr_vectors.exceptions\n", "")
