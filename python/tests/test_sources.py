"""Stores from results and from geometry of other packages in memory."""

from __future__ import annotations

import inspect
import json
import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import zvf

AXES = [("x", "micrometer"), ("y", "micrometer"), ("z", "micrometer")]
POSITIONS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5], [6, 5, 5], [5, 6, 5]], np.float32)
FACES = [[0, 1, 2], [3, 4, 5]]
EDGES = [[0, 1], [1, 2], [3, 4]]
KINDS: dict[str, dict[str, Any]] = {
    "points": {"object_ids": [4, 4, 4, 7, 7, 7]},
    "lines": {"part_offsets": [0, 2, 4, 6], "part_objects": [4, 7, 9]},
    "polylines": {"part_offsets": [0, 3, 6], "part_objects": [4, 7]},
    "streamlines": {"part_offsets": [0, 3, 6], "part_objects": [4, 7]},
    "skeletons": {"object_ids": [4, 4, 4, 7, 7, 7], "links": [[1, 0], [2, 1], [4, 3], [5, 4]]},
    "graphs": {"object_ids": [4, 4, 4, 7, 7, 7], "links": EDGES},
    "mesh": {"object_ids": [4, 4, 4, 7, 7, 7], "links": FACES},
}


def made(kind: str) -> zvf.Dataset:
    objects = 3 if kind == "lines" else 2
    zvf.create(
        "a.zv", kind=kind, positions=POSITIONS, axes=AXES, crs={"name": "atlas"}, name="brain",
        vertex={"fa": np.arange(6, dtype=np.float32)}, object={"side": ["l", "r", "l"][:objects]},
        groups={"left": [4], "both": [4, 7], "none": []}, group={"weight": [1.0, 2.0, 3.0]},
        chunk_shape=(4, 4, 4), **KINDS[kind],
    )  # fmt: skip
    return zvf.open("a.zv")


def described(store: str) -> dict[str, Any]:
    root: dict[str, Any] = json.loads(Path(store, "zarr.json").read_text())["attributes"]
    for member in ("zvf_nodes", "zvf_transaction"):
        root.pop(member, None)
    return root


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("box", [None, ((-1, -1, -1), (2, 2, 2))])
def test_a_result_is_the_store_that_its_file_is(kind: str, box: Any) -> None:
    source = made(kind)
    source.save("b.npz", bbox=box)
    zvf.create("b.zv", kind=kind, source="b.npz", chunk_shape=(4, 4, 4))
    zvf.create("c.zv", source=source.query(bbox=box), chunk_shape=(4, 4, 4))
    assert described("c.zv") == described("b.zv")
    of_file, of_result = zvf.open("b.zv"), zvf.open("c.zv")
    assert of_result.units == ["micrometer"] * 3 and of_result.crs == {"name": "atlas"}
    groups = of_result.groups()
    assert [(group.name, group.attributes) for group in groups] == [
        ("left", {"weight": 1.0}), ("both", {"weight": 2.0}), ("none", {"weight": 3.0})
    ]  # fmt: skip
    assert groups == of_file.groups()
    one, other = of_file.query(), of_result.query()
    assert np.array_equal(one.positions, other.positions)
    assert one.objects.tolist() == other.objects.tolist()
    assert one.object["side"].tolist() == other.object["side"].tolist()
    assert of_result.kinds == of_file.kinds


def test_headers_of_files_reach_stores_of_results() -> None:
    header = np.diag([2.0, 2, 2, 1])
    zvf.create("a.zv", kind="streamlines", source=zvf.open("tracts.zv").query(), overwrite=True)
    zvf.open("a.zv").save("a.trk")
    zvf.create("t.zv", source="a.trk")
    zvf.create("u.zv", source=zvf.open("t.zv").query())
    zvf.open("t.zv").save("one.trk")
    zvf.open("u.zv").save("two.trk")
    assert Path("one.trk").read_bytes() == Path("two.trk").read_bytes()
    assert header.shape == (4, 4)


def test_a_result_from_another_process_says_what_it_lacks() -> None:
    found = pickle.loads(pickle.dumps(made("streamlines").query()))
    report = zvf.create("b.zv", kind="streamlines", source=found, axes=AXES)
    assert any("another process" in note for note in report.notes)
    assert len(zvf.open("b.zv").query()) == 6


