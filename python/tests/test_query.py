"""Opening and querying."""

from __future__ import annotations

import asyncio
import multiprocessing
import pickle
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf


def test_a_store_is_described() -> None:
    tracts = zvf.open(Path("tracts.zv"))
    assert (tracts.kinds, tracts.levels, tracts.generation) == (["streamline"], [0], "0.9")
    assert tracts.bounds == ([0, 0, 0], [9, 9, 9])
    assert tracts.chunk_shape == [5, 5, 5]
    assert len(tracts.axes) == len(tracts.units) == 3
    assert "streamline" in repr(tracts)
    assert "<table>" in tracts._repr_html_()
    level = tracts.info().levels[0]
    assert (level.vertices, level.objects) == (5, 2)


def test_html_escapes_names() -> None:
    shutil.copytree("tracts.zv", "<b>.zv")
    html = zvf.open("<b>.zv")._repr_html_()
    assert "<b>" not in html and "&lt;b&gt;.zv" in html


def test_columns_are_arrays() -> None:
    found = zvf.open("tracts.zv").query()
    assert found.positions.dtype == np.float32
    assert found.positions.tolist()[3:] == [[9, 9, 9], [8, 9, 9]]
    assert found.part_offsets is not None and found.part_objects is not None
    assert found.part_offsets.tolist() == [0, 3, 5]
    assert found.part_offsets.dtype == np.int64
    assert found.part_objects.tolist() == found.objects.tolist() == [3, 8]
    assert found.vertex["fa"].tolist() == [0.4, 0.5, 0.6, 0.7, 0.8]
    assert found.object["length"].tolist() == [2.5, 1]
    assert found.links is None and found.object_ids is None
    with pytest.raises(KeyError):
        found.vertex["length"]


def test_columns_are_read_only_and_not_copied() -> None:
    found = zvf.open("tracts.zv").query()
    for array in [found.positions, found.part_offsets, found.objects, found.vertex["fa"]]:
        assert array is not None and not array.flags.writeable and not array.flags.owndata
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    assert found.vertex["fa"] is found.vertex["fa"]
    at = found.positions.ctypes.data
    addresses = [path.ctypes.data for path in found.paths()]
    assert addresses == [at, at + 3 * 12]


def test_every_column_is_the_memory_of_the_engine() -> None:
    zvf.create(
        "graph.zv", kind="graphs", positions=np.arange(12.0).reshape(4, 3), object_ids=[0, 0, 0, 1],
        links=[[0, 1], [1, 2]], link={"weight": [0.5, 0.25]}, object={"size": [3, 1]},
        vertex={"rgb": np.arange(12, dtype=np.uint8).reshape(4, 3), "on": np.array([True] * 4)},
        groups={0: [1]}, chunk_shape=(4, 4, 4),
    )  # fmt: skip
    graph = zvf.open("graph.zv").query(row_ids=True)
    paths = zvf.open("tracts.zv").nearest((0, 0, 0), 2)
    columns = [
        graph.positions, graph.object_ids, graph.row_ids, graph.links, graph.objects,
        *graph.vertex.values(), *graph.link.values(), *graph.object.values(),
        *zvf.open("graph.zv").query(groups=0).groups.values(),
        paths.part_offsets, paths.part_objects, paths.distances, *paths.fragment.values(),
    ]  # fmt: skip
    for at, column in enumerate(columns):
        assert column is not None, at
        owner: Any = column
        while isinstance(owner, np.ndarray):
            owner = owner.base
        # What keeps a vector of the engine alive; a copy would end in an array of NumPy.
        assert type(owner).__name__ == "PySliceContainer", (at, type(owner))


def test_columns_outlive_the_result_and_the_store() -> None:
    positions = zvf.open("tracts.zv").query().positions
    assert positions.sum() == 60


