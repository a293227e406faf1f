"""Compares reading slices of dense arrays with the other libraries, alternating in one run.

usage: dense.py OURS FOLDER [--rounds N] [--threads N]... [--only TEXT]

OURS is the example b2nd of zvf-dense, built with optimization. Blosc2 arrays are compared with
python-blosc2, .tet with tet-py (Tetration's own library), Zarr with zarr-python. All files are in
the page cache. Prints rows of Markdown: medians in microseconds over random selections and rounds.
In each round first one side reads all selections of a shape, then the other. Results go to new
memory and, where the other library supports it, also to existing memory (`into`). Views of a mapped
file are copied to memory, as OURS does. The others are timed within Python, whose share of a call
is some 10 to 20 microseconds; OURS within Rust.

The last rows measure copying the bytes of a whole array on one thread, and sampling ten million
positions in a volume.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import time

import blosc2
import numpy as np
import tet
import zarr

ARRAYS = {
    "b2nd 400×300×150 in 100×50×40, blocks 10×50×5": ("b2nd", (400, 300, 150), (100, 50, 40), (10, 50, 5)),
    "b2nd 256³ in 64³, blocks 16³": ("b2nd", (256,) * 3, (64,) * 3, (16,) * 3),
    "b2nd 256³ in 32×256×256, blocks 8×32×32": ("b2nd", (256,) * 3, (32, 256, 256), (8, 32, 32)),
    "tet raw 256³ in 16×256×256": ("raw", (256,) * 3, (16, 256, 256), None),
    "tet raw 256³ in 64³": ("raw", (256,) * 3, (64,) * 3, None),
    "tet raw 256³ in 256×256×16": ("raw", (256,) * 3, (256, 256, 16), None),
    "tet zstd 256³ in 64³": ("tet", (256,) * 3, (64,) * 3, None),
    "zarr zstd 256³ in 64³": ("zarr", (256,) * 3, (64,) * 3, None),
}
SELECTIONS = 12
POSITIONS = 10_000_000


class Ours:
    """The example b2nd, which serves requests as lines of JSON."""

    def __init__(self, program):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([program], stdin=pipe, stdout=pipe, text=True)

    def run(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        response = self.process.stdout.readline().strip()
        assert response.startswith("ok"), f"{request}: {response}"
        return [float(word) for word in response.split()[1:]]


def smooth(shape):
    """Returns waves with noise in the low bits, similar to the data of a scanner."""
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
        yield f"plane {axis}", planes
    for name, size in (("10³ box", 10), ("point", 1)):
        starts = [[int(random.integers(n - size + 1)) for n in shape] for _ in range(SELECTIONS)]
        yield name, [(start, [a + size for a in start]) for start in starts]
    yield "whole", [([0] * len(shape), list(shape))] * 3


class Zarr:
    name = f"zarr-python {zarr.__version__}"
    has_into = False
    most = SELECTIONS

    def __init__(self, path, threads):
        self.array = zarr.open_array(path, mode="r")

    def get(self, start, stop):
        return self.array[tuple(slice(a, b) for a, b in zip(start, stop))]


class Blosc2(Zarr):
    name = f"python-blosc2 {blosc2.__version__}"
    has_into = True

    def __init__(self, path, threads):
        self.array = blosc2.open(str(path), mode="r", dparams={"nthreads": threads})
        self.dtype = self.array.dtype

    def put(self, start, stop, room):
        self.array.get_slice_numpy(room, (start, stop))


class Tet:
    name = f"tet-py {tet.core_version()}"
    has_into = False
    # A plane takes up to a second.
    most = 2

    def __init__(self, path, threads):
        self.file = tet.open(path)

    def get(self, start, stop):
        axes = [tet.axis_slice(a, b) for a, b in zip(start, stop)]
        return np.array(self.file.read_numpy("a", axes))


def write(ours, folder, name, kind, shape, chunks, blocks):
    """Writes the array; returns it and the other library that reads it."""
    ends = {"raw": ".tet", "tet": ".tet", "b2nd": ".b2nd", "zarr": ".zarr"}
    path = folder / (str(list(ARRAYS).index(name)) + ends[kind])
    values = smooth(shape)
    if kind == "b2nd":
        cparams = {"codec": blosc2.Codec.LZ4, "clevel": 5, "nthreads": 1}
        blosc2.asarray(values, chunks=chunks, blocks=blocks, cparams=cparams, urlpath=str(path), mode="w")
        return path, Blosc2
    if kind == "zarr":
        shutil.rmtree(path, ignore_errors=True)
        codec = zarr.codecs.ZstdCodec(level=1)
        array = zarr.create_array(path, shape=shape, chunks=chunks, dtype=values.dtype, compressors=[codec])
        array[...] = values
        return path, Zarr
    path.unlink(missing_ok=True)
    raw = folder / "raw"
    values.tofile(raw)
    ours.run(do="tet", path=str(path), raw=str(raw), shape=shape, chunks=chunks, zstd=kind == "tet")
    raw.unlink()
    return path, Tet


def theirs(peer, boxes, into):
    times = []
    for start, stop in boxes:
        room = [np.ones([b - a for a, b in zip(start, stop)], peer.dtype)] if into else []
        read, before = peer.put if into else peer.get, time.perf_counter()
        made = read(start, stop, *room)
        times.append((time.perf_counter() - before) * 1e6)
        del made, room
    return times


def compared(ours, path, peer, kind, boxes, rounds):
    """Returns medians of a kind of selection: theirs, ours, theirs into, ours into."""
    selections = [{"start": a, "stop": b} for a, b in boxes]
    filled = [{**one, "into": True} for one in selections]
    times = [[], [], [], []]
    request = {"do": "time", "path": str(path)}
    for _ in range(rounds):
        times[0] += theirs(peer, boxes[: peer.most], False)
        times[1] += ours.run(**request, selections=selections)
        if peer.has_into:
            times[2] += theirs(peer, boxes, True)
        times[3] += ours.run(**request, selections=filled)
    return [statistics.median(taken) if taken else None for taken in times]


def shown(number):
    return "" if number is None else f"{number:.1f}" if number < 100 else f"{number:.0f}"


def ratio(theirs, ours):
    return "" if theirs is None else f"{theirs / ours:.2f}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ours")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[os.cpu_count()])
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    writer = Ours(options.ours)
    arrays = {name: write(writer, options.folder, name, *spec) for name, spec in ARRAYS.items() if options.only in name}
    for threads in options.threads:
        os.environ["RAYON_NUM_THREADS"] = str(threads)
        blosc2.set_nthreads(threads)
        zarr.config.set({"threading.max_workers": threads, "async.concurrency": threads})
        ours = Ours(options.ours)
        for name, (path, library) in arrays.items():
            peer = library(path, threads)
            print(f"\n{name}, {threads} threads, beside {library.name}\n")
            print("| | theirs | ours | ratio | theirs into | ours into | ratio |")
            print("|---|---|---|---|---|---|---|", flush=True)
            for kind, boxes in selections(ARRAYS[name][1]):
                own = compared(ours, path, peer, kind, boxes, options.rounds)
                cells = [*map(shown, own[:2]), ratio(*own[:2]), *map(shown, own[2:]), ratio(*own[2:])]
                print(f"| {kind} | {' | '.join(cells)} |", flush=True)
        size = 4 * 256**3
        copied = min(ours.run(do="copy", path="", bytes=size, rounds=options.rounds))
        print(f"\ncopying {size} bytes, 1 thread: {copied:.0f}")
        for name, (path, _) in arrays.items():
            if "64³" in name:
                taken = ours.run(do="sample", path=str(path), count=POSITIONS, rounds=3)
                print(f"{POSITIONS} positions in {name}, linear, {threads} threads: {min(taken):.0f}")


if __name__ == "__main__":
    main()
