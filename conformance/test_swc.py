"""Neurons beside navis: its samples become one store, and files again."""

import pathlib

import navis
import numpy as np

SAMPLES = pathlib.Path(navis.__file__).parent / "data" / "swc"


def test_neurons(files):
    store, folder = files.store(SAMPLES), files.folder / "written"
    folder.mkdir()
    files.back(store, "written/{name}.swc")
    for source in sorted(SAMPLES.glob("*.swc")):
        one, two = (navis.read_swc(path).nodes for path in (source, folder / source.name))
        for column in ("node_id", "parent_id", "x", "y", "z", "radius"):
            assert np.array_equal(one[column], two[column]), (source, column)
        files.equal(source.name)
