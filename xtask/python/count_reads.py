"""Counts the requests of the reference for each query of a store, and times them.

usage: count_reads.py FOLDER STORE...; prints a JSON list, a record for each store and query.

Every query opens the store anew. Requests are counted by a Zarr store, as they would reach an
object store; time is measured on the plain path, where the reference bypasses Zarr to read files. A
query that the reference does not support has a record without `requests`. `requests` exclude
`lists`; `found` is the result, `columns` are the vertex attributes in it.
"""

import json
import pathlib
import statistics
import sys
import time
import warnings

import numpy as np
import zarr_vectors
from zarr_vectors import building

from counting_store import CountingStore

REPEATS = 3

# Kinds that the reference can select by object.
BY_OBJECT = {"point_cloud", "line", "streamline"}
BY_GROUP = {"point_cloud", "streamline"}
# Kinds whose vertices are returned without their objects in a box query.
BY_VERTEX = {"point_cloud", "graph", "skeleton", "mesh"}
# Kinds whose links are more than the order of a path.
LINKED = {"graph", "skeleton", "mesh"}


def counted(result):
    """Returns the content of a result: vertices, objects and links, and columns of vertices."""
    found = {"vertices": result.vertex_count}
    owners = result.object_ids if result.part_objects is None else result.part_objects
    if owners is not None:
        found["objects"] = len(np.unique(owners))
    links = result.edges if result.faces is None else result.faces
    if links is not None and result.kind in LINKED:
        found["links"] = len(links)
    return found, sorted(result.attributes.names())


def vertices_of_object(dataset, number):
    """Returns only vertices, for kinds that cannot be selected by object."""
    level = building.get_resolution_level(dataset.store, 0)
    parts = building.read_object_vertices(level, number, ndim=3)
    return {"vertices": sum(len(part) for part in parts)}, []


def filtered(dataset, where):
    """Predicates are not pushed down: reads the column and selects, or reads everything and drops
    rows.
    """
    name, above = where["attribute"], np.float32(where["above"])
    if where["scope"] == "object":
        level = building.get_resolution_level(dataset.store, 0)
        values = building.read_object_attributes(level, name)
        return counted(dataset.select(objects=np.flatnonzero(values > above).tolist()).read())
    result = dataset.read()
    return counted(result.restrict(np.asarray(result.attributes[name]) > above))


def reader(kind, query):
    """Returns a function that queries an open dataset, or None if unsupported, and its
    peculiarities.
    """
    if "nearest" in query:
        return None, None
    if "box" in query:
        if kind in BY_VERTEX and query["names_objects"]:
            return None, None
        return lambda dataset: counted(dataset.select(bbox=query["box"]).read()), None
    if "object" in query:
        number = query["object"]
        if kind in BY_OBJECT:
            return lambda dataset: counted(dataset.select(objects=[number]).read()), None
        return lambda dataset: vertices_of_object(dataset, number), "vertices only"
    if "group" in query:
        if kind not in BY_GROUP:
            return None, None
        return lambda dataset: counted(dataset.select(groups=[query["group"]]).read()), None
    if "where" in query:
        by_object = query["where"]["scope"] == "object"
        note = "column, then objects" if by_object else "whole level, then a mask"
        return lambda dataset: filtered(dataset, query["where"]), note
    return lambda dataset: counted(dataset.read()), None


def measure(path, work):
    store = CountingStore.local(path)
    found, columns = work(zarr_vectors.open(store))
    counts = {"requests": store.requests, "lists": store.lists, "bytes": store.bytes}
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        again, _ = work(zarr_vectors.open(path))
        times.append(time.perf_counter() - start)
        if again != found:
            raise ValueError(f"{path.name}: {found} through Zarr, {again} from files")
    # A result without vertices has no columns, whatever was requested.
    columns = columns if found["vertices"] else None
    return counts | {"seconds": statistics.median(times), "found": found, "columns": columns}


def main():
    folder = pathlib.Path(sys.argv[1])
    records = []
    for name in sys.argv[2:]:
        about = json.loads((folder / f"{name}.json").read_text())
        for query in about["queries"]:
            record = {"store": name, "kind": about["kind"], "query": query["query"]}
            work, note = reader(about["kind"], query)
            if note:
                record["note"] = note
            if work is not None:
                with warnings.catch_warnings(record=True) as warned:
                    record |= measure(folder / name, work)
                record["warnings"] = sorted({str(one.message) for one in warned})
            records.append(record)
    json.dump(records, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
