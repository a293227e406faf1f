"""Writes stores with zarr-vectors 0.2.0; reads one request per line from `random_stores.py`.

A request names an npz of interchange arrays, the store, the kind, and the shapes of chunks and
bins.
"""

import json
import sys
import warnings

import numpy as np
from zarr_vectors.types.graphs import write_graph
from zarr_vectors.types.lines import write_lines
from zarr_vectors.types.meshes import write_mesh
from zarr_vectors.types.points import write_points
from zarr_vectors.types.polylines import write_polylines


def write(source, store, kind, chunk_shape, bin_shape):
    arrays = dict(np.load(source))
    positions = arrays.pop("positions")
    of = lambda scope: {  # noqa: E731
        name.removeprefix(scope): arrays[name] for name in arrays if name.startswith(scope)
    }
    vertex, link, table = of("vertex."), of("link."), of("object.")
    groups = {int(number): members.tolist() for number, members in of("group.").items()}
    shared = {"chunk_shape": tuple(chunk_shape), "dtype": str(positions.dtype)}
    if bin_shape is not None:
        shared["bin_shape"] = tuple(bin_shape)
    if table:
        shared["object_attributes"] = table
    if kind == "lines":
        ends = positions.reshape(-1, 2, positions.shape[1])
        vertex = {name: v.reshape(-1, 2, *v.shape[1:]) for name, v in vertex.items()}
        return write_lines(store, ends, vertex_attributes=vertex, **shared)
    if kind in ("graphs", "skeletons"):
        shared["kind"] = kind.removesuffix("s")
        rest = {"vertex_attributes": vertex, "link_attributes": link}
        return write_graph(store, positions, arrays["links"], **rest, **shared)
    if kind == "mesh":
        return write_mesh(store, positions, arrays["links"], vertex_attributes=vertex, **shared)
    if groups:
        shared |= {"groups": groups, "group_attributes": of("group_attribute.")}
    if kind == "points":
        own = {"object_ids": arrays["object_ids"]} if "object_ids" in arrays else {}
        return write_points(store, positions, vertex_attributes=vertex, **own, **shared)
    cut = lambda values: np.split(values, arrays["part_offsets"][1:-1])  # noqa: E731
    vertex = {name: cut(values) for name, values in vertex.items()}
    shared["geometry_type"] = kind.removesuffix("s")
    return write_polylines(store, cut(positions), vertex_attributes=vertex, **shared)


def main():
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        try:
            write(**json.loads(line))
            response = {}
        except Exception as error:  # noqa: BLE001, the caller tells it
            response = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(response), flush=True)


if __name__ == "__main__":
    main()
