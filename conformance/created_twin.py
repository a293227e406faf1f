"""Writes the same geometry with the reference package, and compares the cells of two stores.

The package's bulk writers make as much as they support. Its low-level writers add the rest: ids of
paths, absent rows, directed or duplicated links.
"""

import json
import pathlib
import shutil

import numpy as np
import zarr
from zarr_vectors import building
from zarr_vectors.core import arrays as low
from zarr_vectors.encoding.categorical import encode_categorical

# Cells that may differ from those of the package, and why. `created_reads` compares their values
# with all others.
EXCUSED = {
    "order of later trees": (
        "write_graph puts only the first tree of a skeleton in order, so that later ones get "
        "other rows and more links",
        lambda case, path: case.kind == "skeletons" and is_disordered(case),
    ),
    "several trees in an object": (
        "write_graph refuses them", lambda case, path: case.kind == "skeletons" and has_forest(case)
    ),
    "more than 6 ends of a link": (
        "write_links refuses them", lambda case, path: case.links is not None and case.links.shape[1] > 6
    ),
    "more than 4 axes": ("no bulk writer can be told the axes", lambda case, path: case.axes > 4),
}


# The package writes nothing at all for these.
UNWRITTEN = ["several trees in an object", "more than 6 ends of a link", "more than 4 axes"]


def excuse(case, path):
    """Returns why a cell is not compared with the package's; `None` if it is."""
    found = [name for name, (_, applies) in EXCUSED.items() if applies(case, path)]
    return found[-1] if found else None


def excused(reason):
    return f"cells not compared: {reason}: {EXCUSED[reason][0]}"


def roots(case):
    return np.setdiff1d(np.arange(len(case.positions)), case.links[:, 0])


def has_forest(case):
    return len(np.unique(case.own()[roots(case)])) < len(roots(case))


def is_disordered(case):
    """Returns whether a tree after the first is not in depth-first order."""
    if len(roots(case)) == 1:
        return False
    parents = dict(case.links.tolist())
    first = next(iter(roots(case)))
    for child in range(len(case.positions)):
        parent = parents.get(child)
        ancestors, one = [], child - 1
        while one is not None:
            ancestors.append(one)
            one = parents.get(one)
        if parent is not None and parent not in ancestors:
            return True
    return first != 0


# Writing


def write(case, path):
    """Writes the case; returns whether a writer of the package supports it."""
    if excuse(case, "") in UNWRITTEN:
        return False
    shared = {
        "chunk_shape": tuple(float(extent) for extent in case.chunk_shape),
        "bounds": case.bounding(),
        "dtype": str(case.stored().dtype),
    }
    if case.bin_shape is not None:
        shared["bin_shape"] = tuple(float(extent) for extent in case.bin_shape)
    positions = case.stored()
    coded = {name: v for name, v in case.vertex.items() if v.dtype.kind in "UO"}
    vertex = {name: v for name, v in case.vertex.items() if name not in coded}
    if case.axis_names is not None:
        create(case, path, shared)
    tables = {"object_attributes": case.object} if is_dense(case) and case.object else {}
    if case.kind == "points":
        # The writer itself encodes text without gaps.
        for name, values in list(coded.items()):
            if values.dtype.kind == "U":
                vertex[name] = coded.pop(name)
        if case.own() is not None:
            shared["object_ids"] = case.own()
        if tables and case.groups:
            tables |= {"groups": groups(case), "group_attributes": case.group}
        building.write_points(path, positions, vertex_attributes=vertex, **tables, **shared)
    elif case.kind == "lines":
        ends = positions.reshape(-1, 2, case.axes)
        vertex = {name: v.reshape(-1, 2, *v.shape[1:]) for name, v in vertex.items()}
        building.write_lines(path, ends, vertex_attributes=vertex, **tables, **shared)
        if case.step_links() is not None:
            write_line_links(case, path)
    elif case.is_paths():
        shared["geometry_type"] = case.kind.removesuffix("s")
        vertex = {name: [v[rows] for rows in case.paths()] for name, v in vertex.items()}
        if tables and case.groups:
            tables |= {"groups": groups(case), "group_attributes": case.group}
        paths = [positions[rows] for rows in case.paths()]
        building.write_polylines(path, paths, vertex_attributes=vertex, **tables, **shared)
    else:
        shared |= {"object_ids": case.own(), "vertex_attributes": vertex, **tables}
        numeric = all(values.dtype.kind not in "UO" for values in case.link.values())
        by_hand = bool(case.policy) or not numeric or case.kind == "mesh"
        by_hand = by_hand and len(case.links) > 0 and (case.policy or case.link)
        if case.kind == "mesh":
            building.write_mesh(path, positions, case.links, **shared)
        else:
            shared["kind"] = case.kind.removesuffix("s")
            if not by_hand and case.link and len(case.links):
                shared["link_attributes"] = case.link
            building.write_graph(path, positions, case.links, **shared)
        if by_hand:
            write_links(case, path)
    if case.is_paths() and case.step_links() is None:
        without_links(path)
    if case.step_links() == "all":
        write_steps_inside(case, path)
    write_columns(case, path, coded)
    write_tables(case, path, bool(tables))
    return True


