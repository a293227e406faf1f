"""Creates stores with `zvf create`, and reads them with the reference package.

usage: created.py ZVF FOLDER [--seed N] [--only NAME] [--sample]

ZVF is our program. Every case of `created_cases` is written with and without checksums:

* zarr-python decodes every array;
* the package reads the input back, bit by bit, and `validate(level=5)` finds no error;
* the package writes the same geometry, and all decoded cells are equal, except cells that
  `created_twin.EXCUSED` names.

Some cases are also written in older profiles, and zarr-python reads those. `--sample` writes cases
with and without checksums in turn, each once.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import traceback
import warnings

import numpy as np
import zarr

# zarr-python warns that byte strings have no specification yet.
warnings.simplefilter("ignore")

import created_twin  # noqa: E402
from created_cases import CASES, built  # noqa: E402
from created_reads import Reads  # noqa: E402

# Maximum number of differences shown per store.
SHOWN = 5
# Length in bytes of the header of a fragment index.
HEADER = 16


class Report:
    """Counters of comparisons and differences."""

    def __init__(self):
        self.stores = self.arrays = self.values = self.twins = 0
        self.cells = self.nodes = 0
        self.excused = {}
        self.differences = 0

    def of(self, name):
        """Returns a function that reports a store's differences, the first few in full."""
        shown = 0

        def differ(what):
            nonlocal shown
            self.differences += 1
            shown += 1
            if shown <= SHOWN:
                print(f"DIFFERENT {name}: {what}")

        return differ


def create(program, source, store, words):
    line = [program, "create", store, "--from", source, "--overwrite", "--quiet", *words]
    done = subprocess.run([str(word) for word in line], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"zvf create: {done.stderr}")


def check(program, folder, build, seed, report, ways=(True, False)):
    """Checks a case with checksums or without, as `ways` says."""
    case, name = built(build, seed), build.__name__
    source = folder / f"{name}.npz"
    np.savez(source, **case.arrays())
    twin, written = folder / f"{name}.twin", False
    shutil.rmtree(twin, ignore_errors=True)
    with guarded(report, f"{name}, written by the package"):
        written = created_twin.write(case, str(twin))
    theirs = created_twin.decoded(twin) if written else None
    report.twins += written
    for checksums in ways:
        words = case.arguments() + ([] if checksums else ["--no-checksum"])
        title = name if checksums else f"{name} --no-checksum"
        store = folder / f"{name}{'' if checksums else '.bare'}.zv"
        differ = report.of(title)
        with guarded(report, title):
            create(program, source, store, words)
            report.stores += 1
            check_codecs(store, checksums, differ)
            ours = created_twin.decoded(store)
            report.arrays += len(ours)
            report.values += Reads(case, str(store), differ).all()
            if theirs is None:
                reason = created_twin.excuse(case, "")
                assert reason, "the package wrote no twin, and nothing excuses that"
                found = sum(map(len, ours.values()))
                report.excused[reason] = report.excused.get(reason, 0) + found
            else:
                report.cells += created_twin.compare(case, ours, theirs, differ, report.excused)
                says = created_twin.nodes(store), created_twin.nodes(twin)
                report.nodes += created_twin.compare_nodes(case, *says, differ)


class guarded:
    """Counts an exception as a difference, and continues."""

    def __init__(self, report, name):
        self.report, self.name = report, name

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is None or not isinstance(error, Exception):
            return False
        last = "".join(traceback.format_exception(error)[-3:])
        self.report.of(self.name)(f"{type(error).__name__}: {error}\n{last}")
        return True


def check_codecs(store, checksums, differ):
    """Checks that cells have checksums exactly if requested."""
    for name in created_twin.arrays(store):
        codecs = json.loads((store / name / "zarr.json").read_text())["codecs"]
        if codecs[0]["name"] == "sharding_indexed":
            codecs = codecs[0]["configuration"]["codecs"]
        if (codecs[-1]["name"] == "crc32c") != checksums:
            differ(f"{name}: codecs {codecs}")


# Older profiles


