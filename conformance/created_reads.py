"""Compares what the reference package reads from a store of ours with the input."""

import re

import numpy as np
from zarr_vectors import building
from zarr_vectors.core import arrays as low
from zarr_vectors.encoding.categorical import decode_categorical
from zarr_vectors.types.graphs import read_graph
from zarr_vectors.types.lines import read_lines
from zarr_vectors.types.meshes import read_mesh
from zarr_vectors.types.points import read_points
from zarr_vectors.types.polylines import read_polylines
from zarr_vectors.validate import validate

# Errors that `validate` reports for valid stores, and why they are accepted.
FALSE = {
    "a warning of every point cloud, with links or without": (
        "Point cloud but links array exists", lambda case: case.kind == "points"
    ),
    "points of one axis are read without an axis, and then said to have none": (
        r"resolution_0: chunk .* fragment\[\d+\] shape \(\d+,\)", lambda case: case.axes == 1
    ),
}
# With one axis, the package's own box filter raises, on its own stores too.
LEAST_AXES_OF_BOXES = 2
# Up to this number, all objects are read one by one.
MANY = 80


class LevelReader:
    """Reads a level of a store of a case; `differ` receives differences."""

    def __init__(self, case, path, number, differ):
        self.case, self.path, self.number, self.differ, self.values = case, str(path), number, differ, 0
        self.level = building.get_resolution_level(building.open_store(self.path), number)
        self.dtype = low.vertices_dtype(self.level)
        self.chunks = [tuple(chunk) for chunk in building.list_chunk_keys(self.level)]

    def same(self, what, found, given):
        """Compares type, shape and bits."""
        found, given = np.asarray(found), np.asarray(given)
        if found.dtype.kind in "UO" and given.dtype.kind in "UO":
            equal = found.tolist() == given.tolist()
        else:
            equal = found.dtype == given.dtype and found.shape == given.shape
            equal = equal and found.tobytes() == given.tobytes()
        self.values += given.size
        if not equal:
            self.differ(f"{what}: found {summary(found)}, given {summary(given)}")
        return equal

    def cells(self):
        """Returns the positions and the columns of vertices, by chunk and fragment."""
        pieces, columns = [], {name: [] for name in self.case.vertex}
        for chunk in self.chunks:
            pieces += building.read_chunk_vertices(self.level, chunk, dtype=self.dtype, ndim=self.case.axes)
            for name, found in columns.items():
                found += building.read_chunk_attributes(self.level, name, chunk)
        positions = np.concatenate(pieces).reshape(-1, self.case.axes)
        return positions, {name: np.concatenate(found) for name, found in columns.items()}

    def object(self, one):
        """Returns the positions of an object."""
        found = low.read_object_vertices(self.level, one, dtype=self.dtype, ndim=self.case.axes)
        return np.concatenate(found).reshape(-1, self.case.axes)


    def geometry(self):
        """Returns the positions and the links that the package reads."""
        if self.case.kind == "mesh":
            found = read_mesh(self.path, level=self.number)
            return found["vertices"], np.asarray(found["faces"], np.int64)
        found = read_graph(self.path, level=self.number)
        return found["positions"], np.asarray(found["edges"], np.int64)


