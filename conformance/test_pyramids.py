"""Levels of `zvf pyramid`, read by the reference package.

A store is created from every case of `created_cases` and gets levels by one of the methods that apply. On every
level the package must read the vertices, attributes, links, objects and groups that `zvf query` returns, every
vertex of a kept object must have one parent, and `validate(level=5)` must find no error. `--sample` takes every
other case.
"""

import re
import shutil

import numpy as np
from zarr_vectors import building
from zarr_vectors.core import arrays as low
from zarr_vectors.core.store import get_resolution_level, open_store
from zarr_vectors.types.polylines import read_polylines
from zarr_vectors.validate import validate

from created_cases import CASES, built
from created_reads import FALSE, LevelReader, some
from program import differences
from surfaces import grid

REPORT = "zvf pyramid: {levels} levels of {stores} stores, {values} values read by the reference"
LEVELS = 2
# Options of `zvf pyramid` by kind of geometry.
WAYS = {
    "points": (["bins"], ["subset"]),
    "graphs": (["bins"], ["simplify"]),
    "skeletons": (["bins"], ["simplify"], ["stride"]),
    "mesh": (["bins"],),
}
PATHS = (["bins"], ["bins", "--sparsity", "2"], ["simplify"])


class Level(LevelReader):
    """Compares a level with the result of our query."""

    def __init__(self, case, store, number, ours, differ):
        super().__init__(case, store, number, lambda what: differ(f"level {number}: {what}"))
        self.ours = ours
        self.chunks.sort()

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
        positions, columns = self.cells()
        self.same("positions", positions, self.ours["positions"])
        for name, found in columns.items():
            given = self.ours[f"vertex.{name}"]
            if given.dtype.kind not in "UO":
                self.same(f"vertex.{name}", found, given)

    def objects(self):
        """Checks that ids, and data of objects and groups, equal those of level 0."""
        full = building.get_resolution_level(building.open_store(self.path), 0)
        ids, manifests = low.read_object_manifest_rows(self.level)
        self.same("ids", ids, low.object_ids_for_rows(full))
        self.present = {int(one) for one, pieces in zip(ids, manifests) if len(pieces)}
        for name in self.case.object:
            found, given = (low.read_object_attributes(one, name) for one in (self.level, full))
            self.same(f"object.{name}", found, given)
        if self.case.group_count():
            found, given = ([list(members) for members in low.read_all_groupings(one)] for one in (self.level, full))
            if found != given:
                self.differ(f"groups: {found}, and not {given}")
        for name in self.case.group:
            found, given = (low.read_groupings_attributes(one, name) for one in (self.level, full))
            self.same(f"group.{name}", found, given)
        ours = self.ours
        for one in some(sorted(self.present)):
            if self.case.is_paths():
                rows = self.rows_of(one)
            else:
                rows = np.flatnonzero(ours["object_ids"] == one)
            self.same(f"object {one}", self.object(one), ours["positions"][rows])

    def rows_of(self, one):
        """Returns the rows of a path in our result."""
        offsets = self.ours["part_offsets"].astype("i8")
        parts = np.flatnonzero(self.ours["part_objects"] == one)
        rows = [np.arange(offsets[at], offsets[at + 1]) for at in parts]
        return np.concatenate([*rows, np.zeros(0, "i8")]).astype("i8")

    def paths(self):
        ids = sorted(self.present)
        found = read_polylines(self.path, level=self.number, object_ids=ids)
        self.same("ids of paths", np.asarray(found["object_ids"], "i8"), np.array(ids, "i8"))
        for one, pieces in zip(ids, found["polylines"]):
            self.same(f"path {one}", np.concatenate(pieces), self.ours["positions"][self.rows_of(one)])

    def links(self):
        positions, links = self.geometry()
        self.same("positions of links", positions, self.ours["positions"])
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


def levels_of(store):
    root = open_store(str(store), mode="r+")
    return get_resolution_level(root, 0), get_resolution_level(root, 1)


