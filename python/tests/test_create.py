"""Creating stores from arrays."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

import zvf

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [5, 5, 5]], np.float64)


@pytest.mark.parametrize("dtype", ["f4", ">f4", "f8", ">f8", "i4", "u1"])
def test_any_type_and_stride(dtype: str) -> None:
    strided = np.repeat(np.asfortranarray(CORNERS.astype(dtype)), 2, axis=0)[::2]
    readonly = strided.view()
    readonly.setflags(write=False)
    zvf.create("out.zv", kind="points", positions=readonly, chunk_shape=(10, 10, 10))
    found = zvf.open("out.zv").query().positions
    assert found.dtype == np.dtype(dtype).newbyteorder("=")
    assert found.tolist() == CORNERS.tolist()


def test_every_family_of_attributes() -> None:
    zvf.create(
        "out.zv",
        kind="graphs",
        positions=CORNERS,
        object_ids=[0, 0, 0, 1],
        links=[[0, 1], [1, 2]],
        vertex={"radius": [1, 2, 3, 4], "rgb": np.arange(12, dtype=np.uint8).reshape(4, 3)},
        link={"weight": [0.5, 0.25]},
        object={"name": ["a", None]},
        groups={"AF": [0], "CST": [0, 1]},
        chunk_shape=(10, 10, 10),
    )
    found = zvf.open("out.zv").query(groups=1)
    assert found.links is not None and found.object_ids is not None
    assert found.links.tolist() == [[0, 1], [1, 2]]
    assert found.link["weight"].tolist() == [0.5, 0.25]
    assert found.vertex["rgb"].shape == (4, 3)
    assert found.object["name"].tolist() == ["a", None]
    assert {number: ids.tolist() for number, ids in found.groups.items()} == {1: [0, 1]}
    codes, words = found.object.categories("name")
    assert words[codes[0]] == "a"
    with pytest.raises(TypeError, match="numbers"):
        found.vertex.categories("radius")
    with pytest.raises(TypeError, match="no paths"):
        found.paths()


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"positions": [1.0, 2.0]}, ValueError, "shape"),
        ({"positions": [[1.0], [1.0, 2.0]]}, ValueError, "positions"),
        ({"positions": np.array([[object()]])}, TypeError, "object"),
        ({"positions": [[float("nan"), 0, 0]]}, zvf.InputError, "."),
        ({"kind": "blobs"}, ValueError, "points, lines"),
        ({"vertex": {"fa": [1.0]}}, zvf.InputError, "fa"),
        ({"vertex": {"fa": [object()] * 4}}, TypeError, "vertex.fa.*row 0"),
        ({"vertex": {"fa": np.zeros((4, 2, 2))}}, ValueError, "shape"),
        ({"vertex": [1, 2]}, TypeError, "dictionary"),
        ({"vertex": {1: [1.0] * 4}}, TypeError, "names are text"),
        ({"vertex": {"n": np.ma.array([1] * 4, mask=[True, False, False, False])}}, ValueError, "missing"),
        ({"object_ids": [0.5] * 4}, TypeError, "integers"),
        ({"object_ids": [[0]] * 4}, ValueError, "axes"),
        ({"compression": "lzma"}, ValueError, "zstd"),
        ({"chunk_shape": (0, 1, 1)}, zvf.InputError, "."),
        ({"chunkshape": (1, 1, 1)}, TypeError, "chunkshape.*chunk_shape"),
        ({"groups": {"a": [0], 1: [0]}}, TypeError, "numbers or names"),
        ({"groups": [[0]]}, TypeError, "groups is a list"),
        ({"progress": 3}, TypeError, "progress is a int"),
    ],
)
def test_unusable_geometry(
    arguments: dict[str, object], error: type[Exception], says: str
) -> None:
    given = {"kind": "points", "positions": CORNERS} | arguments
    with pytest.raises(error, match=says):
        zvf.create("out.zv", **given)  # type: ignore[arg-type]
    with pytest.raises(zvf.NotFoundError):
        zvf.open("out.zv")


def test_masked_columns_of_a_table_are_refused() -> None:
    """Masked coordinates and ids were stored with the values below the mask."""
    mask = [False, True, False]
    table = {"x": np.arange(3.0), "y": np.zeros(3), "object_id": np.arange(3)}
    masked = {name: np.ma.array(values, mask=mask) for name, values in table.items()}
    with pytest.raises(zvf.InputError, match="finite"):
        zvf.create("out.zv", kind="points", source=table | {"x": masked["x"]})
    with pytest.raises(ValueError, match="object_id has missing values, which int64"):
        zvf.create("out.zv", kind="points", source=table | {"object_id": masked["object_id"]})
    with pytest.raises(zvf.NotFoundError):
        zvf.open("out.zv")


def test_text_in_lists_is_stored_as_given() -> None:
    """Regression test: NumPy wrote NaN and numbers as words, and dropped NUL."""
    words = ["a", float("nan"), np.float32("nan"), np.str_("b\0")]
    for column in (words, tuple(words)):
        zvf.create("out.zv", kind="points", positions=CORNERS, vertex={"w": column}, overwrite=True,
                   chunk_shape=(10, 10, 10))  # fmt: skip
        assert zvf.open("out.zv").query().vertex["w"].tolist() == ["a", None, None, "b\0"]
    for other in (1, True, b"b", ["b"]):
        with pytest.raises(TypeError, match=f"vertex.w has a value of type {type(other).__name__}"):
            zvf.create("two.zv", kind="points", positions=CORNERS, vertex={"w": ["a", other]})
    with pytest.raises(TypeError, match=r"vertex\.w.*row 2"):
        zvf.open("out.zv").append(positions=CORNERS, vertex={"w": ["a", "b", 1, "c"]})


def test_long_texts_in_lists_take_no_more_memory() -> None:
    """Regression test: each row took the memory of the longest text, here 16 TB."""
    words = ["a" * (1 << 26), *["b"] * (1 << 16)]
    with pytest.raises(zvf.InputError, match="w"):
        zvf.create("out.zv", kind="points", positions=CORNERS, vertex={"w": words})


def test_integers_with_missing_values_are_created_again_once_filled() -> None:
    """Regression test: the error did not say what to do."""
    zvf.create("lines.zv", kind="points", positions=CORNERS, object_ids=[1, 1, 2, 2],
               chunk_shape=(10, 10, 10))  # fmt: skip
    lines = zvf.open("lines.zv")
    lines.write_attributes(object={"n": np.array([7])}, objects=[2])
    found = lines.query()
    n = found.object["n"]
    assert n.tolist() == [None, 7]
    with pytest.raises(ValueError, match=r"object\.n has missing values.*filled"):
        zvf.create("out.zv", kind="points", source=found)
    arrays = found.arrays()
    arrays["object"] = {"n": np.ma.filled(n, -1)}
    zvf.create("out.zv", kind="points", chunk_shape=(10, 10, 10), **arrays)
    assert zvf.open("out.zv").query().object["n"].tolist() == [-1, 7]


@pytest.mark.parametrize("kind", ["points", "graphs", "mesh"])
def test_columns_that_do_not_group_the_rows_are_refused(kind: str) -> None:
    """They were left out."""
    table = {"x": [0.0, 1], "y": [0.0, 1], "z": [0.0, 1], "part": [4, 5], "q": [1, 2]}
    with pytest.raises(ValueError, match=r"part defines paths.*vertex\.part"):
        zvf.create("out.zv", kind=kind, source=table)
    both = {"x": [0.0, 1], "object": [1, 2], "object_id": [1, 2]}
    for other in (kind, "streamlines"):
        with pytest.raises(ValueError, match="object and object_id"):
            zvf.create("out.zv", kind=other, source=both)
    with pytest.raises(zvf.NotFoundError):
        zvf.open("out.zv")


def test_a_part_may_be_an_attribute() -> None:
    table = {"x": [0.0, 1], "y": [0.0, 1], "vertex.part": [4, 5]}
    zvf.create("out.zv", kind="points", source=table)
    assert zvf.open("out.zv").query().vertex["part"].tolist() == [4, 5]


def test_an_existing_store_is_kept() -> None:
    with pytest.raises(zvf.ExistsError):
        zvf.create("tracts.zv", kind="points", positions=CORNERS)
    assert len(zvf.open("tracts.zv").query()) == 5
    zvf.create("tracts.zv", kind="points", positions=CORNERS, overwrite=True)
    assert len(zvf.open("tracts.zv").query()) == 4


@pytest.mark.parametrize(("given", "winding"), [(None, "ccw"), ("cw", "cw")])
def test_meshes_have_an_order_of_corners(
    given: Literal["cw"] | None, winding: Literal["ccw", "cw"]
) -> None:
    options: zvf.CreateOptions = {} if given is None else {"winding": given}
    zvf.create("one.zv", kind="mesh", positions=np.eye(3), links=[[0, 1, 2]], **options)
    store = zvf.open("one.zv")
    assert store.winding == winding
    assert store.conventions["links_convention"] == "explicit"
    assert isinstance(store.capabilities, list)
    assert [found.delta for found in store.link_info()] == [0]
    assert zvf.open("tracts.zv").winding is None


def test_fragments_have_values_and_owners() -> None:
    x = [1, 2, 11, 3, 12, 22]
    zvf.create(
        "fragments.zv", kind="streamlines", positions=[[value, 1] for value in x],
        part_offsets=[0, 4, 6], part_objects=[7, 9], fragment_rows={"k": [0.5, 0.5, 1.5, 2.5, 3.5, 4.5]},
        chunk_shape=(10, 10), fragment_owners=True,
    )  # fmt: skip
    store = zvf.open("fragments.zv")
    found = store.query(objects=7, row_ids=True)
    assert found.row_ids is not None
    assert found.fragment["k"].tolist() == [0.5, 0.5, 1.5, 2.5]
    assert found.fragment["object_id"].tolist() == [7] * 4
    written = store.write_attributes(
        fragment={"k": [9.0]}, row_ids=found.row_ids[1:2], transaction=found.transaction
    )
    assert written.chunks > 0
    assert store.query(objects=7).fragment["k"].tolist() == [9.0, 9.0, 1.5, 2.5]
    assert store.query(objects=9).fragment["k"].tolist() == [3.5, 4.5]
    found = store.query(objects=7, row_ids=True)
    assert found.row_ids is not None
    with pytest.raises(ValueError, match="differs between vertices of fragment"):
        store.write_attributes(
            fragment={"k": [1.0, 2.0]}, row_ids=found.row_ids[:2], transaction=found.transaction
        )
    with pytest.raises(TypeError, match="of vertices, of objects or of fragments"):
        store.write_attributes(fragment={"k": [1.0]}, vertex={"k": [1.0]})
    assert zvf.validate("fragments.zv").ok


def test_any_text_is_a_name_of_an_attribute() -> None:
    values = {"HLA-A": [1, 4, 5, 6], "mean FA": [0.5, 0.25, 2.5, 1.0], "größe/2": [1, 2, 3, 4]}
    zvf.create("out.zv", kind="points", positions=CORNERS, vertex=values)
    store = zvf.open("out.zv")
    assert sorted(one.name for one in store.attributes()) == sorted(values)
    found = store.query(where='"HLA-A" > 3 and vertex."mean FA" < 2', row_ids=True)
    assert found.vertex["HLA-A"].tolist() == [4, 6]
    zvf.create("again.zv", source=found)
    assert sorted(zvf.open("again.zv").query().vertex) == sorted(values)
    with pytest.raises(ValueError, match='write "HLA-A" in double quotes'):
        store.query(where="HLA-A > 3")


def test_an_attribute_with_the_name_of_an_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="has the name of an axis"):
        zvf.create("out.zv", kind="points", positions=CORNERS, vertex={"x": [1, 2, 3, 4]})
