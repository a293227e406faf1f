"""Stores of 0.10, a preview, whose metadata are a convention of Zarr.

No reference reads them yet, so packages judge their nodes: zarr-metadata reads every `zarr.json`, and zarr-cm checks
the registered conventions. The demo stores of every kind are migrated to 0.10 and get a coarser level; queries, counts
and validation give what they give of the same stores in 0.9.
"""

import json

import numpy as np
import pytest
import zarr_cm
from zarr_cm import multiscales, proj
from zarr_metadata.model import read_node_metadata_v3

from program import require

REPORT = "{nodes} nodes of {stores} stores of 0.10, read by zarr-metadata and checked by zarr-cm"

UUID = "66268a61-7833-4995-bbcb-233bb417dae5"
KINDS = {
    "root", "level", "vertices", "vertex_fragments", "link_fragments", "links", "vertex_attribute", "fragment_attribute",
    "link_attribute", "groups", "object_attribute", "group_attribute", "links_family", "link_attribute_family",
    "object_index", "parametric", "parametric_objects", "parametric_names",
}  # fmt: skip


@pytest.fixture(scope="module")
def demo(zvf, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    zvf("demo", folder, "--quiet")
    return sorted(path for path in folder.iterdir() if (path / "zarr.json").exists())


def check_node(path, node, report):
    reading = read_node_metadata_v3(node)
    require(f"{path}: {reading.problems}", not reading.problems)
    attributes = node.get("attributes", {})
    conventions = attributes.get("zarr_conventions")
    if conventions is None:
        require(f"{path} has metadata but no convention", "zarr_vectors" not in attributes)
        return None
    zarr_cm.validate_convention_metadata_objects(conventions)
    names = {entry.get("uuid") for entry in conventions}
    require(f"{path} declares {names}", UUID in names)
    kind = attributes["zarr_vectors"]["kind"]
    require(f"{path} is of kind {kind}", kind in KINDS)
    if kind == "root":
        multiscales.validate_group_metadata(node)
        if proj.UUID in names:
            proj.validate_group_metadata(node)
    report["nodes"] += 1
    return kind


def check_store(store, report):
    kinds = set()
    for path in store.rglob("zarr.json"):
        if ".zvf" not in path.parts:
            kinds.add(check_node(path, json.loads(path.read_text()), report))
    require(f"{store} has {kinds}", {"root", "level", "vertices", "vertex_fragments"} <= kinds)
    report["stores"] += 1


def same(zvf, old, new, *words):
    one, other = zvf.query(old, *words), zvf.query(new, *words)
    assert one.keys() == other.keys()
    for name, values in one.items():
        assert np.array_equal(values, other[name], equal_nan=values.dtype.kind == "f"), (new, name)


def test_stores_are_migrated_and_changed(zvf, demo, tmp_path, report):
    require("there is no demo store", demo)
    for old in demo:
        new, again = tmp_path / old.name, tmp_path / f"again-{old.name}"
        zvf("migrate", old, new, "--profile", "0.10", "--quiet")
        check_store(new, report)
        same(zvf, old, new)
        assert zvf.codes(new, "error", "warning") == zvf.codes(old, "error", "warning")
        levels = len(zvf.json("info", new)["levels"])
        for level in range(1, levels):
            same(zvf, old, new, "--level", level)
        zvf("migrate", new, again, "--quiet")
        same(zvf, old, again)
        if levels == 1:
            zvf("pyramid", new, "--quiet")
            check_store(new, report)


def test_a_reference_system_is_that_of_proj(zvf, tmp_path, report):
    random = np.random.default_rng(7)
    arrays = {"positions": random.random((100, 3)).astype("f4") * 50}
    crs = {"type": "GeographicCRS", "name": "WGS 84"}
    words = ["--kind", "points", "--profile", "0.10", "--crs", json.dumps(crs)]
    store = zvf.create(tmp_path / "points.zv", arrays, *words)
    check_store(store, report)
    root = json.loads((store / "zarr.json").read_text())["attributes"]
    assert root["proj:projjson"] == crs and "crs" not in root["zarr_vectors"]
    assert zvf.json("info", store)["crs"] == crs
    edited = zvf.create(tmp_path / "more.zv", arrays, "--kind", "points")
    zvf("query", edited, "-o", tmp_path / "more.npz", "--quiet")
    zvf("append", store, "--from", tmp_path / "more.npz", "--quiet")
    check_store(store, report)
    assert len(zvf.query(store)["positions"]) == 200
    assert not zvf.codes(store, "error", "warning")
