"""Tractograms beside nibabel, trx-python and dipy: the samples of nibabel become stores, and files again."""

import pathlib

import nibabel
import numpy as np
import pytest
from dipy.io.streamline import load_trk, load_trx
from trx import trx_file_memmap

DATA = pathlib.Path(nibabel.__file__).parent / "tests" / "data"
# Damaged or empty samples, with the reason that zvf gives.
REFUSED = {
    "empty.tck": "holds no vertices", "empty.trk": "holds no vertices", "no_header_end.tck": "the line END",
    "no_header_end_eof.tck": "the line END", "no_magic_number.tck": "the first line",
}
# A sample whose count is wrong; the file that is written has the true one.
CORRECTED = {"matlab_nan.tck"}


def lines(path):
    if path.suffix == ".trx":
        found = trx_file_memmap.load(str(path)).streamlines
    else:
        found = nibabel.streamlines.load(path).streamlines
    return [line for line in found if len(line)]


@pytest.mark.parametrize("source", sorted([*DATA.glob("*.trk"), *DATA.glob("*.tck")]), ids=lambda path: path.name)
def test_sample(source, files):
    if source.name in REFUSED:
        files.refused(source, REFUSED[source.name])
        return
    store = files.store(source)
    back = files.back(store, f"back{source.suffix}")
    if source.name not in CORRECTED:
        assert back.read_bytes() == source.read_bytes()
    expected = lines(source)
    for ending in ("trk", "tck", "trx"):
        found = lines(files.back(store, f"other.{ending}"))
        assert len(found) == len(expected), ending
        for one, two in zip(found, expected):
            assert np.allclose(one, two, rtol=0, atol=1e-4), ending
    files.equal(source.name)


def loaded(path):
    """Returns the streamlines that dipy loads with its defaults: all have to be in the voxel grid of the file."""
    found = (load_trx if path.suffix == ".trx" else load_trk)(str(path), "same")
    removed, _ = found.remove_invalid_streamlines()
    assert len(removed) == 0
    return list(found.streamlines)


@pytest.mark.parametrize("extent, offset", [(40, 0), (0.001, -7), (40, 1e6), (1e5, -3e4), (90, [-90, 126, 72])])
def test_arrays(extent, offset, files):
    """A store that comes from no image."""
    random, lengths = np.random.default_rng(3), [1, 5, 2, 30]
    places = (random.random((sum(lengths), 3)) - 0.5) * extent + offset
    arrays = dict(positions=places.astype("f4"), part_offsets=np.cumsum([0, *lengths]), part_objects=np.arange(4))
    store = files.zvf.create(files.folder / "made.zv", arrays, "--kind", "streamlines")
    expected = np.split(arrays["positions"], arrays["part_offsets"][1:-1])
    tolerance = max(1e-4, 2e-7 * np.abs(places).max())
    grids = set()
    for ending in ("trk", "trx"):
        for words, paths in ((["--strict"], expected), (["--object", "1"], expected[1:2])):
            target = files.folder / f"some.{ending}"
            said = files.zvf.json("query", store, "-o", target, *words)
            assert any("made up" in note for note in said["notes"])
            found = loaded(target)
            for one, two in zip(found, paths, strict=True):
                assert np.allclose(one, two, rtol=0, atol=tolerance)
            if ending == "trk":
                header = nibabel.streamlines.load(target, lazy_load=True).header
                grids.add((*header["dimensions"].tolist(), *header["voxel_to_rasmm"].ravel().tolist()))
    # All files from a store are in one grid, in which programs join them.
    assert len(grids) == 1
    # Without a store, the bounds are not known before the end.
    for source, ending in (("trx", "tck"), ("tck", "trk"), ("tck", "trx")):
        files.zvf("convert", files.folder / f"some.{source}", files.folder / f"some.{ending}", "--quiet")
        assert ending == "tck" or len(loaded(files.folder / f"some.{ending}")) == 1
    files.equal(f"{extent} mm from {offset}")


@pytest.mark.parametrize("axes", ["xy", "zyx"])
def test_axes(axes, files):
    """Two axes, and axes in another order."""
    places = np.arange(len(axes) * 6, dtype="f4").reshape(6, len(axes))
    arrays = dict(positions=places, part_offsets=[0, 2, 6], part_objects=[0, 1])
    store = files.zvf.create(files.folder / "made.zv", arrays, "--kind", "polylines", "--axes", ",".join(axes))
    order = [axes.index(axis) for axis in "xyz" if axis in axes]
    expected = np.pad(places[:, order], ((0, 0), (0, 3 - len(axes))))
    for ending in ("trk", "tck", "trx"):
        target = files.folder / f"some.{ending}"
        said = files.zvf.json("query", store, "-o", target)
        assert any("z is 0" in note for note in said["notes"]) == (len(axes) == 2), said
        assert np.allclose(np.concatenate(lines(target)), expected, rtol=0, atol=1e-5), ending
    files.equal(f"axes {axes}")


def test_empty_group(files):
    """A group without members has a name and attributes."""
    arrays = dict(positions=np.ones((4, 3), "f4"), part_offsets=[0, 2, 4], part_objects=[0, 1])
    arrays |= {"group.0": np.array([0, 1]), "group.1": np.zeros(0, "i8"), "group_attribute.weight": np.array([1.0, 2.0])}
    arrays["group_attribute.name"] = np.array(["full", "empty"])
    store = files.zvf.create(files.folder / "made.zv", arrays, "--kind", "streamlines")
    target = files.folder / "made.trx"
    files.zvf("query", store, "-o", target, "--strict", "--quiet")
    read = trx_file_memmap.load(str(target))
    assert {name: members.tolist() for name, members in read.groups.items()} == {"full": [0, 1], "empty": []}
    assert read.data_per_group["empty"]["weight"].tolist() == [[2.0]]
    refused = files.zvf.run("query", store, "-o", files.folder / "made.trk", "--strict", "--quiet")
    assert refused.returncode != 0 and "2 groups" in refused.stderr
    files.equal("an empty group")