class Reads(LevelReader):
    """Compares level 0 with the input."""

    def __init__(self, case, path, differ):
        super().__init__(case, path, 0, differ)
        self.row_of = {int(tag): row for row, tag in enumerate(case.vertex["tag"])}

    def rows(self, tags):
        """Returns the rows of the input that have these tags."""
        return np.array([self.row_of.get(int(tag), -1) for tag in tags], np.int64)

    def all(self):
        self.validate()
        self.vertices()
        kind = self.case.kind
        if kind == "points":
            self.points()
        elif kind == "lines":
            self.lines()
        elif self.case.is_paths():
            self.paths()
        else:
            self.linked()
        if self.case.is_paths():
            self.crossings()
        if self.case.own() is not None:
            self.objects()
            self.tables()
        if self.case.fragment:
            self.fragments()
        return self.values

    def validate(self):
        result = validate(self.path, level=5)
        for found in [*result.errors, *result.warnings]:
            known = (re.fullmatch(says, found) and of(self.case) for says, of in FALSE.values())
            if not any(known):
                self.differ(f"validate: {found}")

    def vertices(self):
        """Compares cells from the low-level readers, in the order of the level's readers."""
        case, level, self.place = self.case, self.level, {}
        positions, columns = self.cells()
        self.order = self.rows(columns["tag"])
        if not self.same("tags", np.sort(self.order), np.arange(len(case.positions))):
            return
        self.same("vertices", positions, case.stored()[self.order])
        for name, values in case.vertex.items():
            found = self.decoded(f"vertex_attributes/{name}", columns[name])
            self.same(f"vertex.{name}", found, values[self.order])
        for chunk in self.chunks:
            tags = np.concatenate(building.read_chunk_attributes(level, "tag", chunk))
            for row, vertex in enumerate(self.rows(tags)):
                self.place[chunk, row] = int(vertex)

    def decoded(self, path, found):
        meta = self.level.read_array_meta(path)
        if meta.get("encoding") != "dictionary":
            return found
        return decode_categorical(found, meta["categories"], fill_value=meta.get("_FillValue"))

    def points(self):
        case, names = self.case, list(self.case.vertex)
        whole = read_points(self.path, attribute_names=names)
        self.check("whole", whole, np.arange(len(case.positions)))
        stored = case.stored().astype("f8")
        if case.own() is None:
            for lower, upper in boxes(case) if case.axes >= LEAST_AXES_OF_BOXES else ():
                inside = ((stored >= lower) & (stored <= upper)).all(axis=1)
                found = read_points(self.path, bbox=(lower, upper), attribute_names=names)
                self.check(f"box {lower} {upper}", found, np.flatnonzero(inside))
            return
        for one in some(case.ids().tolist()):
            found = read_points(self.path, object_ids=[one], attribute_names=names)
            self.check(f"object {one}", found, np.flatnonzero(case.own() == one))
        for number, members in case.groups.items():
            found = read_points(self.path, group_ids=[number], attribute_names=names)
            self.check(f"group {number}", found, np.flatnonzero(np.isin(case.own(), members)))

    def check(self, what, found, rows):
        """Compares these rows, in any order."""
        if len(rows) == 0:
            if len(found["positions"]):
                self.differ(f"{what}: {len(found['positions'])} points where there are none")
            return
        order = self.rows(found["vertex_attributes"]["tag"])
        if not self.same(f"{what}: tags", np.sort(order), np.sort(rows)):
            return
        positions = np.asarray(found["positions"]).reshape(-1, self.case.axes)
        self.same(f"{what}: positions", positions, self.case.stored()[order])
        for name, values in self.case.vertex.items():
            self.same(f"{what}: {name}", found["vertex_attributes"][name], values[order])

    def lines(self):
        case = self.case
        # Without ids, it reads objects from 0 on.
        found = read_lines(self.path, object_ids=case.own().tolist())
        self.same("ends", found["endpoints"], case.stored().reshape(-1, 2, case.axes))
        for name, values in case.vertex.items():
            column = found["vertex_attributes"].get(name, [])
            self.same(f"{name} of ends", column, values)

    def paths(self):
        case, stored = self.case, self.case.stored()
        wanted = [(None, case.own())]
        wanted += [(number, np.unique(members)) for number, members in case.groups.items()]
        for group, ids in wanted:
            what = "paths" if group is None else f"group {group}"
            if group is None:
                found = read_polylines(self.path, object_ids=[int(one) for one in ids])
            else:
                found = read_polylines(self.path, group_ids=[group])
            at = {int(one): rows for one, rows in zip(case.own(), case.paths())}
            ids = [int(one) for one in ids if len(at.get(int(one), []))]
            self.same(f"{what}: ids", np.asarray(found["object_ids"], "i8"), np.array(ids, "i8"))
            rows = [at[one] for one in ids]
            if len(rows) != len(found["polylines"]):
                self.differ(f"{what}: {len(found['polylines'])} paths, not {len(rows)}")
                continue
            for one, path, pieces in zip(ids, rows, found["polylines"]):
                self.same(f"{what}: path {one}", np.concatenate(pieces), stored[path])
            rows = np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64)
            for name, values in case.vertex.items():
                column = found["vertex_attributes"].get(name)
                if column is None:
                    if len(rows):
                        self.differ(f"{what}: no column {name}")
                    continue
                column = self.decoded(f"vertex_attributes/{name}", column)
                self.same(f"{what}: {name}", column, values[rows])

    def crossings(self):
        """Compares the stored links of paths: from each vertex to the next one, in another chunk unless
        all steps are stored.
        """
        steps = self.case.step_links()
        chunk_of = {vertex: chunk for (chunk, _), vertex in self.place.items()}
        given = [
            (int(one), int(next_))
            for path in self.case.paths() * (steps is not None)
            for one, next_ in zip(path[:-1], path[1:])
            if steps == "all" or chunk_of.get(int(one)) != chunk_of.get(int(next_))
        ]
        found = [self.ends(record) for record in low.read_links(self.level)]
        self.same("crossings", np.array(sorted(found)), np.array(sorted(given)))

    def ends(self, record):
        """Returns the rows of the input that a link joins."""
        return tuple(self.place.get((tuple(chunk), int(row)), -1) for chunk, row in record)

    def linked(self):
        case, (positions, links) = self.case, self.geometry()
        self.same("positions", positions, case.stored()[self.order])
        links = self.order[links].reshape(-1, case.links.shape[1])
        copies = self.copies()
        given = np.repeat(case.links, copies, axis=0)
        self.same("links", in_order(links), in_order(given))
        if case.kind == "skeletons":
            return
        records = [self.ends(record) for record in low.read_links(self.level)]
        records = np.array(records, np.int64).reshape(-1, case.links.shape[1])
        if len(case.links) == 0:
            return
        columns = {name: low.read_link_attributes(self.level, name) for name in case.link}
        self.same("copies", np.sort(columns["tag"]), np.sort(np.repeat(case.link["tag"], copies)))
        row_of = {int(tag): row for row, tag in enumerate(case.link["tag"])}
        order = np.array([row_of[int(tag)] for tag in columns["tag"]], np.int64)
        self.same("ends of links", records, case.links[order])
        for name, values in case.link.items():
            column = columns[name]
            if values.dtype.kind in "UO":
                delta = f"link_attributes/{name}/0"
                segment = low.list_link_offsets(self.level, 0)[0]
                column = self.decoded(f"{delta}/{segment}", column)
            self.same(f"link.{name}", column, values[order])

    def copies(self):
        """Returns how often each link is stored."""
        case = self.case
        if "duplicate" not in case.policy:
            return np.ones(len(case.links), np.int64)
        chunk_of = {vertex: chunk for (chunk, _), vertex in self.place.items()}
        return np.array([len({chunk_of[int(end)] for end in link}) for link in case.links])

    def objects(self):
        """Compares every object by its id, vertex by vertex."""
        case, ids = self.case, self.case.ids()
        self.same("ids", low.object_ids_for_rows(self.level), ids)
        if case.is_paths():
            of = {int(one): rows for one, rows in zip(case.own(), case.paths())}
        else:
            of = {int(one): np.flatnonzero(case.own() == one) for one in some(ids.tolist())}
        ids, manifests = low.read_object_manifest_rows(self.level)
        for one, manifest in some(list(zip(ids.tolist(), manifests))):
            rows = []
            for chunk, fragment in manifest:
                pieces = building.read_chunk_attributes(self.level, "tag", tuple(chunk))
                rows += self.rows(pieces[fragment]).tolist()
            rows, given = np.array(rows, np.int64), of.get(one, np.zeros(0, np.int64))
            order = rows if case.is_paths() else np.sort(rows)
            if not self.same(f"vertices of object {one}", order, given) or len(given) == 0:
                continue
            self.same(f"object {one}", self.object(one), case.stored()[rows])

    def tables(self):
        case = self.case
        for name, values in case.object.items():
            values, present = case.table(values)
            values = values.astype("u1") if values.dtype == bool else values
            found = low.read_object_attributes(self.level, name)
            mask = low.read_object_attribute_present_mask(self.level, name)
            mask = np.ones(len(present), bool) if mask is None else mask.astype(bool)
            self.same(f"which have object.{name}", mask, present)
            self.same(f"object.{name}", found[present], values[present])
        if case.group_count():
            found = [list(members) for members in low.read_all_groupings(self.level)]
            given = [list(case.groups.get(number, [])) for number in range(case.group_count())]
            if found != given:
                self.differ(f"groups: found {found}, given {case.groups}")
            self.values += sum(map(len, given))
        for name, values in case.group.items():
            found = low.read_groupings_attributes(self.level, name)
            self.same(f"group.{name}", found, values)

    def fragments(self):
        """Compares a row for each fragment with that of its object."""
        case, own = self.case, self.case.own()
        owners = np.repeat(own, np.diff(case.part_offsets)) if case.is_paths() else own
        row_of = {int(one): row for row, one in enumerate(case.described())}
        for name, values in case.fragment.items():
            for chunk in self.chunks:
                found = building.read_chunk_fragment_attributes(self.level, name, chunk)
                pieces = building.read_chunk_attributes(self.level, "tag", chunk)
                rows = [row_of[int(owners[self.rows(piece[:1])[0]])] for piece in pieces]
                self.same(f"fragment.{name} of {chunk}", found, values[rows])


def some(values):
    """Returns all items, or of many the first, the last and a few between."""
    return values if len(values) <= MANY else [*values[:: len(values) // MANY], values[-1]]


def boxes(case):
    """Returns boxes around a corner, around the middle, and around nothing."""
    lower, upper = (np.array(corner) for corner in case.bounding())
    middle = (lower + upper) / 2
    return (
        (lower.tolist(), middle.tolist()),
        ((lower + (middle - lower) / 2).tolist(), (upper - (upper - middle) / 3).tolist()),
        ((upper + 100).tolist(), (upper + 200).tolist()),
    )


def in_order(links):
    return np.array(sorted(links.tolist()), np.int64).reshape(links.shape)


def summary(values):
    return f"{values.dtype} {values.shape} {str(values.ravel()[:12].tolist())[:300]}"
