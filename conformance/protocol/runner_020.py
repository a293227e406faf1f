"""The runner of zarr-vectors 0.2.0: the readers of each geometry, and readers of arrays."""

import pathlib

import numpy as np
from zarr_vectors.core import arrays as low
from zarr_vectors.core.store import (get_resolution_level, list_resolution_levels, open_store, read_root_metadata)
from zarr_vectors.types.graphs import read_graph
from zarr_vectors.types.lines import read_lines
from zarr_vectors.types.meshes import read_mesh
from zarr_vectors.types.points import read_points
from zarr_vectors.types.polylines import read_polylines

from serving import Unsupported, box_of, of_paths, rows, serve, tables, told


def response(store, number, query):
    root = open_store(store)
    meta = read_root_metadata(root)
    if query["kind"] == "info":
        axes = [axis["name"] for axis in meta.spatial_index_dims]
        return {"axes": axes, "levels": sorted(list_resolution_levels(root))}
    level, folder = get_resolution_level(root, number), pathlib.Path(store) / str(number)
    if query["kind"] == "tables":
        names = children(folder, "object_attributes"), children(folder, "group_attributes")
        return tables(low, level, ids_of(level), *names)
    if query["kind"] == "linked":
        raise Unsupported("no reader follows links from level to level")
    box = box_of(query)
    terms = {"level": number}
    if box is not None:
        terms["bbox"] = tuple(np.asarray(corner) for corner in box)
    if "chunked_by" in query:
        terms["attribute_filter"] = query["chunked_by"]
    if query["kind"] == "objects":
        terms["object_ids"] = query["ids"]
    if query["kind"] == "groups":
        terms["group_ids"] = query["ids"]
    kinds = meta.geometry_types
    if query["shape"] == "points":
        return points(store, terms, children(folder, "vertex_attributes"))
    if query["shape"] == "paths":
        return paths(store, level, query, terms, box, kinds[0] if kinds else None)
    if "group_ids" in terms:
        raise Unsupported("no reader of links takes groups")
    if kinds[0] == "mesh":
        found = read_mesh(store, **terms)
        return {"positions": rows(found["vertices"]), "links": found["faces"].tolist()}
    found = read_graph(store, **terms)
    return {"positions": rows(found["positions"]), "links": found["edges"].tolist()}


def children(level, family):
    """Returns names of attributes from their folders, because parents are not nodes and are not
    listed.
    """
    folder = level / family
    return sorted(one.name for one in folder.iterdir() if one.is_dir()) if folder.is_dir() else []


def ids_of(level):
    try:
        return list(range(level.read_array_meta("object_index")["num_objects"]))
    except Exception:  # noqa: BLE001, there are no objects
        return None


def points(store, terms, names):
    found = read_points(store, attribute_names=names, **terms)
    columns = found.get("vertex_attributes", found.get("attributes", {}))
    response = {
        "positions": rows(found["positions"]), "vertex": {name: told(values) for name, values in columns.items()}
    }
    if found.get("object_ids") is not None:
        response["object_ids"] = told(found["object_ids"])
    return response


def object_ids(level, query):
    if query["kind"] == "objects":
        return query["ids"]
    if query["kind"] == "groups":
        members = (low.read_group_object_ids(level, group) for group in query["ids"])
        return sorted({int(one) for group in members for one in group})
    return ids_of(level) or []


def paths(store, level, query, terms, box, kind):
    """Reads each object separately, because the readers do not return the object of a path."""
    terms = {key: terms[key] for key in ("level", "bbox") if key in terms}

    def read(id):
        if kind == "line":
            return read_lines(store, object_ids=[id], **terms)["endpoints"]
        found = read_polylines(store, object_ids=[id], **terms)["polylines"]
        return [np.concatenate(pieces) for pieces in found if len(pieces)]

    response = of_paths([(id, path, {}) for id in object_ids(level, query) for path in read(id)], [], box)
    del response["vertex"]
    return response


if __name__ == "__main__":
    serve(response)
