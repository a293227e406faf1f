"""Speed beside other programs: times in processes that stay alive, costs in a bucket, scaling.

    run.py BINARY SCRATCH PAGE [--peers] [--package] [--quick] [--huge]

`cargo xtask bench` runs this with BINARY, the optimized `zvf-bench`. --peers measures the programs of
`peers`, whose packages this Python has, and --package the Python package `zvf` of this environment as
well. --quick takes three minutes, and leaves the page unchanged. The figures and the page are
rewritten after each part, so that an interrupted run keeps its results.
"""

import argparse
import itertools
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

import report

ALL = ["points", "streamlines", "skeletons", "mesh", "graph"]
# The programs that are compared, with the geometry that they support.
PEERS = {
    "npy": ("npy_files.py", ALL),
    "zarr-vectors": ("zarr_vectors_store.py", ALL),
    "lance": ("lance_table.py", ["points"]),
    "laz": ("laz_files.py", ["points"]),
    "parquet": ("parquet_files.py", ["points", "graph"]),
    "trx": ("trx_files.py", ["streamlines"]),
    "precomputed": ("precomputed.py", ["skeletons", "mesh"]),
}
PACKAGE = {"zvf.compat": ("zarr_vectors_store.py --compat", ALL), "package zvf": ("zvf_package.py", ALL)}
# In each round every side runs once; the first one is a warm-up.
ROUNDS = 5
# Seconds of a step that is not repeated.
LONG = 2.0
# Vertices over which exponents are fitted.
SIZES = [10_000, 100_000, 1_000_000, 10_000_000]


class Worker:
    """The process of one side of a comparison, which runs steps and reports their time."""

    def __init__(self, name, *command):
        self.name, self.gone = name, None
        pipe = subprocess.PIPE
        environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONWARNINGS": "ignore"}
        self.process = subprocess.Popen(list(map(str, command)), stdin=pipe, stdout=pipe, text=True, env=environment)

    def run(self, step):
        """Returns the measurements of a step, or `error`, or `unable`."""
        if self.gone:
            return {"unable": self.gone}
        try:
            self.process.stdin.write(f"{step}\n")
            self.process.stdin.flush()
            return json.loads(self.process.stdout.readline())
        except (OSError, ValueError) as error:
            self.gone = f"{self.name} ended: {error}"
            print(f"SKIPPED: {self.gone}", file=sys.stderr)
            return {"error": self.gone}

    def close(self):
        # The worker ends when its input ends.
        self.process.stdin.close()
        self.process.wait()


class Times:
    """The result of a step on one side."""

    def __init__(self):
        self.seconds, self.peak, self.found, self.why, self.is_over = [], None, 0, None, False

    def take(self, response, warms_up):
        seconds = response.get("seconds")
        if not seconds:
            self.is_over, self.why = True, response.get("error")
            return
        if response.get("peak") is not None:
            self.peak = max(self.peak or 0, response["peak"])
        self.found = response.get("found", 0)
        self.is_over = max(seconds) > LONG
        if not warms_up or self.is_over:
            self.seconds += seconds

    def summary(self):
        if self.why:
            return {"error": self.why}
        if not self.seconds:
            return {}
        return {"median": statistics.median(self.seconds), "min": min(self.seconds), "max": max(self.seconds),
                "n": len(self.seconds), "peak": self.peak, "found": self.found}


def in_turns(sides, step, rounds):
    """Measures a step on all sides, alternating."""
    times = {side.name: Times() for side in sides}
    for round_ in range(rounds + 1):
        for side in sides:
            if not times[side.name].is_over:
                times[side.name].take(side.run(step), round_ == 0)
    found = {name: one.summary() for name, one in times.items()}
    return {name: figures for name, figures in found.items() if figures}


def put_aside(folder):
    """Moves a folder aside, to be deleted at the end: ext4 creates files several times more slowly in the minutes
    after many files were deleted."""
    done = folder.with_name("done")
    done.mkdir(exist_ok=True)
    folder.rename(next(place for at in itertools.count() if not (place := done / f"{folder.name}-{at}").exists()))


def supports(side, step, vertices):
    """Returns whether a side runs a step. Steps that take minutes run once."""
    if side == "zvf auto":
        return True
    if side == "zvf plain":
        return step not in ("validate", "pyramid", "floor")
    if side == "zarr-vectors" and step in ("validate", "pyramid"):
        return vertices <= 1_000_000
    return step not in ("stream", "floor") and not step.endswith("nothing kept")


