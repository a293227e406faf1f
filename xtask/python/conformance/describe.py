"""Writes `testdata/corpus/stores.json`, which describes the healthy stores of the archives.

usage: describe.py FOLDER OUT [--check]

The archives are extracted to FOLDER. Descriptions are derived from the nodes of a store and its
recorded content.
"""

import json
import pathlib
import sys

import corpus

KINDS = {
    "point_cloud": "points",
    "line": "lines",
    "polyline": "polylines",
    "streamline": "streamlines",
    "graph": "graphs",
    "skeleton": "skeletons",
    "mesh": "meshes",
}

#: Every feature there is, and what a store has that has it. `docs/conformance.md` shows the same.
FEATURES = {
    "2d": "two axes",
    "4d": "four axes",
    "float64": "coordinates that are not float32",
    "negative chunks": "chunks below the origin",
    "bins": "bins smaller than chunks",
    "pyramid": "more than one level",
    "chunk growth": "levels with a chunk shape of their own",
    "cross-level links": "links from one level to another",
    "vertex attributes": "attributes of vertices",
    "fragment attributes": "attributes of fragments",
    "link attributes": "attributes of links",
    "object attributes": "attributes of objects",
    "absent values": "objects without a value of an attribute",
    "dictionary": "words stored as codes",
    "objects": "an object index",
    "sparse ids": "object ids that are not 0..n-1",
    "groups": "groups of objects",
    "attribute chunking": "an attribute as the first axis of chunks",
    "explicit fragments": "fragments that list rows",
    "shared fragments": "fragments that several objects have",
    "directed links": "links whose order of ends is data",
    "duplicate links": "links with a copy in each chunk they touch",
    "links of other widths": "links of one end, or of more than three",
    "compression": "vertices compressed in any way",
    "sharding": "many chunks in one object",
    "checksums": "cells with crc32c",
    "edited": "objects, fragments or links changed after writing",
    "identity index": "object_index_convention identity",
    "composite": "further geometries beside the first",
    "parametric": "parametric objects",
    "headers": "headers of other formats",
    "empty": "no vertices",
    "incomplete": "links or values of what is not there: readers may leave them out",
}


def nodes(path):
    return {
        node.parent.relative_to(path).as_posix(): json.loads(node.read_text())
        for node in sorted(path.rglob("zarr.json"))
    }


def generation(archive, path):
    if archive == "zvf-08":
        return pathlib.PurePosixPath(path).parts[1]
    return {"zvf-06": "0.6", "zvf-07": "0.7"}.get(archive, "0.9")


def features(store):
    found, says = set(), nodes(store.path)
    zv = says["."]["attributes"]["zarr_vectors"]
    axes = says["."]["attributes"]["multiscales"][0]["axes"]
    found |= {f"{len(axes)}d"} & FEATURES.keys()
    bins, chunk = zv.get("base_bin_shape"), zv["chunk_shape"]
    if bins is not None and list(map(float, bins)) != list(map(float, chunk)):
        found.add("bins")
    if zv.get("object_index_convention") == "identity":
        found.add("identity index")
    if store.path.parent.name.startswith("edit_"):
        found.add("edited")
    levels = [name for name in says if name.isdigit()]
    if len(levels) > 1:
        found.add("pyramid")
    for name, node in says.items():
        features_of_node(name.split("/"), node, found)
    if contents := store.contents():
        features_of_contents(contents, found)
    else:
        features_of_answers(store.expected["queries"], found)
    return [name for name in FEATURES if name in found]


