"""Times programs written for zarr-vectors, on that package or on zvf.compat.

Usage: bench_compat.py package|compat VERTICES

Prints milliseconds, the least of several runs.
"""

from __future__ import annotations

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

PATH = 50


def best(work: Callable[[], Any], repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(1000 * (time.perf_counter() - start))
    return min(times)


def main() -> None:
    if sys.argv[1] == "compat":
        import zvf.compat

        zvf.compat.install()
    import zarr_vectors
    from zarr_vectors.types import meshes, points, polylines

    vertices = int(float(sys.argv[2]))
    rng = np.random.default_rng(5)
    starts = rng.uniform(0, 1000, (vertices // PATH, 1, 3))
    steps = rng.normal(0, 2, (vertices // PATH, PATH - 1, 3))
    walk = np.concatenate([starts, starts + np.cumsum(steps, axis=1)], axis=1)
    walk = np.clip(walk, 0, 1000).astype(np.float32)
    flat = walk.reshape(-1, 3)
    rows = np.arange(len(flat)).reshape(-1, PATH)
    faces = np.stack([rows[:, :-2].ravel(), rows[:, 1:-1].ravel(), rows[:, 2:].ravel()], axis=1)
    fa = rng.random(len(flat), np.float32)
    chunks: dict[str, Any] = {"chunk_shape": (100.0,) * 3}
    folder = Path(tempfile.mkdtemp(prefix="bench-compat-"))
    writers: dict[str, Callable[[str], Any]] = {
        "points": lambda path: points.write_points(
            path, flat, vertex_attributes={"fa": fa}, **chunks
        ),
        "streamlines": lambda path: polylines.write_polylines(
            path, list(walk), vertex_attributes={"fa": list(fa.reshape(-1, PATH))}, **chunks
        ),
        "mesh": lambda path: meshes.write_mesh(
            path, flat, faces, vertex_attributes={"fa": fa}, **chunks
        ),
    }
    box = ([430.0] * 3, [450.0] * 3)
    try:
        for kind, write in writers.items():
            path = str(folder / kind)

            def again(path: str = path, write: Callable[[str], Any] = write) -> None:
                shutil.rmtree(path, ignore_errors=True)
                write(path)

            print(f"{kind} write {best(again, 2):.1f}", flush=True)
            store = zarr_vectors.open(path)
            print(f"{kind} read {best(store.read, 3):.1f}", flush=True)
            query = store.select(bbox=box)
            print(f"{kind} box {best(query.read):.2f}, {query.read().vertex_count} vertices")
            if kind == "streamlines":
                one = store.select(objects=[7])
                print(f"{kind} object {best(one.read):.2f}", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
