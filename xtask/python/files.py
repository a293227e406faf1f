"""Compares zvf with other readers of files: python files.py ZVF FOLDER [PART]

They are nibabel, trx-python, plyfile, trimesh, laspy, navis, networkx, geff and geopandas. PART is the
name of one function below.

Samples of the packages and files of the packages' writers become stores, and stores become files
again. The packages read both; values have to be equal. Files that a package refuses are refused.
"""

import collections
import pathlib
import shutil
import subprocess
import sys
import warnings

import geff
import geopandas
import laspy
import networkx
import nibabel
import numpy as np
import pandas
import plyfile
import shapely
import trimesh
from trx import trx_file_memmap

warnings.simplefilter("ignore")
ZVF, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])
DATA = pathlib.Path(nibabel.__file__).parent / "tests" / "data"
# Damaged or empty samples of nibabel, with the reason that zvf gives.
REFUSED = {
    "empty.tck": "holds no vertices",
    "empty.trk": "holds no vertices",
    "no_header_end.tck": "the line END",
    "no_header_end_eof.tck": "the line END",
    "no_magic_number.tck": "the first line",
}
# A sample whose count is wrong; the file that is written has the true one.
CORRECTED = {"matlab_nan.tck"}
done = 0


def zvf(*words):
    return subprocess.run([ZVF, *map(str, words), "--quiet"], capture_output=True, text=True)


def must(*words):
    result = zvf(*words)
    assert result.returncode == 0, (words, result.stderr)


def there_and_back(source, ending, target=None):
    """Returns the file that a store of `source` becomes."""
    store = FOLDER / f"{source.name}.zv"
    must("create", store, "--from", source)
    back = target or FOLDER / f"{source.name}.{ending}"
    must("query", store, "-o", back)
    return back


def count(what):
    global done
    done += 1
    print("equal:", what)


def lines(path):
    if path.suffix == ".trx":
        found = trx_file_memmap.load(str(path)).streamlines
    else:
        found = nibabel.streamlines.load(path).streamlines
    return [line for line in found if len(line)]


def tractograms():
    for source in sorted([*DATA.glob("*.trk"), *DATA.glob("*.tck")]):
        if source.name in REFUSED:
            result = zvf("create", FOLDER / "refused.zv", "--from", source)
            assert result.returncode and REFUSED[source.name] in result.stderr, (source, result.stderr)
            count(f"{source.name}, refused")
            continue
        back = there_and_back(source, source.suffix[1:])
        if source.name not in CORRECTED:
            assert back.read_bytes() == source.read_bytes(), source
        expected = lines(source)
        for ending in ("trk", "tck", "trx"):
            other = FOLDER / f"{source.name}.other.{ending}"
            must("query", FOLDER / f"{source.name}.zv", "-o", other)
            found = lines(other)
            assert len(found) == len(expected), (other, len(found), len(expected))
            for one, two in zip(found, expected):
                assert np.allclose(one, two, rtol=0, atol=1e-4), other
        count(source.name)


def triangles(mesh):
    """Returns the corners of all triangles, each from its least corner on."""
    faces = np.asarray(mesh.triangles, "f4")
    return {min(tuple(np.roll(face, turn, axis=0).ravel()) for turn in range(3)) for face in faces}


def rows(columns):
    return sorted(zip(*(np.asarray(column, "f8").tolist() for column in columns)))


