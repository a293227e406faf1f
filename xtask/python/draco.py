"""Vertices in the encoding `draco`, written by one program and read by the other.

usage: draco.py ZVF FOLDER

ZVF is our program.

* The package writes meshes with `encoding="draco"`, which it cannot read itself. Our queries return
  what DracoPy decodes from the cells, and `zvf validate` finds no error. Faces between chunks name
  rows that the streams of the package have lost: queries of links and `zvf validate` report this.
* `zvf create --encoding draco` writes meshes, points and streamlines. DracoPy decodes every cell to
  the rows that our queries return, in the order of the same store without the encoding.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import warnings

import DracoPy
import numpy as np

# zarr-python warns that byte strings have no specification yet.
warnings.simplefilter("ignore")

from zarr_vectors.types.meshes import write_mesh  # noqa: E402

from sealed import Failure, done, grid, paths, require, run  # noqa: E402

# The rule that reports rows of a lost order.
LOST = "ZV-L3-018"
# Codecs in front of the payload of a cell: none, or a checksum behind it.
FRAME = struct.Struct("<II")


def streams(store):
    """Returns the streams of all chunks, in the order of their coordinates."""
    nodes = json.loads((store / "0/vertices/zarr.json").read_text())
    require(f"encoding {nodes['attributes']['encoding']}", nodes["attributes"]["encoding"] == "draco")
    cells = (store / "0/vertices/c").rglob("*")
    found = {}
    for cell in cells:
        if cell.is_file():
            data = cell.read_bytes()
            count, length = FRAME.unpack_from(data)
            require(f"{count} items in {cell}", count == 1)
            at = tuple(map(int, cell.relative_to(store / "0/vertices/c").parts))
            found[at] = data[FRAME.size : FRAME.size + length]
    return [found[at] for at in sorted(found)]


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


def query(zvf, store, *words):
    file = pathlib.Path(f"{store}.npz")
    done(zvf, "query", store, "-o", file, "--quiet", *words)
    with np.load(file) as read:
        return {name: read[name] for name in read.files}


def codes(zvf, store):
    printed = json.loads(run(zvf, "validate", store, "--json").stdout)
    return {one["code"] for one in printed["findings"] if one["severity"] == "error"}


def rows(positions):
    return sorted(map(tuple, np.asarray(positions, np.float32).tolist()))


def shapes(corners):
    """Returns the corners of triangles, each from its least corner on."""
    found = []
    for triangle in np.asarray(corners, np.float32).tolist():
        turned = [tuple(map(tuple, triangle[at:] + triangle[:at])) for at in range(3)]
        found.append(min(turned))
    return sorted(found)


def of_package(zvf, folder):
    vertices, faces = grid(6)
    for bits in (8, 11, 16):
        store = folder / f"package.{bits}.zarrvectors"
        write_mesh(str(store), vertices, faces, chunk_shape=(40.0,) * 3, encoding="draco",
                   draco_quantization_bits=bits)
        positions, corners = decoded(store)
        read = query(zvf, store)
        require("positions differ from DracoPy", rows(read["positions"]) == rows(positions))
        found = read["positions"][read["links"].reshape(-1, 3)]
        require("faces differ from DracoPy", shapes(found) == shapes(corners) and len(found) == len(faces))
        require(f"findings {codes(zvf, store)}", not codes(zvf, store))
    crossing = folder / "crossing.zarrvectors"
    write_mesh(str(crossing), vertices, faces, chunk_shape=(10.0,) * 3, encoding="draco")
    refused = run(zvf, "query", crossing, "--quiet")
    require(f"faces of lost rows: {refused.stderr}", refused.returncode == 2 and "0/links/0" in refused.stderr)
    require("validate misses the lost order", LOST in codes(zvf, crossing))
    read = query(zvf, crossing, "--keep-going")
    require("positions differ from DracoPy", rows(read["positions"]) == rows(decoded(crossing)[0]))


def of_ours(zvf, folder):
    vertices, faces = grid(6)
    lines = paths()
    inputs = {
        "points": {"positions": vertices},
        "mesh": {"positions": vertices, "links": faces},
        "streamlines": {
            "positions": np.concatenate(lines).astype(np.float32),
            "part_offsets": np.cumsum([0] + [len(line) for line in lines]),
        },
    }
    for kind, arrays in inputs.items():
        file = folder / f"{kind}.npz"
        np.savez(file, **arrays)
        words = ["--from", file, "--kind", kind, "--chunk-shape", "10,10,10", "--quiet"]
        plain = folder / f"{kind}.plain.zv"
        done(zvf, "create", plain, *words)
        expected = query(zvf, plain)
        for bits in (10, 20):
            store = folder / f"{kind}.{bits}.zv"
            done(zvf, "create", store, *words, "--encoding", f"draco:{bits}")
            read = query(zvf, store)
            require(f"{kind}: findings {codes(zvf, store)}", not codes(zvf, store))
            step = 10 / (2**bits - 1)
            away = np.abs(read["positions"] - expected["positions"]).max()
            require(f"{kind}: {away} from the input, a step is {step}", away <= step)
            positions, corners = decoded(store)
            if kind != "streamlines":
                # Chunk by chunk, in the stored order.
                same = np.array_equal(read["positions"], positions)
                require(f"{kind}: rows differ from DracoPy", same)
            require(f"{kind}: positions differ from DracoPy", rows(read["positions"]) == rows(positions))
            if kind == "mesh":
                found = read["positions"][read["links"].reshape(-1, 3)]
                require("faces are missing", len(found) == len(faces))
                missing = set(shapes(corners)) - set(shapes(found))
                require(f"faces differ from DracoPy: {missing}", corners.size and not missing)


def main():
    zvf, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    failed = 0
    for check in (of_package, of_ours):
        try:
            check(zvf, folder)
        except Failure as failure:
            failed += 1
            print(f"DIFFERENT {check.__name__}: {failure}")
    if not failed:
        print("conformance: draco: stores of both programs are what DracoPy decodes")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
