"""Builds levels with `zvf pyramid`, and reads them with the reference package.

usage: pyramids.py ZVF FOLDER [--seed N] [--only NAME] [--sample]

ZVF is our program. A store is created from every case of `created_cases` and gets levels by one of
the methods that apply. On every level the package must read the vertices, attributes, links,
objects and groups that `zvf query` returns, every vertex of a kept object must have one parent, and
`validate(level=5)` must find no error. `--sample` takes every other case.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import traceback
import warnings

import numpy as np

# zarr-python warns that byte strings have no specification yet.
warnings.simplefilter("ignore")

from zarr_vectors import building  # noqa: E402
from zarr_vectors.core import arrays as low  # noqa: E402
from zarr_vectors.types.graphs import read_graph  # noqa: E402
from zarr_vectors.types.meshes import read_mesh  # noqa: E402
from zarr_vectors.types.polylines import read_polylines  # noqa: E402
from zarr_vectors.validate import validate  # noqa: E402

from created_cases import CASES, built  # noqa: E402
from created_reads import FALSE, some, summary  # noqa: E402

LEVELS = 2
# Maximum number of differences shown per store.
SHOWN = 5
# Options of `zvf pyramid` by kind of geometry.
WAYS = {
    "points": (["bins"], ["subset"]),
    "graphs": (["bins"], ["simplify"]),
    "skeletons": (["bins"], ["simplify"], ["stride"]),
    "mesh": (["bins"],),
}
PATHS = (["bins"], ["bins", "--sparsity", "2"], ["simplify"])


class Report:
    """Counters of comparisons and differences."""

    def __init__(self):
        self.stores = self.levels = self.values = self.differences = 0

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


def run(program, *words):
    done = subprocess.run([str(program), *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"zvf {words[0]}: {done.stderr}")


class Level:
    """A level read by the package, and the result of our query."""

    def __init__(self, case, store, number, ours, differ):
        self.case, self.store, self.number, self.ours = case, str(store), number, ours
        self.differ = lambda what: differ(f"level {number}: {what}")
        self.level = building.get_resolution_level(building.open_store(self.store), number)
        self.dtype = low.vertices_dtype(self.level)
        self.values = 0
        self.chunks = sorted(tuple(chunk) for chunk in building.list_chunk_keys(self.level))

    def same(self, what, found, given):
        found, given = np.asarray(found), np.asarray(given)
        self.values += given.size
        is_same = found.dtype == given.dtype and found.shape == given.shape
        if not is_same or found.tobytes() != given.tobytes():
            self.differ(f"{what}: found {summary(found)}, our query {summary(given)}")

    def all(self):
        self.present = {}
        if self.case.own() is not None:
            self.objects()
        if self.case.is_paths():
            self.paths()
        else:
            self.vertices()
        if self.case.links is not None:
            self.links()
        return self.values

    def vertices(self):
        """Compares vertices by chunk and fragment, the order of our query."""
        pieces, columns = [], {name: [] for name in self.case.vertex}
        for chunk in self.chunks:
            pieces += building.read_chunk_vertices(
                self.level, chunk, dtype=self.dtype, ndim=self.case.axes
            )
            for name in columns:
                columns[name] += building.read_chunk_attributes(self.level, name, chunk)
        positions = np.concatenate(pieces).reshape(-1, self.case.axes)
        self.same("positions", positions, self.ours["positions"])
        for name, found in columns.items():
            given = self.ours[f"vertex.{name}"]
            if given.dtype.kind not in "UO":
                self.same(f"vertex.{name}", np.concatenate(found), given)

    def objects(self):
        """Checks that ids, and data of objects and groups, equal those of level 0."""
        full = building.get_resolution_level(building.open_store(self.store), 0)
        ids, manifests = low.read_object_manifest_rows(self.level)
        self.same("ids", ids, low.object_ids_for_rows(full))
        self.present = {int(one) for one, pieces in zip(ids, manifests) if len(pieces)}
        for name in self.case.object:
            found, given = (low.read_object_attributes(one, name) for one in (self.level, full))
            self.same(f"object.{name}", found, given)
        if self.case.group_count():
            found, given = (
                [list(members) for members in low.read_all_groupings(one)]
                for one in (self.level, full)
            )
            if found != given:
                self.differ(f"groups: {found}, and not {given}")
        for name in self.case.group:
            found, given = (low.read_groupings_attributes(one, name) for one in (self.level, full))
            self.same(f"group.{name}", found, given)
        ours = self.ours
        for one in some(sorted(self.present)):
            found = low.read_object_vertices(
                self.level, one, dtype=self.dtype, ndim=self.case.axes
            )
            found = np.concatenate(found).reshape(-1, self.case.axes)
            if self.case.is_paths():
                rows = self.rows_of(one)
            else:
                rows = np.flatnonzero(ours["object_ids"] == one)
            self.same(f"object {one}", found, ours["positions"][rows])

    def rows_of(self, one):
        """Returns the rows of a path in our result."""
        offsets = self.ours["part_offsets"].astype("i8")
        parts = np.flatnonzero(self.ours["part_objects"] == one)
        rows = [np.arange(offsets[at], offsets[at + 1]) for at in parts]
        return np.concatenate([*rows, np.zeros(0, "i8")]).astype("i8")

    def paths(self):
        ids = sorted(self.present)
        found = read_polylines(self.store, level=self.number, object_ids=ids)
        self.same("ids of paths", np.asarray(found["object_ids"], "i8"), np.array(ids, "i8"))
        for one, pieces in zip(ids, found["polylines"]):
            self.same(f"path {one}", np.concatenate(pieces), self.ours["positions"][self.rows_of(one)])

    def links(self):
        mesh = self.case.kind == "mesh"
        found = read_mesh(self.store, level=self.number) if mesh else read_graph(self.store, level=self.number)
        positions = found["vertices"] if mesh else found["positions"]
        self.same("positions of links", positions, self.ours["positions"])
        links = np.asarray(found["faces"] if mesh else found["edges"], "i8")
        given = self.ours["links"].astype("i8")
        links = np.unique(links.reshape(-1, given.shape[1]), axis=0)
        self.same("links", links, np.unique(given, axis=0))

    def parents(self, coarser):
        """Checks that every vertex of an object kept in the next level has one parent there."""
        records = low.read_links(self.level, delta=1)
        starts = [(tuple(one), int(row)) for (one, row), _ in records]
        if len(set(starts)) != len(starts):
            self.differ("a vertex has two parents")
        counts = {
            tuple(chunk): sum(map(len, building.read_chunk_vertices(
                coarser.level, chunk, dtype=coarser.dtype, ndim=self.case.axes)))
            for chunk in coarser.chunks
        }
        ends = {(tuple(chunk), int(row)) for _, (chunk, row) in records}
        stored = sum(counts.values())
        if self.case.is_paths() or self.case.own() is not None:
            # Paths may name a row twice; the stored rows are counted.
            stored = len(ends) if self.case.is_paths() else stored
        outside = [end for end in ends if end[1] >= counts.get(end[0], 0) and not self.case.is_paths()]
        if outside or len(ends) != stored:
            self.differ(f"{len(ends)} parents of {stored}, {outside[:3]} not there")
        back = low.read_links(coarser.level, delta=-1)
        turned = {(one, other) for other, one in as_keys(back)}
        if set(as_keys(records)) != turned:
            self.differ("links back are not those there turned round")


def as_keys(records):
    return [tuple((tuple(chunk), int(row)) for chunk, row in record) for record in records]


def check(program, folder, build, choice, seed, report):
    case, name = built(build, seed), build.__name__
    source, base = folder / f"{name}.npz", folder / f"{name}.zv"
    np.savez(source, **case.arrays())
    run(program, "create", base, "--from", source, "--overwrite", "--quiet", *case.arguments())
    ways = WAYS.get(case.kind, PATHS)
    # One option per store, because all combinations would take too long; other seeds combine
    # differently.
    way = ways[choice // 2 % len(ways)]
    title = f"{name}, {' '.join(way)}"
    differ = report.of(title)
    store = folder / f"{name}.{way[0]}.zv"
    shutil.rmtree(store, ignore_errors=True)
    shutil.copytree(base, store)
    try:
        words = ["--method", *way, "--levels", LEVELS, "--cross-level", "explicit", "--quiet"]
        run(program, "pyramid", store, *words)
        report.stores += 1
        found = validate(str(store), level=5)
        for one in [*found.errors, *found.warnings]:
            # Errors already reported for level 0 are expected on all levels.
            said = re.sub(r"resolution_\d+", "resolution_0", one)
            known = (re.fullmatch(says, said) and of(case) for says, of in FALSE.values())
            if not any(known):
                differ(f"validate: {one}")
        levels = []
        for number in range(LEVELS + 1):
            if not (store / str(number) / "zarr.json").exists():
                break
            out = folder / "level.npz"
            out.unlink(missing_ok=True)
            run(program, "query", store, "--level", number, "-o", out)
            ours = dict(np.load(out, allow_pickle=False))
            level = Level(case, store, number, ours, differ)
            report.levels += 1
            report.values += level.all()
            levels.append(level)
        for finer, coarser in zip(levels, levels[1:]):
            finer.parents(coarser)
    except Exception as error:
        last = "".join(traceback.format_exception(error)[-3:])
        differ(f"{type(error).__name__}: {error}\n{last}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(6)))
    parser.add_argument("--only")
    parser.add_argument("--sample", action="store_true")
    options = parser.parse_args()
    again = f"cargo xtask conformance --pyramids --seed {options.seed}"
    print(f"seed {options.seed}: repeat with `{again}`")
    shutil.rmtree(options.folder, ignore_errors=True)
    options.folder.mkdir(parents=True)
    report = Report()
    for choice, build in enumerate(CASES, options.seed):
        is_left_out = options.sample and choice % 2
        if options.only in (None, build.__name__) and not is_left_out:
            check(options.program, options.folder, build, choice, options.seed, report)
    print(
        f"conformance: zvf pyramid: {report.levels} levels of {report.stores} stores, "
        f"{report.values} values read by the reference"
    )
    if report.differences:
        print(f"{report.differences} differences; the stores are in {options.folder}")
    else:
        shutil.rmtree(options.folder)
    sys.exit(bool(report.differences))


if __name__ == "__main__":
    main()
