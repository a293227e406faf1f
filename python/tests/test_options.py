"""Options that no other test passes, and fields that no other test reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import zvf

NEURON = zvf.GeometryArrays(
    positions=[[0, 0, 0], [4, 0, 0], [6, 0, 0], [9, 0, 0]], object_ids=[0, 0, 0, 0],
    links=[[0, 1], [1, 2], [2, 3]],
)  # fmt: skip


def cloud(name: str = "cloud.zv", **options: Any) -> zvf.Dataset:
    """A cube of a thousand points."""
    axis = np.arange(10.0)
    positions = np.stack(np.meshgrid(axis, axis, axis), axis=-1).reshape(-1, 3)
    zvf.create(name, kind="points", positions=positions, vertex={"q": positions[:, 0]}, **options)
    return zvf.open(name)


def attributes(path: str) -> dict[str, Any]:
    """Return the attributes of a node."""
    found: dict[str, Any] = json.loads(Path(path, "zarr.json").read_text())["attributes"]
    return found


def test_a_store_is_opened_with_every_option() -> None:
    tracts = zvf.open("tracts.zv", concurrency=1, retries=0, follow="always", node_copy=False)
    assert len(tracts.query()) == 5
    zvf.open("tracts.zv").delete(objects=8)
    assert len(tracts.query()) == 3, "the handle follows"
    fixed = zvf.open("tracts.zv", follow="never")
    zvf.open("tracts.zv").delete(objects=3)
    with pytest.raises(zvf.Error):
        fixed.query()
    with pytest.raises(ValueError, match="negative"):
        zvf.open("tracts.zv", retries=-1)
    with pytest.raises(ValueError, match="when_gone"):
        zvf.open("tracts.zv", follow="sometimes")  # type: ignore[arg-type]


def test_batches_have_a_size_in_bytes() -> None:
    points = cloud(chunk_shape=(2, 2, 2))
    few, many = list(points.batches(batch_bytes=1 << 20)), list(points.batches(batch_bytes=1000))
    assert len(few) < len(many) and sum(map(len, many)) == 1000


def test_results_without_owners() -> None:
    zvf.create("neuron.zv", kind="skeletons", **NEURON)
    neuron = zvf.open("neuron.zv")
    owned, bare = neuron.query(), neuron.query(owners=False)
    assert owned.object_ids is not None and bare.object_ids is None
    np.testing.assert_array_equal(owned.positions, bare.positions)


def test_levels_that_differ_in_their_options() -> None:
    points = cloud(bin_shape=(1, 1, 1), chunk_shape=(5, 5, 5))
    points.pyramid(levels=1, method="bins", cell=(5, 5, 5), medoid=True)
    centres = points.query(level=1).positions
    assert len(centres) == 8 and (centres == np.round(centres)).all(), "vertices, not means"
    one, other, same = (cloud(f"{at}.zv") for at in range(3))
    for store, seed in [(one, 1), (other, 2), (same, 1)]:
        store.pyramid(
            levels=1, method="subset", cell=(5, 5, 5), keep=2, seed=seed, additive=True,
            chunk_scale=2,
        )  # fmt: skip
    kept = [store.query(level=1).positions.tolist() for store in (one, other, same)]
    assert kept[0] == kept[2] != kept[1]
    assert [level.is_additive for level in one.info().levels] == [False, True]
    assert one.query(level=1, own_level=True).positions.tolist() == kept[0]
    rows = np.array([[0, 0, 0], [9, 0, 0], [0, 9, 0], [9, 9, 1], [5, 5, 5], [6, 5, 5], [5, 6, 5]])
    zvf.create("mesh.zv", kind="mesh", positions=rows.astype(float),
               links=[[0, 1, 2], [1, 2, 3], [4, 5, 6]])  # fmt: skip
    mesh = zvf.open("mesh.zv")
    (built,) = mesh.pyramid(levels=1, method="collapse", tolerance=0.01, cull=2)
    assert (built.vertices, built.dropped_pieces) == (4, 1), "the component of one face is dropped"


def test_additive_levels_are_declared_as_refinement() -> None:
    stores = [cloud(f"{name}.zv", chunk_shape=(5, 5, 5)) for name in ("ours", "draft")]
    for store, refinement in zip(stores, (False, True), strict=True):
        store.pyramid(levels=2, method="subset", cell=(2, 2, 2), additive=True, seed=1,
                      refinement=refinement)  # fmt: skip
    declared = [attributes(f"{name}.zv/1")["zarr_vectors_level"] for name in ("ours", "draft")]
    assert [block.get("refinement") for block in declared] == [None, "add"]
    for level in range(3):
        found = [zvf.open(f"{name}.zv").query(level=level) for name in ("ours", "draft")]
        one, other = (sorted(result.positions.tolist()) for result in found)
        assert one == other


def test_links_keep_to_the_design() -> None:
    zvf.create("graph.zv", kind="graphs", **NEURON, directed=True, duplicate=True,
               chunk_shape=(5, 5, 5), table_compression="zstd:3", purpose="scan",
               node_copy=False)  # fmt: skip
    graph = zvf.open("graph.zv")
    links = graph.query().links
    assert links is not None and len(links) == 3
    found = attributes("graph.zv")
    assert "consolidated" not in json.dumps(found) and zvf.validate("graph.zv").ok
    removed = graph.delete(objects=0)
    assert removed is not None and removed.severed == 0


def test_drilling_follows_links_between_levels() -> None:
    points = cloud(chunk_shape=(5, 5, 5))
    points.pyramid(levels=1, method="bins", cell=(5, 5, 5), cross_level="explicit")
    coarse = points.query(level=1, bbox=((0, 0, 0), (4, 4, 4)))
    fine = points.query(level=1, bbox=((0, 0, 0), (4, 4, 4)), drill=-1)
    assert len(coarse) == 1 and len(fine) == 125


def test_additional_geometries_and_chunked_levels_are_refused_where_there_are_none() -> None:
    tracts = zvf.open("tracts.zv")
    with pytest.raises(zvf.Error, match="surface"):
        tracts.query(geometry="surface")
    with pytest.raises(zvf.Error, match="surface"):
        tracts.render(geometry="surface")
    with pytest.raises(zvf.Error, match="chunked"):
        tracts.query(chunked_by="axon")


def test_vertices_of_links_are_severed() -> None:
    zvf.create("graph.zv", kind="graphs", **NEURON)
    graph = zvf.open("graph.zv")
    removed = graph.delete_vertices(bbox=((-1, -1, -1), (1, 1, 1)))
    assert removed is not None and (removed.removed, removed.severed) == (1, 1)


def test_steps_of_paths_are_stored_as_links() -> None:
    steps: list[bool | Literal["between", "all"]] = [False, True, "between", "all"]
    for number, step_links in enumerate(steps):
        zvf.create(
            f"{number}.zv", kind="streamlines", positions=[[0, 0, 0], [4, 0, 0], [9, 0, 0]],
            part_offsets=[0, 3], chunk_shape=(5, 5, 5), step_links=step_links,
        )  # fmt: skip
        dataset = zvf.open(f"{number}.zv")
        assert len(dataset.query()) == 3
        assert dataset.info().levels[0].links == [0, 1, 1, 2][number]
    with pytest.raises(ValueError, match="between or all"):
        zvf.create("no.zv", kind="points", positions=[[0, 0, 0]], step_links="some")  # type: ignore[arg-type]


def test_values_of_links_between_chunks_are_one_array() -> None:
    for name, flat in [("cells.zv", False), ("flat.zv", True)]:
        zvf.create(
            name, kind="graphs", positions=[[0, 0, 0], [9, 0, 0]], links=[[0, 1]],
            link={"weight": [0.5]}, chunk_shape=(5, 5, 5), profile="0.8", flat_link_attributes=flat,
        )  # fmt: skip
        assert zvf.open(name).query().link["weight"].tolist() == [0.5]
        assert Path(name, "0/cross_chunk_link_attributes/weight/0/data").exists() == flat


def test_findings_and_plans_have_every_field() -> None:
    cells = [path for path in Path("tracts.zv/0/vertices").rglob("*") if path.is_file()]
    cell = next(path for path in cells if path.name != "zarr.json")
    cell.unlink()
    finding = zvf.validate("tracts.zv", level=3, retries=0).findings[0]
    assert finding.location is not None and "chunk" in finding.location
    assert finding.message and finding.remedy and not finding.repairable
    report = zvf.migrate("tracts.zv", "new.zv", skip_damaged=True)
    assert report.lost and report.vertices < 5
    plan = cloud().explain(bbox=((0, 0, 0), (1, 1, 1)))
    assert plan.at_most is not None and plan.bytes is not None and plan.at_most >= plan.bytes
    assert sum(operator.round_trips for operator in plan.operators) >= 1
    assert any(operator.details for operator in plan.operators)


def test_attributes_have_channels() -> None:
    zvf.create("rgb.zv", kind="points", positions=np.eye(3), vertex={"rgb": np.eye(3, dtype="u1")})
    (found,) = zvf.open("rgb.zv").attributes()
    assert found.channels == 3 and len(found.channel_names) in (0, 3)


def test_pictures_in_perspective_without_depth_cue() -> None:
    points = cloud()
    options: list[zvf.RenderOptions] = [{}, {"perspective": True}, {"depth_cue": False}]
    for one in options:
        one["size"] = (120, 90)
    pictures = [np.asarray(points.render(**one)) for one in options]
    assert (pictures[0] != pictures[1]).any() and (pictures[0] != pictures[2]).any()


def test_volumes_of_several_datasets() -> None:
    zvf.dense.save("volume.tet", np.full((10, 10, 10), 3.0))
    with pytest.raises(zvf.Error, match="absent"):
        zvf.open("tracts.zv").sample("volume.tet", into="t1", dataset="absent")


def test_meshes_are_exported_in_both_forms() -> None:
    zvf.create("mesh.zv", kind="mesh", positions=np.eye(3), links=[[0, 1, 2]], object_ids=[1, 1, 1])
    forms: list[Literal["legacy", "draco"]] = ["legacy", "draco"]
    for form in forms:
        zvf.open("mesh.zv").export_precomputed(form, layers=["meshes"], mesh_format=form)
        kind = json.loads(Path(form, "meshes/info").read_text())["@type"]
        assert kind == f"neuroglancer_{'legacy_mesh' if form == 'legacy' else 'multilod_draco'}"


def test_chunks_and_indexes_in_shards() -> None:
    points = cloud(chunk_shape=(2, 2, 2), sharding=(2, 2, 2))
    files = [path for path in Path("cloud.zv/0/vertices/c").rglob("*") if path.is_file()]
    assert len(files) == 27 and len(points.query()) == 1000
    report = points.export_precomputed("out", sharded=True, layers=["annotations"])
    assert report.files > 0 and list(Path("out").rglob("*.shard"))