def surfaces(random):
    sphere = trimesh.creation.icosphere(subdivisions=3)
    sphere.apply_scale(10.0)
    for ending in ("ply", "obj", "stl"):
        source = FOLDER / f"sphere.{ending}"
        sphere.export(source)
        expected = trimesh.load(source, process=False, maintain_order=True)
        back = there_and_back(source, ending)
        found = trimesh.load(back, process=False, maintain_order=True)
        assert triangles(found) == triangles(expected), ending
        count(f"sphere.{ending}")
    viewed = FOLDER / "sphere.glb"
    must("query", FOLDER / "sphere.stl.zv", "-o", viewed)
    assert len(trimesh.load(viewed, force="mesh").faces) == len(sphere.faces)
    count("sphere.glb")
    for text, order in ((True, "="), (False, "<"), (False, ">")):
        floats = [("x", "f4"), ("y", "f4"), ("z", "f4"), ("weight", "f8")]
        vertices = np.zeros(100, floats + [("red", "u1"), ("green", "u1"), ("blue", "u1")])
        for name in vertices.dtype.names:
            vertices[name] = random.integers(0, 255, 100)
        source = FOLDER / f"points.{text}.{'big' if order == '>' else 'little'}.ply"
        element = plyfile.PlyElement.describe(vertices, "vertex")
        plyfile.PlyData([element], text=text, byte_order=order).write(source)
        back = plyfile.PlyData.read(there_and_back(source, "ply"))["vertex"]
        names = [back[name] for name in ("x", "y", "z", "weight", "red", "green", "blue")]
        assert rows(names) == rows([vertices[name] for name in vertices.dtype.names]), source
        count(source.name)


def dimensions(path):
    """Returns all values of the points of a file, in order of the coordinates."""
    points = laspy.read(path)
    order = np.lexsort([points.gps_time, points.Z, points.Y, points.X])
    return points.header, {name: np.asarray(points[name])[order] for name in points.point_format.dimension_names}


