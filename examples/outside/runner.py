"""A runner of docs/conformance.md: `info`, and positions of points of 0.9, drafts and 0.10 without compression."""

import json
import struct
import sys
from pathlib import Path

SCOPE = {
    "generation": ["0.9", "drafts", "0.10"], "geometry": ["points"], "query": ["info", "all", "bbox"],
    "part": ["axes", "levels", "positions"],
    "without": ["compression", "sharding", "explicit fragments", "attribute chunking"],
}
TYPES = "float16 float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64".split()


def metadata(node):
    return json.loads((node / "zarr.json").read_text())


def described(node):
    """Returns what describes an array: 0.10 has it in an object."""
    return node["attributes"].get("zarr_vectors", node["attributes"])


def cells(array):
    """Returns the bytes of each cell by chunk: the only item of a frame of byte strings."""
    node = metadata(array)
    if {codec["name"] for codec in node["codecs"]} - {"vlen-bytes", "crc32c"}:
        raise NotImplementedError("compressed cells and shards")
    origin = described(node).get("chunk_grid_origin") or [0] * len(node["shape"])
    for chunk in described(node)["nonempty_chunks"]:
        cell = [str(int(at) - first) for at, first in zip(chunk.split("."), origin)]
        frame = array.joinpath("c", *cell).read_bytes()
        yield chunk, frame[8:8 + struct.unpack_from("<I", frame, 4)[0]]


def fragment_rows(blob):
    count, ranges = struct.unpack_from("<II", blob, 8)
    if ranges < count:
        raise NotImplementedError("fragments that are lists of rows")
    table = struct.iter_unpack("<2q", blob[16 + (count + 63) // 64 * 8:][:16 * ranges])
    return [first + row for first, rows in table for row in range(rows)]


def points(store, level, axes):
    """Returns the positions of a level; one of refinement `add` also has those of the next coarser level."""
    vertices, found = store / str(level) / "vertices", []
    code = "efdbhiqBHIQ"[TYPES.index(described(metadata(vertices)).get("dtype", "float32"))]
    indexes = dict(cells(vertices.with_name("vertex_fragments")))
    for chunk, cell in cells(vertices):
        rows = list(struct.iter_unpack(f"<{axes}{code}", cell))
        found += [rows[row] for row in fragment_rows(indexes[chunk])]
    about = metadata(vertices.parent)["attributes"].get("zarr_vectors_level", {})
    return found + (points(store, level + 1, axes) if about.get("refinement") == "add" else [])


def answer(store, level, query):
    root = metadata(store)["attributes"]
    about = root["zarr_vectors"]
    axes = [axis["name"] for axis in about.get("axes") or root["multiscales"][0]["axes"]]
    if query["kind"] == "info":
        return {"axes": axes, "levels": sorted(int(node.name) for node in store.glob("[0-9]*"))}
    is_known = query["kind"] in ("all", "bbox") and query["shape"] == "points"
    if not is_known or "chunked_by" in query or about["zv_version"][:3] not in ("0.9", "0.1"):
        raise NotImplementedError("other than info, and all or bbox of points of 0.9 and 0.10")
    positions = points(store, level, len(axes))
    if query["kind"] == "bbox":
        box = list(zip(query["lower"], query["upper"]))
        positions = [p for p in positions if all(lo <= x <= up for x, (lo, up) in zip(p, box))]
    return {"positions": positions}


for request in map(json.loads, sys.stdin):
    try:
        is_scope = request["query"]["kind"] == "scope"
        reply = {"scope": SCOPE} if is_scope else answer(Path(request["store"]), request["level"], request["query"])
    except NotImplementedError as reason:
        reply = {"unsupported": str(reason)}
    print(json.dumps(reply), flush=True)
