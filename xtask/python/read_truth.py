"""The queries of each store and their expected results, derived from the data alone."""

import numpy as np

from read_data import SIDE

BIN = 50.0
#: A float32 that is written exactly, and that leaves about 1 % of values even in 0..1.
LIMIT = 127 / 128
NEAREST = 10


def in_box(positions, low, high):
    return ((positions >= np.asarray(low)) & (positions <= np.asarray(high))).all(axis=1)


def middle(data):
    """Returns the vertex nearest to the middle of a chunk, among those well inside a bin."""
    offset = np.abs(np.mod(data.positions, BIN) - BIN / 2).max(axis=1)
    distance = np.linalg.norm(data.positions - np.float32(SIDE / 2 - BIN / 2), axis=1)
    return int(np.argmin(np.where(offset < BIN / 3, distance, np.inf)))


def boxes(data):
    """Returns a box that contains a single vertex, and one of 1 % of the cube around it."""
    place = data.positions[middle(data)].astype(np.float64)
    nearest = np.round(place * 64) / 64
    for exponent in range(12):
        half = 2.0 ** (-exponent)
        point = (nearest - half, nearest + half)
        if in_box(data.positions, *point).sum() == 1:
            break
    else:
        raise ValueError("vertices are too close to each other")
    side = round(SIDE * 0.01 ** (1 / 3))
    low = np.clip(np.floor(place - side / 2), 0, SIDE - side)
    return point, (low, low + side)


def crosses(start, end, low, high):
    """Returns which segments enter the box, borders included."""
    start, end = start.astype(np.float64), end.astype(np.float64)
    step = end - start
    with np.errstate(divide="ignore", invalid="ignore"):
        one, other = (low - start) / step, (high - start) / step
    flat = step == 0
    between = (start >= low) & (start <= high)
    enter = np.where(flat, np.where(between, -np.inf, np.inf), np.minimum(one, other))
    leave = np.where(flat, np.where(between, np.inf, -np.inf), np.maximum(one, other))
    enter = np.maximum(enter.max(axis=1), 0)
    return enter <= np.minimum(leave.min(axis=1), 1)


def paths_in_box(data, low, high):
    """Returns which paths have a segment that enters the box."""
    inner = np.ones(len(data.positions) - 1, dtype=bool)
    inner[data.offsets[1:-1] - 1] = False
    rows = np.flatnonzero(inner)
    hit = rows[crosses(data.positions[rows], data.positions[rows + 1], low, high)]
    return np.unique(np.searchsorted(data.offsets, hit, side="right") - 1)


def of_paths(data, paths):
    return {"vertices": int(np.diff(data.offsets)[paths].sum()), "objects": len(paths)}


def of_vertices(data, keep):
    """Returns vertices, and links whose ends are all among them."""
    found = {"vertices": int(keep.sum())}
    if data.owners is not None:
        found["objects"] = len(np.unique(data.owners[keep]))
    if data.links is not None:
        found["links"] = int(keep[data.links].all(axis=1).sum())
    return found


def found_in_box(data, low, high):
    if data.offsets is not None:
        return of_paths(data, paths_in_box(data, low, high))
    return of_vertices(data, in_box(data.positions, low, high))


def found_of(data, objects):
    if data.offsets is not None:
        return of_paths(data, np.asarray(objects))
    return of_vertices(data, np.isin(data.owners, objects))


def found_of_all(data):
    if data.offsets is not None:
        return of_paths(data, np.arange(len(data.offsets) - 1))
    return of_vertices(data, np.ones(len(data.positions), dtype=bool))


def filtered(data):
    """Returns a filter that 1 % pass: of objects for paths, otherwise of vertices."""
    if data.offsets is not None:
        name = list(data.object)[-1]
        found = of_paths(data, np.flatnonzero(data.object[name] > np.float32(LIMIT)))
        return {"scope": "object", "attribute": name, "above": LIMIT}, found
    name = next(iter(data.vertex))
    found = of_vertices(data, data.vertex[name] > np.float32(LIMIT))
    return {"scope": "vertex", "attribute": name, "above": LIMIT}, found


def queries(data):
    """Returns every query with its arguments and expected result; without `found` nothing is
    checked.

    `names_objects` says whether vertices are returned with their object, which the reference does
    only in queries by object. `mode` is that of `zvf query`: paths that touch are returned whole;
    for links the mode is `within`, because the reference drops links that cross the border.
    """
    paths = data.offsets is not None
    mode = "touch" if data.links is None else "within"
    point, part = ([[float(x) for x in corner] for corner in box] for box in boxes(data))
    condition, filter_finds = filtered(data)
    queries = []

    def add(query, found, names_objects=paths, **arguments):
        if found and not names_objects:
            found = {what: count for what, count in found.items() if what != "objects"}
        queries.append({"query": query, "names_objects": names_objects, **arguments, "found": found})

    add("whole level", found_of_all(data))
    add("box, one vertex", found_in_box(data, *point), box=point, mode=mode)
    add("box, 1 %", found_in_box(data, *part), box=part, mode=mode)
    if data.owners is not None:
        add("box, 1 %, objects named", found_in_box(data, *part), True, box=part, mode=mode)
    objects = len(next(iter(data.object.values()), ()))
    if objects:
        one = objects // 2
        add("one object", found_of(data, [one]), True, object=one)
    if data.groups:
        group = len(data.groups) // 2
        add("one group", found_of(data, data.groups[group]), True, group=group)
    place = [(low + high) / 2 for low, high in zip(*point)]
    found = {"vertices": NEAREST} if not paths and data.links is None else None
    add(f"nearest {NEAREST}", found, nearest={"place": place, "count": NEAREST})
    add("attribute, 1 %", filter_finds, where=condition, mode=mode)
    return queries
