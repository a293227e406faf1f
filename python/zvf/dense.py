"""Dense arrays in chunks: `.tet`, `.b2nd` and `.cat`, `.npy`, `.nii` and `.nii.gz`, and Zarr.

>>> np.save("volume.npy", np.arange(24, dtype=np.int16).reshape(2, 3, 4))
>>> volume = zvf.dense.open("volume.npy")
>>> volume.shape, volume.dtype
((2, 3, 4), dtype('int16'))
>>> volume[1, ::-1, 2]
array([22, 18, 14], dtype=int16)
"""

from __future__ import annotations

import os
from ast import literal_eval
from operator import index
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _zvf

__all__ = ["Array", "open"]


class Array:
    """An open array. Slices read only the blocks that they touch, into a new NumPy array.

    `numpy.asarray` and `numpy.from_dlpack` read the whole array.
    """

    __slots__ = ("_path", "_raw", "dtype", "shape")

    def __init__(self, path: str, raw: _zvf.DenseArray) -> None:
        self._path = path
        self._raw = raw
        self.shape: tuple[int, ...] = tuple(raw.shape)
        name = raw.dtype
        self.dtype: np.dtype[Any] = np.dtype(literal_eval(name) if name[:1] == "[" else name)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def nbytes(self) -> int:
        """Size of the elements in bytes."""
        return self.size * self.dtype.itemsize

    @property
    def chunks(self) -> tuple[int, ...]:
        """Shape of a chunk."""
        return tuple(self._raw.chunks)

    @property
    def dimension_names(self) -> list[str] | None:
        """Names of the axes, if any."""
        return self._raw.dimension_names

    @property
    def attributes(self) -> dict[str, Any]:
        """Metadata of the array."""
        return self._raw.attributes()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        ranges, after = _selection(key, self.shape)
        starts, stops, steps = ([part[at] for part in ranges] for at in range(3))
        shape = [len(range(*part)) for part in ranges]
        array = self._raw.read(starts, stops, steps).view(self.dtype).reshape(shape)
        return array[after]

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError(f"{self._path} is read into a new array; it cannot be viewed")
        return np.asarray(self[...], dtype=dtype)

    def __dlpack__(self, **options: Any) -> Any:
        return np.asarray(self[...]).__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.shape)) or "one element"
        return f"zvf.dense.open({self._path!r}): {shape} of {self.dtype}, chunks {self.chunks}"


def _selection(
    key: Any, shape: tuple[int, ...]
) -> tuple[list[tuple[int, int, int]], tuple[Any, ...]]:
    """Return the range to read along each axis, with steps above 0, and what is left to index."""
    keys = list(key) if isinstance(key, tuple) else [key]
    used = sum(part is not None and part is not Ellipsis for part in keys)
    if used > len(shape):
        raise IndexError(f"there are {used} indices for {len(shape)} axes")
    dots = [at for at, part in enumerate(keys) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("an index has at most one ellipsis (...)")
    at = dots[0] if dots else len(keys)
    keys[at : at + 1] = [slice(None)] * (len(shape) - used)
    ranges: list[tuple[int, int, int]] = []
    after: list[Any] = []
    for part in keys:
        if part is None:
            after.append(None)
            continue
        extent = shape[len(ranges)]
        if isinstance(part, slice):
            start, stop, step = part.indices(extent)
            rows = len(range(start, stop, step))
            if rows == 0:
                ranges.append((0, 0, 1))
            elif step > 0:
                ranges.append((start, start + (rows - 1) * step + 1, step))
            else:
                ranges.append((start + (rows - 1) * step, start + 1, -step))
            after.append(slice(None, None, -1 if step < 0 else None))
            continue
        if isinstance(part, (bool, np.bool_)):
            raise IndexError("an index is a whole number, a slice, ... or None")
        try:
            row = index(part)
        except TypeError:
            raise IndexError(
                f"an index is a whole number, a slice, ... or None, not {type(part).__name__}; "
                "read a slice, and index that with arrays"
            ) from None
        if not -extent <= row < extent:
            raise IndexError(f"index {row} is outside axis {len(ranges)} of {extent}")
        row %= extent
        ranges.append((row, row + 1, 1))
        after.append(0)
    return ranges, tuple(after)


def open(
    path: str | os.PathLike[str], /, dataset: str | None = None, *, memory: int | None = None
) -> Array:
    """Open a dense array.

    Args:
        path: A `.tet`, `.b2nd`, `.cat`, `.npy`, `.nii` or `.nii.gz` file, a sparse directory of
            Blosc2, or the folder of a Zarr array of version 2 or 3.
        dataset: Dataset of a `.tet`; optional if it has only one.
        memory: Most bytes that one slice may take.

    Raises:
        NotFoundError: There is no such file.
        DamagedError: The file is not valid.
    """
    name = os.fspath(path)
    return Array(name, _zvf.open_dense(name, dataset, memory))
