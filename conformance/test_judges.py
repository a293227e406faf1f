"""Files and stores of every kind beside programs whose task is to judge them.

Judges refuse some files that are right. A test `test_fault_…` shows each fault on a file of another program, and
fails when a release of the judge is repaired:

* meshio reads no PLY with an element `edge`, and none with lists in properties of faces;
* tensorstore has no data types `variable_length_bytes` and `fixed_length_utf32`;
* `gifti_tool` calls the size of one byte bad, and the file valid all the same;
* zarr-vectors refuses meshes in Draco, those of its own writer as well.
"""

import json
import os
import shutil
import subprocess
import warnings
from pathlib import Path

import meshio
import morphio
import neurom
import nibabel
import numpy as np
import plyfile
import pytest
import tensorstore
import zarr
from nibabel.gifti import GiftiDataArray, GiftiImage
from trx import trx_file_memmap
from trx.workflows import validate_tractogram
from zarr_metadata.model import read_node_metadata_v3
from zarr_vectors.types.meshes import write_mesh
from zarr_vectors.validate import validate

from program import require
from surfaces import grid, paths

JUDGE = Path(__file__).parent / "node/judge.js"
REPORT = "judges: {files} files, {nodes} nodes of {stores} stores, {arrays} arrays equal in two programs"
PROFILES = ["0.8", "0.8-padded", "0.9", "0.10"]


def geometry(kind):
    """Returns arrays of small geometry with attributes."""
    (vertices, faces), lines, random = grid(6), paths(), np.random.default_rng(5)
    if kind in ("polylines", "streamlines"):
        arrays = dict(positions=np.concatenate(lines), part_offsets=np.arange(0, 41, 8), part_objects=np.arange(5))
    elif kind == "lines":
        ends = np.stack([vertices[:-1], vertices[1:]], axis=1).reshape(-1, 3)
        parts = len(ends) // 2
        arrays = dict(positions=ends, part_offsets=2 * np.arange(parts + 1), part_objects=np.arange(parts))
    else:
        arrays = dict(positions=vertices, object_ids=np.zeros(len(vertices), "i8"))
    if kind == "mesh":
        arrays["links"] = faces.astype("i8")
    elif kind in ("graphs", "skeletons"):
        # Each vertex is the child of the one before it.
        arrays["links"] = np.stack([np.arange(1, len(vertices)), np.arange(len(vertices) - 1)], axis=1)
    count = len(arrays["positions"])
    arrays["vertex.weight"] = random.random(count).astype("f4")
    arrays["vertex.rgb"] = random.integers(0, 255, (count, 3)).astype("u1")
    if kind == "skeletons":
        arrays |= {"vertex.type": np.array([1] + [3] * (count - 1), "u1"), "vertex.radius": np.ones(count, "f4")}
    return arrays


KINDS = ["points", "lines", "polylines", "streamlines", "skeletons", "graphs", "mesh"]


@pytest.fixture(scope="module")
def stores(zvf, tmp_path_factory):
    """Returns the store of a kind in a profile, which is created once."""
    made = {}

    def store(kind, profile="0.9", *words):
        key = (kind, profile, *words)
        if key not in made:
            path = tmp_path_factory.mktemp("made") / f"{kind}.zv"
            words = ["--kind", kind, "--chunk-shape", "8,8,8", "--profile", profile, *words]
            made[key] = zvf.create(path, geometry(kind), *words)
        return made[key]

    return store


@pytest.fixture
def written(zvf, stores, tmp_path, report):
    """Returns the file of a kind in a format."""

    def write(kind, name, *words):
        zvf("query", stores(kind), "-o", tmp_path / name, "--quiet", *words)
        report["files"] += 1
        return tmp_path / name

    return write