def test_stores_are_merged() -> None:
    store = made("streamlines")
    added = store.append(source=store.query(), ids="new")
    assert added.objects.tolist() == [8, 9]
    assert {group.name: group.size for group in store.groups()} == {"left": 2, "both": 4, "none": 0}
    assert store.query(groups="left").objects.tolist() == [4, 8]
    assert store.query(groups=["left", 1]).objects.tolist() == [4, 7, 8, 9]
    with pytest.raises(zvf.NoSuchObjectError, match="did you mean \"left\""):
        store.query(groups="lefd")
    with pytest.raises(zvf.InputError, match="exists already"):
        store.append(source=store.query())


def test_words_of_stores_are_kinds() -> None:
    store = made("mesh")
    arrays = store.query().arrays()
    arrays.pop("vertex")
    zvf.create("b.zv", kind=store.kinds[0], **arrays)
    assert zvf.open("b.zv").kinds == store.kinds


def test_lists_of_paths_are_joined() -> None:
    paths = [POSITIONS[:4], POSITIONS[4:]]
    values = {"fa": [np.zeros(4), np.ones(2)]}
    zvf.create("b.zv", kind="streamlines", positions=paths, vertex=values)
    found = zvf.open("b.zv").query()
    assert [len(path) for path in found.paths()] == [4, 2]
    assert found.vertex["fa"].tolist() == [0, 0, 0, 0, 1, 1]
    zvf.open("b.zv").append(positions=[POSITIONS[:3]], vertex={"fa": [np.full(3, 2.0)]})
    assert len(zvf.open("b.zv").query()) == 9


def test_tractograms_in_memory_are_sources() -> None:
    tractogram = SimpleNamespace(
        streamlines=[POSITIONS[:4], POSITIONS[4:]],
        data_per_point={"fa": [np.zeros((4, 1)), np.ones((2, 1))]},
        data_per_streamline={"weight": np.array([[0.5], [0.25]])},
        affine_to_rasmm=np.eye(4),
    )
    zvf.create("b.zv", source=tractogram)
    store = zvf.open("b.zv")
    found = store.query()
    assert store.units == ["millimeter"] * 3
    assert found.object["weight"].reshape(-1).tolist() == [0.5, 0.25]
    assert found.vertex["fa"].reshape(-1).tolist() == [0, 0, 0, 0, 1, 1]
    # Of a file with an oblique grid, nibabel rounds the product of two affines.
    tractogram.affine_to_rasmm = np.eye(4) + 5.96e-8
    zvf.create("d.zv", source=tractogram)
    tractogram.affine_to_rasmm = np.diag([2, 2, 2, 1])
    with pytest.raises(ValueError, match="to_world"):
        zvf.create("c.zv", source=tractogram)


def test_all_of_a_tractogram_is_kept() -> None:
    affine = np.array([[2.0, 0, 0, -10], [0, 2, 0, -20], [0, 0, 2, -30], [0, 0, 0, 1]])
    paths = {"streamlines": [POSITIONS[:4], POSITIONS[4:]], "data_per_streamline": {}}
    trx = SimpleNamespace(
        header={"VOXEL_TO_RASMM": affine, "DIMENSIONS": np.array([9, 8, 7], np.uint16)}, data_per_vertex={},
        groups={"left": np.array([1], np.uint32), "right": np.array([0], np.uint32)},
        data_per_group={"left": {"weight": np.array([[0.5]]), "rgb": np.array([1, 2, 3])}}, **paths,
    )  # fmt: skip
    stateful = SimpleNamespace(data_per_point={}, affine=affine, dimensions=(9, 8, 7), **paths)
    image = SimpleNamespace(affine=affine, shape=(9, 8, 7, 30))
    zvf.create("b.zv", source=trx)
    zvf.create("c.zv", source=stateful)
    zvf.create("d.zv", kind="streamlines", positions=paths["streamlines"], reference=image)
    zvf.create("e.zv", kind="streamlines", positions=paths["streamlines"])
    zvf.create("f.zv", kind="streamlines", source=zvf.open("b.zv").query())
    store = zvf.open("b.zv")
    assert store.crs == {"frame": "RAS+", "unit": "millimeter"}
    left, right = store.groups()
    assert left.attributes["weight"] == 0.5 and left.attributes["rgb"].tolist() == [1, 2, 3]
    assert np.isnan(right.attributes["weight"])
    for name in "bcdef":
        reference = (affine, (9, 8, 7)) if name == "e" else None
        zvf.open(f"{name}.zv").save("a.trk", reference=reference)
        header = Path("a.trk").read_bytes()[:1000]
        assert np.frombuffer(header, "<i2", 3, 6).tolist() == [9, 8, 7], name
        assert np.array_equal(np.frombuffer(header, "<f4", 16, 440).reshape(4, 4), affine), name
    with pytest.raises(ValueError, match="leave it out for points"):
        zvf.create("g.zv", kind="points", positions=POSITIONS, reference=image)
    with pytest.raises(TypeError, match="NIfTI"):
        store.save("a.trk", reference=3)
    with pytest.raises(zvf.NotFoundError, match="exist"):
        store.save("a.trk", reference="absent.nii")


