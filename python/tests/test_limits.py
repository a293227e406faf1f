"""Memory, threads, and the public names."""

from __future__ import annotations

import dataclasses
import gc
import os
import re
import subprocess
import sys
import threading
import time
import typing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import zvf

STATUS = Path("/proc/self/status")


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    gc.collect()
    for line in STATUS.read_text().splitlines():
        if line.startswith("VmRSS:"):
            return 1024 * int(line.split()[1])
    raise AssertionError("no VmRSS")


@pytest.mark.skipif(not STATUS.exists(), reason="memory is read from /proc, which Linux has")
def test_queries_do_not_leak() -> None:
    tracts = zvf.open("tracts.zv")

    def queries(count: int) -> None:
        for at in range(count):
            found = tracts.query(objects=[3, 8], where="fa > 0.45")
            assert found.vertex["fa"].tolist() == [0.5, 0.6, 0.7, 0.8]
            if at % 10 == 0:
                with pytest.raises(zvf.InputError):
                    tracts.query(where="fb > 1")
                list(tracts.batches(batch_rows=2))

    queries(2_000)
    before = resident()
    queries(10_000)
    # A leak of the columns alone would be 3 MB, one of whole results several times that.
    assert resident() - before < 1_500_000


@pytest.mark.skipif(not STATUS.exists(), reason="memory is read from /proc, which Linux has")
def test_large_columns_are_freed() -> None:
    positions = np.random.default_rng(1).random((200_000, 3))
    zvf.create("cloud.zv", kind="points", positions=positions)
    cloud = zvf.open("cloud.zv", cache=0)
    for _ in range(5):
        cloud.query()
    before = resident()
    for _ in range(40):
        cloud.query()
    # One result has 4.8 MB.
    assert resident() - before < 20_000_000


