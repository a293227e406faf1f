"""Stores of 0.10, a preview, whose metadata are a convention of Zarr.

No reference reads them yet, so packages judge their nodes: zarr-metadata reads every `zarr.json`, and zarr-cm checks
the registered conventions. The demo stores of every kind are migrated to 0.10 and get a coarser level; queries, counts
and validation give what they give of the same stores in 0.9.
"""

import json
import os
import shutil
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
import zarr_cm
from zarr_cm import multiscales, proj
from zarr_metadata.model import read_node_metadata_v3

from corpus import TESTDATA
from program import require
from test_servers import S3, server

REPORT = "{nodes} nodes of {stores} stores of 0.10, read by zarr-metadata and checked by zarr-cm"

UUID = "66268a61-7833-4995-bbcb-233bb417dae5"
# The kinds of the specification, with the members that every node of ours has.
KINDS = {
    kind: set(members.split())
    for kind, members in {
        "root": "zv_version axes chunk_shape bounds geometry_types",
        "level": "level vertex_count arrays_present object_sparsity coarsening_method",
        "vertices": "dtype encoding nonempty_chunks", "vertex_fragments": "encoding nonempty_chunks",
        "link_fragments": "encoding nonempty_chunks", "links": "dtype level_delta link_width nonempty_chunks",
        "vertex_attribute": "name dtype nonempty_chunks", "fragment_attribute": "name dtype nonempty_chunks",
        "link_attribute": "name dtype level_delta nonempty_chunks", "groups": "num_groups",
        "object_attribute": "name dtype", "group_attribute": "name dtype",
        "links_family": "level_delta link_width directed store num_links", "link_attribute_family": "name level_delta",
        "object_index": "layout num_objects", "parametric": "", "parametric_objects": "num_objects",
        "parametric_names": "num_objects",
    }.items()
}


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
    about = attributes["zarr_vectors"]
    kind = about["kind"]
    require(f"{path} is of kind {kind}", kind in KINDS)
    # Each node by its kind alone, as the JSON Schema of the convention has them, which is not published where it can be
    # read. A null stands for an absent member.
    present = {name for name, value in about.items() if value is not None}
    require(f"{path} lacks {KINDS[kind] - present}", KINDS[kind] <= present)
    if kind == "root":
        layout = attributes["multiscales"]["layout"]
        levels = [int(entry["asset"]) for entry in layout]
        require(f"{path} has the levels {levels}", levels == sorted(levels) and levels[0] == 0)
        require(f"{path} has transforms", not any("transform" in entry for entry in layout))
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


def both(zvf, tmp_path, *words):
    """Returns points and the same points in 0.10, written with further options."""
    random = np.random.default_rng(3)
    arrays = {"positions": random.random((300, 3)).astype("f4") * 8, "vertex.score": random.random(300)}
    words = ["--kind", "points", "--chunk-shape", "4,4,4", *words]
    stores = []
    for profile in PROFILES[1:]:
        (tmp_path / profile).mkdir()
        stores.append(zvf.create(tmp_path / profile / "points.zv", arrays, *words, "--profile", profile))
    return stores


@pytest.mark.parametrize("words", [[], ["--shard=2,2,2"], ["--encoding", "draco:12"]])
def test_cells_are_those_of_0_9(words, zvf, tmp_path):
    """Cells in shards and of Draco too: no file but the nodes differs."""
    old, new = both(zvf, tmp_path, *words)
    same(zvf, old, new)
    cells = [
        {file.relative_to(store): file.read_bytes() for file in store.glob("0/**/c/**/*") if file.is_file()}
        for store in (old, new)
    ]
    require("cells differ", cells[0] and cells[0] == cells[1])
    require(f"findings {zvf.codes(new, 'error', 'warning')}", not zvf.codes(new, "error", "warning"))


def test_layers_of_neuroglancer_are_those_of_0_9(zvf, tmp_path):
    exported = []
    for store in both(zvf, tmp_path):
        target = store.with_suffix(".layers")
        zvf("export", "precomputed", store, target, "--quiet")
        files = [file for file in target.rglob("*") if file.is_file()]
        exported.append({file.relative_to(target): file.read_bytes() for file in files})
    require("no file was exported", exported[0])
    require(f"files {exported[0].keys() ^ exported[1].keys()}", exported[0] == exported[1])


