"""Costs of large stores, as docs/scale.md reports them.

    python scale.py points 1e7 1e8 1e9 [--workers 2] [--folder FOLDER]
    python scale.py streamlines 1e7 1e8 [--workers 2] [--folder FOLDER]
    python scale.py skeletons 1e6 1e7 [--folder FOLDER]
    python scale.py chunks 1e4 1e5 1e6 [--folder FOLDER]
    python scale.py overhead

`points` and `streamlines` create stores of generated geometry in shares, which are never in memory
together, with coarser levels, check them to level 3 and query them. `skeletons` does the same in
one process, which holds the input. `chunks` opens and queries stores of one point in each chunk.
`overhead` fails if a small query from Python takes longer than docs/python.md says.
"""

from __future__ import annotations

import argparse
import gc
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
# Vertices of a path and of an object.
PATH = 50
# Rounds of small queries, queries of a round, and the microseconds that Python adds to each, as documented.
ROUNDS, LOOPS, MAX_OVERHEAD = 500, 20, 30.0
SPAWN = multiprocessing.get_context("spawn")


def clusters(numbers: np.random.Generator, count: int) -> dict[str, Any]:
    """Return points in clusters as cells in a slab, with two attributes."""
    centre = numbers.random((count // 500 + 1, 3)) * (1000, 1000, 100)
    at = centre[numbers.integers(0, len(centre), count)] + numbers.normal(0, 2, (count, 3))
    at = np.clip(at, 0, (1000, 1000, 100)).astype(np.float32)
    return {"positions": at, "vertex": {
        "gene": numbers.integers(0, 500, count).astype(np.uint16), "quality": numbers.random(count, np.float32)
    }}


def walks(numbers: np.random.Generator, count: int) -> dict[str, Any]:
    """Return random walks of PATH vertices, with an attribute."""
    steps = numbers.normal(0, 1, (count // PATH, PATH, 3)).astype(np.float32)
    steps[:, 0] = numbers.random((count // PATH, 3), np.float32) * (1000, 1000, 100)
    at = np.clip(steps.cumsum(axis=1, dtype=np.float32), 0, (1000, 1000, 100)).reshape(-1, 3)
    return {
        "positions": at, "part_offsets": np.arange(0, len(at) + 1, PATH),
        "vertex": {"fa": numbers.random(len(at), np.float32)},
    }


def trees(numbers: np.random.Generator, count: int) -> dict[str, Any]:
    """Return walks as skeletons, of which every tenth vertex continues an earlier one."""
    made = walks(numbers, count)
    del made["part_offsets"]
    rows = np.arange(len(made["positions"])).reshape(-1, PATH)
    parents = np.broadcast_to(np.arange(PATH - 1), (len(rows), PATH - 1)).copy()
    parents[:, 9::10] = numbers.integers(0, 9, parents[:, 9::10].shape)
    links = np.stack([rows[:, 1:], rows[:, :1] + parents], axis=-1).reshape(-1, 2)
    return {**made, "object_ids": np.repeat(np.arange(len(rows)), PATH), "links": links}


SHAPES = {"points": clusters, "streamlines": walks, "skeletons": trees}


def batches(kind: str, share: int, rows: int) -> Iterator[dict[str, Any]]:
    """Return the geometry of a share."""
    numbers = np.random.default_rng(share)
    for first in range(0, rows, BATCH):
        yield SHAPES[kind](numbers, min(BATCH, rows - first))


def usage() -> tuple[float, int]:
    """Return the CPU time of this process and its peak memory."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    # `ru_maxrss` of a new process begins with that of the process that started it.
    status = Path("/proc/self/status").read_text()
    (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return used.ru_utime + used.ru_stime, 1024 * int(peak)


def measured(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float, int]:
    """Call a function. Return its result, the CPU time that it took and the peak memory."""
    before, _ = usage()
    result = work(*arguments)
    after, peak = usage()
    return result, after - before, peak


def processes(count: int) -> ProcessPoolExecutor:
    """Start new processes, each of which has a peak of its own."""
    return ProcessPoolExecutor(count, mp_context=SPAWN)


def fill(plan: zvf.TaskPlan, kind: str, share: int, rows: int) -> bool:
    return plan.fill(share, batches(kind, share, rows))


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
        )

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


def create(kind: str, store: Path, vertices: int, workers: int) -> Measures:
    costs = Measures(vertices)
    shares = -(-vertices // SHARE)
    rows = [min(SHARE, vertices - SHARE * share) for share in range(shares)]
    plan = zvf.plan_shares(store, shares, kind=kind, tasks=4 * workers, memory=MEMORY)
    with processes(workers) as started:
        calls = [(fill, plan, kind, share, rows[share]) for share in range(shares)]
        costs.pool(started, "fill", calls)
    plan = costs.here("join surveys", plan.advance)
    with processes(workers) as started:
        costs.pool(started, "divide", [(run, plan, task) for task in range(plan.tasks)])
    plan = costs.here("join divisions", plan.advance)
    with processes(workers) as started:
        costs.pool(started, "write", [(run, plan, task) for task in range(plan.tasks)])
    report = costs.here("commit", plan.commit)
    assert report["vertices"] == vertices, report
    while (plan := zvf.plan_pyramid(store, tasks=4 * workers)).tasks:
        name = f"level {plan.level}"
        with processes(workers) as started:
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


def create_here(kind: str, store: Path, vertices: int) -> Measures:
    """Create a store in one process, which has the input in memory."""
    costs = Measures(vertices)
    made = SHAPES[kind](np.random.default_rng(0), vertices)
    costs.here("input in memory", len, made["positions"])
    costs.here("create", lambda: zvf.create(store, kind=kind, **made))
    del made
    costs.here("levels", lambda: zvf.open(store).pyramid())
    # Its memory is the input's.
    costs.peak = 0
    return costs


def stores(kind: str, folder: Path, counts: list[int], workers: int) -> None:
    print("| vertices | work | s | CPU s | CPU µs a vertex | peak MiB | |\n|---|---|---|---|---|---|---|")
    for count in counts:
        store = folder / f"{kind}-{count}.zv"
        if kind == "skeletons":
            costs = create_here(kind, store, count)
        else:
            costs = create(kind, store, count, workers)
        # In a process of its own, whose peak is that of reading.
        with processes(1) as pool:
            pool.submit(check, store, costs).result()
        shutil.rmtree(store)


def chunks(folder: Path, counts: list[int]) -> None:
    print("| chunks | work | CPU s | peak MiB | requests | bytes |\n|---|---|---|---|---|---|")
    for count in counts:
        side = round(count ** (1 / 3))
        store = folder / f"chunks-{side**3}.zv"
        grid = np.arange(side, dtype=np.float32) + np.float32(0.5)
        at = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), -1).reshape(-1, 3)
        zvf.create(store, kind="points", positions=at, vertex={"q": at[:, 0]},
                   chunk_shape=(1, 1, 1), sharding=(32, 32, 32))
        for work in ("nothing", "open", "box", "explain"):
            with processes(1) as pool:
                cpu, peak, activity = pool.submit(opened, str(store), work).result()
            made = f"{activity.get('requests', 0):,} | {activity.get('bytes_read', 0):,}"
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


def overhead(folder: Path) -> None:
    """Print the time of small queries from Rust and from Python, from the call to the arrays.

    Both run in turns in this process, so that other load meets both. The tenth percentile of many short rounds
    leaves out those that other load interrupted.
    """
    place = np.zeros((1, 3), np.float32)
    names = [f"a{at}" for at in range(10)]
    values = {name: np.zeros(1, np.float32) for name in names}
    zvf.create(folder / "point.zv", kind="points", positions=place)
    zvf.create(folder / "columns.zv", kind="points", positions=place, vertex=values)
    zvf.create(
        folder / "path.zv", kind="streamlines", positions=np.eye(3, dtype=np.float32),
        part_offsets=[0, 3], vertex={"fa": [1, 2, 3]}, object={"length": [1]}, groups={0: [0]},
    )
    zvf.create(
        folder / "face.zv", kind="mesh", positions=np.eye(3, dtype=np.float32), links=[[0, 1, 2]],
        object_ids=[0, 0, 0], vertex={"fa": [1, 2, 3]},
    )
    box: dict[str, Any] = {"bbox": ((0, 0, 0), (1, 1, 1))}
    queries: dict[str, tuple[str, dict[str, Any]]] = {
        "a point in a box": ("point.zv", box),
        "a point with ten attributes in a box": ("columns.zv", box),
        "a path by its id": ("path.zv", {"objects": 0}),
        "a path by a predicate": ("path.zv", {"where": "fa > 2 and length < 5", "select": ["fa"]}),
        "a face in a box": ("face.zv", box),
    }
    print("| query | Rust, µs | Python, µs | overhead, µs |\n|---|---:|---:|---:|")
    for name, (path, query) in queries.items():
        store = zvf.open(folder / path)
        store.query(**query)
        rust, python = [], []
        gc.collect()
        for _ in range(ROUNDS):
            rust.append(store._raw.time_query(query, LOOPS))
            start = time.perf_counter()
            for _ in range(LOOPS):
                store.query(**query)
            python.append(time.perf_counter() - start)
        micro = 1e6 / LOOPS
        inside, whole = (micro * float(np.quantile(times, 0.1)) for times in (rust, python))
        print(f"| {name} | {inside:.1f} | {whole:.1f} | {whole - inside:.1f} |", flush=True)
        assert whole - inside < MAX_OVERHEAD, name


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=[*SHAPES, "chunks", "overhead"])
    parser.add_argument("counts", type=float, nargs="*")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    counts = [int(count) for count in given.counts]
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if given.what == "chunks":
            chunks(Path(folder), counts)
        elif given.what == "overhead":
            overhead(Path(folder))
        else:
            stores(given.what, Path(folder), counts, given.workers)


if __name__ == "__main__":
    sys.exit(main())