def create(case, path, shared):
    """Creates the root, where a bulk writer does not support all of it."""
    axes = []
    for name in case.axis_names:
        name, unit, kind = (name.split(":") + ["space"])[:3]
        axes.append({"name": name, "type": kind, "unit": unit})
    rest = {name: shared[name] for name in ("bounds", "chunk_shape")}
    building.create_store(path, axes=axes, crs={"code": 4326}, geometry_types=[], **rest)


def is_dense(case):
    """Returns whether bulk writers support everything about the objects."""
    if case.own() is None or case.part_objects is not None or case.objects is not None:
        return False
    return len(case.described()) == len(case.ids())


def groups(case):
    """Returns the members of all groups, including groups without members."""
    numbers = range(case.group_count())
    return {number: list(map(int, case.groups.get(number, []))) for number in numbers}


def level_of(path):
    return building.get_resolution_level(building.open_store(path, mode="r+"), 0)


def by_tag(level):
    """Returns the chunk and row of each vertex, by its tag."""
    found = {}
    for chunk in building.list_chunk_keys(level):
        pieces = building.read_chunk_attributes(level, "tag", chunk)
        for row, tag in enumerate(np.concatenate(pieces).tolist()):
            found[tag] = (tuple(chunk), row)
    return found


def codes(values):
    """Encodes text with the package's codes."""
    missing = any(value is None for value in values)
    return encode_categorical(values, fill_value=-1 if missing else None)


def without_links(path):
    for family in ("links", "link_fragments", "link_attributes"):
        shutil.rmtree(pathlib.Path(path) / "0" / family, ignore_errors=True)
    return level_of(path)


def write_line_links(case, path):
    """Replaces the links of write_lines, which stores numbers of fragments instead of rows of
    vertices.
    """
    level = without_links(path)
    at = by_tag(level)
    lines = case.vertex["tag"].reshape(-1, 2).tolist()
    records = [[at[tag] for tag in line] for line in lines]
    records = [record for record in records if record[0][0] != record[1][0]]
    if records:
        building.write_links(level, records, case.axes)


def write_steps_inside(case, path):
    """Adds the steps inside fragments as links, with a group for each fragment of vertices."""
    level = level_of(path)
    groups = {}
    for chunk in map(tuple, building.list_chunk_keys(level)):
        pieces = building.read_chunk_attributes(level, "tag", chunk)
        ends = np.cumsum([len(piece) for piece in pieces])
        rows = [np.arange(end - len(piece), end) for piece, end in zip(pieces, ends)]
        steps = [np.stack([one[:-1], one[1:]], axis=1) for one in rows]
        if sum(map(len, steps)):
            groups[chunk] = steps
    records = [
        [(chunk, int(one)), (chunk, int(other))]
        for chunk, steps in groups.items()
        for one, other in np.concatenate(steps)
    ]
    if records:
        # The counts of the family come from whole records, of which a cell is one group.
        building.write_links(level, records, case.axes, mode="append")
    for chunk, steps in groups.items():
        low.write_chunk_links(level, chunk, steps, link_width=2)


