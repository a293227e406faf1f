"""Slices of arrays of Blosc2, ours and python-blosc2's in one run, by turns.

usage: bench_b2nd.py OURS FOLDER [--rounds N] [--threads N]

OURS is the example b2nd of zvf-dense, built with optimization. Arrays are in the page cache. Each
figure is the median, in microseconds, over random selections and rounds: first one side reads all
selections of a shape, then the other. Results go to new memory, or (into) to memory that is there;
`new` and `into` say how many times faster ours is. python-blosc2 is timed within Python, whose part in a call is some 10 to 20 microseconds; ours within Rust.
"""

import argparse
import os
import pathlib
import statistics
import time

import blosc2
import numpy as np

from b2nd import Ours

ARRAYS = {
    "A 400x300x150, chunks 100x50x40, blocks 10x50x5": ((400, 300, 150), (100, 50, 40), (10, 50, 5)),
    "B 256^3, chunks 64^3, blocks 16^3": ((256,) * 3, (64,) * 3, (16,) * 3),
    "C 256^3, one chunk along two axes": ((256,) * 3, (32, 256, 256), (8, 32, 32)),
}
SELECTIONS = 12
COLUMNS = ["blosc2", "ours", "mapped", "blosc2 into", "ours into"]


def smooth(shape):
    """Waves with noise in the low bits: such as a scanner gives."""
    random = np.random.default_rng(1)
    axes = np.ogrid[tuple(slice(0, n) for n in shape)]
    waves = sum(np.sin(axis / (7.0 + 3 * k)) for k, axis in enumerate(axes))
    return (waves + random.normal(0, 0.001, shape)).astype("<f4")


def selections(shape):
    random = np.random.default_rng(2)
    for axis in range(len(shape)):
        planes = []
        for _ in range(SELECTIONS):
            at = int(random.integers(shape[axis]))
            start, stop = [0] * len(shape), list(shape)
            start[axis], stop[axis] = at, at + 1
            planes.append((start, stop))
        yield f"axis {axis}", planes
    boxes = []
    for _ in range(SELECTIONS):
        start = [int(random.integers(n - 10)) for n in shape]
        boxes.append((start, [a + 10 for a in start]))
    yield "10^3 box", boxes
    points = []
    for _ in range(SELECTIONS):
        start = [int(random.integers(n)) for n in shape]
        points.append((start, [a + 1 for a in start]))
    yield "point", points
    yield "whole", [([0] * len(shape), list(shape))] * 3


def theirs(array, boxes, into):
    times = []
    for start, stop in boxes:
        key = tuple(slice(a, b) for a, b in zip(start, stop))
        room = np.ones([b - a for a, b in zip(start, stop)], array.dtype)
        before = time.perf_counter()
        if into:
            array.get_slice_numpy(room, (start, stop))
        else:
            room = array[key]
        times.append((time.perf_counter() - before) * 1e6)
        del room
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ours")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    os.environ["RAYON_NUM_THREADS"] = str(options.threads)
    blosc2.set_nthreads(options.threads)
    ours = Ours(options.ours)
    print(f"python-blosc2 {blosc2.__version__}, {options.threads} threads, microseconds")
    for name, (shape, chunks, blocks) in ARRAYS.items():
        path = options.folder / f"{name[0]}.b2nd"
        cparams = {"codec": blosc2.Codec.LZ4, "clevel": 5, "nthreads": 1}
        blosc2.asarray(
            smooth(shape), chunks=chunks, blocks=blocks, cparams=cparams, urlpath=str(path), mode="w"
        )
        array = blosc2.open(str(path), mode="r", dparams={"nthreads": options.threads})
        print(f"\n{name}, stored in {path.stat().st_size >> 10} KiB")
        heads = " ".join(f"{name:>11}" for name in COLUMNS)
        print(f"{'':10} {heads} {'new':>7} {'into':>7}")
        for kind, boxes in selections(shape):
            asked = [{"start": a, "stop": b} for a, b in boxes]
            filled = [{**one, "into": True} for one in asked]
            times = {name: [] for name in COLUMNS}
            request = {"do": "time", "path": str(path)}
            for _ in range(options.rounds):
                times["blosc2"] += theirs(array, boxes, False)
                times["ours"] += ours.ask(**request, selections=asked)
                times["mapped"] += ours.ask(**request, selections=asked, mapped=True)
                times["blosc2 into"] += theirs(array, boxes, True)
                times["ours into"] += ours.ask(**request, selections=filled)
            median = {side: statistics.median(taken) for side, taken in times.items()}
            row = " ".join(f"{median[side]:11.1f}" for side in times)
            new = median["blosc2"] / median["ours"]
            into = median["blosc2 into"] / median["ours into"]
            print(f"{kind:10} {row} {new:6.2f}x {into:6.2f}x")


if __name__ == "__main__":
    main()
