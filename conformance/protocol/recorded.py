"""Levels as recorded in the `expected.json` of golden archives.

The records were made by the reference's decoders and verified by others; no reader takes part here.
`testdata/README.md` describes the archives.
"""

import math
import struct

from content import Content

SHAPES = {
    "point_cloud": "points",
    "line": "paths",
    "polyline": "paths",
    "streamline": "paths",
    "graph": "links",
    "skeleton": "links",
    "mesh": "links",
}


def contents(expected):
    """Returns the content of each recorded level, by number."""
    root = expected.get("root") or expected["root_attrs"]
    zv = root["zarr_vectors"]
    axes = [axis["name"] for axis in root["multiscales"][0]["axes"]]
    if "levels" not in expected:
        return {0: of_cells(expected, axes)}
    levels = expected["levels"]
    kinds = zv.get("geometry_types") or []
    shape = SHAPES[kinds[0]] if kinds else "points"
    skeleton = str(zv.get("links_convention", "")).endswith("branches")
    found = {}
    for number, level in levels.items():
        content = Content(shape, axes, sorted(map(int, levels)))
        read = older if "chunk_keys" in level else current
        chunks = read(content, level, skeleton and shape == "links", expected, int(number))
        says = (level.get("attributes") or level.get("attrs") or {}).get("zarr_vectors_level", {})
        content.placed = placed(chunks, says.get("chunk_shape") or zv["chunk_shape"])
        content.incomplete |= bool(content.untold)
        found[int(number)] = content
    for one in found:
        for other in {one - 1, one + 1} & found.keys():
            pairs = linked(levels, found, one, other)
            if pairs:
                found[one].linked[other - one] = found[other], pairs
    return found


def linked(levels, contents, one, other):
    """Returns the linked rows of two levels, whichever of the two stores the links."""
    records = family(levels[str(one)], other - one)
    if not records:
        records = [record[::-1] for record in family(levels[str(other)], one - other)]
    rows = [contents[one].row_of, contents[other].row_of]
    return [(rows[0][here], rows[1][there]) for here, there in records]


def family(level, delta):
    """Returns the records of links to the level this many levels away."""
    if "chunk_keys" in level:
        return between(level, f"{delta:+d}")["records"]
    records = level["links"].get(str(delta), {}).get("records", [])
    return [[(key(chunk), row) for chunk, row in record] for record in records]


def of_cells(expected, axes):
    """Returns recorded cells, because the reference of that version could not read its own shards.
    """
    content = Content("points", axes)
    for cell in expected["vlen"]["0/vertices"]:
        blob = bytes.fromhex(cell)
        rows = len(blob) // (4 * len(axes))
        content.positions += [floats(blob, row, len(axes)) for row in range(rows)]
    return content


def placed(chunks, shape):
    """Returns whether all vertices are in the chunks that store them."""
    return all(
        tuple(math.floor(x / extent) for x, extent in zip(position, shape)) == coord[-len(shape) :]
        for coord, fragments in chunks
        for fragment in fragments
        for position in fragment["positions"]
    )


def key(text):
    return tuple(map(int, text.split(".")))


def number(value):
    return {"float": "nan"} if value == "NaN" else value


def told(values):
    """Returns a row of an attribute; a row of one number becomes that number."""
    if not isinstance(values, list):
        return number(values)
    return told(values[0]) if len(values) == 1 else [told(value) for value in values]


def by_row(values, rows):
    """Splits values of vertices, which some decoders return without row boundaries."""
    width = len(values) // rows if rows else 1
    if width > 1 and not isinstance(values[0], list):
        values = [values[at * width : (at + 1) * width] for at in range(rows)]
    return list(map(told, values))


def words(values, meta):
    """Replaces dictionary codes by their words."""
    if "categories" not in meta:
        return values
    names = meta["categories"]
    return [names[code] if 0 <= code < len(names) else None for code in values]