def point_clouds(random):
    text = b'PROJCS["a",UNIT["m",1],AUTHORITY["EPSG","25832"]]\0'
    for version, kind in (("1.2", 1), ("1.2", 3), ("1.4", 6), ("1.4", 7), ("1.4", 8)):
        header = laspy.LasHeader(version=version, point_format=kind)
        header.scales, header.offsets = [0.01, 0.001, 0.1], [500000.0, 5900000.0, -0.0]
        header.vlrs.append(laspy.VLR("LASF_Projection", 2112, "WKT", text))
        for name, dtype in (("height", "f8"), ("Intensity", "u2"), ("normal", "3f4")):
            header.add_extra_dim(laspy.ExtraBytesParams(name, dtype))
        points = laspy.LasData(header)
        many = 120_000
        points.X, points.Y, points.Z = random.integers(-2_000_000, 2_000_000, (3, many))
        points.gps_time = random.random(many)
        for name in points.point_format.dimension_names:
            if name in ("X", "Y", "Z", "gps_time"):
                continue
            part = points.point_format.dimension_by_name(name)
            most = 2 ** min(part.num_bits // part.num_elements, 15) - 1
            shape = (many, 3) if part.num_elements == 3 else many
            points[name] = random.integers(0, most, shape, endpoint=True)
        for ending in ("las", "laz"):
            source = FOLDER / f"format{kind}.{ending}"
            points.write(source)
            expected_header, expected = dimensions(source)
            for other in ("las", "laz"):
                back = there_and_back(source, other, FOLDER / f"{source.name}.back.{other}")
                shutil.rmtree(FOLDER / f"{source.name}.zv")
                found_header, found = dimensions(back)
                assert list(found) == list(expected), (list(found), list(expected))
                for name, values in expected.items():
                    assert np.array_equal(found[name], values), (back, name)
                for field in ("scales", "offsets", "mins", "maxs", "number_of_points_by_return"):
                    one, two = (getattr(header, field) for header in (expected_header, found_header))
                    assert np.array_equal(one, two), (back, field, one, two)
                texts = [vlr.string for vlr in found_header.vlrs.get("WktCoordinateSystemVlr")]
                assert texts == [text[:-1].decode()], texts
            count(source.name)
            in_order(source)


def in_order(source):
    """Compares all points in their order, and all records, of a file that a store with the order becomes."""
    store = FOLDER / f"{source.name}.ordered.zv"
    must("create", store, "--from", source, "--keep-order")
    for ending in ("las", "laz"):
        back = FOLDER / f"{source.name}.ordered.{ending}"
        must("query", store, "-o", back)
        one, two = laspy.read(source), laspy.read(back)
        assert one.points.array.dtype == two.points.array.dtype, back
        assert one.points.array.tobytes() == two.points.array.tobytes(), back
        records = [
            [(vlr.user_id, vlr.record_id, vlr.description, vlr.record_data_bytes()) for vlr in file.header.vlrs]
            for file in (one, two)
        ]
        assert records[0] == records[1], (back, records)
    shutil.rmtree(store)
    count(f"{source.name} in its order")


def overlays(random):
    """A surface with shape, label and time series, and one of FreeSurfer with curv and annot."""
    import nibabel.freesurfer
    from nibabel.gifti import GiftiDataArray, GiftiImage, GiftiLabel, GiftiLabelTable, GiftiMetaData

    sphere = trimesh.creation.icosphere(subdivisions=4)
    points, faces = (sphere.vertices * 90).astype("f4"), sphere.faces.astype("i4")
    many = len(points)
    table = GiftiLabelTable()
    for key, name in ((0, "unknown"), (7, "a & b")):
        label = GiftiLabel(key=key, red=0.5, green=0.25, blue=1.0, alpha=1.0)
        label.label = name
        table.labels.append(label)
    surf, values = GiftiImage(), GiftiImage(labeltable=table)
    matrix = nibabel.gifti.GiftiCoordSystem(dataspace=3, xformspace=3, xform=np.diag([2.0, 3.0, 4.0, 1.0]))
    meta = GiftiMetaData({"AnatomicalStructurePrimary": "CortexLeft"})
    surf.add_gifti_data_array(GiftiDataArray(points, intent="NIFTI_INTENT_POINTSET", coordsys=matrix, meta=meta))
    surf.add_gifti_data_array(GiftiDataArray(faces, intent="NIFTI_INTENT_TRIANGLE"))
    arrays = [("SHAPE", "curv", random.random(many).astype("f4"))]
    arrays += [("LABEL", "parcels", random.choice([0, 7], many).astype("i4"))]
    arrays += [("TIME_SERIES", f"t{step}", random.random(many).astype("f4")) for step in range(3)]
    for intent, name, numbers in arrays:
        meta = GiftiMetaData({"Name": name, "Unit": "mm"})
        values.add_gifti_data_array(GiftiDataArray(numbers, intent=f"NIFTI_INTENT_{intent}", meta=meta))
    nibabel.save(surf, FOLDER / "s.surf.gii")
    nibabel.save(values, FOLDER / "s.shape.gii")
    must("create", FOLDER / "gifti.zv", "--from", FOLDER / "s.surf.gii", "--with", FOLDER / "s.shape.gii")
    must("query", FOLDER / "gifti.zv", "-o", FOLDER / "back.gii")
    back = nibabel.load(FOLDER / "back.gii")
    surf, values = (nibabel.load(FOLDER / name) for name in ("s.surf.gii", "s.shape.gii"))
    expected = [*surf.darrays, *values.darrays]
    assert len(back.darrays) == len(expected)
    for one, two in zip(back.darrays, expected):
        assert one.intent == two.intent and one.data.dtype == two.data.dtype
        assert np.array_equal(one.data, two.data), (one.intent, one.data, two.data)
        assert dict(one.meta) == dict(two.meta), (dict(one.meta), dict(two.meta))
    assert np.array_equal(back.darrays[0].coordsys.xform, matrix.xform)
    labels = [(label.key, label.label, *label.rgba) for label in back.labeltable.labels]
    assert labels == [(label.key, label.label, *label.rgba) for label in table.labels], labels
    count("s.surf.gii with s.shape.gii")
    samples = pathlib.Path(nibabel.__file__).parent / "gifti" / "tests" / "data"
    for source in sorted(samples.glob("*.gii")):
        # Most samples are single arrays, or cut surfaces whose triangles name absent vertices.
        store = FOLDER / f"{source.name}.zv"
        result = zvf("create", store, "--from", source)
        if result.returncode == 0:
            must("query", store, "-o", FOLDER / source.name)
            pairs = zip(nibabel.load(FOLDER / source.name).darrays, nibabel.load(source).darrays, strict=True)
            assert all(np.array_equal(one.data, two.data) for one, two in pairs), source
            count(source.name)
            continue
        reasons = ("a corner is", "no POINTSET", "cannot be read")
        assert result.returncode and any(it in result.stderr for it in reasons), (source, result.stderr)
        count(f"{source.name}, refused")
    io = nibabel.freesurfer
    io.write_geometry(FOLDER / "lh.pial", points, faces, create_stamp="made by a test")
    curv = random.random(many).astype("f4")
    io.write_morph_data(FOLDER / "lh.curv", curv)
    colours = np.array([[10, 20, 30, 0, 0], [40, 50, 60, 0, 0]])
    which = random.integers(0, 2, many)
    io.write_annot(FOLDER / "lh.aparc.annot", which, colours, ["one", "two"], fill_ctab=True)
    keys, *_ = io.read_annot(FOLDER / "lh.aparc.annot", orig_ids=True)
    withs = ("--with", FOLDER / "lh.curv", "--with", FOLDER / "lh.aparc.annot")
    must("create", FOLDER / "fs.zv", "--from", FOLDER / "lh.pial", *withs)
    must("query", FOLDER / "fs.zv", "-o", FOLDER / "fs.gii")
    back = nibabel.load(FOLDER / "fs.gii")
    read_points, read_faces = io.read_geometry(FOLDER / "lh.pial")
    for one, two in zip(back.darrays, (read_points.astype("f4"), read_faces, curv, keys), strict=True):
        assert np.array_equal(one.data, two), (one.intent, one.data, two)
    count("lh.pial with lh.curv and lh.aparc.annot")


def neurons():
    import navis

    samples = pathlib.Path(navis.__file__).parent / "data" / "swc"
    (FOLDER / "swc").mkdir()
    store = FOLDER / "neurons.zv"
    must("create", store, "--from", samples)
    must("query", store, "-o", FOLDER / "swc" / "{name}.swc")
    columns = ["node_id", "parent_id", "x", "y", "z", "radius"]
    for source in sorted(samples.glob("*.swc")):
        one, two = (navis.read_swc(path).nodes for path in (source, FOLDER / "swc" / source.name))
        for column in columns:
            assert np.array_equal(one[column], two[column]), (source, column)
        count(source.name)


def arrays(store):
    """Returns the arrays of a store."""
    target = FOLDER / f"{store.name}.npz"
    must("query", store, "-o", target)
    return np.load(target)


def random_graph(random, directed):
    """Returns a graph with coordinates, and attributes that some nodes and edges lack."""
    graph = networkx.gnm_random_graph(400, 900, seed=7, directed=directed)
    for node, values in graph.nodes(data=True):
        x, y, z = (random.random(3) * 100).tolist()
        values.update(x=x, y=y, z=z, label=f"n & {node}", count=node * 3, seen=bool(node % 2))
        if node % 3:
            values["score"] = float(random.random())
    for first, second, values in graph.edges(data=True):
        values["weight"] = float(random.random())
        if (first + second) % 2:
            values["kind"] = "it's a 'road'"
    return graph


def check_graph(store, graph, name, scalars, text=()):
    """Compares a store with a graph whose nodes and edges are the same but for their order."""
    read = arrays(store)
    ids = read["vertex.node_id"].tolist()
    assert sorted(ids) == sorted(graph.nodes), (name, ids[:9])
    places = [dict(graph.nodes[node]) for node in ids]
    axes = [axis for axis in ("t", "x", "y", "z") if axis in places[0]]
    expected = np.array([[place[axis] for axis in axes] for place in places], "f8")
    order = [["t", "x", "y", "z"].index(axis) for axis in axes]
    assert np.array_equal(read["positions"], expected[:, np.argsort(order)]), name
    for key in scalars:
        wanted = np.array([place.get(key, np.nan) for place in places], "f8")
        assert np.array_equal(read[f"vertex.{key}"].astype("f8"), wanted, equal_nan=True), (name, key)
    for key in text:
        assert read[f"vertex.{key}"].tolist() == [place[key] for place in places], (name, key)

    def edge(first, second, weight, kind):
        ends = (first, second) if graph.is_directed() else tuple(sorted((first, second)))
        return (*ends, weight, kind)

    kinds = read["link.kind"].tolist() if "link.kind" in read else [""] * len(read["links"])
    links = ((ids[first], ids[second]) for first, second in read["links"])
    found = (edge(*ends, *values) for ends, *values in zip(links, read["link.weight"].tolist(), kinds))
    edges = ((one, two, data["weight"], data.get("kind", "")) for one, two, data in graph.edges(data=True))
    assert collections.Counter(found) == collections.Counter(edge(*values) for values in edges), name


def graphs(random):
    """GraphML and edge lists of networkx, and geff."""
    for directed in (False, True):
        graph = random_graph(random, directed)
        source = FOLDER / f"graph{directed}.graphml"
        networkx.write_graphml(graph, source)
        store = FOLDER / f"{source.name}.zv"
        must("create", store, "--from", source)
        check_graph(store, graph, source.name, ["count", "seen", "score"], ["label"])
        count(source.name)
        table = FOLDER / "nodes.csv"
        nodes = pandas.DataFrame.from_dict(dict(graph.nodes(data=True)), orient="index")
        nodes.to_csv(table, index_label="id")
        for form, data in (("dictionary", True), ("columns", ["weight"])):
            source = FOLDER / f"{form}{directed}.edgelist"
            written = graph.copy()
            if data is not True:
                for *_, values in written.edges(data=True):
                    values.pop("kind", None)
            networkx.write_edgelist(written, source, data=data)
            store = FOLDER / f"{source.name}.zv"
            words = ["--directed"] if directed else []
            must("create", store, "--from", source, "--with", table, *words)
            check_graph(store, written, source.name, ["count", "seen", "score"], ["label"])
            count(source.name)
        for version in (2, 3):
            written = graph.copy()
            for node, values in written.nodes(data=True):
                values["t"] = node % 5
                values.pop("score", None)
            for *_, values in written.edges(data=True):
                values.pop("kind", None)
            source = FOLDER / f"graph{directed}.{version}.geff"
            axes = dict(axis_names=["t", "z", "y", "x"], axis_types=["time", "space", "space", "space"])
            geff.write(written, source, zarr_format=version, **axes)
            read, _ = geff.read(source)
            store = FOLDER / f"{source.name}.zv"
            must("create", store, "--from", source)
            # Axes are in the order of the file.
            reordered = arrays(store)["positions"]
            ids = arrays(store)["vertex.node_id"].tolist()
            for row, node in enumerate(ids):
                wanted = [read.nodes[node][axis] for axis in ("t", "z", "y", "x")]
                assert reordered[row].tolist() == wanted, (source, node)
            found = arrays(store)
            pairs = [(ids[one], ids[two]) for one, two in found["links"]]
            if not directed:
                pairs = [tuple(sorted(pair)) for pair in pairs]
            edges = dict(zip(pairs, found["link.weight"].tolist()))
            wanted = {}
            for one, two, values in read.edges(data=True):
                wanted[(one, two) if directed else tuple(sorted((one, two)))] = values["weight"]
            assert edges == wanted, source
            assert found["vertex.label"].tolist() == [read.nodes[node]["label"] for node in ids], source
            for key in ("count", "seen"):
                assert found[f"vertex.{key}"].tolist() == [read.nodes[node][key] for node in ids], (source, key)
            count(source.name)


def table_of(path):
    table = geopandas.read_parquet(path)
    return table, [shapely.get_coordinates(shape, include_z=True) for shape in table.geometry]


def tables(random):
    """GeoParquet, written by zvf and by geopandas."""
    source = FOLDER / "cloud.csv"
    cloud = pandas.DataFrame(random.random((5000, 3)) * 100, columns=["x", "y", "z"])
    cloud["class"] = random.integers(0, 9, 5000)
    cloud["label"] = random.choice(["a", "b"], 5000)
    cloud.to_csv(source, index=False)
    store, target = FOLDER / "cloud.zv", FOLDER / "cloud.geoparquet"
    must("create", store, "--kind", "points", "--from", source)
    must("query", store, "-o", target)
    table, shapes = table_of(target)
    read = arrays(store)
    assert np.array_equal(np.concatenate(shapes), read["positions"])
    assert table["class"].tolist() == read["vertex.class"].tolist()
    assert table["label"].astype(str).tolist() == read["vertex.label"].tolist()
    assert table.crs is None and set(table.geom_type) == {"Point"}
    inside = geopandas.read_parquet(target, bbox=(20, 20, 60, 60))
    places = read["positions"][:, :2]
    assert len(inside) == np.all((places >= 20) & (places <= 60), axis=1).sum()
    count("cloud.geoparquet")
    store = FOLDER / "lines.zv"
    must("create", store, "--from", DATA / "complex.trk")
    must("query", store, "-o", FOLDER / "lines.geoparquet")
    table, shapes = table_of(FOLDER / "lines.geoparquet")
    read = arrays(store)
    lengths = np.diff(read["part_offsets"])
    # A path of one vertex has it twice, because a line has two points or more.
    times = np.repeat(np.where(lengths == 1, 2, 1), lengths)
    assert np.array_equal(np.concatenate(shapes), np.repeat(read["positions"], times, axis=0))
    assert [len(shape) for shape in shapes] == np.maximum(lengths, 2).tolist()
    assert table["object_id"].tolist() == read["part_objects"].tolist()
    for name in (key.removeprefix("vertex.") for key in read if key.startswith("vertex.")):
        values = np.concatenate([np.asarray([*row]) for row in table[name]])
        assert np.array_equal(values, np.repeat(read[f"vertex.{name}"], times, axis=0)), name
    count("lines.geoparquet")
    sphere = trimesh.creation.icosphere(subdivisions=2)
    sphere.export(FOLDER / "ball.ply")
    must("convert", FOLDER / "ball.ply", FOLDER / "ball.geoparquet")
    table, shapes = table_of(FOLDER / "ball.geoparquet")
    found = {tuple(sorted(map(tuple, shape[:3].astype("f4").tolist()))) for shape in shapes}
    wanted = {tuple(sorted(map(tuple, face.astype("f4").tolist()))) for face in sphere.triangles}
    assert found == wanted and set(table.geom_type) == {"Polygon"}
    count("ball.geoparquet")
    line = shapely.LineString
    lines = [line([(0, 0), (1, 2), (3, 4)]), None, shapely.MultiLineString([[(5, 5), (6, 6)], [(7, 7), (8, 9)]])]
    frame = dict(name=["a", "b", "c"], lanes=[1, 2, 3])
    roads = geopandas.GeoDataFrame(frame, geometry=lines, crs="EPSG:25832")
    for ending in ("parquet", "geoparquet"):
        source = FOLDER / f"roads.{ending}"
        roads.to_parquet(source, write_covering_bbox=ending == "geoparquet")
        store = FOLDER / f"{source.name}.zv"
        must("create", store, "--from", source)
        read = arrays(store)
        assert read["part_offsets"].tolist() == [0, 3, 5, 7], read["part_offsets"]
        # Parts of a store are joined, so each part of a row is an object.
        assert len(set(read["part_objects"].tolist())) == 3
        assert read["object.name"].tolist() == ["a", "c", "c"]
        assert read["object.lanes"].tolist() == [1, 3, 3]
        sources = read["object.source_object"]
        assert sources[0] != sources[1] == sources[2]
        back = FOLDER / f"{source.name}.back.geoparquet"
        must("query", store, "-o", back)
        assert geopandas.read_parquet(back).crs == roads.crs
        count(source.name)


shutil.rmtree(FOLDER, ignore_errors=True)
FOLDER.mkdir(parents=True)
parts = dict(
    tractograms=tractograms,
    surfaces=lambda: surfaces(np.random.default_rng(7)),
    point_clouds=lambda: point_clouds(np.random.default_rng(8)),
    overlays=lambda: overlays(np.random.default_rng(9)),
    neurons=neurons,
    graphs=lambda: graphs(np.random.default_rng(10)),
    tables=lambda: tables(np.random.default_rng(11)),
)
for part in sys.argv[3:] or parts:
    parts[part]()
print(f"conformance: {done} files equal")
