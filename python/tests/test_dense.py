"""Dense arrays."""

from __future__ import annotations

import json
import multiprocessing
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf

VALUES = np.arange(2 * 30 * 7, dtype=">i4").reshape(2, 30, 7)


@pytest.fixture
def volume() -> Any:
    np.save("volume.npy", VALUES)
    return zvf.dense.open("volume.npy")


@pytest.mark.parametrize(
    "key",
    [
        ..., (), 0, -1, (1, 2, 3), slice(None), slice(5, 2), (slice(None), slice(3, 27, 4)),
        (slice(None), slice(None, None, -1)), (0, slice(28, 3, -5), slice(-3, None)),
        (..., 2), (None, 1, ..., None), (slice(None), np.int64(3)), (slice(0, 0), 1),
        (slice(None, None, 2), slice(1, None, 3), slice(None, None, 5)), (..., slice(100, 200)),
    ],
)  # fmt: skip
def test_slices_are_those_of_numpy(volume: Any, key: Any) -> None:
    found, expected = volume[key], VALUES[key]
    np.testing.assert_array_equal(found, expected)
    assert np.shape(found) == expected.shape
    assert found.dtype == expected.dtype


@pytest.mark.parametrize("key", [2, (0, 30), (0, 0, 0, 0), (..., ...), [0, 1], True, 1.5, "a"])
def test_indices_that_are_refused(volume: Any, key: Any) -> None:
    with pytest.raises(IndexError):
        volume[key]


def test_whole_arrays(volume: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (volume.shape, volume.ndim, volume.size, len(volume)) == ((2, 30, 7), 3, 420, 2)
    assert (volume.dtype, volume.nbytes) == (np.dtype(">i4"), 1680)
    assert "2 x 30 x 7" in repr(volume)
    np.testing.assert_array_equal(np.asarray(volume), VALUES)
    np.testing.assert_array_equal(np.asarray(volume, np.float32), VALUES.astype(np.float32))
    np.save("native.npy", VALUES.astype(np.int32))
    tensor = np.from_dlpack(zvf.dense.open("native.npy"))
    np.testing.assert_array_equal(tensor, VALUES)
    with pytest.raises(ValueError, match="viewed"):
        np.asarray(volume, copy=False)
    Path("other").mkdir()
    monkeypatch.chdir("other")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(volume))[...], VALUES)


def test_zarr_arrays() -> None:
    """A folder as the specification of Zarr 3 describes it, with one chunk of two missing."""
    values = np.arange(24, dtype="<u2").reshape(4, 6)
    (folder := Path("volume.zarr")).mkdir()
    node = {
        "zarr_format": 3, "node_type": "array", "shape": [4, 6], "data_type": "uint16",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "fill_value": 7, "attributes": {"unit": "mm"}, "dimension_names": ["y", "x"],
    }  # fmt: skip
    (folder / "zarr.json").write_text(json.dumps(node))
    (folder / "c/0").mkdir(parents=True)
    (folder / "c/0/0").write_bytes(values[:, :3].tobytes())
    values[:, 3:] = 7
    found = zvf.dense.open(folder)
    assert (found.shape, found.chunks, found.dimension_names) == ((4, 6), (4, 3), ["y", "x"])
    np.testing.assert_array_equal(found[...], values)
    np.testing.assert_array_equal(found[::-2, 1:5], values[::-2, 1:5])
    (folder / "c/0/0").write_bytes(b"short")
    with pytest.raises(zvf.DamagedError, match=r"volume\.zarr"):
        found[...]
    (folder / "zarr.json").write_text("{}")
    with pytest.raises(zvf.DamagedError, match=r"volume\.zarr"):
        zvf.dense.open(folder)


def test_masked_arrays() -> None:
    """Regression test: `save` wrote, and `sample` took, the values below the mask."""
    floats = np.ma.MaskedArray(np.arange(8.0), mask=np.arange(8) == 3).reshape(2, 2, 2)
    zvf.dense.save("floats.npy", floats)
    np.testing.assert_array_equal(zvf.dense.open("floats.npy")[...], floats.filled(np.nan))
    records = np.ma.MaskedArray(np.zeros(2, [("a", "<i2"), ("b", "u1")]))
    zvf.dense.save("records.npy", records)
    records["b"] = np.ma.masked
    tracts = zvf.open("tracts.zv")
    for array in (floats.astype(np.int16), floats > 2, records):
        with pytest.raises(ValueError, match="array has missing values, which .* fill"):
            zvf.dense.save("other.npy", array)
        with pytest.raises(ValueError, match="volume has missing values, which .* fill"):
            tracts.sample(array, into="t1")
    zvf.dense.save("whole.npy", np.ma.MaskedArray([1, 2]))
    assert zvf.dense.open("whole.npy")[...].tolist() == [1, 2]
    zvf.dense.save("words.npy", ["a", "bc"])
    assert zvf.dense.open("words.npy")[...].tolist() == ["a", "bc"]
    tracts.sample(floats, into="t1", interpolation="nearest", outside=-1.0)
    np.testing.assert_array_equal(tracts.query(objects=3).vertex["t1"], [0, 7, -1])
    masked = np.ma.MaskedArray(np.ones((2, 2, 2)), mask=True)
    tracts.sample(masked, into="t1", interpolation="nearest", outside=-1.0, overwrite=True)
    np.testing.assert_array_equal(tracts.query(objects=3).vertex["t1"], [np.nan, np.nan, -1])