def fill(content, chunks, skeleton, objects, records, attributes):
    """Adds vertices by chunk and fragment, then the data that refers to them."""
    content.row_of = row_of = {}
    rows_of, parents = {}, {}
    content.odd_links = False
    for coord, fragments in chunks:
        for at, fragment in enumerate(fragments):
            first = len(content.positions)
            content.positions += fragment["positions"]
            rows_of[coord, at] = list(range(first, len(content.positions)))
            for place, row in enumerate(fragment["rows"]):
                row_of.setdefault((coord, row), first + place)
                if skeleton and place > 0:
                    parents[first + place] = first + place - 1
            for scope in ("vertex", "fragment"):
                for name, values in fragment[scope].items():
                    column = getattr(content, scope).setdefault(name, {})
                    column.update(zip(rows_of[coord, at], values))
    for scope in ("vertex", "fragment"):
        columns = getattr(content, scope)
        for name, values in columns.items():
            columns[name] = [values.get(row) for row in range(len(content.positions))]
    if objects is not None:
        of = [(id, [row for piece in pieces for row in rows_of[piece]]) for id, pieces in objects]
        content.own(of)
    if content.shape != "links":
        return
    # The package returns copies again, drops links with one end, and reverses those of streamed
    # skeletons.
    widths = {len(record) for record in records["records"]}
    content.odd_links = records["duplicate"] or 1 in widths or (skeleton and records["directed"])
    seen, kept = set(), []
    for at, record in enumerate(records["records"]):
        if records["duplicate"]:
            if tuple(record) in seen:
                continue
            seen.add(tuple(record))
        ends = [row_of.get(end) for end in record]
        # Streamed skeletons store cross-chunk links from parent to child.
        if skeleton and records["directed"] and record[0][0] != record[1][0]:
            ends.reverse()
        if skeleton and ends[0] is not None:
            parents.pop(ends[0], None)
        if None in ends:
            content.incomplete = True
        else:
            content.links.append(ends)
            kept.append(at)
    implied = list(parents.items())
    content.links += [list(link) for link in implied]
    for name, values in attributes.items():
        rows = [told(values[at]) for at in kept]
        content.link[name] = rows + [None] * len(implied)


def current(content, level, skeleton, expected, number_of_level):
    arrays = level["arrays"]
    chunks = []
    for text, chunk in sorted(level["vertices"].items(), key=lambda item: key(item[0])):
        fragments = []
        for at, (rows, index) in enumerate(zip(chunk.get("fragments", []), chunk["index"])):
            span = index[0] == "range"
            content.has_explicit |= not span and len(index[1]) > 0
            fragment = {
                "rows": list(range(index[1], index[1] + index[2])) if span else index[1],
                "positions": rows,
                "vertex": {},
                "fragment": {},
            }
            for name, values in chunk.get("attributes", {}).items():
                if isinstance(values, str):
                    # The values do not match the vertices, so the result of a reader is
                    # unspecified.
                    content.untold.add(f"vertex.{name}")
                    continue
                meta = arrays[f"vertex_attributes/{name}"]["attributes"]
                fragment["vertex"][name] = words(by_row(values[at], len(rows)), meta)
            for name, values in chunk.get("fragment_attributes", {}).items():
                fragment["fragment"][name] = [told(values["data"][at])] * len(rows)
            fragments.append(fragment)
        chunks.append((key(text), fragments))
    objects = None
    if "objects" in level:
        manifests = level["objects"]["manifests"]
        objects = [
            (id, [(key(chunk), fragment) for chunk, fragment in manifests.get(str(id)) or []])
            for id in level["objects"]["ids"]
        ]
    family = level["links"].get("0", {})
    policy = family.get("policy", {})
    records = {
        "records": [[(key(chunk), row) for chunk, row in record] for record in family.get("records", [])],
        "directed": policy.get("directed") is True,
        "duplicate": policy.get("store") == "duplicate",
    }
    values = {name: values["data"] for name, values in family.get("attributes", {}).items() if isinstance(values, dict)}
    fill(content, chunks, skeleton, objects, records, values)
    for name, values in level.get("object_attributes", {}).items():
        array = arrays.get(f"object_attributes/{name}", {})
        absent = array.get("attributes", {}).get("fill_sentinel_meaning") == "absent"
        content.object[name] = table(values["data"], len(objects or []), array.get("fill_value") if absent else None)
    if "groups" in level:
        groups = level["groups"]
        content.groups = [groups[str(at)] for at in range(len(groups))]
        for name, values in level.get("group_attributes", {}).items():
            content.group[name] = [told(value) for value in values["data"]]
    return chunks


def table(values, count, fill):
    """Returns rows of objects; a row equal to the fill value is missing."""
    rows = []
    for value in [*values, *[None] * (count - len(values))]:
        parts = value if isinstance(value, list) else [value]
        absent = fill is not None and all(part == fill for part in parts)
        rows.append(None if absent else told(value))
    return rows[:count]


# Arguments of `read_*` of the package, and their names in a request.
KINDS_OF_ARGUMENTS = {"object_ids": "objects", "group_ids": "groups", "bbox": "bbox", "attribute_filter": "all"}
SHAPE_OF = {
    "read_points": "points",
    "read_graph": "links",
    "read_mesh": "links",
    "read_lines": "paths",
    "read_polylines": "paths",
}


