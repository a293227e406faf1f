"""Compares the Python package zvf with zarr-vectors in one process.

Usage: bench_package.py VERTICES [KIND]... [--cpu] [--folder FOLDER] [--tasks TASK,...]

Prints the times of each in milliseconds, and their ratio: the least of several runs, and the mean
of random boxes and objects, which differ in each run. With --cpu, the times are those of all cores
that the process used, which are comparable on a machine with other load, and to the disadvantage of
zvf, which uses several cores at once. Both read the store that zarr-vectors wrote,
once opened; set TMPDIR to a folder in memory to leave out the disk, to which zvf flushes what it
writes. zvf has its default options, which keep cells in memory; the last column is the
time without.

--folder keeps the stores, and --tasks names what is measured: overhead, write, open, whole, boxes,
object, objects, filter, append. All stores of one folder have the same number of vertices. Later
runs without `write` read them, so that a long measurement can be done in steps.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

warnings.simplefilter("ignore")

import zarr_vectors  # noqa: E402
import zvf  # noqa: E402
from zarr_vectors.ops import EditSession  # noqa: E402
from zarr_vectors.types import graphs, lines, meshes, points, polylines  # noqa: E402

KINDS = ("points", "lines", "polylines", "streamlines", "skeletons", "graphs", "mesh")
TASKS = "overhead write open whole boxes object objects filter append".split()
# Kinds whose objects zarr-vectors cannot select, and whose whole levels come without objects.
LINKED = ("graphs", "skeletons", "mesh")
PATH = 50
"""Vertices of a path and of an object."""
SIDE = 100.0
EXTENT = 1000.0
LONG = 2000.0
"""Milliseconds of a call that needs no further one to warm up."""
ENOUGH = 4000.0
"""Milliseconds after which no call is repeated."""

clock = time.perf_counter


def once(work: Callable[[], Any]) -> float:
    """Returns the time of one run in milliseconds."""
    gc.collect()
    start = clock()
    work()
    return 1000 * (clock() - start)


def best(work: Callable[[], Any], repeats: int) -> float:
    """Returns the least time of several runs in milliseconds."""
    times = []
    for _ in range(repeats):
        times.append(once(work))
        if sum(times) > ENOUGH:
            break
    return min(times)


def mean(work: Callable[[Any], Any], arguments: list[Any]) -> float:
    """Returns the mean time of calls with these arguments in milliseconds."""
    first = once(lambda: work(arguments[0]))
    if first > LONG:
        return first
    gc.collect()
    start, count = clock(), 0
    for argument in arguments:
        work(argument)
        count += 1
        if 1000 * (clock() - start) > ENOUGH:
            break
    return 1000 * (clock() - start) / count


def walks(vertices: int, rng: np.random.Generator) -> np.ndarray:
    """Returns random walks of PATH vertices each."""
    starts = rng.uniform(0, EXTENT, (vertices // PATH, 1, 3))
    steps = rng.normal(0, 2, (vertices // PATH, PATH - 1, 3))
    walk = np.concatenate([starts, starts + np.cumsum(steps, axis=1)], axis=1)
    return np.clip(walk, 0, EXTENT).astype(np.float32)


class Case:
    """One kind of geometry, for both packages."""

    def __init__(self, kind: str, vertices: int) -> None:
        rng = np.random.default_rng(5)
        self.kind = kind
        walk = walks(vertices, rng)
        self.objects = len(walk)
        flat = walk.reshape(-1, 3)
        rows = np.arange(len(flat)).reshape(-1, PATH)
        value = rng.random(len(flat), np.float32)
        common: dict[str, Any] = {"chunk_shape": (SIDE,) * 3}
        ids = np.repeat(np.arange(self.objects), PATH)
        edges = np.stack([rows[:, 1:].ravel(), rows[:, :-1].ravel()], axis=1)
        vertex = {"fa": value}
        ours: dict[str, Any] = {"kind": kind, "positions": flat, "vertex": vertex, **common}
        if kind == "points":
            self.theirs = (points.write_points, flat)
            common |= {"vertex_attributes": vertex, "object_ids": ids}
            ours |= {"object_ids": ids}
        elif kind == "lines":
            self.theirs = (lines.write_lines, flat.reshape(-1, 2, 3))
            common |= {"vertex_attributes": {"fa": value.reshape(-1, 2)}}
            ours |= {"part_offsets": np.arange(0, len(flat) + 1, 2)}
            self.objects = len(flat) // 2
        elif kind in ("polylines", "streamlines"):
            self.theirs = (polylines.write_polylines, list(walk))
            common |= {"vertex_attributes": {"fa": list(value.reshape(-1, PATH))}}
            common |= {"geometry_type": kind[:-1]}
            ours |= {"part_offsets": np.arange(0, len(flat) + 1, PATH)}
        elif kind in ("graphs", "skeletons"):
            self.theirs = (graphs.write_graph, flat, edges)
            common |= {"vertex_attributes": vertex, "object_ids": ids, "kind": kind[:-1]}
            ours |= {"object_ids": ids, "links": edges}
        else:
            a, b, c = rows[:, :-2].ravel(), rows[:, 1:-1].ravel(), rows[:, 2:].ravel()
            faces = np.stack([a, b, c], axis=1)
            self.theirs = (meshes.write_mesh, flat, faces)
            common |= {"vertex_attributes": vertex, "object_ids": ids}
            ours |= {"object_ids": ids, "links": faces}
        self.their_options = common
        self.our_options = ours

    def write_theirs(self, path: Path) -> None:
        write, *data = self.theirs
        write(str(path), *data, **self.their_options)

    def write_ours(self, path: Path) -> None:
        # The same form: cells without compression, and no copy of the metadata in the root.
        zvf.create(path, **self.our_options, compression="none", node_copy=False)


def again(path: Path, work: Callable[[Path], None]) -> Callable[[], None]:
    def run() -> None:
        shutil.rmtree(path, ignore_errors=True)
        work(path)

    return run


def report(
    kind: str, task: str, theirs: float | None, ours: float, bare: float | None = None
) -> None:
    cells = ["", f"{ours:.2f}", "", "" if bare is None else f"{bare:.2f}"]
    if theirs is not None:
        cells[0], cells[2] = f"{theirs:.1f}", f"{theirs / ours:.1f}"
    print(f"| {kind} | {task} | {' | '.join(cells)} |", flush=True)


def compare(kind: str, vertices: int, folder: Path, tasks: list[str]) -> None:
    case = Case(kind, vertices)
    path, mine = folder / f"{kind}.theirs", folder / f"{kind}.ours"
    repeats = 1 if vertices > 2_000_000 else 2
    if "write" in tasks:
        theirs = best(again(path, case.write_theirs), repeats)
        report(kind, "write", theirs, best(again(mine, case.write_ours), 3))
    if "open" in tasks:
        theirs = best(lambda: zarr_vectors.open(path), 5)
        report(kind, "open", theirs, best(lambda: zvf.open(path), 20))
    their, our, bare = zarr_vectors.open(path), zvf.open(path), zvf.open(path, cache=0)
    if "whole" in tasks:
        read: list[Any] = [None]

        def read_all() -> None:
            read[0] = their.read()

        # zarr-vectors returns no objects of points, graphs and meshes with a whole level.
        whole = {"owners": False} if kind == "points" or kind in LINKED else {}
        report(
            kind, "whole", best(read_all, repeats + 1),
            best(lambda: our.query(**whole), 5), best(lambda: bare.query(**whole), 5),
        )  # fmt: skip
        counts = (read[0].vertex_count, len(our.query()))
        assert counts[0] == counts[1], counts
        del read
    rng = np.random.default_rng(9)
    for side in (20, 100) if "boxes" in tasks else ():
        low = rng.uniform(0, EXTENT - side, (200, 3))
        boxes = [(corner.tolist(), (corner + side).tolist()) for corner in low]
        report(
            kind, f"box of {side}³",
            mean(lambda box: their.select(bbox=box).read(), boxes[:20]),
            mean(lambda box: our.query(bbox=box), boxes),
            mean(lambda box: bare.query(bbox=box), boxes),
        )  # fmt: skip
    for name, task, count in (("object", "object", 1), ("objects", "100 objects", 100)):
        if name not in tasks:
            continue
        chosen = [rng.choice(case.objects, count, replace=False).tolist() for _ in range(100)]
        theirs = None
        if kind not in LINKED:
            theirs = mean(lambda ids: their.select(objects=ids).read(), chosen[:20])
        report(
            kind, task, theirs,
            mean(lambda ids: our.query(objects=ids), chosen),
            mean(lambda ids: bare.query(objects=ids), chosen),
        )  # fmt: skip

    def masked() -> Any:
        found = their.read()
        return found.restrict(found.attributes["fa"] > 0.99)

    if "filter" in tasks:
        report(
            kind, "filter", best(masked, repeats),
            best(lambda: our.query(where="fa > 0.99"), 5),
            best(lambda: bare.query(where="fa > 0.99"), 5),
        )  # fmt: skip
    if "append" in tasks:
        append(kind, case, folder)


def append(kind: str, case: Case, folder: Path) -> None:
    """Adds 20 objects with an attribute, or as many lines as they have pairs of vertices.

    zarr-vectors cannot add objects together with explicit links, so not to graphs and meshes; those
    of its skeletons follow from the order of rows.
    """
    rng = np.random.default_rng(8)
    added = np.clip(walks(20 * PATH, rng) * 0.9 + 10, 20, 900)
    flat, count = added.reshape(-1, 3), len(added)
    ids = np.arange(case.objects, case.objects + count)
    options: dict[str, Any] = {"positions": flat, "vertex": {"fa": np.zeros(len(flat), np.float32)}}
    if kind not in ("points", *LINKED):
        width = 2 if kind == "lines" else PATH
        options["part_offsets"] = np.arange(0, len(flat) + 1, width)
        parts = len(flat) // width
        options["part_objects"] = np.arange(case.objects, case.objects + parts)
    else:
        options["object_ids"] = np.repeat(ids, PATH)
        rows = np.arange(len(flat)).reshape(-1, PATH)
        if kind in ("graphs", "skeletons"):
            options["links"] = np.stack([rows[:, 1:].ravel(), rows[:, :-1].ravel()], axis=1)
        if kind == "mesh":
            corners = rows[:, :-2].ravel(), rows[:, 1:-1].ravel(), rows[:, 2:].ravel()
            options["links"] = np.stack(corners, axis=1)
    ours = once(lambda: zvf.open(folder / f"{kind}.ours").append(**options))
    theirs = None
    if kind not in ("graphs", "mesh"):
        rows = 2 if kind == "lines" else PATH

        def edit() -> None:
            root = zarr_vectors.open(folder / f"{kind}.theirs", mode="r+").store
            with EditSession(root) as session:
                for vertices in flat.reshape(-1, rows, 3):
                    values = {"fa": np.zeros(rows, np.float32)}
                    session.add_object(level=0, vertices=vertices, attrs=values)

        theirs = once(edit)
    report(kind, "append", theirs, ours)


ROUNDS = 500
LOOPS = 20
MAX_OVERHEAD = 30.0
"""Microseconds of a query, as documented."""


def overhead(folder: Path) -> None:
    """Prints the time of small queries from Rust and from Python, from the call to the arrays.

    Both run in turns in this process, so that other load meets both. The tenth percentile of many
    short rounds leaves out those that other load interrupted.
    """
    place = np.zeros((1, 3), np.float32)
    names = [f"a{at}" for at in range(10)]
    values = {name: np.zeros(1, np.float32) for name in names}
    zvf.create(folder / "point.zv", kind="points", positions=place)
    zvf.create(folder / "columns.zv", kind="points", positions=place, vertex=values)
    zvf.create(
        folder / "path.zv", kind="streamlines", positions=np.eye(3, dtype=np.float32),
        part_offsets=[0, 3], vertex={"fa": [1, 2, 3]}, object={"length": [1]}, groups={0: [0]},
    )  # fmt: skip
    zvf.create(
        folder / "face.zv", kind="mesh", positions=np.eye(3, dtype=np.float32), links=[[0, 1, 2]],
        object_ids=[0, 0, 0], vertex={"fa": [1, 2, 3]},
    )  # fmt: skip
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
    global clock
    parser = argparse.ArgumentParser()
    parser.add_argument("vertices", type=float)
    parser.add_argument("kinds", nargs="*", metavar="KIND")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=TASKS)
    given = parser.parse_args()
    for words, known in ((given.kinds, KINDS), (given.tasks, TASKS)):
        if unknown := set(words) - set(known):
            parser.error(f"there is no {min(unknown)}; there are {', '.join(known)}")
    if given.cpu:
        clock = time.process_time
    asyncio.set_event_loop(asyncio.new_event_loop())
    folder = given.folder or Path(tempfile.mkdtemp(prefix="bench-package-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        if "overhead" in given.tasks:
            with tempfile.TemporaryDirectory() as scratch:
                overhead(Path(scratch))
        print("| kind | task | zarr-vectors | zvf | ratio | zvf, no cache |")
        print("|---|---|---:|---:|---:|---:|")
        for kind in given.kinds or KINDS:
            compare(kind, int(given.vertices), folder, given.tasks)
    finally:
        if given.folder is None:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