@pytest.mark.parametrize("dtype", ["f2", "c16", "?", "S3", "U2", "M8[s]", [("a", "<i2"), ("b", "u1")]])
def test_types(dtype: Any) -> None:
    array = np.zeros(5, dtype)
    np.save("typed.npy", array)
    found = zvf.dense.open("typed.npy")[1:4]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array[1:4])


def _read_in_child(volume: Any) -> float:
    return float(volume[...].sum())


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
@pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="processes cannot be forked"
)
def test_a_forked_process_reads() -> None:
    """It waited for threads that only its parent has."""
    values = np.arange(128 * 64 * 64, dtype=np.float64).reshape(128, 64, 64)
    np.save("large.npy", values)
    large = zvf.dense.open("large.npy")
    assert large[...].sum() == values.sum()
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_read_in_child, [large]).get(60) == values.sum()


def test_memory_is_bounded(volume: Any) -> None:
    small = zvf.dense.open("volume.npy", memory=100)
    assert small[0, 0].shape == (7,)
    with pytest.raises(zvf.MemoryLimitError):
        small[...]


def test_files_that_are_refused() -> None:
    for name, error in [
        ("absent.npy", zvf.NotFoundError),
        ("other.txt", zvf.InputError),
        ("broken.npy", zvf.DamagedError),
        ("broken.tet", zvf.DamagedError),
        ("broken.b2nd", zvf.DamagedError),
        ("broken.nii", zvf.DamagedError),
    ]:
        if not name.startswith("absent"):
            with open(name, "wb") as file:
                file.write(b"\x93NUMPY nothing")
        with pytest.raises(error, match=name):
            zvf.dense.open(name)
    with pytest.raises(zvf.InputError, match="named datasets"):
        zvf.dense.open("broken.npy", "one")


def test_blosc2(volume: Any) -> None:
    blosc2 = pytest.importorskip("blosc2")
    blosc2.asarray(VALUES.astype("<i4"), chunks=(1, 8, 7), urlpath="volume.b2nd", mode="w")
    found = zvf.dense.open("volume.b2nd")
    assert found.chunks == (1, 8, 7)
    np.testing.assert_array_equal(found[1, 3:29:5], VALUES[1, 3:29:5])


@pytest.mark.parametrize("end", ["b2nd", "cat"])
def test_arrays_of_blosc_are_changed_in_place(end: str) -> None:
    path, dtype = f"series.{end}", "f4" if end == "cat" else None
    expected = np.arange(6, dtype="f4").reshape(2, 3)
    zvf.dense.save(path, expected, chunks=(2, 2), blocks=(1, 2), metalayers={"unit": "mm", "n": [1]})
    array = zvf.dense.open(path, dtype=dtype)
    assert (array.dtype, array.chunks) == (np.dtype("f4"), (2, 2))
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(array))[...], expected)
    zvf.dense.append(path, np.full((2, 1), 7, ">f4"), axis=1, dtype=dtype)
    expected = np.concatenate([expected, np.full((2, 1), 7, "f4")], axis=1)
    zvf.dense.update(path, np.array([[-1], [-2]], "f4"), start=(0, 2))
    expected[:, 2] = [-1, -2]
    np.testing.assert_array_equal(zvf.dense.open(path, dtype=dtype)[...], expected)
    zvf.dense.resize(path, (3, 2))
    grown = np.vstack([expected[:, :2], np.zeros((1, 2))])
    np.testing.assert_array_equal(zvf.dense.open(path, dtype=dtype)[...], grown)
    zvf.dense.set_metalayers(path, {"unit": "um", "by": {"me": True}})
    assert zvf.dense.metalayers(path) == {"unit": "um", "n": [1], "by": {"me": True}}
    assert zvf.dense.open(path).attributes == {"by": {"me": True}}
    zvf.dense.set_metalayers(path, remove=["by"])
    assert zvf.dense.metalayers(path) == {"unit": "um", "n": [1]}
    assert zvf.dense.verify(path) == []
    calls: list[Callable[[], object]] = [
        lambda: zvf.dense.append(path, np.zeros((2, 3), "f4")),
        lambda: zvf.dense.append(path, np.zeros((1, 2), "f8")),
        lambda: zvf.dense.set_metalayers(path, {"unit": "nanometre"}),
        lambda: zvf.dense.open(path, dtype="f8"),
    ]
    for call in calls:
        with pytest.raises(zvf.Error):
            call()
    np.testing.assert_array_equal(zvf.dense.open(path, dtype=dtype)[...], grown)