def judged(modules, *paths):
    """Returns the problems that `judge.js` finds in files."""
    environment = os.environ | {"NODE_PATH": str(modules)}
    done = subprocess.run(["node", JUDGE, *paths], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return {Path(path).name: found for path, found in json.loads(done.stdout).items() if found}


def test_gltf_and_sarif(zvf, stores, written, modules, tmp_path, report):
    files = [written(kind, f"{kind}.glb") for kind in KINDS]
    healthy, damaged = stores("mesh"), tmp_path / "damaged.zv"
    shutil.copytree(healthy, damaged)
    next((damaged / "0/vertices/c").rglob("[0-9]*/[0-9]*/[0-9]*")).unlink()
    (damaged / "0/zarr.json").write_text("{}")
    for store in (healthy, damaged):
        log = tmp_path / f"{store.name}.sarif"
        log.write_text(zvf.run("validate", store, "--sarif", "--quiet").stdout)
        require(f"{store} has results", bool(json.loads(log.read_text())["runs"][0]["results"]) == (store == damaged))
        files.append(log)
        report["files"] += 1
    assert not judged(modules, *files)
    # Both judges find faults.
    broken = tmp_path / "broken.glb", tmp_path / "broken.sarif"
    broken[0].write_bytes(files[0].read_bytes()[:-4])
    broken[1].write_text(json.dumps(json.loads(files[-1].read_text()) | {"version": "0"}))
    assert judged(modules, *broken).keys() == {"broken.glb", "broken.sarif"}


@pytest.mark.parametrize("ending", ["ply", "obj", "stl"])
def test_meshio(ending, written):
    mesh = meshio.read(written("mesh", f"mesh.{ending}"))
    arrays = geometry("mesh")
    corners = np.concatenate([block.data for block in mesh.cells if block.type == "triangle"])
    key = lambda triangles: sorted(sorted(map(tuple, triangle)) for triangle in triangles.astype("f4").tolist())
    assert key(mesh.points[corners]) == key(arrays["positions"][arrays["links"]])


def test_fault_of_meshio_edges(tmp_path):
    vertices = plyfile.PlyElement.describe(np.zeros(2, [(axis, "f4") for axis in "xyz"]), "vertex")
    edges = plyfile.PlyElement.describe(np.array([(0, 1)], [("vertex1", "i4"), ("vertex2", "i4")]), "edge")
    source = tmp_path / "edges.ply"
    plyfile.PlyData([vertices, edges], text=True).write(source)
    with pytest.raises((meshio.ReadError, SystemExit)):
        meshio.read(source)


def test_neurons(written):
    source, count = written("skeletons", "neuron.swc"), len(geometry("skeletons")["positions"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = morphio.Morphology(str(source))
    assert found.soma_type == morphio.SomaType.SOMA_SINGLE_POINT
    # A section begins with the end of its parent, here the soma, which has no section.
    assert len(found.soma.points) + len(found.points) == count
    tree = neurom.load_morphology(source)
    assert len(tree.neurites) == 1 and len(tree.points) == count - 1


@pytest.mark.parametrize("ending", ["trk", "trx"])
def test_trx_validate(ending, written, tmp_path):
    """Nothing is removed from a file of a store that comes from no image."""
    source, target = written("streamlines", f"some.{ending}"), tmp_path / f"valid.{ending}"
    validate_tractogram(str(source), "same" if ending == "trk" else None, str(target))
    found = nibabel.streamlines.load(target) if ending == "trk" else trx_file_memmap.load(str(target))
    assert len(found.streamlines) == 5


def program(name, package):
    found = shutil.which(name)
    if not found:
        pytest.skip(f"{name} is missing: Debian's package {package}")
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("ending", ["tck", "trk"])
def test_tckinfo(ending, zvf, written, tmp_path):
    tckinfo, source = program("tckinfo", "mrtrix3"), written("streamlines", f"some.{ending}")
    if ending == "trk":
        zvf("convert", source, tmp_path / "some.tck", "--quiet")
    done = subprocess.run([tckinfo, "-count", tmp_path / "some.tck"], capture_output=True, text=True, check=True)
    assert "actual count in file: 5" in done.stdout, done.stdout


@pytest.mark.nightly
def test_gifti_tool(written):
    tool = program("gifti_tool", "gifti-bin")
    for name in ("mesh.gii", "mesh.surf.gii"):
        line = [tool, "-gifti_test", "-infile", written("mesh", name)]
        done = subprocess.run(line, capture_output=True, text=True)
        require(f"{name}: {done.stdout}{done.stderr}", "VALID" in done.stdout and "INVALID" not in done.stdout)


@pytest.mark.nightly
def test_fault_of_gifti_tool(tmp_path):
    tool = program("gifti_tool", "gifti-bin")
    bytes_ = tmp_path / "bytes.gii"
    nibabel.save(GiftiImage(darrays=[GiftiDataArray(np.zeros(4, "u1"), intent="NIFTI_INTENT_SHAPE")]), bytes_)
    done = subprocess.run([tool, "-gifti_test", "-infile", bytes_], capture_output=True, text=True)
    assert "bad swapsize 0 for dtype 2" in done.stdout + done.stderr


NUMBERS = {"bool", "float32", "float64", *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("kind", KINDS)
def test_store(kind, profile, stores, report):
    """Every node is valid, zarr-python and tensorstore read equal values, and the reference finds no error."""
    words = ["--step-links=all"] if kind in ("polylines", "streamlines") and profile == "0.8-padded" else []
    store = stores(kind, profile, *words)
    report["stores"] += 1
    for path in sorted(store.rglob("zarr.json")):
        if ".zvf" in path.parts:
            continue
        node = json.loads(path.read_text())
        reading = read_node_metadata_v3(node)
        require(f"{path}: {reading.problems}", not reading.problems)
        report["nodes"] += 1
        dtype = node.get("data_type")
        if isinstance(dtype, str) and dtype in NUMBERS:
            spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(path.parent)}}
            theirs = tensorstore.open(spec, read=True).result().read().result()
            ours = zarr.open_array(str(path.parent), mode="r")[...]
            require(f"{path.parent} differs", np.array_equal(ours, theirs, equal_nan=ours.dtype.kind == "f"))
            report["arrays"] += 1
    if profile == "0.9":
        errors = validate(str(store), level=5).errors
        require(f"{store}: {errors}", not errors)


@pytest.mark.parametrize("dtype", ["variable_length_bytes", "<U8"])
def test_fault_of_tensorstore(dtype, tmp_path):
    zarr.create_array(str(tmp_path / "array"), shape=(1,), dtype=dtype)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "array")}}
    with pytest.raises(ValueError, match="variable_length_bytes|fixed_length_utf32"):
        tensorstore.open(spec, read=True).result()


def test_fault_of_zarr_vectors(tmp_path):
    store = tmp_path / "draco.zarrvectors"
    write_mesh(str(store), *grid(6), chunk_shape=(40.0,) * 3, encoding="draco")
    assert validate(str(store), level=5).errors
