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
from collections.abc import Sequence
from operator import index
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from . import _zvf
from ._command import command
from ._errors import InputError
from ._geometry import array_of

__all__ = ["Array", "convert", "open", "save", "verify"]


class Array:
    """An open array. Slices read only the blocks that they touch, into a new NumPy array.

    `numpy.asarray` and `numpy.from_dlpack` read the whole array. An array may be used from several
    threads and pickled: the copy opens the same path.
    """

    __slots__ = ("_absolute", "_options", "_path", "_raw", "dtype", "shape")

    def __init__(self, path: str, dataset: str | None = None, memory: int | None = None) -> None:
        self._path = path
        self._absolute = os.path.abspath(path)
        self._options = (dataset, memory)
        self._raw = raw = _zvf.open_dense(path, dataset, memory)
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

    def __reduce__(self) -> tuple[type[Array], tuple[str, str | None, int | None]]:
        return Array, (self._absolute, *self._options)

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
        memory: Maximum memory of a slice in bytes.

    Raises:
        NotFoundError: There is no such file.
        DamagedError: The file is not valid.
    """
    return Array(os.fspath(path), dataset, memory)


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    *,
    dataset: str | None = None,
    chunks: Sequence[int] | None = None,
    compression: Literal["none", "zstd", "gzip", "blosc"] | None = None,
    level: int | None = None,
    checksums: bool = False,
    memory: int | None = None,
) -> list[str]:
    """Convert a dense array to `.tet`, `.npy`, `.zarr` or `.b2nd`, chunk by chunk.

    Args:
        source: A file or folder that `open` reads.
        target: The file or folder to write; its extension selects the format.
        dataset: Dataset of a `.tet`; optional if it has only one.
        chunks: Elements of a chunk along each axis; as in `source`, or about 1 MiB, unless given.
        compression: Compression of chunks; none for .tet, zstd for Zarr and blosc for .b2nd unless
            given.
        level: Level of the compression.
        checksums: Write a checksum of each chunk of a `.tet`.
        memory: Maximum memory for values in bytes.

    Returns:
        What the format of `target` cannot hold.

    >>> np.save("volume.npy", np.arange(24, dtype=np.int16).reshape(2, 3, 4))
    >>> zvf.dense.convert("volume.npy", "volume.b2nd", chunks=(2, 2, 2))
    []
    >>> zvf.dense.open("volume.b2nd")
    zvf.dense.open('volume.b2nd'): 2 x 3 x 4 of int16, chunks (2, 2, 2)
    """
    words = ["tet", "convert", "--quiet"]
    given = {
        "dataset": dataset,
        "chunks": None if chunks is None else ",".join(str(index(extent)) for extent in chunks),
        "compression": compression,
        "level": level,
        "memory": memory,
    }
    words += [f"--{name}={value}" for name, value in given.items() if value is not None]
    words += ["--checksums"] if checksums else []
    _, lost = command(words, source, target)
    return lost


def save(
    path: str | os.PathLike[str],
    array: Any,
    /,
    *,
    chunks: Sequence[int] | None = None,
    compression: Literal["none", "zstd", "gzip", "blosc"] | None = None,
    level: int | None = None,
    checksums: bool = False,
) -> None:
    """Write an array as `.tet`, `.npy`, `.zarr` or `.b2nd`. `convert` describes the options.

    A copy of the array is on disk meanwhile, beside the file. Masked floats become NaN, and other
    masked values are refused.

    >>> zvf.dense.save("volume.tet", np.arange(24.0).reshape(2, 3, 4), checksums=True)
    >>> zvf.dense.open("volume.tet")[1, 2]
    array([20., 21., 22., 23.])
    """
    target = Path(path)
    values = array_of("array", np.asanyarray(array))
    if values.dtype.kind == "O":
        raise InputError("an array of objects cannot be written")
    with TemporaryDirectory(prefix=".zvf-", dir=target.parent) as folder:
        # The name of a dataset of a .tet is that of its source.
        whole = Path(folder) / f"{target.stem}.npy"
        np.save(whole, values, allow_pickle=False)
        convert(
            whole, target, chunks=chunks, compression=compression, level=level,
            checksums=checksums,
        )  # fmt: skip


def verify(path: str | os.PathLike[str], /, *, memory: int | None = None) -> list[str]:
    """Decode every chunk of a `.tet`, `.b2nd` or `.cat` file, and return what is damaged.

    >>> zvf.dense.save("volume.tet", np.arange(24.0), checksums=True)
    >>> zvf.dense.verify("volume.tet")
    []
    """
    is_tet = os.fspath(path).lower().endswith(".tet")
    words = ["tet", "verify", "--deep"] if is_tet else ["b2nd", "verify"]
    words += [] if memory is None else [f"--memory={memory}"]
    found, _ = command(words, path)
    if is_tet:
        return [
            f"{finding['check']}: {finding.get('detail') or ''}"
            for finding in found["findings"]
            if finding["severity"] == "error"
        ]
    return [f"chunk {chunk['chunk']}: {chunk['error']}" for chunk in found["broken"]]
