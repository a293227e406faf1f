"""The runner of zarr-vectors 0.9.2: its public interface, and readers of arrays for tables."""

import dataclasses

import numpy as np
import zarr_vectors as zv
from zarr_vectors.core import arrays as low

from serving import Unsupported, box_of, of_paths, rows, serve, tables, told


def response(store, number, query):
    dataset = zv.open(store)
    if query["kind"] == "info":
        axes = [axis["name"] for axis in dataset.axes]
        return {"axes": axes, "levels": list(dataset.levels)}
    level = dataset.level(number)
    if query["kind"] == "tables":
        has_objects = "object_index" in level.store
        ids = level.objects.ids(present=False).tolist() if has_objects else None
        names = level.attribute_names("object"), level.attribute_names("group")
        return tables(low, level.store, ids, *names)
    if query["kind"] == "linked":
        raise Unsupported("no reader follows links from level to level")
    box = box_of(query)
    terms = {} if box is None else {"bbox": box}
    if "chunked_by" in query:
        terms["where"] = query["chunked_by"]
    if query["kind"] in ("objects", "groups"):
        terms[query["kind"]] = query["ids"]
    if query["kind"] in ("objects", "groups") and query["shape"] == "links":
        raise Unsupported(f"select({query['kind']}=...) refuses graphs, skeletons and meshes")
    if query["shape"] == "paths":
        return paths(level, terms, box)
    found = level.read(**terms)
    response = {"positions": rows(found.positions)}
    if found.attributes_read:
        response["vertex"] = {name: told(found.attributes[name]) for name in found.attributes}
    if found.object_ids is not None:
        response["object_ids"] = told(found.object_ids)
    if query["shape"] == "links":
        links = found.faces if found.faces is not None else found.edges
        response["links"] = np.asarray(links).tolist() if links is not None else []
    return response


def paths(level, terms, box):
    results = list(lines(level, terms)) if level.kind == "line" else [level.read(**terms)]
    parts, names = [], set()
    for found in results:
        columns = list(found.attributes)
        names.update(columns)
        for id, part in zip(found.part_objects, found.parts):
            values = {name: found.attributes[name][part] for name in columns}
            parts.append((id, found.positions[part], values))
    response = of_paths(parts, sorted(names), box)
    if not all(found.attributes_read for found in results):
        del response["vertex"]
    return response


def lines(level, terms):
    """Reads each object separately, because the reader does not return the object of a line."""
    ids = terms.pop("objects", None)
    if "groups" in terms:
        members = [level.groups.by_id(group).members for group in terms.pop("groups")]
        ids = np.unique(np.concatenate(members)).tolist()
    if ids is None:
        ids = level.objects.ids().tolist()
    for id in ids:
        found = level.read(objects=[id], **terms)
        of = np.full(len(found.parts), id)
        yield dataclasses.replace(found, part_objects=of)


if __name__ == "__main__":
    serve(response)
