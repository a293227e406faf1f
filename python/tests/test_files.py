"""Files and tables as input, pictures, and volumes."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf


def write_tck(path: str, paths: list[list[tuple[float, float, float]]]) -> None:
    header = f"mrtrix tracks\ndatatype: Float32LE\ncount: {len(paths)}\nfile: . "
    at = len(header) + len("67\nEND\n")
    text = f"{header}{at}\nEND\n"
    nan, inf = (float("nan"),) * 3, (float("inf"),) * 3
    rows = [row for path in paths for row in [*path, nan]] + [inf]
    Path(path).write_bytes(text.encode() + b"".join(struct.pack("<3f", *row) for row in rows))


def test_a_file_becomes_a_store() -> None:
    write_tck("two.tck", [[(0, 0, 0), (1, 1, 1)], [(5, 5, 5), (6, 5, 5), (7, 5, 5)]])
    report = zvf.create("two.zv", source=Path("two.tck"), chunk_shape=(10, 10, 10))
    assert (report.vertices, report.objects) == (5, 2)
    two = zvf.open("two.zv")
    assert two.kinds == ["streamline"]
    assert [len(path) for path in two.query().paths()] == [2, 3]
    assert two.units == ["millimeter"] * 3 or two.units == [None] * 3


def test_names_of_meshes_are_ids() -> None:
    folder = Path("segments")
    folder.mkdir()
    for name in ("0017", "722817260"):
        (folder / f"{name}.obj").write_text("v 0 0 0\nv 1 0 0\nv 1 1 0\nf 1 2 3\n")
    reports = [
        zvf.create("named.zv", source=folder),
        zvf.create("numbered.zv", source=folder, ids="number"),
        zvf.create("listed.zv", source=folder, ids=[4, 8]),
    ]
    assert [(report.vertices, report.objects) for report in reports] == [(6, 2)] * 3
    stores = [zvf.open(f"{name}.zv").query().objects.tolist() for name in ("named", "numbered", "listed")]
    assert stores == [[17, 722817260], [0, 1], [4, 8]]
    with pytest.raises(ValueError, match="name, number or a list"):
        zvf.create("other.zv", source=folder, ids="new")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"source": "absent.tck"}, zvf.NotFoundError, "absent.tck"),
        ({"source": "short.tck"}, zvf.InputError, "short.tck"),
        ({"source": "short.csv", "kind": "points"}, zvf.InputError, "short.csv|vert"),
        ({"source": "short.csv"}, TypeError, "kind is missing"),
        ({"source": "absent.npz", "kind": "points"}, zvf.NotFoundError, "absent.npz"),
        ({"source": "short.npz", "kind": "points"}, zvf.InputError, "short.npz"),
        ({"source": "short.parquet", "kind": "points"}, zvf.InputError, "short.parquet"),
        ({"source": "short.csv", "kind": "lines", "companions": ["a"]}, TypeError, "without being"),
        ({"source": "short.txt"}, zvf.InputError, "short.txt"),
        ({"source": "short.tck", "positions": [[0, 0, 0]]}, TypeError, "positions"),
        ({"source": 3}, TypeError, "int"),
        ({"positions": [[0, 0, 0]], "kind": "points", "companions": ["a"]}, TypeError, "file"),
        ({"positions": [[0, 0, 0]]}, TypeError, "kind is missing"),
    ],
)
def test_files_that_are_refused(
    arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    Path("short.tck").write_bytes(b"mrtrix tracks\n")
    Path("short.csv").write_text("x,y\n")
    for name in ["short.npz", "short.parquet", "short.txt"]:
        Path(name).write_bytes(b"PK\x03\x04 and no more")
    with pytest.raises(error, match=says):
        zvf.create("out.zv", **arguments)
    assert not Path("out.zv").exists()


def test_tables_of_paths_and_points() -> None:
    table = {
        "x": [0.0, 1, 5, 6, 7],
        "y": [0.0, 1, 5, 5, 5],
        "part": [0, 0, 1, 1, 1],
        "object": [4, 4, 2, 2, 2],
        "fa": np.arange(5, dtype=np.float32),
        "vertex.side": ["l", "l", "r", "r", None],
    }
    zvf.create("paths.zv", kind="streamlines", source=table, chunk_shape=(10, 10))
    found = zvf.open("paths.zv").query()
    assert found.objects.tolist() == [2, 4] or found.objects.tolist() == [4, 2]
    assert sorted(len(path) for path in found.paths()) == [2, 3]
    assert sorted(found.vertex) == ["fa", "side"]
    del table["part"]
    zvf.create(
        "points.zv", kind="points", source=table, axes=[("y", None), ("x", None)],
        object={"name": ["a", "b"]}, chunk_shape=(10, 10),
    )  # fmt: skip
    points = zvf.open("points.zv")
    assert points.axes == ["y", "x"]
    assert points.query(where="object.name = 'a'").positions.tolist()[0] == [5, 5]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"source": {"a": [1.0]}}, "no column 'x'"),
        ({"source": {"x": [1.0]}, "kind": "lines"}, "part or object"),
        ({"source": {"x": [1.0]}, "axes": [("t", None)]}, "no column 't'"),
    ],
)
def test_tables_that_are_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        zvf.create("out.zv", **{"kind": "points", **arguments})
    with pytest.raises(TypeError, match="positions are in the source"):
        zvf.create("out.zv", kind="points", source={"x": [1.0]}, positions=[[1.0]])


def test_pictures() -> None:
    tracts = zvf.open("tracts.zv")
    picture = tracts.render(size=(160, 120), title="two paths")
    assert (picture.width, picture.height, picture.vertices) == (160, 120, 5)
    pixels = np.asarray(picture)
    assert pixels.dtype == np.uint8 and len(np.unique(pixels.reshape(-1, 3), axis=0)) > 10
    picture.save("two.png")
    png = Path("two.png").read_bytes()
    assert png == picture._repr_png_() and png[:4] == b"\x89PNG"
    assert tuple(struct.unpack(">II", png[16:24])) == (160, 120)
    assert "image/png;base64" in tracts._repr_html_()
    with pytest.raises(ValueError, match=".png"):
        picture.save("two.jpg")
    # Once a title took time with the square of its length.
    assert tracts.render(size=(160, 120), title="long " * 20_000).vertices == 5


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"sizes": 1}, "sizes"),
        ({"view": "top"}, "axial"),
        ({"palette": "jet"}, "viridis"),
        ({"range": (2.0, 1.0)}, "lower first"),
        ({"stroke": 0.0}, "200 pixels"),
        ({"level": 0, "budget": 9}, "a level or a budget"),
        ({"size": (0, 9)}, "size|0"),
        ({"color": "fb"}, "fb"),
        ({"bbox": ((50, 50, 50), (60, 60, 60))}, "."),
    ],
)
def test_pictures_that_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises((TypeError, ValueError), match=says):
        zvf.open("tracts.zv").render(**options)


def test_volumes_become_attributes() -> None:
    tracts = zvf.open("tracts.zv")
    volume = np.arange(1000, dtype=np.int16).reshape(10, 10, 10)
    report = tracts.sample(volume[::-1], into="far", interpolation="nearest")
    assert (report.vertices, report.outside) == (5, 0)
    assert tracts.query(objects=3).vertex["far"].tolist() == [900, 811, 711]
    np.save("volume.npy", volume)
    tracts.sample("volume.npy", into="mean", reduce="mean", affine=np.eye(4))
    assert tracts.query(objects=8).object["mean"].tolist() == [(999 + 899) / 2]
    half = np.diag([0.5, 0.5, 0.5, 1])
    tracts.sample("volume.npy", into="half", affine=half, outside="edge")
    assert tracts.query(objects=3).vertex["half"].tolist()[1] == pytest.approx(55.5)
    with pytest.raises(zvf.ExistsError, match="half"):
        tracts.sample(volume, into="half")
    with pytest.raises(ValueError, match="affine"):
        tracts.sample(volume, into="other", affine=np.eye(3))
    with pytest.raises(ValueError, match="Object"):
        tracts.sample(np.array([[[object()]]]), into="other")
    with pytest.raises(zvf.NotFoundError):
        tracts.sample("absent.nii", into="other")


@pytest.mark.parametrize("form", ["npz", "csv", "arrow", "parquet"])
def test_saved_results_become_stores(form: str) -> None:
    zvf.create(
        "neurons.zv", kind="graphs", positions=np.arange(9.0).reshape(3, 3),
        object_ids=[0, 0, 1], links=[[1, 0]], vertex={"type": ["soma", None, "axon"]},
        link={"weight": np.array([0.5], np.float32)}, object={"name": ["a", "b"]},
        groups={0: [1]}, axes=[("x", "micrometer"), ("y", "micrometer"), ("z", "micrometer")],
        chunk_shape=(10, 10, 10),
    )  # fmt: skip
    neurons = zvf.open("neurons.zv")
    neurons.save(f"all.{form}")
    seen: list[tuple[int, int]] = []
    zvf.create(
        "again.zv", kind="graphs", source=f"all.{form}",
        progress=lambda *counts: seen.append(counts),
    )  # fmt: skip
    again, found, old = zvf.open("again.zv"), zvf.open("again.zv").query(), neurons.query()
    np.testing.assert_array_equal(found.positions, old.positions)
    assert found.links is not None and found.links.tolist() == [[1, 0]]
    assert found.vertex["type"].tolist() == ["soma", None, "axon"]
    assert found.link["weight"].tolist() == [0.5] and found.object["name"].tolist() == ["a", "b"]
    assert again.units == ["micrometer"] * 3
    assert seen and seen[-1][0] == seen[-1][1]


def test_geoparquet_is_written_and_read() -> None:
    saved = zvf.open("tracts.zv").save("tracts.geoparquet")
    assert saved.left_out == ["2 groups: not supported by geoparquet"]
    # By its metadata, not by its extension.
    Path("tracts.geoparquet").rename("tracts.parquet")
    report = zvf.create("again.zv", source="tracts.parquet")
    assert (report.vertices, report.objects) == (5, 2)
    old, new = zvf.open("tracts.zv").query(), zvf.open("again.zv").query()
    np.testing.assert_array_equal(new.positions, old.positions)
    assert new.objects.tolist() == [3, 8] and new.object["length"].tolist() == [2.5, 1]
    assert new.vertex["fa"].tolist() == old.vertex["fa"].tolist()


def test_parts_of_one_object_stay_apart() -> None:
    tracts = zvf.open("tracts.zv")
    tracts.replace(
        positions=[[0, 0, 0], [9, 0, 0], [9, 9, 0], [0, 9, 0]], part_offsets=[0, 4],
        part_objects=[3], vertex={"fa": [0, 1, 2, 3]},
    )  # fmt: skip
    parts = tracts.query(bbox=((0, 0, 0), (5, 9, 9)), mode="clip")
    assert parts.part_objects is not None and parts.part_objects.tolist() == [3, 3]
    tracts.save("parts.npz", bbox=((0, 0, 0), (5, 9, 9)), mode="clip")
    report = zvf.create("parts.zv", source="parts.npz")
    assert report.objects == 2 and any("source_object" in note for note in report.notes)