def test_objects_of_a_result_stay_in_their_other_groups() -> None:
    store = made("streamlines")
    found = store.query(groups="left")
    assert list(found.groups) == [0]
    zvf.create("b.zv", source=found)
    sizes = {group.name: group.size for group in zvf.open("b.zv").groups()}
    assert sizes == {"left": 1, "both": 1, "none": 0}


def test_files_and_stores_are_appended() -> None:
    store = made("streamlines")
    store.save("b.npz", objects=[4])
    for source in ("b.npz", Path("b.npz")):
        added = store.append(source=source, ids="new")
        assert added.added == 3 and len(added.objects) == 1
    zvf.create("c.zv", source=store.query(objects=[7]), bounds=((0, 0, 0), (9, 9, 9)))
    added = zvf.open("c.zv").append(source="b.npz")
    assert added.objects.tolist() == [4]
    assert store.append(source="c.zv", ids="new").added == 6
    with pytest.raises(zvf.NotFoundError, match="absent"):
        store.append(source="absent.npz")
    with pytest.raises(zvf.Error, match="exists already|already exists") as raised:
        store.append(source="b.npz", ids="keep")
    assert "--" not in str(raised.value)


def test_coordinates_of_another_system_are_refused() -> None:
    column = SimpleNamespace(to_numpy=lambda: np.array([1.0, 2.0]))
    points = SimpleNamespace(
        name="geometry", x=column, y=column, isna=lambda: np.zeros(2, bool),
        geom_type=SimpleNamespace(dropna=lambda: ["Point"]), has_z=SimpleNamespace(all=lambda: False),
    )  # fmt: skip

    def frame(code: int) -> Any:
        system = {"type": "ProjectedCRS", "name": f"n{code}", "id": {"authority": "EPSG", "code": code}}
        crs = SimpleNamespace(to_json_dict=lambda: system)
        return SimpleNamespace(geometry=points, crs=crs, columns=["geometry"])

    zvf.create("b.zv", kind="points", source=frame(25832), bounds=((0, 0), (9, 9)))
    store = zvf.open("b.zv")
    with pytest.raises(ValueError, match="n25833.*n25832.*assume_crs=True"):
        store.append(source=frame(25833))
    assert store.append(source=frame(25833), assume_crs=True).added == 2
    assert store.append(source=frame(25832)).added == 2


def test_axes_have_several_forms() -> None:
    named = [("x", "nanometer"), ("y", "nanometer"), ("z", None)]
    forms: list[Any] = [named, dict(named), "x:nanometer,y:nanometer,z", ["x:nanometer", ("y", "nanometer"), "z"]]
    for axes in forms:
        zvf.create("b.zv", kind="points", positions=POSITIONS, axes=axes, overwrite=True)
        store = zvf.open("b.zv")
        assert list(zip(store.axes, store.units)) == named
    zvf.create("b.zv", kind="points", positions=POSITIONS, axes="abc", overwrite=True)
    assert zvf.open("b.zv").axes == ["a", "b", "c"]
    zvf.create("b.zv", kind="points", positions=POSITIONS, unit="nanometer", overwrite=True)
    assert zvf.open("b.zv").units == ["nanometer"] * 3
    with pytest.raises(ValueError, match="name and unit"):
        zvf.create("b.zv", kind="points", positions=POSITIONS, axes="x:a:b:c,y,z", overwrite=True)


def test_named_indexes_of_pandas_are_columns() -> None:
    pandas = pytest.importorskip("pandas")
    table = {"x": [0.0, 1], "y": [0.0, 1], "z": [0.0, 1]}
    index = pandas.Index([5, 6], name="cell")
    zvf.create("b.zv", kind="points", source=pandas.DataFrame(table, index=index))
    assert zvf.open("b.zv").query().vertex["cell"].tolist() == [5, 6]
    ids = pandas.Index([8, 9], name="object_id")
    zvf.create("c.zv", kind="points", source=pandas.DataFrame(table, index=ids))
    assert zvf.open("c.zv").query().objects.tolist() == [8, 9]
    values = pandas.DataFrame({"q": [1, 2]}, index=index)
    zvf.create("d.zv", kind="points", positions=POSITIONS[:2], vertex=values)
    assert sorted(one.name for one in zvf.open("d.zv").attributes()) == ["cell", "q"]


