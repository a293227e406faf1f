"""Surfaces beside trimesh, plyfile and nibabel: PLY, OBJ, STL, glTF, GIFTI and FreeSurfer."""

import pathlib

import nibabel.freesurfer
import numpy as np
import plyfile
import pytest
import trimesh
from nibabel.gifti import GiftiCoordSystem, GiftiDataArray, GiftiImage, GiftiLabel, GiftiLabelTable, GiftiMetaData

SAMPLES = pathlib.Path(nibabel.__file__).parent / "gifti" / "tests" / "data"


def triangles(mesh):
    """Returns the corners of all triangles, each from its least corner on."""
    faces = np.asarray(mesh.triangles, "f4")
    return {min(tuple(np.roll(face, turn, axis=0).ravel()) for turn in range(3)) for face in faces}


@pytest.mark.parametrize("ending", ["ply", "obj", "stl", "glb"])
def test_sphere(ending, files):
    sphere = trimesh.creation.icosphere(subdivisions=3)
    sphere.apply_scale(10.0)
    source = files.folder / f"sphere.{'stl' if ending == 'glb' else ending}"
    sphere.export(source)
    back = files.back(files.store(source), f"back.{ending}")
    if ending == "glb":
        assert len(trimesh.load(back, force="mesh").faces) == len(sphere.faces)
    else:
        found, expected = (trimesh.load(path, process=False, maintain_order=True) for path in (back, source))
        assert triangles(found) == triangles(expected)
    files.equal(f"sphere.{ending}")


def test_scene(files):
    """The nodes of a scene turn, stretch and move their meshes."""
    scene = trimesh.Scene()
    for at, name in enumerate(("object_17", "left", "right")):
        place = trimesh.transformations.rotation_matrix(0.7 * at, [1, 2, 3])
        place[:3, :3] *= [1 + at, 1, 2]
        place[:3, 3] = [5 * at, 1, 2]
        mesh = trimesh.creation.icosphere(subdivisions=1)
        scene.add_geometry(mesh, node_name=name, geom_name=name, transform=place)
    source = files.folder / "scene.glb"
    scene.export(source)
    found = trimesh.load(files.back(files.store(source), "scene.ply"), process=False)
    centres = [np.asarray(mesh.triangles).mean(axis=1) for mesh in (found, scene.to_mesh())]
    assert centres[0].shape == centres[1].shape == (240, 3)
    distances = np.linalg.norm(centres[0][:, None] - centres[1], axis=2)
    assert max(distances.min(axis=0).max(), distances.min(axis=1).max()) < 1e-5
    files.equal("scene.glb")


@pytest.mark.parametrize("is_text, order", [(True, "="), (False, "<"), (False, ">")])
def test_ply(is_text, order, files):
    random = np.random.default_rng(7)
    floats = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("weight", "f8")]
    vertices = np.zeros(100, floats + [("red", "u1"), ("green", "u1"), ("blue", "u1")])
    for name in vertices.dtype.names:
        vertices[name] = random.integers(0, 255, 100)
    source = files.folder / "points.ply"
    element = plyfile.PlyElement.describe(vertices, "vertex")
    plyfile.PlyData([element], text=is_text, byte_order=order).write(source)
    back = plyfile.PlyData.read(files.back(files.store(source), "back.ply"))["vertex"]
    rows = lambda of: sorted(zip(*(np.asarray(of[name], "f8").tolist() for name in vertices.dtype.names)))
    assert rows(back) == rows(vertices)
    files.equal(f"points.ply, {'text' if is_text else order}")


@pytest.fixture
def sphere():
    mesh = trimesh.creation.icosphere(subdivisions=4)
    return (mesh.vertices * 90).astype("f4"), mesh.faces.astype("i4")


def test_gifti(files, sphere):
    """A surface with shape, label and time series."""
    random, (points, faces) = np.random.default_rng(9), sphere
    many, table = len(points), GiftiLabelTable()
    for key, name in ((0, "unknown"), (7, "a & b")):
        label = GiftiLabel(key=key, red=0.5, green=0.25, blue=1.0, alpha=1.0)
        label.label = name
        table.labels.append(label)
    surf, values = GiftiImage(), GiftiImage(labeltable=table)
    matrix = GiftiCoordSystem(dataspace=3, xformspace=3, xform=np.diag([2.0, 3.0, 4.0, 1.0]))
    meta = GiftiMetaData({"AnatomicalStructurePrimary": "CortexLeft"})
    surf.add_gifti_data_array(GiftiDataArray(points, intent="NIFTI_INTENT_POINTSET", coordsys=matrix, meta=meta))
    surf.add_gifti_data_array(GiftiDataArray(faces, intent="NIFTI_INTENT_TRIANGLE"))
    arrays = [("SHAPE", "curv", random.random(many).astype("f4"))]
    arrays += [("LABEL", "parcels", random.choice([0, 7], many).astype("i4"))]
    arrays += [("TIME_SERIES", f"t{step}", random.random(many).astype("f4")) for step in range(3)]
    for intent, name, numbers in arrays:
        meta = GiftiMetaData({"Name": name, "Unit": "mm"})
        values.add_gifti_data_array(GiftiDataArray(numbers, intent=f"NIFTI_INTENT_{intent}", meta=meta))
    sources = files.folder / "s.surf.gii", files.folder / "s.shape.gii"
    for image, source in zip((surf, values), sources):
        nibabel.save(image, source)
    back = nibabel.load(files.back(files.store(sources[0], "--with", sources[1]), "back.gii"))
    expected = [array for source in sources for array in nibabel.load(source).darrays]
    for one, two in zip(back.darrays, expected, strict=True):
        assert one.intent == two.intent and one.data.dtype == two.data.dtype
        assert np.array_equal(one.data, two.data), (one.intent, one.data, two.data)
        assert dict(one.meta) == dict(two.meta), (dict(one.meta), dict(two.meta))
    assert np.array_equal(back.darrays[0].coordsys.xform, matrix.xform)
    labels, given = ([(one.key, one.label, *one.rgba) for one in of.labels] for of in (back.labeltable, table))
    assert labels == given
    files.equal("s.surf.gii with s.shape.gii")


