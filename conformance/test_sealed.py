"""Sealed stores that the package changes, and stores of the package that are sealed.

Streamlines, a graph, points and a mesh are written by zvf with `--seal`, and by the package and then sealed with
`zvf validate --seal`. For each:

* the package reads the same contents as before the sealing, and `validate(level=5)` has the same findings;
* the package changes the store with `EditSession`. Queries of what changed are then errors that name a file,
  `zvf query --no-seal` reads what the package reads, and `zvf validate` reports the changed files under
  ZV-L3-123 and no other error;
* a further move of the vertex replaces one cell and no other file. A restored earlier version of the cell looks
  the same, so nothing distinguishes this change from damage (ADR 23);
* `zvf validate --repair --seal --trust-files` seals the store again, queries return what the package reads, and
  the findings of the package are those before it.
"""

import shutil

import numpy as np
import pytest
import zarr_vectors.building as zb
from zarr_vectors.ops import EditSession, VertexRef
from zarr_vectors.types.graphs import read_graph, write_graph
from zarr_vectors.types.meshes import read_mesh, write_mesh
from zarr_vectors.types.points import read_points, write_points
from zarr_vectors.types.polylines import read_polylines, write_polylines
from zarr_vectors.validate import validate

from program import require
from surfaces import grid, paths, rows

CHUNKS = (10.0, 10.0, 10.0)
BOUNDS = ([0.0] * 3, [40.0] * 3)
# The rule that reports differences from the inventory.
DIFFERENCE = "ZV-L3-123"

KINDS = {
    "points": lambda store: write_points(
        store, grid(6)[0], chunk_shape=CHUNKS, bounds=BOUNDS, object_ids=np.arange(36) // 6
    ),
    "streamlines": lambda store: write_polylines(store, paths(), chunk_shape=CHUNKS, bounds=BOUNDS),
    "graphs": lambda store: write_graph(
        store, grid(6)[0], np.array([[at, at + 1] for at in range(35)]), chunk_shape=CHUNKS, bounds=BOUNDS
    ),
    "mesh": lambda store: write_mesh(store, *grid(6), chunk_shape=CHUNKS, bounds=BOUNDS),
}
READERS = {"points": read_points, "streamlines": read_polylines, "graphs": read_graph, "mesh": read_mesh}


def parts(path):
    """Returns the pieces of a path, which may be one array."""
    return path if isinstance(path, list) else [path]


def of_package(kind, store):
    """Returns the positions that the package reads, sorted."""
    read = READERS[kind](str(store))
    if kind == "streamlines":
        positions = np.concatenate([part for path in read["polylines"] for part in parts(path)])
    else:
        positions = read["positions" if "positions" in read else "vertices"]
    return rows(positions)


def findings(store):
    found = validate(str(store), level=5)
    return sorted(found.errors), sorted(found.warnings)


def change(kind, store):
    """Changes the store with the package: moves a vertex, in place, and adds or removes others."""
    root = zb.open_store(str(store), mode="r+")
    with EditSession(root, atomic=False) as session:
        session.edit_vertex(VertexRef(0, (0, 0, 0), 0, 0), new_pos=[0.25, 0.75, 0.5])
        if kind == "streamlines":
            session.add_object(level=0, vertices=np.array([[21, 1, 1], [28, 1, 1]], np.float32))


def files(store):
    return {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}


def move_again(store):
    """Moves the vertex once more, and returns the names of the files that this changes."""
    before = files(store)
    with EditSession(zb.open_store(str(store), mode="r+"), atomic=False) as session:
        session.edit_vertex(VertexRef(0, (0, 0, 0), 0, 0), new_pos=[0.5, 0.75, 0.5])
    after = files(store)
    changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
    return [path.relative_to(store).as_posix() for path in changed]


@pytest.mark.parametrize("by", ["package", "zvf"])
@pytest.mark.parametrize("kind", KINDS)
def test_sealed(kind, by, zvf, tmp_path, tell):
    store, plain = tmp_path / "sealed.zarrvectors", tmp_path / "plain.zarrvectors"
    KINDS[kind](str(plain))
    if by == "package":
        shutil.copytree(plain, store)
        zvf("validate", store, "--repair", "--seal")
        require("sealing changed what the package reads", of_package(kind, store) == of_package(kind, plain))
    else:
        words = ["--kind", kind, "--chunk-shape", "10,10,10", "--bounds", "0,0,0,40,40,40"]
        zvf.create(store, zvf.query(plain), *words)
    before, read = findings(store), of_package(kind, store)
    ours = lambda *words: rows(zvf.query(store, *words)["positions"])
    errors = lambda: zvf.codes(store, "error", "warning")
    require("our queries differ from the package", ours() == read)
    require(f"differences without a change: {errors()}", DIFFERENCE not in errors())

    change(kind, store)
    moved = move_again(store)
    require(f"another move changes {moved}", moved == ["0/vertices/c/0/0/0"])
    changed, after = of_package(kind, store), findings(store)
    require("the package did not change the store", changed != read)
    refused = zvf.run("query", store, "--quiet")
    require(f"a changed store was read: {refused.stdout}", refused.returncode == 2)
    require(f"no file is named: {refused.stderr}", "0/" in refused.stderr)
    require("--no-seal differs from the package", ours("--no-seal") == changed)
    require("validate does not report the change", DIFFERENCE in errors())

    zvf("validate", store, "--repair", "--seal", "--trust-files")
    require("a sealed store differs from its inventory", DIFFERENCE not in errors())
    require("a query differs after sealing", ours() == changed)
    require("the package reads other contents after sealing", of_package(kind, store) == changed)
    found = findings(store)
    new = [one for at in range(2) for one in found[at] if one not in before[at] + after[at]]
    require(f"new findings of the package: {new}", not new)
    tell(f"sealed: {kind} of {by}, changed by the package and sealed again")