def test_text_without_quotes_is_named() -> None:
    store = made("streamlines")
    for run in (store.query, store.count, store.delete):
        with pytest.raises(zvf.InputError, match="in single quotes, as 'left'"):
            run(where="group.name = left")


def test_changes_list_their_objects() -> None:
    store = made("streamlines")
    changed = store.replace(
        positions=POSITIONS[:2], part_offsets=[0, 2], part_objects=[7], vertex={"fa": np.zeros(2, np.float32)}
    )
    assert changed.objects.tolist() == [7]
    deleted = store.delete(objects=[4])
    assert deleted is not None and deleted.objects.tolist() == [4]
    assert store.drop_attributes(["fa", "side"]).transaction == store.transaction
    assert {one.family for one in store.attributes()} == {"group"}


def test_arguments_are_listed() -> None:
    store = made("points")
    parameters = inspect.signature(store.query).parameters
    assert {"bbox", "where", "objects", "groups", "level"} <= parameters.keys()
    assert "batch_rows" in inspect.signature(store.batches).parameters
    assert "compression" in inspect.signature(zvf.create).parameters
    assert "Select by a box" in (zvf.QueryOptions.__doc__ or "")
    assert "Filter by attributes" in (zvf.BatchOptions.__doc__ or "")
    assert store.query().vertex._ipython_key_completions_() == ["fa"]


def test_an_empty_box_is_explained() -> None:
    store = made("points")
    with pytest.warns(zvf.ZvfWarning, match="lower bound of x, 9, is above"):
        found = store.query(bbox=((9, 0, 0), (1, 1, 1)))
    assert len(found) == 0 and "the box is empty" in found.notes[0]
    away = ((90, 0, 0), (91, 1, 1))
    for run in (store.query, store.count, lambda bbox: store.save("a.csv", bbox=bbox)):
        assert any("outside the store" in note for note in run(bbox=away).notes)
        with pytest.warns(zvf.ZvfWarning, match="the box is empty"):
            assert any("the box is empty" in note for note in run(bbox=((9, 0, 0), (1, 1, 1))).notes)


def test_an_affine_in_the_wrong_direction_is_named() -> None:
    store = made("points")
    volume = np.zeros((4, 4, 4))
    image = SimpleNamespace(dataobj=volume, affine=np.diag([2.0, 2, 2, 1]))
    assert store.sample(image, into="t1").outside == 0
    away = np.eye(4)
    away[:3, 3] = 900
    with pytest.raises(zvf.InputError, match="no vertex is inside the volume"):
        store.sample(volume, into="t2", affine=away)
    assert [one.name for one in store.attributes()].count("t2") == 0
    to_positions = np.diag([2.0, 2, 2, 1])
    to_positions[:3, 3] = -0.5
    with pytest.raises(zvf.InputError, match="a small part of the vertices .* give its inverse"):
        store.sample(volume, into="t3", affine=to_positions)
    moved = np.eye(4)
    moved[0, 3] = 3
    with pytest.warns(zvf.ZvfWarning, match="4 of 6 vertices are outside the volume"):
        report = store.sample(volume, into="t4", affine=moved)
    assert report.outside == 4 and len(report.notes) == 1


def test_the_unit_of_an_image_is_that_of_its_affine() -> None:
    store = made("points")
    image = SimpleNamespace(
        dataobj=np.arange(343.0).reshape(7, 7, 7), affine=np.diag([0.001, 0.001, 0.001, 1]), header=None
    )
    assert store.sample(image, into="t1").outside == 0
    assert store.query(where="x = 1").vertex["t1"].tolist() == pytest.approx([49])


