"""The time of small queries from Rust and from Python, from the call to the arrays.

    pip install . && python benchmarks/overhead.py

Fails if a query from Python takes longer than documented.
"""

from __future__ import annotations

import gc
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import zvf

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


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        overhead(Path(scratch))