PEAK = """
import resource, warnings, zvf
warnings.simplefilter("ignore")
cloud = zvf.open("cloud.zv", cache=0)
list(zip(range(2), cloud.batches()))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
rows = sum(len(batch) for batch in cloud.batches(where="q >= 0"))
print(rows, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.skipif(not STATUS.exists(), reason="peaks are in kilobytes on Linux")
def test_batches_take_bounded_memory() -> None:
    rows = 2_000_000
    positions = np.random.default_rng(1).random((rows, 3), np.float32)
    zvf.create("cloud.zv", kind="points", positions=positions, vertex={"q": positions[:, 0]},
               chunk_shape=(0.1,) * 3)  # fmt: skip
    path = {"PYTHONPATH": str(Path(zvf.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", PEAK], capture_output=True, text=True, check=True,
        env={**os.environ, **path},
    )  # fmt: skip
    counted, growth = map(int, done.stdout.split())
    # The whole result has 32 MB, a batch one.
    assert counted == rows and growth < 12_000_000, done.stdout


def test_other_threads_run_while_the_engine_works() -> None:
    """The query holds no lock of the interpreter: a thread of Python counts meanwhile."""
    positions = np.random.default_rng(1).random((300_000, 3))
    zvf.create("cloud.zv", kind="points", positions=positions)
    cloud = zvf.open("cloud.zv", cache=0)
    counted, done = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    meanwhile = 0
    try:
        # Again, because the machine may have other load.
        for _ in range(20):
            before = counted
            cloud.query(bbox=((0, 0, 0), (1, 1, 1)))
            meanwhile = max(meanwhile, counted - before)
    finally:
        done.set()
        thread.join()
    # With the lock held throughout, the thread could count when the call begins and ends only.
    assert meanwhile > 10


def test_concurrent_changes_are_whole_or_refused() -> None:
    def append(at: int) -> int:
        positions = np.full((2, 3), at / 10)
        try:
            found = zvf.open("tracts.zv").append(
                positions=positions, part_offsets=[0, 2], part_objects=[100 + at],
                vertex={"fa": [0.0, 1.0]}, object={"length": np.zeros(1, np.float32)},
            )  # fmt: skip
        except zvf.ConflictError:
            return 0
        return len(found.objects)

    with ThreadPoolExecutor(8) as threads:
        added = sum(threads.map(append, range(8)))
    assert added >= 1
    tracts = zvf.open("tracts.zv")
    assert len(tracts.query().objects) == 2 + added
    assert zvf.validate("tracts.zv").findings == []


def test_less_common_members() -> None:
    zvf.create(
        "plain.zv", kind="polylines", positions=np.arange(12.0).reshape(4, 3),
        part_offsets=[0, 2, 4], fragment={"q": [1.0, 2.0]}, crs={"name": "EPSG:4979"},
    )  # fmt: skip
    plain = zvf.open("plain.zv")
    assert plain.crs == {"name": "EPSG:4979"}
    assert plain.query().fragment["q"].tolist() == [1, 1, 2, 2]
    distances = plain.nearest((0, 1, 2), 2).distances
    assert distances is not None and distances[0] == 0 and distances[1] > 0
    picture = plain.render(size=(128, 96), color="q")
    assert "q" in picture.colors and picture.skipped_vertices == 0
    batches = plain.batches(batch_rows=1)
    assert len(next(batches)) == 2
    batches.close()
    assert list(batches) == []


def members(kind: type) -> set[str]:
    """Return the public members of a class, and the options of a type of keyword arguments."""
    if typing.is_typeddict(kind):
        return set(typing.get_type_hints(kind))
    own = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    return own | {name for name in vars(kind) if not name.startswith("_")}


def test_every_public_name_has_a_test() -> None:
    tests = "\n".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    sources = "\n".join(file.read_text() for file in Path(zvf.__file__).parent.glob("*.py"))
    examples = "\n".join(re.findall(r">>> .*|\.\.\. .*", sources))
    names = {name for name in zvf.__all__ if name[0].islower() or name.endswith("Error")}
    names |= set(zvf.dense.__all__)
    public = [getattr(zvf, name) for name in zvf.__all__]
    kinds = [kind for kind in public if isinstance(kind, type)]
    assert zvf.QueryOptions in kinds and zvf.Finding in kinds
    names = names.union(*map(members, kinds), members(zvf.dense.Array))
    missing = [name for name in sorted(names) if not re.search(rf"\b{name}\b", tests + examples)]
    assert missing == []


@pytest.mark.parametrize(
    ("positions", "error"),
    [
        (np.zeros((3, 3, 3)), ValueError),
        (np.zeros(3), ValueError),
        (np.zeros((0, 3)), ValueError),
        (np.array([[0, np.nan, 0]]), ValueError),
        (np.array([[0, np.inf, 0]]), ValueError),
        (np.array([["a", "b"]]), TypeError),
        (np.array([[object(), 1]]), TypeError),
        ([[1, 2], [3]], ValueError),
        (None, TypeError),
    ],
)
def test_unusable_positions(positions: object, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        zvf.create("bad.zv", kind="points", positions=positions)
    assert re.search("position|vert", str(caught.value)), str(caught.value)
    assert not Path("bad.zv").exists()


def test_input_is_not_changed_and_may_be_read_only() -> None:
    positions = np.asfortranarray(np.random.default_rng(2).random((50, 3)))[::-2, ::-1]
    positions.setflags(write=False)
    copy = positions.copy()
    zvf.create("view.zv", kind="points", positions=positions, chunk_shape=(2, 2, 2))
    np.testing.assert_array_equal(positions, copy)
    np.testing.assert_array_equal(zvf.open("view.zv").query().positions, copy)


def test_huge_requests_are_refused_before_memory_is_reserved() -> None:
    huge = np.broadcast_to(np.zeros(1, np.float32), (1 << 40, 3))
    with pytest.raises((MemoryError, zvf.MemoryLimitError)):
        zvf.create("huge.zv", kind="points", positions=huge)
    positions = np.random.default_rng(1).random((50_000, 3))
    zvf.create("cloud.zv", kind="points", positions=positions)
    with pytest.raises(zvf.MemoryLimitError):
        zvf.open("cloud.zv", memory_budget=100_000).query()
