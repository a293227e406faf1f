"""Writes the stores for counting reads, with the reference; existing ones are kept.

usage: make_read_stores.py FOLDER; prints the names of the stores, one a line.

Next to each store NAME is NAME.json: its kind, its content, the queries and their expected results.
It is written last, so that a store without it is incomplete.
"""

import json
import pathlib
import shutil
import sys
import time

import numpy as np
import zarr_vectors

import read_data
import read_truth

CUBE = ((0.0,) * 3, (read_data.SIDE,) * 3)
#: 1,000 chunks of 2 x 2 x 2 bins, uncompressed, a file for each cell.
PLAIN = {"cells": 10, "subcells": 2, "pack": False, "compression": None}

#: Name, kind, data, and how the layout differs from the plain one.
STORES = [
    ("points", "point_cloud", read_data.points, {}),
    ("points-zstd", "point_cloud", read_data.points, {"compression": "zstd"}),
    ("points-sharded", "point_cloud", read_data.points, {"pack": True}),
    ("points-objects", "point_cloud", read_data.points_with_objects, {}),
    ("streamlines", "streamline", read_data.streamlines, {}),
    ("lines", "line", read_data.lines, {}),
    ("graph", "graph", read_data.graph, {}),
    ("skeletons", "skeleton", read_data.skeletons, {}),
    ("mesh", "mesh", read_data.mesh, {}),
]


def write(dataset, kind, data, layout):
    split = lambda rows: np.split(rows, data.offsets[1:-1])
    objects = {"object_attributes": data.object or None, "layout": layout}
    owned = objects | {"object_ids": data.owners}
    if kind == "point_cloud":
        dataset.add_points(data.positions, attributes=data.vertex, groups=data.groups or None, **owned)
    elif kind == "streamline":
        attributes = {name: split(rows) for name, rows in data.vertex.items()}
        paths = split(data.positions)
        dataset.add_polylines(paths, attributes=attributes, groups=data.groups, streamlines=True, **objects)
    elif kind == "line":
        attributes = {name: rows.reshape(-1, 2) for name, rows in data.vertex.items()}
        dataset.add_lines(data.positions.reshape(-1, 2, 3), attributes=attributes, **objects)
    elif kind == "mesh":
        dataset.add_mesh(data.positions, data.links, attributes=data.vertex, **owned)
    else:
        tree = kind == "skeleton"
        edges = {"edge_attributes": data.link or None, "tree": tree}
        dataset.add_graph(data.positions, data.links, attributes=data.vertex, **edges, **owned)


def make(path, kind, data, changes):
    layout = zarr_vectors.Layout(**(PLAIN | changes))
    schema = zarr_vectors.Schema(bounds=CUBE, kind=kind, layout=layout)
    shutil.rmtree(path, ignore_errors=True)
    write(zarr_vectors.create(path, schema=schema), kind, data, layout)


def size(path):
    files = [one.stat().st_size for one in path.rglob("*") if one.is_file()]
    return {"files": len(files), "bytes": sum(files)}


def main():
    folder = pathlib.Path(sys.argv[1])
    for name, kind, shape, changes in STORES:
        path, about = folder / name, folder / f"{name}.json"
        print(name)
        if about.exists():
            continue
        start = time.perf_counter()
        data = shape()
        make(path, kind, data, changes)
        described = {
            "store": name,
            "kind": kind,
            **size(path),
            "columns": sorted(data.vertex),
            "queries": read_truth.queries(data),
        }
        about.write_text(json.dumps(described, indent=1))
        took = time.perf_counter() - start
        print(f"{name}: {len(data.positions)} vertices, {took:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    main()
