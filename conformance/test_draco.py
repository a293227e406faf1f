"""Vertices in the encoding `draco`, written by one program and read by the other.

* The package writes meshes with `encoding="draco"`, which it cannot read itself. Our queries return what DracoPy
  decodes from the cells, and `zvf validate` finds no error. Faces between chunks name rows that the streams of
  the package have lost: queries of links and `zvf validate` report this.
* `zvf create --encoding draco` writes meshes, points and streamlines. DracoPy decodes every cell to the rows that
  our queries return, in the order of the same store without the encoding.
"""

import DracoPy
import numpy as np
import pytest
import zarr
from zarr_vectors.types.meshes import write_mesh

from program import require
from surfaces import grid, paths, rows

# The rule that reports rows of a lost order.
LOST = "ZV-L3-018"


def streams(store):
    """Returns the streams of all chunks, in the order of their coordinates."""
    array = zarr.open_group(store, mode="r")["0/vertices"]
    require(f"encoding {array.attrs['encoding']}", array.attrs["encoding"] == "draco")
    return [bytes(cell) for cell in array[...].ravel() if len(cell)]


def decoded(store):
    """Returns the positions of all chunks and the corners of all triangles inside chunks."""
    positions, corners = [], []
    for stream in streams(store):
        cell = DracoPy.decode(stream)
        points = np.asarray(cell.points, np.float32)
        positions.append(points)
        faces = getattr(cell, "faces", None)
        if faces is not None and len(faces):
            corners.append(points[np.asarray(faces)])
    return np.concatenate(positions), np.concatenate(corners) if corners else np.zeros((0, 3, 3))


def shapes(corners):
    """Returns the corners of triangles, each from its least corner on."""
    found = []
    for triangle in np.asarray(corners, np.float32).tolist():
        turned = [tuple(map(tuple, triangle[at:] + triangle[:at])) for at in range(3)]
        found.append(min(turned))
    return sorted(found)


@pytest.mark.parametrize("bits", [8, 11, 16])
def test_of_package(bits, zvf, tmp_path):
    vertices, faces = grid(6)
    store = tmp_path / "package.zarrvectors"
    write_mesh(str(store), vertices, faces, chunk_shape=(40.0,) * 3, encoding="draco", draco_quantization_bits=bits)
    positions, corners = decoded(store)
    read = zvf.query(store)
    require("positions differ from DracoPy", rows(read["positions"]) == rows(positions))
    found = read["positions"][read["links"].reshape(-1, 3)]
    require("faces differ from DracoPy", shapes(found) == shapes(corners) and len(found) == len(faces))
    require(f"findings {zvf.codes(store, 'error')}", not zvf.codes(store, "error"))


def test_lost_rows_of_package(zvf, tmp_path):
    crossing = tmp_path / "crossing.zarrvectors"
    write_mesh(str(crossing), *grid(6), chunk_shape=(10.0,) * 3, encoding="draco")
    refused = zvf.run("query", crossing, "--quiet")
    require(f"faces of lost rows: {refused.stderr}", refused.returncode == 2 and "0/links/0" in refused.stderr)
    require("validate misses the lost order", LOST in zvf.codes(crossing, "error"))
    read = zvf.query(crossing, "--keep-going")
    require("positions differ from DracoPy", rows(read["positions"]) == rows(decoded(crossing)[0]))


@pytest.mark.parametrize("bits", [10, 20])
@pytest.mark.parametrize("kind", ["points", "mesh", "streamlines"])
def test_of_ours(kind, bits, zvf, tmp_path, tell):
    (vertices, faces), lines = grid(6), paths()
    arrays = {
        "points": {"positions": vertices},
        "mesh": {"positions": vertices, "links": faces},
        "streamlines": {
            "positions": np.concatenate(lines).astype(np.float32),
            "part_offsets": np.cumsum([0] + [len(line) for line in lines]),
        },
    }[kind]
    words = ["--kind", kind, "--chunk-shape", "10,10,10"]
    expected = zvf.query(zvf.create(tmp_path / "plain.zv", arrays, *words))
    store = zvf.create(tmp_path / "draco.zv", arrays, *words, "--encoding", f"draco:{bits}")
    read = zvf.query(store)
    require(f"findings {zvf.codes(store, 'error')}", not zvf.codes(store, "error"))
    step, away = 10 / (2**bits - 1), np.abs(read["positions"] - expected["positions"]).max()
    require(f"{away} from the input, a step is {step}", away <= step)
    positions, corners = decoded(store)
    if kind != "streamlines":
        # Chunk by chunk, in the stored order.
        require("rows differ from DracoPy", np.array_equal(read["positions"], positions))
    require("positions differ from DracoPy", rows(read["positions"]) == rows(positions))
    if kind == "mesh":
        found = read["positions"][read["links"].reshape(-1, 3)]
        require("faces are missing", len(found) == len(faces))
        missing = set(shapes(corners)) - set(shapes(found))
        require(f"faces differ from DracoPy: {missing}", corners.size and not missing)
    tell(f"draco: {kind} of {bits} bits are what DracoPy decodes")
