"""LAS and LAZ beside laspy: every format of points, in the order of a store and in that of the file."""

import laspy
import numpy as np
import pytest

WKT = b'PROJCS["a",UNIT["m",1],AUTHORITY["EPSG","25832"]]\0'
POINTS = 120_000


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    """Writes a file of random points of each format, once."""
    folder, made = tmp_path_factory.mktemp("clouds"), {}

    def cloud(version, kind):
        if kind in made:
            return made[kind]
        random = np.random.default_rng(kind)
        header = laspy.LasHeader(version=version, point_format=kind)
        header.scales, header.offsets = [0.01, 0.001, 0.1], [500000.0, 5900000.0, -0.0]
        header.vlrs.append(laspy.VLR("LASF_Projection", 2112, "WKT", WKT))
        for name, dtype in (("height", "f8"), ("Intensity", "u2"), ("normal", "3f4")):
            header.add_extra_dim(laspy.ExtraBytesParams(name, dtype))
        points = laspy.LasData(header)
        points.X, points.Y, points.Z = random.integers(-2_000_000, 2_000_000, (3, POINTS))
        points.gps_time = random.random(POINTS)
        for name in points.point_format.dimension_names:
            if name not in ("X", "Y", "Z", "gps_time"):
                part = points.point_format.dimension_by_name(name)
                most = 2 ** min(part.num_bits // part.num_elements, 15) - 1
                shape = (POINTS, 3) if part.num_elements == 3 else POINTS
                points[name] = random.integers(0, most, shape, endpoint=True)
        for ending in ("las", "laz"):
            points.write(folder / f"format{kind}.{ending}")
        made[kind] = folder
        return folder

    return cloud


def dimensions(path):
    """Returns all values of the points of a file, in order of the coordinates."""
    points = laspy.read(path)
    order = np.lexsort([points.gps_time, points.Z, points.Y, points.X])
    return points.header, {name: np.asarray(points[name])[order] for name in points.point_format.dimension_names}


@pytest.mark.parametrize("ending", ["las", "laz"])
@pytest.mark.parametrize("version, kind", [("1.2", 1), ("1.2", 3), ("1.4", 6), ("1.4", 7), ("1.4", 8)])
class TestFormats:
    def test_values(self, version, kind, ending, clouds, files):
        source = clouds(version, kind) / f"format{kind}.{ending}"
        store, (expected_header, expected) = files.store(source), dimensions(source)
        for other in ("las", "laz"):
            back = files.back(store, f"back.{other}")
            header, found = dimensions(back)
            assert list(found) == list(expected)
            for name, values in expected.items():
                assert np.array_equal(found[name], values), (other, name)
            for field in ("scales", "offsets", "mins", "maxs", "number_of_points_by_return"):
                assert np.array_equal(getattr(expected_header, field), getattr(header, field)), (other, field)
            texts = [vlr.string for vlr in header.vlrs.get("WktCoordinateSystemVlr")]
            assert texts == [WKT[:-1].decode()], texts
        files.equal(source.name)

    def test_order(self, version, kind, ending, clouds, files):
        """All points in their order, and all records, come back from a store with the order."""
        source = clouds(version, kind) / f"format{kind}.{ending}"
        store = files.store(source, "--keep-order")
        for other in ("las", "laz"):
            both = laspy.read(source), laspy.read(files.back(store, f"ordered.{other}"))
            one, two = (file.points.array for file in both)
            assert one.dtype == two.dtype and one.tobytes() == two.tobytes(), other
            records = [
                [(vlr.user_id, vlr.record_id, vlr.description, vlr.record_data_bytes()) for vlr in file.header.vlrs]
                for file in both
            ]
            assert records[0] == records[1], (other, records)
        files.equal(f"{source.name} in its order")
