"""Which stores two readers for Neuroglancer open, by the rules in their sources.

usage: neuroglancer_rules.py

Neither reader is in a release of Neuroglancer (2.41.2 is the last), and none is run here: rules say what a reader refuses
or leaves out, and a store that it opens whole may still be drawn wrongly. Rules about bytes of cells are not checked.
"""

import json
import pathlib
import re

OPENED, PARTLY, REFUSED = "opened", "in part", "refused"
OUTCOMES = (OPENED, PARTLY, REFUSED)
KINDS = ["point_cloud", "line", "streamline", "polyline", "skeleton", "graph", "mesh"]
NUMBERS = {"bool", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)), "float16", "float32", "float64"}
TEXTS = {"variable_length_bytes", "bytes", "string", "variable_length_utf8"}
CODECS = {"bytes", "vlen-bytes", "vlen-utf8", "zstd", "blosc", "gzip", "zlib", "crc32c", "sharding_indexed"}


class Nodes:
    """The metadata of a store, and what it says of itself."""

    def __init__(self, path):
        self.path = path
        self.root = self.says("")
        self.about = self.root.get("zarr_vectors", {})
        scales = self.root.get("multiscales")
        self.scales = scales[0] if isinstance(scales, list) and scales else {}
        self.levels = [level["path"] for level in self.scales.get("datasets", [])] or ["0"]
        self.kinds = [kind for kind in self.about.get("geometry_types") or [] if kind in KINDS]
        self.version = tuple(map(int, re.findall(r"\d+", str(self.about.get("zv_version", "0.9")))[:3]))

    def node(self, name):
        file = self.path / name / "zarr.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def says(self, name):
        return self.node(name).get("attributes", {})

    def below(self, name):
        """Returns the nodes in a group by name."""
        folders = sorted(file.parent.name for file in (self.path / name).glob("*/zarr.json"))
        return {folder: self.node(f"{name}/{folder}") for folder in folders}

    def axes(self):
        return len((self.about.get("bounds") or [[]])[0])


def codecs(node):
    """Returns the names of the codecs of an array, with those inside shards."""
    names = set()
    for codec in node.get("codecs", []):
        names |= {codec["name"]} | codecs(codec.get("configuration", {}))
    return names


def current(store):
    """Yields what `src/datasource/zarr-vectors` of BRIDGE-Neuroscience/neuroglancer refuses or leaves out."""
    if store.version < (0, 9):
        yield REFUSED, "generations before 0.9"
        return
    if store.version >= (0, 10):
        yield PARTLY, "0.10 is read as 0.9: level 0 only, of float32 and from chunk 0, with a warning"
    elif store.version > (0, 9, 4):
        yield PARTLY, "versions after 0.9.4 have a warning"
    if set(store.about.get("required_capabilities", [])) - {"additive_levels"}:
        yield REFUSED, "required capabilities other than additive_levels"
    if store.axes() != 3 or len(store.about.get("chunk_shape", [])) != 3:
        yield REFUSED, "axes other than three"
    if not store.kinds:
        yield REFUSED, "no kind of geometry"
    if len(store.kinds) > 1:
        yield PARTLY, "kinds beside the one that is drawn"
    if store.says("0/object_index").get("layout", "vlen_manifests_v1")[:14] != "vlen_manifests":
        yield PARTLY, "objects in a dense index cannot be selected"
    for level in store.levels:
        vertices, links = store.node(f"{level}/vertices"), store.below(f"{level}/links/0")
        attributes = store.below(f"{level}/vertex_attributes")
        if vertices.get("node_type") != "array":
            yield REFUSED, "vertices that are not one array"
        arrays = [vertices, store.node(f"{level}/vertex_fragments"), *links.values(), *attributes.values()]
        if any(codecs(node) - CODECS or node.get("data_type", "bytes") not in NUMBERS | TEXTS for node in arrays):
            yield REFUSED, "codecs or data types that it does not have"
        if vertices.get("attributes", {}).get("encoding") == "draco":
            yield REFUSED if len(store.levels) == 1 else PARTLY, "levels of Draco"
        if {"chunk_attribute_name", "chunk_attribute_values"} & store.says(level).get("zarr_vectors_level", {}).keys():
            yield PARTLY, "levels that are chunked by an attribute are not read"
        if len(attributes) > 8:
            yield PARTLY, "more than eight attributes of vertices: none is shown unless it is named"


