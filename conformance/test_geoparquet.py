"""GeoParquet, written by zvf and by geopandas, and checked by geoparquet-validator."""

import geopandas
import geoparquet_validator
import numpy as np
import pandas
import pyproj
import pytest
import shapely
import trimesh

from test_tractograms import DATA


def table_of(path):
    checked = geoparquet_validator.check(str(path))
    assert geoparquet_validator.failed(checked) == [], checked
    table = geopandas.read_parquet(path)
    return table, [shapely.get_coordinates(shape, include_z=True) for shape in table.geometry]


def test_points(files):
    random, source = np.random.default_rng(11), files.folder / "cloud.csv"
    cloud = pandas.DataFrame(random.random((5000, 3)) * 100, columns=["x", "y", "z"])
    cloud["class"] = random.integers(0, 9, 5000)
    cloud["label"] = random.choice(["a", "b"], 5000)
    cloud.to_csv(source, index=False)
    store = files.store(source, "--kind", "points")
    target = files.back(store, "cloud.geoparquet")
    (table, shapes), read = table_of(target), files.zvf.query(store)
    assert np.array_equal(np.concatenate(shapes), read["positions"])
    assert table["class"].tolist() == read["vertex.class"].tolist()
    assert table["label"].astype(str).tolist() == read["vertex.label"].tolist()
    assert table.crs is None and set(table.geom_type) == {"Point"}
    inside = geopandas.read_parquet(target, bbox=(20, 20, 60, 60))
    places = read["positions"][:, :2]
    assert len(inside) == np.all((places >= 20) & (places <= 60), axis=1).sum()
    files.equal(target.name)


def test_lines(files):
    store = files.store(DATA / "complex.trk")
    (table, shapes), read = table_of(files.back(store, "lines.geoparquet")), files.zvf.query(store)
    lengths = np.diff(read["part_offsets"])
    # A path of one vertex has it twice, because a line has two points or more.
    times = np.repeat(np.where(lengths == 1, 2, 1), lengths)
    assert np.array_equal(np.concatenate(shapes), np.repeat(read["positions"], times, axis=0))
    assert [len(shape) for shape in shapes] == np.maximum(lengths, 2).tolist()
    assert table["object_id"].tolist() == read["part_objects"].tolist()
    for name in (key.removeprefix("vertex.") for key in read if key.startswith("vertex.")):
        values = np.concatenate([np.asarray([*row]) for row in table[name]])
        assert np.array_equal(values, np.repeat(read[f"vertex.{name}"], times, axis=0)), name
    files.equal("lines.geoparquet")


def test_triangles(files):
    sphere, target = trimesh.creation.icosphere(subdivisions=2), files.folder / "ball.geoparquet"
    sphere.export(files.folder / "ball.ply")
    files.zvf("convert", files.folder / "ball.ply", target, "--quiet")
    table, shapes = table_of(target)
    found = {tuple(sorted(map(tuple, shape[:3].astype("f4").tolist()))) for shape in shapes}
    wanted = {tuple(sorted(map(tuple, face.astype("f4").tolist()))) for face in sphere.triangles}
    assert found == wanted and set(table.geom_type) == {"Polygon"}
    files.equal(target.name)


@pytest.mark.parametrize("ending", ["parquet", "geoparquet"])
def test_of_geopandas(ending, files):
    several = shapely.MultiLineString([[(5, 5), (6, 6)], [(7, 7), (8, 9)]])
    lines = [shapely.LineString([(0, 0), (1, 2), (3, 4)]), None, several]
    roads = geopandas.GeoDataFrame(dict(name=["a", "b", "c"], lanes=[1, 2, 3]), geometry=lines, crs="EPSG:25832")
    source = files.folder / f"roads.{ending}"
    roads.to_parquet(source, write_covering_bbox=ending == "geoparquet")
    store = files.store(source)
    read = files.zvf.query(store)
    assert read["part_offsets"].tolist() == [0, 3, 5, 7]
    # Parts of a store are joined, so each part of a row is an object.
    assert len(set(read["part_objects"].tolist())) == 3
    assert read["object.name"].tolist() == ["a", "c", "c"]
    assert read["object.lanes"].tolist() == [1, 3, 3]
    sources = read["object.source_object"]
    assert sources[0] != sources[1] == sources[2]
    assert geopandas.read_parquet(files.back(store, "back.geoparquet")).crs == roads.crs
    files.equal(source.name)


@pytest.mark.parametrize("code", [25832, 32601, 32760, 26923, 4258])
def test_codes_of_systems(code, files):
    source = files.folder / "cloud.csv"
    source.write_text("x,y\n8,47\n9,48\n")
    store = files.store(source, "--kind", "points", "--crs", f"EPSG:{code}")
    table, _ = table_of(files.back(store, "cloud.geoparquet"))
    assert table.crs == pyproj.CRS(code) and table.crs.to_epsg() == code