OLDER = [
    "points_plain",
    "points_2d_bins",
    "points_attributes",
    "points_zstd",
    "points_sharded_zstd",
    "lines_2d",
    "streamlines",
    "graph_3d",
    "skeleton_one",
    "mesh_triangles",
]


def check_older(program, folder, build, seed, profile, report):
    case, name = built(build, seed), f"{build.__name__} {profile}"
    case.shard = None
    source, store = folder / f"{build.__name__}.npz", folder / f"{name.replace(' ', '.')}.zv"
    differ = report.of(name)
    with guarded(report, name):
        create(program, source, store, [*case.arguments(), "--profile", profile])
        report.stores += 1
        root = zarr.open(str(store), mode="r")
        for array in created_twin.arrays(store):
            root[array][...]
            report.arrays += 1
        columns = {"vertices": [], **{f"vertex_attributes/{one}": [] for one in case.vertex}}
        for chunk in sorted(root["0/vertex_fragments"].array_keys()):
            rows = vertex_rows(root[f"0/vertex_fragments/{chunk}"][...].tobytes())
            for family, found in columns.items():
                found.append(older_cell(root, family, chunk, rows, profile))
        numbers = {family: b"".join(cells) for family, cells in columns.items()}
        tags = np.frombuffer(numbers["vertex_attributes/tag"], "<i4")
        row_of = {int(tag): row for row, tag in enumerate(case.vertex["tag"])}
        order = [row_of.get(int(tag), -1) for tag in tags]
        if sorted(order) != list(range(len(case.positions))):
            differ(f"tags {tags.tolist()}")
            return
        given = {"vertices": case.stored()[order]}
        given |= {f"vertex_attributes/{one}": v[order] for one, v in case.vertex.items()}
        for family, values in given.items():
            report.values += values.size
            if numbers[family] != values.tobytes():
                differ(f"{family} is not what went in")


def vertex_rows(index):
    """Returns the rows of the ranges in a fragment index; all fragments are ranges."""
    fragments = int.from_bytes(index[8:12], "little")
    words = (fragments + 63) // 64 * 8
    table = np.frombuffer(index, "<i8", 2 * fragments, HEADER + words).reshape(-1, 2)
    return int(table.sum(axis=1).max(initial=0))


def older_cell(root, family, chunk, rows, profile):
    """Returns the bytes of a chunk's rows."""
    if profile == "0.8":
        return root[f"0/{family}/{chunk}"][...].tobytes()
    array = root[f"0/{family}"]
    coords = [int(one) for one in chunk.split(".")]
    origin = array.attrs.get("chunk_grid_origin", [0] * len(coords))
    return array[tuple(at - start for at, start in zip(coords, origin))][:rows].tobytes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(6)))
    parser.add_argument("--only")
    parser.add_argument("--sample", action="store_true")
    options = parser.parse_args()
    again = f"cargo xtask conformance --stores --seed {options.seed}"
    print(f"seed {options.seed}: repeat with `{again}`")
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    report = Report()
    for number, build in enumerate(CASES):
        if options.only in (None, build.__name__):
            ways = [(number + options.seed) % 2 == 0] if options.sample else (True, False)
            check(options.program, options.folder, build, options.seed, report, ways)
            if build.__name__ in OLDER:
                for profile in ("0.8", "0.8-padded"):
                    arguments = options.program, options.folder, build, options.seed
                    check_older(*arguments, profile, report)
    for reason, cells in report.excused.items():
        print(f"not compared: {cells} cells, {reason}: {created_twin.EXCUSED[reason][0]}")
    print(
        f"conformance: zvf create: {report.stores} stores, {report.arrays} arrays decoded by "
        f"zarr-python, {report.values} values read by the reference, {report.cells} cells "
        f"and {report.nodes} nodes equal to those of {report.twins} stores it wrote"
    )
    if report.differences:
        print(f"{report.differences} differences; the stores are in {options.folder}")
    else:
        shutil.rmtree(options.folder)
    sys.exit(bool(report.differences))


if __name__ == "__main__":
    main()
