"""Tractograms beside nibabel and trx-python: the samples of nibabel become stores, and files again."""

import pathlib

import nibabel
import numpy as np
import pytest
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
