"""Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

import zvf

ROWS = 150_000
# Reads are faster than writes, and Ctrl-C is noticed every 50 ms.
READ_ROWS = 5 * ROWS
EVERYTHING = ((0, 0, 0), (1, 1, 1))
EARLY = [thirtieth / 30 for thirtieth in range(1, 9)]


@pytest.fixture(autouse=True)
def default_interrupt() -> Iterator[None]:
    """Sets the default handler: a process started in the background may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def paths(rows: int) -> zvf.GeometryArrays:
    """Paths of ten points in a cube."""
    positions = np.random.default_rng(7).random((rows, 3))
    return {
        "positions": positions, "part_offsets": np.arange(0, rows + 1, 10),
        "vertex": {"q": positions[:, 0]},
    }  # fmt: skip


@pytest.fixture
def arrays() -> zvf.GeometryArrays:
    return paths(ROWS)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> zvf.Dataset:
    return create(paths(READ_ROWS), str(tmp_path_factory.mktemp("large") / "paths.zv"))


def create(arrays: zvf.GeometryArrays, store: str) -> zvf.Dataset:
    zvf.create(
        store, kind="streamlines", **arrays, chunk_shape=(0.25,) * 3, bounds=EVERYTHING,
        overwrite=True,
    )  # fmt: skip
    return zvf.open(store, cache=0)


def interrupted_after(seconds: float, work: Callable[[], object]) -> bool:
    """Runs the work and sends SIGINT meanwhile. Returns whether it ended by that."""
    ended: list[bool] = []
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        work()
        ended.append(True)
        # The signal comes late, and ends this.
        time.sleep(60)
    except KeyboardInterrupt:
        timer.join()
        return not ended
    raise AssertionError("there was no signal")


def interrupt(
    work: Callable[[], object],
    is_undone: Callable[[], bool] | None = None,
    prepare: Callable[[], object] = lambda: None,
    shares: Sequence[float] = EARLY,
) -> None:
    """Checks that Ctrl-C ends the work: before its effect, or else in less than its time.

    The signals come after these shares of the time of the work.
    """
    for attempt in range(24):
        # Again each time, because the machine may have other load.
        prepare()
        start = time.monotonic()
        work()
        whole = time.monotonic() - start
        prepare()
        start = time.monotonic()
        was = interrupted_after(whole * shares[attempt % len(shares)], work)
        took = time.monotonic() - start
        if was and (is_undone() if is_undone else took < 0.8 * whole):
            return
    raise AssertionError("no call was interrupted")


READS: dict[str, Callable[[zvf.Dataset], object]] = {
    "query": lambda store: store.query(bbox=EVERYTHING),
    "filter": lambda store: store.query(where="q > 0.5", mode="within"),
    "clip": lambda store: store.query(where="q > 0.5"),
    "batches": lambda store: sum(len(batch) for batch in store.batches()),
    "nearest": lambda store: store.nearest((0.5, 0.5, 0.5), 5000),
    "count": lambda store: store.count(bbox=((0.1, 0.1, 0.1), (0.9, 0.9, 0.9))),
    "analyze": lambda store: store.analyze(bbox=EVERYTHING),
    "render": lambda store: store.render(size=(320, 240), level=0),
    "validate": lambda store: zvf.validate(store.address),
    "save": lambda store: store.save("all.npz"),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_ends(name: str, large: zvf.Dataset) -> None:
    interrupt(lambda: READS[name](large))
    # The handle is as it was.
    assert large.count().vertices == READ_ROWS


def test_an_interrupted_file_is_absent(large: zvf.Dataset) -> None:
    files: list[Path] = []

    def work() -> None:
        files.append(Path(f"{len(files)}.csv"))
        large.save(files[-1])

    def is_undone() -> bool:
        # A thread that writes on needs a moment to see that it is cancelled.
        time.sleep(0.2)
        return not list(Path().glob(".zvf-*")) and not files[-1].exists()

    # The query has ended then.
    interrupt(work, is_undone, shares=[0.5, 0.6, 0.7, 0.8, 0.9])


def test_a_creation_leaves_nothing(arrays: zvf.GeometryArrays) -> None:
    made = [-1]

    def work() -> None:
        made[0] += 1
        zvf.create(
            f"{made[0]}.zv", kind="streamlines", **arrays, chunk_shape=(0.25,) * 3
        )  # fmt: skip

    def is_undone() -> bool:
        # The signal may come between the end of the creation and that of the call.
        last = max(Path().glob("[0-9]*.zv"), key=lambda path: int(path.stem), default=None)
        try:
            return last is None or int(last.stem) < made[0] or not zvf.open(last)
        except zvf.Error:
            return True

    interrupt(work, is_undone)


def test_a_change_is_whole_or_absent(arrays: zvf.GeometryArrays) -> None:
    store = create(arrays, "paths.zv")
    few: zvf.GeometryArrays = {
        "positions": arrays["positions"][: ROWS // 2],
        "part_offsets": arrays["part_offsets"][: ROWS // 20 + 1],
        "vertex": {"q": arrays["vertex"]["q"][: ROWS // 2]},
    }
    known = [0]

    def is_undone() -> bool:
        store.reload()
        undone = store.transaction == known[0]
        known[0] = store.transaction
        return undone

    def append() -> None:
        known[0] = store.transaction
        store.append(**few)

    interrupt(append, is_undone)
    changes = store.transaction
    assert store.count().vertices == ROWS + changes * (ROWS // 2)
    assert zvf.validate("paths.zv").findings == []


def test_levels_and_migration_leave_nothing(arrays: zvf.GeometryArrays) -> None:
    store = create(arrays, "paths.zv")
    tries = iter(range(99))

    def is_undone() -> bool:
        store.reload()
        return store.levels == [0]

    def prepare() -> None:
        create(arrays, "paths.zv")
        store.reload()

    def pyramid() -> None:
        store.pyramid(levels=1, method="stride", factors=[2])

    interrupt(pyramid, is_undone, prepare)
    create(arrays, "paths.zv")

    def newest() -> bool:
        return not Path(f"{next(tries) - 1}.old", "zarr.json").exists()

    def migrate() -> None:
        zvf.migrate("paths.zv", f"{next(tries)}.old", profile="0.8")

    interrupt(migrate, newest)