def test_values_of_links_between_levels(zvf, tmp_path):
    """The package gives values to links, in both directions; they are read, shown, migrated, and go with the links."""
    store, copies = tmp_path / "store.zv", [tmp_path / f"{profile}.zv" for profile in ("0.8", "0.9", "0.10")]
    vertices, _ = grid(6)
    arrays = dict(positions=vertices, object_ids=np.arange(len(vertices)) % 5)
    zvf.create(store, arrays, "--kind", "points", "--chunk-shape", "8,8,8", "--no-seal")
    zvf("pyramid", store, "--method", "bins", "--levels", 1, "--cross-level", "explicit", "--quiet")
    for number, delta in enumerate((1, -1)):
        level = levels_of(store)[number]
        count = len(low.read_links(level, delta=delta))
        low.write_link_attributes(level, "w", np.arange(count, dtype="f4"), num_links=count, delta=delta)
    zvf("validate", "--repair", store)
    shown = lambda of: zvf.json("info", of, "--physical")["levels"][0]["stored_links"][0]["attributes"][0]["name"]
    read = lambda of, level, delta: zvf.json("links", of, "--level", level, "--delta", delta)["families"]
    expected = read(store, 0, 1), read(store, 1, -1)
    for families in expected:
        (family,) = families
        assert sorted(float(one[0]) for one in family["attributes"]["w"]) == list(range(len(vertices)))
    for copy in copies:
        zvf("migrate", store, copy, "--profile", copy.stem, "--quiet")
        assert not zvf.codes(copy, "error", "warning"), copy
    for one in (store, *copies):
        assert shown(one) == "w"
        values = lambda families: sorted(
            (str(ends), value) for family in families for ends, value in zip(family["links"], family["attributes"]["w"])
        )
        for level, delta, families in ((0, 1, expected[0]), (1, -1, expected[1])):
            assert values(read(one, level, delta)) == values(families), (one, delta)
    # Links that are made again have no values. Those of a level that was not rebuilt were taken for them.
    again = tmp_path / "again.zv"
    shutil.copytree(store, again)
    zvf("delete", store, "--object", "1", "--quiet")
    zvf("pyramid", store, "--refresh", "--quiet")
    zvf("pyramid", again, "--method", "bins", "--cell", "16,16,16", "--levels", 1, "--overwrite", "--quiet")
    for one in (store, again):
        assert not zvf.codes(one, "error", "warning"), one
        assert not any("w" in family["attributes"] for family in read(one, 0, 1))


def pytest_generate_tests(metafunc):
    """Selects every other case of a sample."""
    if "choice" in metafunc.fixturenames:
        choices = enumerate(CASES, metafunc.config.getoption("--seed"))
        is_sample = metafunc.config.getoption("--sample")
        metafunc.parametrize("choice, name", [one for one in choices if not (is_sample and one[0] % 2)])


def test_levels(choice, name, zvf, tmp_path, seed, report):
    case, store = built(name, seed), tmp_path / "store.zv"
    zvf.create(store, case.arrays(), *case.arguments())
    ways = WAYS.get(case.kind, PATHS)
    # One option per store, because all combinations would take too long; other seeds combine differently.
    way = ways[choice // 2 % len(ways)]
    zvf("pyramid", store, "--method", *way, "--levels", LEVELS, "--cross-level", "explicit", "--quiet")
    report["stores"] += 1
    with differences() as differ:
        found = validate(str(store), level=5)
        for one in [*found.errors, *found.warnings]:
            # Errors already reported for level 0 are expected on all levels.
            said = re.sub(r"resolution_\d+", "resolution_0", one)
            if not any(re.fullmatch(says, said) and of(case) for says, of in FALSE.values()):
                differ(f"{way}: validate: {one}")
        levels = []
        for number in range(LEVELS + 1):
            if not (store / str(number) / "zarr.json").exists():
                break
            level = Level(case, store, number, zvf.query(store, "--level", number), differ)
            report["levels"] += 1
            report["values"] += level.all()
            levels.append(level)
        for finer, coarser in zip(levels, levels[1:]):
            finer.parents(coarser)
