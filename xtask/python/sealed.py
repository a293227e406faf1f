"""Changes sealed stores with the package, and seals stores of the package.

usage: sealed.py ZVF FOLDER

ZVF is our program. Streamlines, a graph, points and a mesh are written by our program with `--seal`,
and by the package and then sealed with `zvf validate --seal`. For each:

* the package reads the same contents as before the sealing, and `validate(level=5)` has the same
  findings;
* the package changes the store with `EditSession`. Queries of what changed are then errors that
  name a file, `zvf query --no-seal` reads what the package reads, and `zvf validate` reports the
  changed files under ZV-L3-123 and no other error;
* a further move of the vertex replaces one cell and no other file. A restored earlier version of
  the cell looks the same, so nothing distinguishes this change from damage (ADR 23);
* `zvf validate --repair --seal --trust-files` seals the store again, queries return what the package
  reads, and the findings of the package are those before it.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import warnings

import numpy as np

# zarr-python warns that byte strings have no specification yet.
warnings.simplefilter("ignore")

import zarr_vectors.building as zb  # noqa: E402
from zarr_vectors.ops import EditSession, VertexRef  # noqa: E402
from zarr_vectors.types.graphs import read_graph, write_graph  # noqa: E402
from zarr_vectors.types.meshes import read_mesh, write_mesh  # noqa: E402
from zarr_vectors.types.points import read_points, write_points  # noqa: E402
from zarr_vectors.types.polylines import read_polylines, write_polylines  # noqa: E402
from zarr_vectors.validate import validate  # noqa: E402

CHUNKS = (10.0, 10.0, 10.0)
BOUNDS = ([0.0] * 3, [40.0] * 3)
# The rule that reports differences from the inventory.
DIFFERENCE = "ZV-L3-123"


class Failure(Exception):
    """A store that is not as it has to be."""


def grid(side):
    """Returns vertices of a square with `side` vertices at each edge, and its triangles."""
    vertices = [[3 * x + 0.5, 3 * y + 0.5, 1 + (x * y) % 3] for x in range(side) for y in range(side)]
    corner = lambda x, y: x * side + y
    squares = [(x, y) for x in range(side - 1) for y in range(side - 1)]
    faces = [[corner(x, y), corner(x, y + 1), corner(x + 1, y)] for x, y in squares]
    return np.array(vertices, np.float32), np.array(faces)


def paths():
    steps = np.arange(8, dtype=np.float32)
    return [np.stack([1 + 4 * steps, 2 + steps, np.full(8, 3.0 * at + 1)], axis=1) for at in range(5)]


KINDS = {
    "points": lambda store: write_points(
        store, grid(6)[0], chunk_shape=CHUNKS, bounds=BOUNDS, object_ids=np.arange(36) // 6
    ),
    "streamlines": lambda store: write_polylines(
        store, paths(), chunk_shape=CHUNKS, bounds=BOUNDS
    ),
    "graphs": lambda store: write_graph(
        store, grid(6)[0], np.array([[at, at + 1] for at in range(35)]), chunk_shape=CHUNKS, bounds=BOUNDS
    ),
    "mesh": lambda store: write_mesh(store, *grid(6), chunk_shape=CHUNKS, bounds=BOUNDS),
}
READERS = {"points": read_points, "streamlines": read_polylines, "graphs": read_graph, "mesh": read_mesh}


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True)


def done(*words):
    """Returns the output of a command that has to succeed."""
    finished = run(*words)
    if finished.returncode:
        raise Failure(f"{words[1]} failed: {finished.stdout}{finished.stderr}")
    return finished.stdout


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
    return sorted(map(tuple, np.asarray(positions, np.float32).tolist()))


def of_ours(zvf, store, *words):
    """Returns the positions of a query, sorted."""
    file = pathlib.Path(f"{store}.npz")
    done(zvf, "query", store, "-o", file, "--quiet", *words)
    with np.load(file) as read:
        return sorted(map(tuple, read["positions"].astype(np.float32).tolist()))


def findings(store):
    found = validate(str(store), level=5)
    return sorted(found.errors), sorted(found.warnings)


def errors(zvf, store):
    """Returns the codes of errors and warnings that our validator finds."""
    printed = json.loads(run(zvf, "validate", store, "--json").stdout)
    return {one["code"] for one in printed["findings"] if one["severity"] in ("error", "warning")}


def require(what, condition):
    if not condition:
        raise Failure(what)


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


def check(zvf, kind, store):
    before, read = findings(store), of_package(kind, store)
    require("our queries differ from the package", of_ours(zvf, store) == read)
    accepted = errors(zvf, store)
    require(f"differences without a change: {accepted}", DIFFERENCE not in accepted)

    change(kind, store)
    moved = move_again(store)
    require(f"another move changes {moved}", moved == ["0/vertices/c/0/0/0"])
    changed, after = of_package(kind, store), findings(store)
    require("the package did not change the store", changed != read)
    refused = run(zvf, "query", store, "--quiet")
    require(f"a changed store was read: {refused.stdout}", refused.returncode == 2)
    require(f"no file is named: {refused.stderr}", "0/" in refused.stderr)
    require("--no-seal differs from the package", of_ours(zvf, store, "--no-seal") == changed)
    require("validate does not report the change", DIFFERENCE in errors(zvf, store))

    done(zvf, "validate", store, "--repair", "--seal", "--trust-files")
    require("a sealed store differs from its inventory", DIFFERENCE not in errors(zvf, store))
    require("a query differs after sealing", of_ours(zvf, store) == changed)
    require("the package reads other contents after sealing", of_package(kind, store) == changed)
    found = findings(store)
    new = [one for at in range(2) for one in found[at] if one not in before[at] + after[at]]
    require(f"new findings of the package: {new}", not new)


def main():
    zvf, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stores = failed = 0
    for kind, write in KINDS.items():
        theirs = folder / f"{kind}.zarrvectors"
        write(str(theirs))
        plain = folder / f"{kind}.plain.zarrvectors"
        shutil.copytree(theirs, plain)
        done(zvf, "validate", theirs, "--repair", "--seal")
        file, ours = folder / f"{kind}.npz", folder / f"{kind}.zv"
        done(zvf, "query", plain, "-o", file, "--quiet")
        done(zvf, "create", ours, "--from", file, "--kind", kind, "--chunk-shape", "10,10,10",
             "--bounds", "0,0,0,40,40,40", "--quiet")
        for store in (theirs, ours):
            stores += 1
            try:
                if store == theirs:
                    same = of_package(kind, theirs) == of_package(kind, plain)
                    require("sealing changed what the package reads", same)
                check(zvf, kind, store)
            except Failure as failure:
                failed += 1
                print(f"DIFFERENT {store.name}: {failure}")
    print(f"conformance: sealed: {stores} stores changed by the package and sealed again, {failed} not as they have to be")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