def test_units_are_one_decision() -> None:
    millimeters = SimpleNamespace(
        streamlines=[POSITIONS[:4], POSITIONS[4:]], data_per_streamline={}, affine_to_rasmm=np.eye(4)
    )
    zvf.create("u.zv", kind="streamlines", positions=[POSITIONS[:3]], axes=AXES, bounds=((0, 0, 0), (9e3,) * 3))
    store = zvf.open("u.zv")
    changed = store.append(source=millimeters)
    assert changed.notes[0] == "x converted from millimeter to micrometer"
    assert store.query(objects=changed.objects).positions[1].tolist() == [1000, 0, 0]
    found = store.query(objects=[0])
    assert store.append(source=found, ids="new").notes == []
    with pytest.raises(ValueError, match="x is in micrometer in the file, not in nanometer"):
        store.append(source=found, ids="new", unit="nanometer")
    store.save("u.npz", unit="nanometer", objects=[0])
    with pytest.raises(ValueError, match="x is in nanometer in the file, not in micrometer"):
        zvf.create("v.zv", kind="streamlines", source="u.npz", axes=AXES)
    zvf.create("v.zv", kind="streamlines", source="u.npz")
    assert zvf.open("v.zv").units == ["nanometer"] * 3
    with pytest.raises(ValueError, match="did you mean micrometer"):
        zvf.create("w.zv", kind="points", positions=POSITIONS, axes=["x", ("y", "micrometr"), "z"])
    with pytest.raises(zvf.InputError, match="files hold millimetres"):
        store.save("u.trk", unit="nanometer")
    other = made("streamlines").query()
    zvf.create("w.zv", kind="streamlines", source=found, crs={"name": "scanner"})
    with pytest.raises(ValueError, match="assume_crs=True"):
        zvf.open("w.zv").append(source=other, ids="new")


def test_parts_are_drawn_and_selected_whole() -> None:
    store = made("streamlines")
    whole = store.query(nearest=(6, 6, 6), whole=True)
    assert whole.objects.tolist() == [7] and len(whole) == 3
    assert store.nearest((6, 6, 6), 2, whole=True).objects.tolist() == [7, 4]
    for part in ({"where": "fa > 2"}, {"groups": "left"}, {"objects": [7]}, {"sphere": ((0, 0, 0), 2)}):
        assert store.render(size=(80, 64), flip_y=True, **part).vertices == 3
    assert len(store.drop_attributes("side", "vertex.fa").__dict__) > 0
    assert store.attributes() == [] or {one.name for one in store.attributes()} == {"weight", "name"}
    with pytest.raises(zvf.Error, match="there is no attribute fa"):
        store.drop_attributes("fa")


def test_python_explains_itself() -> None:
    found = made("points").query()
    html = found._repr_html_()
    assert "<th>vertex.fa</th>" in html and "and 1 more rows" in html
    with pytest.raises(TypeError, match="to_pandas"):
        iter(found)
    sparse = SimpleNamespace(toarray=None, tocsr=None)
    with pytest.raises(TypeError, match="toarray"):
        zvf.create("b.zv", kind="points", positions=POSITIONS, vertex={"X": sparse})
    lazy = SimpleNamespace(collect=None, collect_schema=None)
    with pytest.raises(TypeError, match="collect"):
        zvf.create("b.zv", kind="points", source=lazy)
    Path("n.csv").write_text("a,b\n1,2\n3,4\n")
    Path("m.csv").write_text("a,b,q\n1,2,\n3,4,5\n")
    with pytest.raises(zvf.Error) as raised:
        zvf.create("b.zv", kind="points", source="n.csv")
    assert "for example axes a,b" in str(raised.value) and "--" not in str(raised.value)
    with pytest.raises(zvf.Error, match="missing='nan'"):
        zvf.create("b.zv", kind="points", source="m.csv", axes=["a", "b"])
    zvf.create("b.zv", kind="points", source="m.csv", axes=["a", "b"], missing="nan", rename={"q": "size"})
    assert np.isnan(zvf.open("b.zv").query().vertex["size"]).sum() == 1
    trx = SimpleNamespace(
        streamlines=[POSITIONS[:4], POSITIONS[4:]], data_per_vertex={}, data_per_streamline={},
        groups={"left": np.array([1], np.uint32)},
    )  # fmt: skip
    zvf.create("c.zv", source=trx)
    assert zvf.open("c.zv").query(groups="left").objects.tolist() == [1]


def test_tables_are_read_within_the_memory() -> None:
    rows = "\n".join(f"{at % 97},{at % 89},{at}" for at in range(20_000))
    Path("t.csv").write_text(f"x,y,q\n{rows}\n")
    zvf.create("t.zv", kind="points", source="t.csv", memory=1 << 20, unit="micrometer")
    store = zvf.open("t.zv")
    assert store.units == ["micrometer"] * 2
    assert np.sort(store.query().vertex["q"]).tolist() == list(range(20_000))