def write_links(case, path):
    """Writes links that no bulk writer supports: directed, duplicated, or faces with values."""
    level, tags = without_links(path), case.vertex["tag"]
    at = by_tag(level)
    records = [[at[int(tags[end])] for end in link] for link in case.links]
    partition = building.write_links(
        level,
        records,
        case.axes,
        link_width=case.links.shape[1],
        directed="directed" in case.policy,
        store="duplicate" if "duplicate" in case.policy else "canonical",
    )
    for name, values in case.link.items():
        values = codes(values)[0] if values.dtype.kind in "UO" else values
        building.write_link_attributes(level, name, values, num_links=len(records), partition=partition)


def write_columns(case, path, coded):
    """Writes text of vertices, and values of fragments."""
    level, tags = level_of(path), case.vertex["tag"]
    chunks = building.list_chunk_keys(level)
    row_of = {int(tag): row for row, tag in enumerate(tags)}
    for name, values in coded.items():
        numbers, meta = codes(values)
        building.create_attribute_array(level, name, dtype=str(numbers.dtype), extra_meta=meta)
        for chunk in chunks:
            pieces = building.read_chunk_attributes(level, "tag", chunk)
            pieces = [numbers[[row_of[tag] for tag in piece.tolist()]] for piece in pieces]
            building.write_chunk_attributes(level, name, chunk, pieces, dtype=numbers.dtype)
    if not case.fragment:
        return
    own = case.own()
    owners = np.repeat(own, np.diff(case.part_offsets)) if case.is_paths() else own
    described = {int(one): row for row, one in enumerate(case.described())}
    for name, values in case.fragment.items():
        dtype = str(values.dtype)
        building.create_fragment_attribute_array(level, name, dtype=dtype)
        for chunk in chunks:
            pieces = building.read_chunk_attributes(level, "tag", chunk)
            rows = [described[int(owners[row_of[int(piece[0])]])] for piece in pieces]
            building.write_chunk_fragment_attributes(level, name, chunk, values[rows], dtype)


def write_tables(case, path, are_written):
    if case.own() is None:
        return
    level = level_of(path)
    if not is_dense(case):
        rows, manifests = low.read_object_manifest_rows(level)
        ids = case.own()[rows] if case.is_paths() else rows
        index = {int(one): list(manifest) for one, manifest in zip(ids, manifests)}
        index |= {int(one): [] for one in case.ids() if int(one) not in index}
        building.write_object_index(level, index, case.axes)
    if not are_written:
        for name, values in case.object.items():
            values, present = case.table(values)
            # Zarr has no third truth value.
            is_bool = values.dtype == bool and not present.all()
            values = values.astype("u1") if is_bool else values
            rest = {"fill_value": fill(values[present])}
            if not present.all():
                rest["present_mask"] = present
            building.write_object_attributes(level, name, values, **rest)
    takes_groups = case.kind in ("points", "polylines", "streamlines")
    if case.group_count() and not (are_written and case.groups and takes_groups):
        building.write_groupings(level, groups(case))
        for name, values in case.group.items():
            building.write_groupings_attributes(level, name, values)


def fill(values):
    """Returns the fill value of absent rows: the package's own choice, unless a row has that value.
    """
    if values.dtype.kind == "U":
        return ""
    if values.dtype.kind == "b":
        return False
    if values.dtype.kind == "f":
        limits = np.finfo(values.dtype)
        choice = [values.dtype.type(one) for one in (np.nan, limits.min, limits.max, 0, -1)]
    else:
        limits = np.iinfo(values.dtype)
        ends = [limits.min, limits.max] if values.dtype.kind == "i" else [limits.max, 0]
        choice = [values.dtype.type(one) for one in [*ends, *range(256)] if one <= limits.max]
    rows = values.reshape(len(values), -1)
    for one in choice:
        taken = (rows == one) | ((rows != rows) & (one != one))
        if not taken.all(axis=1).any():
            return one