class Run:
    def __init__(self, options):
        self.options, self.binary, self.scratch = options, options.binary, options.scratch
        self.versions, self.sets, self.buckets, self.scaling = [options.version], [], [], None
        self.peers = PEERS if options.peers else {}
        if options.package:
            self.peers = self.peers | PACKAGE

    def call(self, *words):
        return subprocess.run([self.binary, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout

    def ours(self, name, kind, vertices, form, folder, *before):
        return Worker(name, *before, self.binary, "serve", kind, vertices, form, folder)

    def others(self, kind, data, stores):
        """Starts the peers for a kind of geometry. A peer that does not start is left out, with a message."""
        for name, (script, kinds) in self.peers.items():
            if kind not in kinds:
                continue
            script, *words = script.split()
            worker = Worker(name, sys.executable, Path(__file__).parent / "peers" / script, data, stores, *words)
            version = worker.run("version")
            if "version" not in version:
                print(f"SKIPPED {name}: {version}", file=sys.stderr)
                continue
            if version["version"] not in self.versions:
                self.versions.append(version["version"])
            yield worker

    def set(self, kind, vertices):
        print(f"{kind}, {vertices} vertices", flush=True)
        folder = self.scratch / f"{kind}-{vertices}"
        data, stores = folder / "data", folder / "stores"
        self.call("data", kind, vertices, data)
        sides = [self.ours(f"zvf {form}", kind, vertices, form, stores) for form in ("plain", "auto")]
        sides += self.others(kind, data, stores)
        first = ["write", "open", "whole", "stream", "floor", "box 0.1", "box 0.1, nothing kept", "box 1", "box 10"]
        of_objects = ["one", "one, nothing kept", "hundred", "hundred, nothing kept"]
        of_objects = {"points": ["filter"], "streamlines": of_objects, "skeletons": of_objects}.get(kind, [])
        steps = {}
        for step in [*first, *of_objects, "validate", "pyramid"]:
            able = [side for side in sides if supports(side.name, step, vertices)]
            steps[step] = in_turns(able, step, 3 if self.options.quick else ROUNDS)
        sizes = {side.name: side.run("size").get("bytes") for side in sides}
        for side in sides:
            side.close()
        about = json.loads((data / "meta.json").read_text())
        put_aside(folder)
        self.sets.append({
            "kind": kind, "vertices": about["vertices"], "objects": about["objects"], "raw": about["raw_bytes"],
            "boxes": about["boxes"], "steps": steps, "sizes": sizes,
        })
        self.save()

    def bucket(self, kind, vertices):
        print(f"{kind}, {vertices} vertices in a bucket", flush=True)
        self.buckets.append(json.loads(self.call("bucket", kind, vertices)))
        self.save()

    def scale(self):
        """Measures exponents, the memory of streaming, and the gain of further cores."""
        print("scaling", flush=True)
        sizes, stores, kinds = SIZES[: 2 if self.options.quick else 4], self.scratch / "scaling", {}
        for kind, more in (("points", []), ("streamlines", ["one"])):
            steps, rows = ["write", "whole", "stream", "box 0.1", *more], []
            for size in sizes:
                worker = self.ours("zvf", kind, size, "auto", stores)
                rows.append({step: in_turns([worker], step, 2).get("zvf", {}) for step in steps})
                worker.close()
                put_aside(stores)
            kinds[kind] = {step: fitted(step, sizes, [row[step] for row in rows]) for step in steps}
        self.scaling = {"sizes": sizes, "kinds": kinds, "cores": self.cores(stores)}
        self.save()

    def cores(self, stores):
        """Measures on one core and on all; `None` without `taskset`."""
        if not shutil.which("taskset"):
            print("SKIPPED one core beside all: taskset is missing", file=sys.stderr)
            return None
        kinds, vertices = {}, 100_000 if self.options.quick else 1_000_000
        for kind in ALL:
            one = self.ours("one", kind, vertices, "auto", stores / "one", "taskset", "-c", "0")
            sides = [one, self.ours("all", kind, vertices, "auto", stores / "all")]
            kinds[kind] = {}
            for step in ("write", "whole", "validate", "pyramid"):
                found = in_turns(sides, step, 3)
                one, every = (found.get(side, {}).get("median") for side in ("one", "all"))
                kinds[kind][step] = {"one": one, "all": every, "gain": one / every if one and every else None}
            for side in sides:
                side.close()
            put_aside(stores)
        return kinds

    def save(self):
        results = {name: getattr(self, name) for name in ("versions", "sets", "buckets", "scaling")}
        results |= {"machine": machine(), "quick": self.options.quick}
        (self.scratch / "speed.json").write_text(json.dumps(results, indent=2))
        self.page().write_text(report.page(results))

    def page(self):
        return self.scratch / "performance.md" if self.options.quick else self.options.page


def fitted(step, sizes, figures):
    """Returns times, memory, and the exponent of the growth with the size of the store; for boxes, with the number of
    vertices found."""
    against = [one.get("found") for one in figures] if step.startswith("box") else sizes
    pairs = [(x, one["median"]) for x, one in zip(against, figures) if x and "median" in one]
    of = {name: [one.get(key) for one in figures]
          for name, key in (("seconds", "median"), ("peaks", "peak"), ("found", "found"))}
    return {"exponent": exponent(pairs), **of}


def exponent(pairs):
    """Fits a line through the logarithms and returns its slope."""
    if len({x for x, _ in pairs}) < 2:
        return None
    return statistics.linear_regression(*zip(*((math.log(x), math.log(y)) for x, y in pairs))).slope


def machine():
    def first(path, name):
        lines = Path(path).read_text().splitlines() if Path(path).exists() else []
        return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), "unknown")

    rustc = subprocess.run(["rustc", "--version"], stdout=subprocess.PIPE, text=True).stdout.strip()
    return {
        "processor": first("/proc/cpuinfo", "model name"), "memory": first("/proc/meminfo", "MemTotal"),
        "cores": os.cpu_count(), "load": f"{os.getloadavg()[0]:.2f}", "rustc": rustc,
        "system": f"{platform.system()} {platform.release()}",
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--version", default="zvf")
    for flag in ("peers", "package", "quick", "huge"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = parser.parse_args()
    run, size = Run(options), 100_000 if options.quick else 1_000_000
    large = [] if options.quick else [("points", 10_000_000), ("streamlines", 10_000_000)]
    huge = [("points", 100_000_000), ("streamlines", 100_000_000)] if options.huge else []
    for kind in ALL:
        run.set(kind, size)
    for kind in ALL:
        run.bucket(kind, size)
    run.scale()
    for one in large:
        run.set(*one)
    for one in large + huge:
        run.bucket(*one)
    shutil.rmtree(options.scratch / "done", ignore_errors=True)
    print(f"written to {run.page()}")


if __name__ == "__main__":
    main()