def test_surf_gii(files, sphere):
    """A surface alone, as Connectome Workbench requires it, beside files of values."""
    random, (points, faces) = np.random.default_rng(9), sphere
    arrays = dict(positions=points, links=faces.astype("i8"))
    arrays |= {"vertex.curv": random.random(len(points)), "vertex.parcel": random.integers(0, 9, len(points))}
    arrays["vertex.rgb"] = random.integers(0, 255, (len(points), 3)).astype("u1")
    store = files.zvf.create(files.folder / "s.zv", arrays, "--kind", "mesh")
    surf = nibabel.load(files.back(store, "s.surf.gii"))
    assert [array.intent for array in surf.darrays] == [1008, 1009]
    values = nibabel.load(files.folder / "s.shape.gii")
    names = [array.meta["Name"] for array in values.darrays]
    assert names == ["curv", "parcel", "rgb_0", "rgb_1", "rgb_2"]
    # Workbench opens files of values whose arrays have one column each.
    assert {array.data.shape for array in values.darrays} == {(len(points),)}
    read = files.zvf.query(files.store(files.folder / "s.surf.gii", "--with", files.folder / "s.shape.gii"))
    key = lambda of: np.lexsort(of["positions"].T)
    for name in ("curv", "parcel"):
        given, back = arrays[f"vertex.{name}"][key(arrays)], read[f"vertex.{name}"][key(read)]
        assert np.allclose(given, back, rtol=1e-6), name
    files.equal("s.surf.gii, s.shape.gii")


def test_empty_gifti(files, sphere):
    points, faces = sphere
    store = files.zvf.create(files.folder / "s.zv", dict(positions=points, links=faces.astype("i8")), "--kind", "mesh")
    target = files.folder / "none.gii"
    refused = files.zvf.run("query", store, "--bbox", "0,0,0,1,1,1", "-o", target)
    assert refused.returncode != 0 and "at least one triangle" in refused.stderr and not target.exists()


@pytest.mark.parametrize("source", sorted(SAMPLES.glob("*.gii")), ids=lambda path: path.name)
def test_gifti_sample(source, files):
    # Most samples are single arrays, or cut surfaces whose triangles name absent vertices.
    done = files.zvf.run("create", files.folder / "sample.zv", "--from", source, "--quiet")
    if done.returncode:
        files.refused(source, "a corner is", "no POINTSET", "cannot be read")
        return
    back = nibabel.load(files.back(files.folder / "sample.zv", source.name))
    pairs = zip(back.darrays, nibabel.load(source).darrays, strict=True)
    assert all(np.array_equal(one.data, two.data) for one, two in pairs)
    files.equal(source.name)


def test_freesurfer(files, sphere):
    """A surface with curv and annot."""
    io, random, (points, faces) = nibabel.freesurfer, np.random.default_rng(9), sphere
    surface, curv, annot = (files.folder / name for name in ("lh.pial", "lh.curv", "lh.aparc.annot"))
    io.write_geometry(surface, points, faces, create_stamp="made by a test")
    values = random.random(len(points)).astype("f4")
    io.write_morph_data(curv, values)
    colours, which = np.array([[10, 20, 30, 0, 0], [40, 50, 60, 0, 0]]), random.integers(0, 2, len(points))
    io.write_annot(annot, which, colours, ["one", "two"], fill_ctab=True)
    keys, *_ = io.read_annot(annot, orig_ids=True)
    back = nibabel.load(files.back(files.store(surface, "--with", curv, "--with", annot), "fs.gii"))
    read_points, read_faces = io.read_geometry(surface)
    for one, two in zip(back.darrays, (read_points.astype("f4"), read_faces, values, keys), strict=True):
        assert np.array_equal(one.data, two), (one.intent, one.data, two)
    files.equal("lh.pial with lh.curv and lh.aparc.annot")