def reads(expected, contents):
    """Yields recorded reads as requests: level, query, and the recorded part of the response.

    Where the package is known to be wrong, `reference` is the correct response.
    """
    found = expected.get("reads", [])
    for read in found if isinstance(found, list) else []:
        args, shape = dict(read["args"]), SHAPE_OF.get(read["call"])
        said = read.get("reference", read.get("result"))
        level = args.pop("level", 0)
        args.pop("attribute_names", None)
        content = contents.get(level)
        if shape is None or said is None or content is None or not set(args) <= set(KINDS_OF_ARGUMENTS):
            continue
        if len(args) > 1 or not is_comparable(content, shape, args):
            continue
        query = {"kind": "all", "shape": shape}
        for name, value in args.items():
            query["kind"] = KINDS_OF_ARGUMENTS[name]
            if name == "bbox":
                query["lower"], query["upper"] = value
            elif name == "attribute_filter":
                query["chunked_by"] = value
            else:
                query["ids"] = value
        yield level, query, response_of(shape, said)


def is_comparable(content, shape, args):
    if not content.placed or content.incomplete:
        return False
    told = {id for id, _ in content.objects or []}
    if "attribute_filter" in args and shape != "points":
        return False
    if shape == "paths" and ("bbox" in args or content.objects is None):
        # The package selects paths by their chunks.
        return False
    if shape == "links" and content.odd_links:
        return False
    return all(id in told for id in args.get("object_ids", []))


def response_of(shape, said):
    """Converts a result of the package to the notation of the protocol."""
    data = lambda array: array["data"] if isinstance(array, dict) else array  # noqa: E731
    if shape == "points":
        response = {"positions": data(said["positions"]), "vertex": {}}
        for name, values in said.get("vertex_attributes", {}).items():
            if len(data(values)) == len(response["positions"]):
                response["vertex"][name] = list(map(told, data(values)))
        return response
    if shape == "links":
        positions, links = ("positions", "edges") if "edges" in said else ("vertices", "faces")
        return {"positions": data(said[positions]), "links": data(said[links])}
    paths = data(said["endpoints"]) if "endpoints" in said else said["polylines"]
    response = {"positions": []}
    for path in paths:
        pieces = [path] if "endpoints" in said else map(data, path)
        for piece in pieces:
            response["positions"] += piece
    if "object_ids" in said:
        response["parts"], first = [], 0
        for id, path in zip(data(said["object_ids"]), paths):
            rows = sum(len(data(piece)) for piece in path)
            if rows:
                response["parts"].append([id, first, first + rows])
            first += rows
    return response


def older(content, level, skeleton, expected, number_of_level):
    chunks = []
    for text, chunk in sorted(level["chunks"].items(), key=lambda item: key(item[0])):
        fragments, read = [], chunk["vertices"]
        for at, index in enumerate(chunk["fragments"]):
            rows = index.get("explicit")
            content.has_explicit |= bool(rows)
            if rows is None:
                first, count = index["range"]
                rows = list(range(first, first + count))
            if isinstance(read, list):
                positions = read[at]
            else:
                # The reference of that version could not read them.
                blob = bytes.fromhex(expected["blobs"][f"{number_of_level}/vertices/{text}"])
                positions = [floats(blob, row, len(content.axes)) for row in rows]
            fragment = {"rows": rows, "positions": positions, "vertex": {}, "fragment": {}}
            for name, of in level.get("vertex_attributes", {}).items():
                values = of["chunks"].get(text)
                if isinstance(values, list):
                    fragment["vertex"][name] = words(by_row(values[at], len(rows)), of["meta"])
                elif values is not None:
                    content.untold.add(f"vertex.{name}")
            fragments.append(fragment)
        chunks.append((key(text), fragments))
    objects = None
    if "manifests" in level:
        objects = [
            (id, [(tuple(chunk), fragment) for chunk, fragment in pieces])
            for id, pieces in enumerate(level["manifests"])
        ]
    fill(content, chunks, skeleton, objects, between(level), {})
    for name, values in level.get("object_attributes", {}).items():
        present = values.get("present_mask")
        rows = table(values["values"]["data"], len(objects or []), None)
        if present is not None:
            rows = [row if there else None for row, there in zip(rows, present)]
        content.object[name] = rows
    if "groups" in level:
        content.groups = level["groups"]["members"]
        for name, values in level.get("group_attributes", {}).items():
            content.group[name] = [told(value) for value in values["values"]["data"]]
    return chunks


def floats(blob, row, axes):
    return list(struct.unpack_from(f"<{axes}f", blob, row * axes * 4))


def between(level, delta="0"):
    """Returns links inside chunks, then cross-chunk links."""
    inside = level.get("links", {}).get(delta, {})
    crossing = level.get("cross_chunk_links", {}).get(delta, {})
    records = []
    for text, groups in sorted(inside.get("chunks", {}).items(), key=lambda item: key(item[0])):
        for group in groups if isinstance(groups, list) else []:
            records += [[(key(text), row) for row in link] for link in group]
    for record in crossing.get("records", []):
        records.append([(tuple(chunk), row) for chunk, row in record])
    meta = crossing.get("meta", {})
    return {"records": records, "directed": meta.get("directed") is True, "duplicate": meta.get("store") == "duplicate"}