def proposed(store):
    """Yields what the data source of google/neuroglancer#995 (June 2026) refuses or leaves out."""
    is_points = store.kinds == ["point_cloud"]
    if not is_points and (len(store.kinds) != 1 or store.kinds[0] in ("line", "mesh", "point_cloud")):
        yield REFUSED, "lines, meshes, and several kinds"
    if not is_points and store.axes() != 3:
        yield REFUSED, "paths, skeletons and graphs of axes other than three"
    if store.about.get("object_index_convention", "standard") != "standard":
        yield REFUSED, "an index convention other than standard"
    for level in store.levels:
        vertices = store.below(f"{level}/vertices")
        if store.node(f"{level}/vertices").get("node_type") != "group" or any(name.startswith("__") for name in vertices):
            yield REFUSED, "vertices that are not an array for each chunk (0.9, 0.10, padded, sharded)"
        if any(codecs(node) - {"bytes", "zstd"} for node in vertices.values()):
            yield REFUSED, "cells with other codecs than zstd"
        if store.says(f"{level}/vertices").get("dtype", "float32") != "float32":
            yield REFUSED, "coordinates other than float32"
        for name in store.below(f"{level}/vertex_attributes") if is_points else []:
            if vertices.keys() - store.below(f"{level}/vertex_attributes/{name}").keys():
                yield REFUSED, "points in chunks without a cell of an attribute"
    for name in store.below("0/object_attributes") if not is_points else []:
        if codecs(store.node(f"0/object_attributes/{name}/data")) - {"bytes"}:
            yield REFUSED, "compressed attributes of objects"
        if store.says(f"0/object_attributes/{name}").get("num_channels", 1) != 1:
            yield REFUSED, "attributes of objects with several columns"
    if is_points:
        return
    moved = [one.get("translation") for one in store.scales.get("datasets", [{}])[0].get("coordinateTransformations", [])]
    if any(any(translation or []) for translation in moved):
        yield PARTLY, "paths, skeletons and graphs are shifted by the translation of level 0, half a bin"
    crossing = store.node("0/cross_chunk_links/0")
    if store.version >= (0, 8) and crossing:
        yield PARTLY, "links between chunks in cells are not read"
    elif crossing and store.kinds[:1] == ["polyline"]:
        yield PARTLY, "links between chunks of polylines have the row 0 in tables of 0.7"
    if store.node("0/object_index") and not store.node("0/object_index/manifests"):
        yield PARTLY, "manifests of 0.6 are not read: objects cannot be selected"


READERS = {"0.9 (fork)": current, "#995": proposed}


def judged(rules, store):
    """Returns the outcome for a store, and the reasons."""
    found = set(rules(store))
    refused = {why for outcome, why in found if outcome == REFUSED}
    if refused:
        return REFUSED, refused
    return (PARTLY if found else OPENED), {why for _, why in found}


def report(stores):
    """Returns a table of outcomes by generation, and one of reasons. `stores` are pairs of generation and folder."""
    outcomes, reasons = {}, {}
    for generation, path in stores:
        store = Nodes(path)
        row = outcomes.setdefault(generation, [0, *({outcome: 0 for outcome in OUTCOMES} for _ in READERS)])
        row[0] += 1
        for place, (reader, rules) in enumerate(READERS.items(), 1):
            outcome, why = judged(rules, store)
            row[place][outcome] += 1
            for one in why:
                reasons[reader, outcome, one] = reasons.get((reader, outcome, one), 0) + 1
    lines = [f"| generation | stores | {' | '.join(READERS)} |", f"|---|---|{'---|' * len(READERS)}"]
    for generation, (count, *cells) in outcomes.items():
        lines.append(f"| {generation} | {count} | {' | '.join(' / '.join(map(str, cell.values())) for cell in cells)} |")
    lines += ["", "| reader | outcome | reason | stores |", "|---|---|---|---|"]
    for (reader, outcome, why), count in sorted(reasons.items(), key=lambda item: (item[0][:2], -item[1], item[0])):
        lines.append(f"| {reader} | {outcome} | {why} | {count} |")
    return "\n".join(lines)


def of_pack(pack):
    manifest = json.loads((pack / "manifest.json").read_text())
    return report((store["generation"], pack / store["path"]) for store in manifest["stores"])


if __name__ == "__main__":
    print(of_pack(pathlib.Path(__file__).resolve().parent))
