"""A peer that runs step by step, like `zvf-bench serve`.

Its arguments are a folder of data (`zvf-bench data`) and an output folder. Each line of standard
input is a step; each line of JSON on standard output is its cost: seconds of each repetition,
growth of memory in bytes, and vertices found. A step that a peer does not support gives `unable`.
"""

import contextlib
import gc
import itertools
import json
import os
import statistics
import sys
import time
from importlib import metadata

import numpy as np

MOMENT = 0.02
MOST = 200
PATIENCE = 2.0


class Data:
    """The data and the queries in the data folder."""

    def __init__(self, folder):
        self.folder = folder
        with open(f"{folder}/meta.json") as file:
            self.meta = json.load(file)
        self.kind = self.meta["kind"]
        self.side = self.meta["side"]
        self.ids = np.array(self.meta["ids"], np.int64)
        self.objects = self.meta["objects"]
        self.vertices = self.meta["vertices"]

    def names(self):
        return sorted(name[:-4] for name in os.listdir(self.folder) if name.endswith(".npy"))

    def load(self, name):
        return np.load(f"{self.folder}/{name}.npy")

    def attributes(self, scope):
        start = scope + "_"
        return {name[len(start):]: self.load(name) for name in self.names() if name.startswith(start)}

    def boxes(self, share):
        return [np.array(corners) for corners in self.meta["boxes"][share]["corners"]]


def z_order(positions, side):
    """Orders rows along a curve that keeps neighbours together."""

    def spread(x):
        for shift, mask in ((32, 0x1F00000000FFFF), (16, 0x1F0000FF0000FF), (8, 0x100F00F00F00F00F),
                            (4, 0x10C30C30C30C30C3), (2, 0x1249249249249249)):
            x = (x | (x << np.uint64(shift))) & np.uint64(mask)
        return x

    cells = (positions / np.float32(side) * 1023).astype(np.uint64)
    code = spread(cells[:, 0]) | (spread(cells[:, 1]) << np.uint64(1)) | (spread(cells[:, 2]) << np.uint64(2))
    return np.argsort(code, kind="stable")


def inside(positions, corners):
    low, high = corners.astype(np.float64)
    held = (positions[:, 0] >= low[0]) & (positions[:, 0] <= high[0])
    for axis in (1, 2):
        held &= (positions[:, axis] >= low[axis]) & (positions[:, axis] <= high[axis])
    return held


def paths_inside(positions, offsets, corners):
    """Returns numbers of the paths that have a vertex in a box."""
    rows = np.nonzero(inside(positions, corners))[0]
    return np.unique(np.searchsorted(offsets, rows, side="right") - 1)


def remove(path):
    """Moves a folder aside, as ours does: after many deletions, ext4 creates files slowly."""
    if os.path.exists(path):
        free = next(place for at in itertools.count() if not os.path.exists(place := f"{path}.{at}.old"))
        os.rename(path, free)


def size(path):
    if os.path.isfile(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)


def _status(name):
    with open("/proc/self/status") as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0


def _once(work, *arguments):
    start = time.perf_counter()
    done = work(*arguments)
    return time.perf_counter() - start, done


def _measure(peer, step):
    if step.startswith("box "):
        boxes = peer.data.boxes(step[4:])

        def once():
            found, times = 0, []
            for corners in boxes:
                took, done = _once(peer.box, corners)
                times.append(took)
                found += peer.count(done)
                # Where a box takes seconds, further repetitions add no information.
                if sum(times) > PATIENCE:
                    break
            return statistics.median(times), found
    else:
        work = getattr(peer, step, None)
        if work is None:
            return {"unable": "no such thing here"}

        def once():
            # Preparation that is not part of the measured work.
            getattr(peer, f"before_{step}", lambda: None)()
            took, done = _once(work)
            return took, peer.count(done)

    if step != "write":
        peer.release()
    gc.collect()
    before = None
    with contextlib.suppress(OSError):
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
        before = _status("VmRSS:")
    start, seconds = time.perf_counter(), []
    while True:
        took, found = once()
        seconds.append(took)
        is_over = time.perf_counter() - start > MOMENT or len(seconds) == MOST
        if is_over or step in ("write", "pyramid"):
            break
    peak = None if before is None else max(0, _status("VmHWM:") - before)
    return {"seconds": seconds, "peak": peak, "found": int(found)}


class Peer:
    """The common parts of all peers. A step is a method of its name, `before_` and the name prepares it, and `count`
    counts the vertices of its result. `opened` opens what was written, for the steps on an open store."""

    name, package, ending = "peer", None, ""

    def __init__(self, data, folder):
        self.data, self.turn, self.store = data, 0, None
        self.path = f"{folder}/{self.name}-{data.kind}-{data.vertices}{self.ending}"

    def version(self):
        return f"{self.package} {metadata.version(self.package)}"

    def before_write(self):
        load, names = self.data.load, self.data.names()
        self.store, self.places = None, load("positions")
        self.offsets, self.links = (load(name) if name in names else None for name in ("offsets", "links"))
        self.values, self.of_links, self.of_objects = map(self.data.attributes, ("vertex", "link", "object"))
        remove(self.path)

    def release(self):
        """Forgets the data that were written."""
        self.places = self.offsets = self.links = self.values = self.of_links = self.of_objects = self.made = None

    def loaded(self):
        if self.store is None:
            self.store = self.opened()
        return self.store

    def count(self, done):
        return 0 if done is None else len(done)

    def one(self):
        self.turn += 1
        return self.objects([int(self.data.ids[self.turn % len(self.data.ids)])])

    def hundred(self):
        return self.objects(self.data.ids.tolist())

    def objects(self, ids):
        raise NotImplementedError("it has no objects")


def serve(kind_of_peer):
    """Runs steps until the input ends."""
    output = sys.stdout
    sys.stdout = sys.stderr
    data, folder = sys.argv[1:3]
    os.makedirs(folder, exist_ok=True)
    peer = kind_of_peer(Data(data), folder)
    for line in sys.stdin:
        step = line.strip()
        try:
            if step == "size":
                response = {"bytes": size(peer.path)}
            elif step == "version":
                response = {"version": peer.version()}
            else:
                response = _measure(peer, step)
        except NotImplementedError as error:
            response = {"unable": str(error)}
        except Exception as error:  # noqa: BLE001 - what a peer cannot do is a result
            response = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        output.write(json.dumps(response) + "\n")
        output.flush()
    remove(peer.path)