def test_selections() -> None:
    tracts = zvf.open("tracts.zv")

    def objects(**options: Any) -> list[int]:
        found: list[int] = tracts.query(**options).objects.tolist()
        return found

    assert objects(bbox=((0, 0, 0), (1, 1, 1))) == [3]
    assert objects(bbox=np.array([[8, 8, 8], [9, 9, 9]])) == [8]
    assert objects(bbox=[0, 0, 0, 9, 9, 9]) == [3, 8]
    assert objects(sphere=((9, 9, 9), 0.5)) == [8]
    assert objects(objects=[8, 3]) == [8, 3]
    assert objects(objects=np.array([8, 3], np.int32)[::-1]) == [3, 8]
    assert objects(objects=8) == [8]
    assert objects(groups=0) == [3]
    assert objects(groups=0, objects=8) == [8, 3]
    assert objects(where="object.length < 2") == [8]
    for ids in ({8}, range(8, 9), np.array([8], np.uint8), (at for at in [8])):
        assert objects(objects=ids) == [8]
    assert objects(chunks=[(0, 0, 0)]) == [3]
    assert objects(limit=1) == [3]
    assert tracts.query(bbox=((0, 0, 0), (1, 1, 1)), mode="within").objects.tolist() == []
    assert len(tracts.query(bbox=((0, 0, 0), (1.5, 2, 2)), mode="clip")) == 3
    assert list(tracts.query(select=["object.length"]).vertex) == []
    assert list(tracts.query(select=[]).object) == []
    assert tracts.nearest((9, 9, 9), 2).objects.tolist() == [8, 3]
    assert tracts.count(groups=[1]).objects == 2
    assert tracts.explain(groups=[1]).operators
    assert tracts.analyze()[0].requests >= 0
    assert tracts.activity["requests"] > 0


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"bbx": 1}, TypeError, "bbx.*bbox"),
        ({"bbox": (0, 0, 0, 1)}, ValueError, "axes"),
        ({"bbox": ((0, 0), (1,))}, ValueError, "rows"),
        ({"bbox": ((0, 0, float("nan")), (1, 1, 1))}, ValueError, "not a number"),
        ({"sphere": ((0, 0, 0), float("nan"))}, ValueError, "radius"),
        ({"sphere": ((0, 0, float("nan")), 1)}, ValueError, "not a number"),
        ({"nearest": (0, 0, float("nan"))}, ValueError, "not a number"),
        ({"bbox": "0,0,0,1,1,1"}, TypeError, "bbox"),
        ({"bbox": ((0, 0, 0), (1, 1, 1)), "sphere": ((0, 0, 0), 1)}, ValueError, "not both"),
        ({"sphere": 3}, ValueError, "radius"),
        ({"mode": "inside"}, ValueError, "touch, within or clip"),
        ({"where": "fa >"}, ValueError, 'where "fa >": at byte 4'),
        ({"where": "fb > 1"}, zvf.InputError, "fb"),
        ({"select": "fa"}, ValueError, "list"),
        ({"select": ["fb"]}, zvf.InputError, "fb"),
        ({"select": ["group.name"]}, ValueError, "groups"),
        ({"objects": [1.5]}, TypeError, "objects"),
        ({"objects": "8"}, TypeError, "objects"),
        ({"objects": [99]}, zvf.NoSuchObjectError, "99"),
        ({"objects": 2**63}, ValueError, r"objects: .* below 2\*\*63"),
        ({"objects": [1, 2**63]}, ValueError, r"objects: .* below 2\*\*63"),
        ({"groups": [-1]}, ValueError, "-1"),
        ({"k": 3}, ValueError, "nearest"),
        ({"nearest": (0, 0, 0), "k": 0}, ValueError, "at least 1"),
        ({"level": 7}, zvf.InputError, "7"),
        ({"level": -1}, (ValueError, OverflowError, TypeError), "level"),
        ({"level": 0, "budget": 5}, ValueError, "one of"),
        ({"focus": (0, 0, 0)}, ValueError, "budget"),
    ],
)
def test_unusable_arguments(options: dict[str, object], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        zvf.open("tracts.zv").query(**options)  # type: ignore[arg-type]


def test_absent_and_damaged_stores() -> None:
    with pytest.raises(zvf.NotFoundError, match="absent.zv"):
        zvf.open("absent.zv")
    with pytest.raises(FileNotFoundError):
        zvf.open("absent.zv")
    with pytest.raises(TypeError, match="anonymus.*anonymous"):
        zvf.open("tracts.zv", anonymus=True)  # type: ignore[call-arg]
    with pytest.raises(zvf.InputError, match="aws_regoin"):
        zvf.open("tracts.zv", options={"aws_regoin": "eu-central-1"})
    Path("tracts.zv/0/vertices/zarr.json").write_text("{")
    with pytest.raises(zvf.DamagedError) as caught:
        zvf.open("tracts.zv").query()
    assert caught.value.key is not None and "0/vertices" in caught.value.key
    with pytest.raises(zvf.DamagedError) as caught:
        zvf.open("tracts.zv").pyramid(levels=1)
    assert caught.value.key is not None and "0/vertices" in caught.value.key
    Path("tracts.zv/zarr.json").write_text("{")
    with pytest.raises(zvf.DamagedError) as caught:
        zvf.open("tracts.zv")
    assert caught.value.key is not None


def test_damage_names_key_and_chunk() -> None:
    vertices = [file for file in Path("tracts.zv/0/vertices").rglob("*") if file.is_file()]
    cell = next(file for file in vertices if file.name != "zarr.json")
    cell.write_bytes(cell.read_bytes()[:5])
    tracts = zvf.open("tracts.zv")
    with pytest.raises(zvf.DamagedError) as caught:
        tracts.query()
    assert caught.value.key is not None and "vertices" in caught.value.key
    assert caught.value.chunk is not None
    # Processes of Dask, Ray and multiprocessing send exceptions by pickle.
    sent = pickle.loads(pickle.dumps(caught.value))
    assert type(sent) is zvf.DamagedError and str(sent) == str(caught.value)
    assert (sent.key, sent.chunk) == (caught.value.key, caught.value.chunk)
    found = tracts.query(keep_going=True)
    assert found.skipped == found.damaged != []


def test_absent_objects_are_not_damaged() -> None:
    found = zvf.open("tracts.zv").query(objects=[99], keep_going=True)
    assert len(found.skipped) == 1 and "99" in found.skipped[0][1]
    assert found.damaged == []


def test_zip_files_are_stores() -> None:
    shutil.make_archive("tracts", "zip", "tracts.zv")
    tracts = zvf.open("tracts.zip")
    assert tracts.query(objects=8).vertex["fa"].tolist() == [0.7, 0.8]
    assert len(pickle.loads(pickle.dumps(tracts)).query()) == 5
    Path("short.zip").write_bytes(Path("tracts.zip").read_bytes()[:-30])
    with pytest.raises(zvf.Error, match=r"short\.zip"):
        zvf.open("short.zip")


def test_handles_pickle() -> None:
    tracts = pickle.loads(pickle.dumps(zvf.open("tracts.zv", cache=0)))
    assert len(tracts.query()) == 5


def test_threads_share_a_handle() -> None:
    tracts = zvf.open("tracts.zv")
    with ThreadPoolExecutor(8) as threads:
        counts = list(threads.map(lambda _: len(tracts.query()), range(200)))
    assert counts == [5] * 200


def _vertices(tracts: zvf.Dataset) -> int:
    return len(tracts.query())


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(zvf.__file__).parents[1]))
    tracts = zvf.open("tracts.zv")
    _vertices(tracts)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_vertices, [tracts] * 8) == [5] * 8


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("scheduler", ["threads", "processes"])
def test_dask_runs_queries(scheduler: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dask: Any = pytest.importorskip("dask")
    monkeypatch.setenv("PYTHONPATH", str(Path(zvf.__file__).parents[1]))
    tracts = zvf.open("tracts.zv")
    queries = [dask.delayed(tracts.query)(objects=at) for at in (3, 8, 3, 8)]
    results = dask.compute(*queries, scheduler=scheduler, num_workers=2)
    assert [result.objects.tolist() for result in results] == [[3], [8], [3], [8]]
    np.testing.assert_array_equal(results[1].vertex["fa"], [0.7, 0.8])


@pytest.fixture
def cloud() -> zvf.Dataset:
    """60,000 points in 64 chunks."""
    positions = np.random.default_rng(7).random((60_000, 3), np.float32)
    vertex = {"row": np.arange(60_000)}
    zvf.create(
        "cloud.zv", kind="points", positions=positions, vertex=vertex, chunk_shape=(0.25,) * 3
    )
    return zvf.open("cloud.zv", cache=0)


def test_batches_are_the_result(cloud: zvf.Dataset) -> None:
    whole = cloud.query(where="row > 100")
    sizes: list[int] = []
    rows = []
    batches = cloud.batches(where="row > 100", batch_rows=1000)
    for batch in batches:
        assert batch.first_row == sum(sizes)
        sizes.append(len(batch))
        rows.append(batch.vertex["row"])
    assert max(sizes) <= 1000 and len(sizes) >= 60
    assert np.concatenate(rows).tolist() == whole.vertex["row"].tolist()
    assert next(batches, None) is None
    assert (batches.levels, batches.skipped, batches.notes) == ([], [], [])


def test_batches_end_early(cloud: zvf.Dataset) -> None:
    with cloud.batches(batch_rows=100) as batches:
        assert len(next(batches)) == 100
    assert next(batches, None) is None
    with pytest.raises(ValueError, match="touch"):
        cloud.batches(mode="inside")  # type: ignore[arg-type]


def test_batches_list_what_they_skip() -> None:
    cells = [file for file in Path("tracts.zv/0/vertices").rglob("*") if file.is_file()]
    cell = next(file for file in cells if file.name != "zarr.json")
    cell.write_bytes(cell.read_bytes()[:5])
    tracts = zvf.open("tracts.zv")
    with pytest.raises(zvf.DamagedError):
        list(tracts.batches())
    batches = tracts.batches(keep_going=True)
    assert sum(map(len, batches)) < 5
    assert batches.skipped == batches.damaged and "vertices" in batches.skipped[0][0]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"batch_row": 1}, TypeError, "batch_row"),
        ({"batch_rows": -1}, ValueError, "batch_rows"),
        ({"where": "fb > 1"}, zvf.InputError, "fb"),
    ],
)
def test_unusable_batches(options: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        list(zvf.open("tracts.zv").batches(**options))


def test_many_queries_run_in_one_loop(cloud: zvf.Dataset) -> None:
    async def rows(at: int) -> list[int]:
        found = await cloud.aquery(where=f"row = {at}")
        return found.vertex["row"].tolist()  # type: ignore[no-any-return]

    async def all_rows() -> list[list[int]]:
        return await asyncio.gather(*(rows(at) for at in range(100)))

    assert asyncio.run(all_rows()) == [[at] for at in range(100)]


def test_awaited_queries_raise_and_are_cancelled(cloud: zvf.Dataset) -> None:
    async def fails() -> None:
        with pytest.raises(zvf.InputError, match="fb"):
            await cloud.aquery(where="fb > 1")
        with pytest.raises(ValueError, match="touch"):
            await cloud.aquery(mode="inside")  # type: ignore[arg-type]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*(cloud.aquery() for _ in range(500))), 0.05)

    asyncio.run(fails())
    assert len(cloud.query()) == 60_000


def _awaited_in_child(cloud: zvf.Dataset) -> int:
    return len(asyncio.run(cloud.aquery()))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_awaited_queries_of_a_forked_process(cloud: zvf.Dataset) -> None:
    assert len(cloud.query()) == 60_000
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_awaited_in_child, [cloud]).get(60) == 60_000


def _write_in_child(name: str) -> list[int]:
    rng = np.random.default_rng(5)
    positions = rng.random((60_000, 3), np.float32)
    zvf.create(
        name,
        kind="points",
        positions=positions,
        vertex={"row": np.arange(60_000)},
        chunk_shape=(0.25,) * 3,
    )
    written = zvf.open(name)
    written.append(positions=positions[:30_000], vertex={"row": np.arange(30_000)})
    written.sample("volume.npy", "value")
    written.pyramid(levels=1, factors=(2, 2, 2))
    assert zvf.validate(name).ok
    coarse = zvf.open(name)
    return [len(coarse.query(level=level)) for level in range(2)]


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_writes() -> None:
    """It waited for threads that only its parent has."""
    np.save("volume.npy", np.zeros((2, 2, 2), np.float32))
    here = _write_in_child("here.zv")
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_write_in_child, ["there.zv"]).get(120) == here