# Cells


def arrays(path):
    """Returns the paths of all arrays of a store, below the root."""
    for node in sorted(pathlib.Path(path).rglob("zarr.json")):
        if json.loads(node.read_text())["node_type"] == "array":
            yield node.parent.relative_to(path).as_posix()


def decoded(path):
    """Returns every cell of every array: by array, then by chunk key or row."""
    store = zarr.open_group(path, mode="r")
    return {name: cells(store[name]) for name in arrays(path)}


def cells(array):
    values, attributes = array[...], dict(array.attrs)
    if "nonempty_chunks" not in attributes:
        if values.dtype == object:
            return {str(row): bytes(value) for row, value in enumerate(values)}
        return {"all": (values.dtype.str, values.shape, values.tobytes())}
    origin = attributes.get("chunk_grid_origin", [0] * values.ndim)
    found = {}
    for index, value in np.ndenumerate(values):
        if len(value):
            found[".".join(str(at + start) for at, start in zip(index, origin))] = bytes(value)
    listed = attributes["nonempty_chunks"]
    assert sorted(found) == listed, f"{array.path}: {listed} is listed, {sorted(found)} is there"
    return found


def compare(case, ours, theirs, differ, report):
    """Counts equal cells; `differ` receives the others, and `report` counts accepted differences."""
    equal = 0
    for path in sorted(ours.keys() | theirs.keys()):
        reason = excuse(case, path.removeprefix("0/"))
        one, other = ours.get(path), theirs.get(path)
        if reason is not None:
            report[excused(reason)] += len(one or {})
            continue
        if one is None or other is None:
            # The package's low-level writers create no arrays for absent links.
            if one != {} or not path.startswith("0/link"):
                differ(f"{path} is only in {'ours' if other is None else 'theirs'}")
            continue
        for key in sorted(one.keys() | other.keys()):
            if one.get(key) == other.get(key):
                equal += 1
            else:
                differ(f"{path} {key}: ours {shown(one.get(key))}, theirs {shown(other.get(key))}")
    return equal


# Nodes


def nodes(path):
    """Returns the content of every `zarr.json`, without the encoding of cells and the meaning of
    names.
    """
    found = {}
    for node in sorted(pathlib.Path(path).rglob("zarr.json")):
        says = json.loads(node.read_text())
        found[node.parent.relative_to(path).as_posix()] = {
            key: says.get(key) for key in ("node_type", "shape", "data_type", "attributes")
        }
    return found


def compare_nodes(case, ours, theirs, differ):
    """Counts equal nodes among the nodes that both stores have."""
    equal = 0
    for path in sorted(ours.keys() & theirs.keys()):
        if excuse(case, path.removeprefix("0/")) is not None:
            continue
        one, other = spoken(path, ours[path]), spoken(path, theirs[path])
        if one == other:
            equal += 1
        else:
            differ(f"{path}: we say {one}, they say {other}")
    return equal


def spoken(path, node):
    """Removes what may differ, for the stated reasons."""
    attributes = dict(node["attributes"])
    if path == ".":
        # A copy of the other nodes and the inventory, for our readers.
        attributes.pop("zvf_nodes", None)
        attributes.pop("zvf_seal", None)
    if "ome" in attributes:
        # The package names a collection after its folder.
        attributes["ome"] = attributes["ome"] | {"name": None}
    level = attributes.get("zarr_vectors_level")
    if level is not None:
        # Its writers omit families that they write.
        attributes["zarr_vectors_level"] = level | {"arrays_present": None}
    # It declares most multi-channel rows as single numbers.
    left_out = ["channel_names", "row_shape"]
    if path.startswith("0/link"):
        # It stores no link count of zero, and no words for links.
        left_out += ["encoding", "categories", "ordered", "_FillValue"]
        if not attributes.get("num_links"):
            left_out += ["num_links", "num_physical_records"]
    for name in left_out:
        attributes.pop(name, None)
    return node | {"attributes": attributes}


def shown(cell):
    return cell.hex()[:400] if isinstance(cell, bytes) else str(cell)[:400]
