"""The calls that the documentation promises, as users write them."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf

duckdb: Any = pytest.importorskip("duckdb")
pa: Any = pytest.importorskip("pyarrow")
pl: Any = pytest.importorskip("polars")


def test_a_store_from_arrays_to_tables_and_pictures() -> None:
    random = np.random.default_rng(3)
    p, o = random.uniform(0, 20, (60, 3)).astype(np.float32), np.arange(0, 61, 6)
    fa = random.random(60).astype(np.float32)
    zvf.create("out.zv", kind="streamlines", positions=p, part_offsets=o, vertex={"fa": fa},
               groups={"AF": [0, 1, 2]}, chunk_shape=(5, 5, 5), bounds=((0, 0, 0), (20, 20, 20)),
               object={"length": np.arange(10, dtype=np.float32)})  # fmt: skip
    ds = zvf.open("out.zv")
    for word in ["out.zv", "streamline", "0.9", "bounds", "level"]:
        assert word in repr(ds)
    html = ds._repr_html_()
    assert "data:image/png;base64" in html and "<table>" in html
    r = ds.query(
        bbox=((0, 0, 0), (10, 10, 10)), mode="clip", where="fa > 0.3", select=["fa", "length"],
        level=0,
    )  # fmt: skip
    assert (r.positions <= 10).all() and (r.vertex["fa"] > 0.3).all() and len(r) > 0
    assert r.part_offsets is not None and r.links is None
    assert len(r.objects) == len(r.object["length"]) > 0
    for path in r.paths():
        assert path.base is not None and not path.flags.writeable
    assert pl.from_arrow(r).struct.unnest().equals(pl.DataFrame(r))
    assert duckdb.sql("from r").fetchnumpy()["x"].tolist() == r.positions[:, 0].tolist()
    assert pa.table(r).num_rows == len(r)
    rows = sum(len(batch) for batch in ds.batches(where="fa > 0.3"))
    assert rows == ds.count(where="fa > 0.3").vertices
    assert "requests" in str(ds.explain(bbox=((0, 0, 0), (10, 10, 10))))
    assert len(ds.nearest((1, 1, 1), 2).objects) == 2

    async def main() -> zvf.Result:
        return await ds.aquery(objects=3)

    assert asyncio.run(main()).objects.tolist() == [3]
    ds.append(positions=p[:6], part_offsets=[0, 6], vertex={"fa": fa[:6]},
              object={"length": np.ones(1, np.float32)})  # fmt: skip
    ds.replace(positions=p[:6], part_offsets=[0, 6], part_objects=[3], vertex={"fa": fa[:6]})
    ds.delete(where="object.length > 8")
    ds.compact()
    ds.pyramid(levels=1)
    np.save("t1.nii.npy", random.random((21, 21, 21)))
    ds.sample("t1.nii.npy", into="t1")
    # The level was built before the sampling.
    assert [finding.code for finding in zvf.validate("out.zv").findings] == ["ZV-L4-059"]
    zvf.migrate("out.zv", "other.zv")
    picture = ds.render(size=(120, 80))
    assert picture._repr_png_()[:4] == b"\x89PNG"
    picture.save("out.png")
    assert Path("out.png").stat().st_size > 100
    ds.save("tracts.trk")
    zvf.create("again.zv", source="tracts.trk")
    assert zvf.open("again.zv").count().vertices == ds.count().vertices


def test_results_become_files() -> None:
    tracts = zvf.open("tracts.zv")
    saved = tracts.save(Path("all.npz"), row_ids=True)
    assert (saved.files, saved.vertices, saved.left_out) == (["all.npz"], 5, [])
    with np.load("all.npz") as arrays:
        assert arrays["vertex.fa"].tolist() == [0.4, 0.5, 0.6, 0.7, 0.8]
        assert len(arrays["row_ids"]) == 5
    assert tracts.save("high.parquet", where="fa > 0.6").vertices == 2
    assert tracts.save("all.stl.tck").left_out
    with pytest.raises(zvf.InputError, match="vertex.fa: not supported by tck; .* strict=False"):
        tracts.save("strict.tck", strict=True)
    assert not Path("strict.tck").exists()


@pytest.mark.parametrize(
    ("file", "options", "error", "says"),
    [
        ("a.xyz", {}, ValueError, "xyz"),
        ("a", {}, ValueError, "extension"),
        ("absent/a.csv", {}, zvf.NotFoundError, "absent"),
        ("a.trk", {"row_ids": True}, zvf.InputError, "row ids"),
        ("a.csv", {"where": "fb > 1"}, zvf.InputError, "fb"),
        ("a.csv", {"bbx": 1}, TypeError, "bbx"),
    ],
)
def test_files_that_cannot_be_written(
    file: str, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        zvf.open("tracts.zv").save(file, **options)
    assert not Path(file).exists()


def test_files_are_converted() -> None:
    zvf.open("tracts.zv").save("tracts.trk")
    done = zvf.convert("tracts.trk", Path("tracts.trx"))
    assert (done.files, done.vertices, done.left_out) == (["tracts.trx"], 5, [])
    Path("points.csv").write_text("x,y,z,a\n0,0,0,1\n1,1,1,2\n")
    assert zvf.convert("points.csv", "points.ply", kind="points").vertices == 2
    with pytest.raises(zvf.NotFoundError, match="absent.trk"):
        zvf.convert("absent.trk", "a.tck")
    with pytest.raises(ValueError, match="kinds"):
        zvf.convert("points.csv", "points.las", kind="kinds")
    with pytest.raises(zvf.Error, match="kind"):
        zvf.convert("points.csv", "points.las")
    with pytest.raises(zvf.Error, match="vertex.fa: not supported by tck"):
        zvf.convert("tracts.trk", "strict.tck", strict=True)
    assert not Path("strict.tck").exists()


def test_interrupts_end_a_conversion() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        positions = np.random.default_rng(7).random((200_000, 3))
        zvf.create("cloud.zv", kind="points", positions=positions)
        zvf.open("cloud.zv").save("cloud.las")
        names = {path.name for path in Path().iterdir()} | {"out.laz"}
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            end = time.monotonic() + 60
            while time.monotonic() < end:
                zvf.convert("cloud.las", "out.laz")
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    # The conversion ends at its next batch, and removes its temporary file.
    end = time.monotonic() + 60
    while {path.name for path in Path().iterdir()} - names and time.monotonic() < end:
        time.sleep(0.05)
    assert {path.name for path in Path().iterdir()} <= names


def test_stores_are_exported_for_neuroglancer() -> None:
    seen: list[tuple[int, int]] = []
    tracts = zvf.open("tracts.zv")
    done = tracts.export_precomputed(
        "out", url="http://localhost/out", layers=["annotations"], properties=["fa"],
        progress=lambda *counts: seen.append(counts),
    )  # fmt: skip
    assert [name for name, _ in done.layers] == ["annotations"]
    assert done.files > 0 and done.bytes > 0 and seen
    assert done.neuroglancer is not None and "localhost" in done.neuroglancer
    assert Path("out/annotations/info").exists()
    with pytest.raises(zvf.ExistsError, match="out"):
        tracts.export_precomputed("out")
    with pytest.raises(zvf.InputError, match="meshes"):
        tracts.export_precomputed("other", layers=["meshes"])
    with pytest.raises(ValueError, match='there is no layer "lines"'):
        tracts.export_precomputed("other", layers=["lines"])  # type: ignore[list-item]
    assert not Path("other").exists()


def test_vertices_are_deleted_and_attributes_written() -> None:
    zvf.create("cloud.zv", kind="points", positions=np.eye(3).repeat(4, 0),
               vertex={"at": np.arange(12)})  # fmt: skip
    cloud, other = zvf.open("cloud.zv"), zvf.open("cloud.zv")
    assert cloud.query().row_ids is None and cloud.query().transaction is None
    found = cloud.query(where="at >= 6", row_ids=True)
    assert found.row_ids is not None and (found.transaction, cloud.transaction) == (0, 0)
    assert "row_id" in found.table().names
    late = pl.DataFrame(found)
    half = np.linspace(0, 1, 6, dtype=np.float32)
    done = cloud.write_attributes(
        vertex=pl.DataFrame({"half": half}), row_ids=late["row_id"].to_numpy(),
        transaction=found.transaction,
    )  # fmt: skip
    assert (done.transaction, cloud.transaction, done.vertices) == (1, 1, 12)
    assert cloud.query(where="at >= 6").vertex["half"].tolist() == half.tolist()
    assert np.isnan(cloud.query(where="at < 6").vertex["half"]).all()
    # The addresses belong to transaction 0.
    with pytest.raises(zvf.ConflictError, match="transaction"):
        cloud.delete_vertices(found.row_ids, found.transaction)
    with pytest.raises(zvf.ConflictError, match="transaction"):
        other.write_attributes(vertex={"half": half}, row_ids=found.row_ids, transaction=0)
    assert cloud.delete_vertices(where="at > 20") is None
    removed = cloud.delete_vertices(where="at = 11")
    assert removed is not None and removed.removed == 1
    found = cloud.query(where="at < 3", row_ids=True)
    assert found.row_ids is not None
    removed = cloud.delete_vertices(found.row_ids, found.transaction)
    assert removed is not None and removed.removed == 3
    assert sorted(cloud.query().vertex["at"].tolist()) == list(range(3, 11))
    batches = cloud.batches(row_ids=True, batch_rows=3)
    assert {batch.transaction for batch in batches} == {3}
    assert zvf.validate("cloud.zv").findings == []


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({}, TypeError, "vertices, of objects or of fragments"),
        ({"vertex": {"a": [1]}}, TypeError, "row_ids"),
        ({"vertex": {"a": [1]}, "row_ids": np.zeros(1, np.uint64)}, TypeError, "transaction"),
        ({"vertex": {"a": [1]}, "row_ids": np.zeros(1), "transaction": 0}, TypeError, "float64"),
        ({"object": {"a": [1]}}, TypeError, "objects"),
        ({"object": {"a": [1]}, "objects": [99]}, zvf.InputError, "99"),
        ({"object": {"length": ["long"]}, "objects": [3]}, zvf.InputError, "length"),
        ({"object": {"a": [1, 2]}, "objects": [3]}, zvf.InputError, "a"),
    ],
)
def test_attributes_that_are_refused(
    arguments: dict[str, Any], error: type[Exception], says: str
) -> None:
    tracts = zvf.open("tracts.zv")
    with pytest.raises(error, match=says):
        tracts.write_attributes(**arguments)
    assert tracts.transaction == 0


def test_deletions_of_vertices_that_are_refused() -> None:
    tracts = zvf.open("tracts.zv")
    with pytest.raises(ValueError, match="no selection"):
        tracts.delete_vertices()
    with pytest.raises(TypeError, match="not both"):
        tracts.delete_vertices(np.zeros(1, np.uint64), 0, where="fa > 0")
    with pytest.raises(zvf.InputError, match="path|order|object"):
        tracts.delete_vertices(where="fa > 0.5")


def test_sealed_stores_show_damage() -> None:
    sealed = zvf.seal("tracts.zv")
    assert sealed.ok and sealed.transaction == 1
    zvf.create("new.zv", kind="points", positions=np.eye(3), checksums=False)
    for store in ["tracts.zv", "new.zv"]:
        cells = [file for file in Path(store, "0/vertices").rglob("*") if file.is_file()]
        cell = next(file for file in cells if file.name != "zarr.json")
        data = bytearray(cell.read_bytes())
        data[-5] ^= 1
        cell.write_bytes(data)
        with pytest.raises(zvf.Error):
            zvf.open(store, cache=0).query()
    assert len(zvf.open("new.zv", check_seal=False).query()) == 3
    assert zvf.seal("tracts.zv", level=3).transaction is None


def test_dense_arrays_are_written_and_checked() -> None:
    volume = np.random.default_rng(5).random((6, 7, 8))
    for name in ["a.b2nd", "a.tet", "a.npy", "a.zarr"]:
        chunks = None if name == "a.npy" else (2, 3, 4)
        zvf.dense.save(name, volume[::2], chunks=chunks)
        np.testing.assert_array_equal(np.asarray(zvf.dense.open(name)), volume[::2])
    assert zvf.dense.verify("a.b2nd") == zvf.dense.verify("a.tet") == []
    assert zvf.dense.convert("a.tet", "b.b2nd", compression="zstd", level=3) == []
    assert zvf.dense.open("b.b2nd").chunks == (2, 3, 4)
    zvf.dense.save("d.tet", volume, checksums=True)
    data = bytearray(Path("d.tet").read_bytes())
    data[len(data) // 2] ^= 1
    Path("d.tet").write_bytes(data)
    assert len(zvf.dense.verify("d.tet")) == 1
    window = {"axis": 0, "size": 2, "mode": "bins"}
    found = zvf.dense.query("a.tet", {"dataset": "a", "window": window, "max": [0, 1, 2]})
    assert found["operation_reduced_max"] == [volume[:4:2].max(), volume[4].max()]
    with pytest.raises(zvf.Error, match="unknown field `median`"):
        zvf.dense.query("a.tet", {"dataset": "a", "median": []})
    with pytest.raises(zvf.NotFoundError):
        zvf.dense.convert("absent.npy", "c.tet")
    with pytest.raises(ValueError, match="lzma"):
        zvf.dense.convert("a.npy", "c.tet", compression="lzma")  # type: ignore[arg-type]
    with pytest.raises(zvf.InputError, match="objects"):
        zvf.dense.save("c.tet", np.array([object()]))
    with pytest.raises(zvf.Error, match="axes"):
        zvf.dense.save("c.tet", volume, chunks=(2, 3))
    with pytest.raises(zvf.Error, match="chunks does not apply"):
        zvf.dense.save("c.npy", volume, chunks=(2, 3, 4))
    assert not Path("c.tet").exists()
    assert sorted(path.name for path in Path().glob(".zvf-*")) == []


def test_nearest_takes_k_by_name() -> None:
    tracts = zvf.open("tracts.zv")
    found = tracts.nearest((1, 1, 1), k=2)
    assert found.objects.tolist() == tracts.nearest((1, 1, 1), 2).objects.tolist()
    assert len(found.objects) == 2
    twice: list[dict[str, Any]] = [{"nearest": (9, 9, 9)}, {"k": 2}]
    for options in twice:
        with pytest.raises(TypeError, match="one position and one k"):
            tracts.nearest((1, 1, 1), 1, **options)


def test_a_dataset_is_the_same_in_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ["a", "b"]:
        zvf.create(Path(name, "s.zv"), kind="points", positions=np.zeros((5, 3)),
                   object_ids=np.arange(5), vertex={"w": np.full(5, ord(name))})  # fmt: skip
    tracts = zvf.open("a/s.zv")
    part = tracts.partitions(1)[0]
    monkeypatch.chdir("b")
    Path("a").mkdir()
    zvf.migrate("s.zv", "a/s.zv")
    for copy in [tracts, pickle.loads(pickle.dumps(tracts)), pickle.loads(pickle.dumps(part))]:
        assert set(copy.query().vertex["w"]) == {ord("a")}
    tracts.delete(objects=[1, 2])
    assert len(tracts.query()) == 3
    assert len(zvf.open("s.zv").query()) == len(zvf.open("a/s.zv").query()) == 5


def test_numbers_of_groups_are_integers() -> None:
    for number in [1.5, None]:
        with pytest.raises(TypeError, match="the number of a group must be an integer"):
            zvf.create("g.zv", kind="points", positions=np.zeros((2, 3)),
                       object_ids=[1, 2], groups={1: [1], number: [2]})  # fmt: skip