def test_samples_levels_and_edits_are_those_of_0_9(zvf, tmp_path, report):
    volume = np.arange(1000, dtype="f4").reshape(10, 10, 10)
    np.save(tmp_path / "volume.npy", volume)
    (tmp_path / "matrix.json").write_text(json.dumps(np.eye(4).tolist()))
    old, new = stores = both(zvf, tmp_path)
    zvf("query", old, "--bbox", "0,0,0,2,2,2", "-o", tmp_path / "more.npz", "--quiet")
    for store in stores:
        zvf("append", store, "--from", tmp_path / "more.npz", "--quiet")
        words = ["--into", "sampled", "--affine", tmp_path / "matrix.json"]
        zvf("sample", store, tmp_path / "volume.npy", *words)
        zvf("pyramid", store, "--levels", "1", "--quiet")
    require("nothing was sampled", "vertex.sampled" in zvf.query(new))
    check_store(new, report)
    for level in ("0", "1"):
        same(zvf, old, new, "--level", level)
    require(f"findings {zvf.codes(new, 'error', 'warning')}", not zvf.codes(new, "error", "warning"))


# The same data set, recorded in two generations, and the profiles to which it is migrated.
RECORDED = {"0.6": "zvf-06", "0.7": "zvf-07"}
PROFILES = ["0.8", "0.9", "0.10"]
QUERIES = [
    [], ["--bbox", "0,0,0,8,8,8"], ["--bbox", "0,0,0,8,8,8", "--mode", "clip"], ["--object", "1"], ["--group", "0"],
    ["--where", "fa > 0.3"],
]  # fmt: skip


@pytest.fixture
def kept(zvf, tmp_path):
    """Streamlines in every generation."""
    stores = {}
    for generation, archive in RECORDED.items():
        with tarfile.open(TESTDATA / f"{archive}.tar.gz") as tar:
            tar.extractall(tmp_path / archive, filter="data")
        top = next((tmp_path / archive).iterdir())
        stores[generation] = tmp_path / f"in-{generation}.zv"
        shutil.copytree(top / "streamlines.zv", stores[generation])
    for profile in PROFILES:
        stores[profile] = tmp_path / f"in-{profile}.zv"
        zvf("migrate", stores["0.7"], stores[profile], "--profile", profile, "--quiet")
    return stores


def test_every_generation_has_equal_results_in_a_folder_a_zip_and_a_bucket(zvf, kept, tmp_path, monkeypatch, tell):
    for generation, store in kept.items():
        assert zvf.json("info", store)["version"].startswith(generation), generation
        shutil.make_archive(f"{store}", "zip", store)
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    with server(tmp_path, "s3", [sys.executable, "-B", Path(__file__).parent / "s3_server.py", "PORT"]) as address:
        s3 = S3(address)
        s3.bucket("stores", False)
        for store in kept.values():
            for file in filter(Path.is_file, store.rglob("*")):
                s3.object("stores", file.relative_to(tmp_path).as_posix(), file.read_bytes(), False)
        for name, value in {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "REGION": "us-east-1",
                            "ENDPOINT_URL": f"http://{address}", "ALLOW_HTTP": "true"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        compared = 0
        for words in QUERIES:
            expected, out = None, tmp_path / "out.npz"
            for store in kept.values():
                for place in (store, f"{store}.zip", f"s3://stores/{store.name}"):
                    zvf("query", place, *words, "-o", out, "--quiet")
                    with np.load(out) as read:
                        found = {name: read[name] for name in read if name != "metadata"}
                    expected = expected or found
                    assert len(found["positions"]), words
                    assert found.keys() == expected.keys(), (place, words)
                    for name, values in found.items():
                        require(f"{place} {words}: {name}", np.array_equal(values, expected[name]))
                    compared += 1
    tell(f"{compared} queries of {len(kept)} generations, in folders, zip files and a bucket, have equal results")
