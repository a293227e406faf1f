"""A runner of docs/conformance.md: answers `info`, and points of generation 0.9, as positions.

It needs no packages, and reads neither compressed cells nor shards.
"""

import json
import pathlib
import struct
import sys

CODES = {"float32": "f", "float64": "d", "float16": "e", "int64": "q", "int32": "i", "int16": "h",
         "int8": "b", "uint64": "Q", "uint32": "I", "uint16": "H", "uint8": "B"}


class Unsupported(Exception):
    """This runner cannot answer the request."""


def attributes(node):
    return json.loads((node / "zarr.json").read_text())["attributes"]


def cells(array):
    """Returns the bytes of each cell by chunk: the only item of a frame of byte strings."""
    node = json.loads((array / "zarr.json").read_text())
    codecs = [codec["name"] for codec in node["codecs"]]
    if codecs not in (["vlen-bytes"], ["vlen-bytes", "crc32c"]):
        raise Unsupported(f"the codecs {codecs}")
    keys = node["attributes"]["nonempty_chunks"]
    origin = node["attributes"].get("chunk_grid_origin") or [0] * len(node["shape"])
    found = {}
    for chunk in (tuple(map(int, key.split("."))) for key in keys):
        file = array.joinpath("c", *(str(at - first) for at, first in zip(chunk, origin)))
        items, length = struct.unpack_from("<II", file.read_bytes())
        if items != 1:
            raise ValueError(f"{file} has {items} items")
        found[chunk] = file.read_bytes()[8:8 + length]
    return found


def fragments(blob):
    """Returns the rows of each fragment in an index."""
    magic, version, _, count, ranges = struct.unpack_from("<4sHHII", blob)
    if (magic, version) != (b"GFVZ", 1):
        raise ValueError("not a fragment index")
    if ranges < count:
        raise Unsupported("fragments that are lists of rows")
    table = struct.unpack_from(f"<{2 * ranges}q", blob, 16 + (count + 63) // 64 * 8)
    return [range(first, first + rows) for first, rows in zip(table[::2], table[1::2])]


def answer(store, level, query):
    root = attributes(store)
    axes = [axis["name"] for axis in root["multiscales"][0]["axes"]]
    if query["kind"] == "info":
        numbers = (node.name for node in store.iterdir() if node.name.isdigit())
        return {"axes": axes, "levels": sorted(map(int, numbers))}
    is_known = query["kind"] in ("all", "bbox") and query["shape"] == "points"
    if not is_known or "chunked_by" in query:
        raise Unsupported("only info, and all or bbox of points")
    if not root["zarr_vectors"]["zv_version"].startswith("0.9"):
        raise Unsupported("only generation 0.9")
    dtype = attributes(store / str(level) / "vertices").get("dtype", "float32")
    indexes, positions = cells(store / str(level) / "vertex_fragments"), []
    for chunk, cell in cells(store / str(level) / "vertices").items():
        vertices = list(struct.iter_unpack(f"<{len(axes)}{CODES[dtype]}", cell))
        positions += [vertices[row] for rows in fragments(indexes[chunk]) for row in rows]
    if query["kind"] == "bbox":
        box = list(zip(query["lower"], query["upper"]))
        positions = [p for p in positions if all(lo <= x <= up for x, (lo, up) in zip(p, box))]
    return {"positions": positions}


for line in sys.stdin:
    request = json.loads(line)
    try:
        reply = answer(pathlib.Path(request["store"]), request["level"], request["query"])
    except Unsupported as reason:
        reply = {"unsupported": str(reason)}
    print(json.dumps(reply), flush=True)