def features_of_node(parts, node, found):
    attributes = node.get("attributes", {})
    level = attributes.get("zarr_vectors_level", {})
    if level.get("chunk_shape"):
        found.add("chunk growth")
    if level.get("shared_fragments") and len(parts) == 1:
        found.add("shared fragments")
    if level.get("chunk_attribute_name"):
        found.add("attribute chunking")
    if parts[0] in ("parametric", "headers"):
        found.add(parts[0])
    codecs = node.get("codecs", [])
    if codecs and codecs[0]["name"] == "sharding_indexed":
        codecs = codecs[0]["configuration"]["codecs"]
        found.add("sharding")
    if parts[-1].startswith("__shard_"):
        found.add("sharding")
    names = [codec["name"] for codec in codecs]
    if "crc32c" in names:
        found.add("checksums")
    if len(parts) < 2:
        return
    family, depth = parts[1], len(parts)
    if family == "vertices":
        if {"zstd", "blosc", "gzip"} & set(names):
            found.add("compression")
        if attributes.get("dtype", "float32") != "float32":
            found.add("float64")
        keys = [part for part in parts[2:3] if part != "__shard"]
        keys += attributes.get("nonempty_chunks", [])
        if any(key.startswith("-") or ".-" in key for key in keys):
            found.add("negative chunks")
    if family.endswith("_attributes") and depth == 3:
        name = family.removeprefix("cross_chunk_").replace("_", " ")
        if name in FEATURES:
            found.add(name)
    if "categories" in attributes:
        found.add("dictionary")
    if family == "object_index":
        found.add("objects")
    if family == "groups":
        found.add("groups")
    if family.startswith("vertices_"):
        found.add("composite")
    if family in ("links", "cross_chunk_links") and depth == 3:
        # Some generations also store families without links.
        if parts[2] != "0" and attributes.get("num_links", 1):
            found.add("cross-level links")
        elif parts[2] == "0":
            if attributes.get("directed"):
                found.add("directed links")
            if attributes.get("store") == "duplicate":
                found.add("duplicate links")
            if attributes.get("link_width", 2) not in (2, 3):
                found.add("links of other widths")


def features_of_contents(contents, found):
    for level in contents.values():
        if level.incomplete:
            found.add("incomplete")
        if level.objects is not None:
            ids = [id for id, _ in level.objects]
            if ids != list(range(len(ids))):
                found.add("sparse ids")
        if any(None in values for values in level.object.values()):
            found.add("absent values")
        if level.has_explicit:
            found.add("explicit fragments")
        if level.owners and any(len(one) > 1 for one in level.owners):
            found.add("shared fragments")
    if not any(level.positions for level in contents.values()):
        found.add("empty")


def features_of_answers(cases, found):
    for case in cases:
        ids = case["answer"].get("objects", [])
        if ids != list(range(len(ids))):
            found.add("sparse ids")


def kinds(store):
    zv = nodes(store.path)["."]["attributes"]["zarr_vectors"]
    return [KINDS[kind] for kind in zv.get("geometry_types") or [] if kind in KINDS]


def main():
    folder, out = map(pathlib.Path, sys.argv[1:3])
    corpus.unpack(folder)
    lines = []
    for archive in corpus.ARCHIVES:
        roots = sorted(folder.joinpath(archive).rglob("*.expected.json"))
        roots = [path.with_name(path.name.replace(".expected.json", ".zv")) for path in roots]
        roots += [
            path.with_name("store.zarrvectors")
            for path in sorted(folder.joinpath(archive).rglob("expected.json"))
        ]
        for path in roots:
            below = path.relative_to(folder / archive).as_posix()
            short = below.removesuffix("/store.zarrvectors").removesuffix(".zv")
            name = f"{archive}/{short.split('/', 1)[1]}"
            entry = {"name": name, "archive": f"{archive}.tar.gz", "path": below}
            store = corpus.Store(folder, entry)
            entry["generation"] = generation(archive, below)
            entry["geometry"] = kinds(store)
            entry["features"] = features(store)
            lines.append("    " + json.dumps(entry))
    listed = json.dumps(FEATURES, indent=2).replace("\n", "\n  ")
    text = f'{{\n  "features": {listed},\n  "stores": [\n' + ",\n".join(lines) + "\n  ]\n}\n"
    if "--check" not in sys.argv:
        out.write_text(text)
    elif out.read_text() != text:
        sys.exit(f"{out.name} is not what the stores are; `cargo xtask fixtures` writes it")
    else:
        print(f"{len(lines)} stores are as {out.name} says")


if __name__ == "__main__":
    main()
