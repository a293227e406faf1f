"""Costs of large stores, as docs/scale.md reports them.

    python scale.py points 1e7 1e8 1e9 [--workers 2] [--folder FOLDER]
    python scale.py chunks 1e4 1e5 1e6 [--folder FOLDER]

`points` creates stores of generated points in shares, which are never in memory together, with
coarser levels, checks them to level 3 and queries them. `chunks` opens and queries stores of one
point in each chunk.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import zvf

SHARE = 2_500_000
BATCH = 500_000
MEMORY = 256 << 20
MAX_RESIDENT = 2 << 30
LEVEL = 3


def batches(share: int, rows: int) -> Iterator[dict[str, Any]]:
    """Return the points of a share: clusters of cells in a slab, with two attributes."""
    numbers = np.random.default_rng(share)
    for first in range(0, rows, BATCH):
        count = min(BATCH, rows - first)
        centre = numbers.random((count // 500 + 1, 3)) * (1000, 1000, 100)
        at = centre[numbers.integers(0, len(centre), count)] + numbers.normal(0, 2, (count, 3))
        at = np.clip(at, 0, (1000, 1000, 100)).astype(np.float32)
        yield {"positions": at, "vertex": {
            "gene": numbers.integers(0, 500, count).astype(np.uint16),
            "quality": numbers.random(count, np.float32),
        }}  # fmt: skip


def usage() -> tuple[float, int]:
    """Return the CPU time of this process and its peak memory."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss


def measured(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float, int]:
    """Call a function. Return its result, the CPU time that it took and the peak memory."""
    before, _ = usage()
    result = work(*arguments)
    after, peak = usage()
    return result, after - before, peak


def fill(plan: zvf.TaskPlan, share: int, rows: int) -> bool:
    return plan.fill(share, batches(share, rows))


def run(plan: zvf.TaskPlan, task: int) -> bool:
    return plan.run(task)


class Measures:
    """The costs of the phases of one store."""

    def __init__(self, vertices: int) -> None:
        self.vertices = vertices
        self.peak = 0

    def row(self, name: str, seconds: float, cpu: float, peak: int, more: str = "") -> None:
        self.peak = max(self.peak, peak)
        each = 1e6 * cpu / self.vertices
        print(
            f"| {self.vertices:.0e} | {name} | {seconds:.1f} | {cpu:.1f} | {each:.2f} "
            f"| {peak / 2**20:.0f} | {more} |", flush=True,
        )  # fmt: skip

    def pool(self, pool: ProcessPoolExecutor, name: str, calls: Iterable[tuple[Any, ...]]) -> None:
        begun = time.monotonic()
        done = list(pool.map(measured, *zip(*calls, strict=True)))
        cpu, peak = sum(one[1] for one in done), max(one[2] for one in done)
        self.row(name, time.monotonic() - begun, cpu, peak, f"{len(done)} tasks")

    def here(self, name: str, work: Callable[..., Any], *arguments: Any) -> Any:
        begun = time.monotonic()
        result, cpu, peak = measured(work, *arguments)
        self.row(name, time.monotonic() - begun, cpu, peak)
        return result


def create(store: Path, vertices: int, workers: int) -> Measures:
    costs = Measures(vertices)
    shares = -(-vertices // SHARE)
    rows = [min(SHARE, vertices - SHARE * share) for share in range(shares)]
    spawn = multiprocessing.get_context("spawn")
    # New processes for each phase, so that each has a peak of its own.
    def pool() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(workers, mp_context=spawn)
    plan = zvf.plan_shares(store, shares, kind="points", tasks=4 * workers, memory=MEMORY)
    with pool() as started:
        costs.pool(started, "fill", [(fill, plan, share, rows[share]) for share in range(shares)])
    plan = costs.here("join surveys", plan.advance)
    with pool() as started:
        costs.pool(started, "divide", [(run, plan, task) for task in range(plan.tasks)])
    plan = costs.here("join divisions", plan.advance)
    with pool() as started:
        costs.pool(started, "write", [(run, plan, task) for task in range(plan.tasks)])
    report = costs.here("commit", plan.commit)
    assert report["vertices"] == vertices, report
    while (plan := zvf.plan_pyramid(store, tasks=4 * workers)).tasks:
        name = f"level {plan.level}"
        with pool() as started:
            costs.pool(started, name, [(run, plan, task) for task in range(plan.tasks)])
        costs.here(f"{name}, commit", plan.commit)
    return costs


def check(store: Path, costs: Measures) -> None:
    validation = costs.here("validate", lambda: zvf.validate(store, level=LEVEL))
    assert validation.ok, validation
    dataset = costs.here("open", zvf.open, store)
    for side in (10, 50):
        found = costs.here(
            f"box of {side}", lambda: dataset.query(bbox=((400, 400, 0), (400 + side, 400 + side, side)))
        )
        print(f"  {len(found)} vertices, {dataset.activity}")
    files = [path.stat().st_size for path in store.rglob("*") if path.is_file()]
    print(f"  {len(files)} files, {sum(files) / costs.vertices:.1f} bytes for a vertex")
    assert costs.peak < MAX_RESIDENT, f"{costs.peak} bytes of memory"


def points(folder: Path, counts: list[int], workers: int) -> None:
    print("| vertices | work | s | CPU s | CPU µs a vertex | peak MiB | |\n|---|---|---|---|---|---|---|")
    for count in counts:
        store = folder / f"points-{count}.zv"
        check(store, create(store, count, workers))
        shutil.rmtree(store)


def chunks(folder: Path, counts: list[int]) -> None:
    print("| chunks | work | CPU s | peak MiB | requests | bytes |\n|---|---|---|---|---|---|")
    spawn = multiprocessing.get_context("spawn")
    for count in counts:
        side = round(count ** (1 / 3))
        store = folder / f"chunks-{side**3}.zv"
        grid = np.arange(side, dtype=np.float32) + np.float32(0.5)
        at = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
        zvf.create(store, kind="points", positions=at, vertex={"q": at[:, 0]},
                   chunk_shape=(1, 1, 1), sharding=(32, 32, 32))  # fmt: skip
        for work in ("nothing", "open", "box", "explain"):
            with ProcessPoolExecutor(1, mp_context=spawn) as pool:
                cpu, peak, activity = pool.submit(opened, str(store), work).result()
            made = f"{activity.get('requests', 0):,} | {activity.get('bytes', 0):,}"
            print(f"| {side**3:,} | {work} | {cpu:.3f} | {peak / 2**20:.0f} | {made} |", flush=True)
        shutil.rmtree(store)


def opened(store: str, work: str) -> tuple[float, int, dict[str, int]]:
    before, _ = usage()
    activity: dict[str, int] = {}
    if work != "nothing":
        dataset = zvf.open(store)
        box = ((2, 2, 2), (3.9, 3.9, 3.9))
        if work == "box":
            assert len(dataset.query(bbox=box)) == 8
        elif work == "explain":
            dataset.explain(bbox=box)
        activity = dataset.activity
    after, peak = usage()
    return after - before, peak, activity


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["points", "chunks"])
    parser.add_argument("counts", type=float, nargs="+")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    counts = [int(count) for count in given.counts]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if given.what == "points":
            points(Path(folder), counts, given.workers)
        else:
            chunks(Path(folder), counts)


if __name__ == "__main__":
    sys.exit(main())
