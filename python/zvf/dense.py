"""Dense arrays in chunks: `.tet`, `.b2nd` and `.cat`, `.npy`, `.nii` and `.nii.gz`, and Zarr.

>>> np.save("volume.npy", np.arange(24, dtype=np.int16).reshape(2, 3, 4))
>>> volume = zvf.dense.open("volume.npy")
>>> volume.shape, volume.dtype
((2, 3, 4), dtype('int16'))
>>> volume[1, ::-1, 2]
array([22, 18, 14], dtype=int16)
"""

from __future__ import annotations

import json
import os
from ast import literal_eval
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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

__all__ = [
    "Array", "append", "convert", "metalayers", "open", "query", "resize", "save", "set_metalayers",
    "update", "verify",
]  # fmt: skip


class Array:
    """An open array. Slices read only the blocks that they touch, into a new NumPy array.

    `numpy.asarray` and `numpy.from_dlpack` read the whole array. An array may be used from several
    threads and pickled: the copy opens the same path.
    """

    __slots__ = ("_absolute", "_options", "_path", "_raw", "dtype", "shape")

    def __init__(
        self,
        path: str,
        dataset: str | None = None,
        memory: int | None = None,
        dtype: str | None = None,
    ) -> None:
        self._path = path
        self._absolute = os.path.abspath(path)
        self._options = (dataset, memory, dtype)
        self._raw = raw = _zvf.open_dense(path, dataset, memory)
        self.shape: tuple[int, ...] = tuple(raw.shape)
        own = _dtype(raw.dtype)
        self.dtype: np.dtype[Any] = own if dtype is None else _dtype(dtype)
        is_opaque = own.kind == "V" and own.names is None
        if self.dtype != own and not (is_opaque and self.dtype.itemsize == own.itemsize):
            raise InputError(f"items of {path} are {own}, not {self.dtype}")

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

    def __reduce__(self) -> tuple[type[Array], tuple[str, str | None, int | None, str | None]]:
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


def _dtype(name: str) -> np.dtype[Any]:
    return np.dtype(literal_eval(name) if name[:1] == "[" else name)


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
    path: str | os.PathLike[str],
    /,
    dataset: str | None = None,
    *,
    memory: int | None = None,
    dtype: Any = None,
) -> Array:
    """Open a dense array.

    Args:
        path: A `.tet`, `.b2nd`, `.cat`, `.npy`, `.nii` or `.nii.gz` file, a sparse directory of
            Blosc2, or the folder of a Zarr array of version 2 or 3.
        dataset: Dataset of a `.tet`; optional if it has only one.
        memory: Maximum memory of a slice in bytes.
        dtype: Type of the items of a Caterva array, which does not record it.

    Raises:
        NotFoundError: There is no such file.
        DamagedError: The file is not valid.
    """
    return Array(os.fspath(path), dataset, memory, _name(dtype))


def _name(dtype: Any) -> str | None:
    """Return the name of a type, as `Array` and the command take it."""
    if dtype is None:
        return None
    known = np.dtype(dtype)
    return str(known.descr) if known.names else known.str


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    *,
    dataset: str | None = None,
    dtype: Any = None,
    chunks: Sequence[int] | None = None,
    blocks: Sequence[int] | None = None,
    metalayers: Mapping[str, Any] | None = None,
    compression: Literal["none", "zstd", "gzip", "blosc"] | None = None,
    level: int | None = None,
    checksums: bool = False,
    memory: int | None = None,
) -> list[str]:
    """Convert a dense array to `.tet`, `.npy`, `.zarr`, `.b2nd` or `.cat`, chunk by chunk.

    Args:
        source: A file or folder that `open` reads.
        target: The file or folder to write; its extension selects the format.
        dataset: Dataset of a `.tet`; optional if it has only one.
        dtype: Type of the items of a Caterva array, which does not record it.
        chunks: Elements of a chunk along each axis; as in `source`, or about 1 MiB, unless given.
        blocks: Elements of a block of a `.b2nd` or `.cat` along each axis.
        metalayers: Metalayers of the header of a `.b2nd` or `.cat`; their length cannot change.
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
        "dtype": _name(dtype),
        "chunks": _extents(chunks),
        "blocks": _extents(blocks),
        "compression": compression,
        "level": level,
        "memory": memory,
    }
    words += [f"--{name}={value}" for name, value in given.items() if value is not None]
    words += [f"--metalayer={text}" for text in _values(metalayers or {})]
    words += ["--checksums"] if checksums else []
    _, lost = command(words, source, target)
    return lost


def save(
    path: str | os.PathLike[str],
    array: Any,
    /,
    *,
    chunks: Sequence[int] | None = None,
    blocks: Sequence[int] | None = None,
    metalayers: Mapping[str, Any] | None = None,
    compression: Literal["none", "zstd", "gzip", "blosc"] | None = None,
    level: int | None = None,
    checksums: bool = False,
) -> None:
    """Write an array as `.tet`, `.npy`, `.zarr`, `.b2nd` or `.cat`; `convert` describes the options.

    A copy of the array is on disk meanwhile, beside the file. Masked floats become NaN, and other
    masked values are refused.

    >>> zvf.dense.save("volume.tet", np.arange(24.0).reshape(2, 3, 4), checksums=True)
    >>> zvf.dense.open("volume.tet")[1, 2]
    array([20., 21., 22., 23.])
    """
    target = Path(path)
    with _saved(array, target) as whole:
        convert(
            whole, target, chunks=chunks, blocks=blocks, metalayers=metalayers,
            compression=compression, level=level, checksums=checksums,
        )  # fmt: skip


@contextmanager
def _saved(array: Any, target: Path) -> Iterator[Path]:
    """Write an array to a temporary file beside a path."""
    values = array_of("array", np.asanyarray(array))
    if values.dtype.kind == "O":
        raise InputError("an array of objects cannot be written")
    with TemporaryDirectory(prefix=".zvf-", dir=target.parent) as folder:
        # The name of a dataset of a .tet is that of its source.
        whole = Path(folder) / f"{target.stem}.npy"
        np.save(whole, values, allow_pickle=False)
        yield whole


def _extents(extents: Sequence[int] | None) -> str | None:
    return None if extents is None else ",".join(str(index(extent)) for extent in extents)


def _values(values: Mapping[str, Any]) -> list[str]:
    return [f"{name}={json.dumps(value)}" for name, value in values.items()]


def _change(
    words: Sequence[str],
    options: Mapping[str, Any],
    path: str | os.PathLike[str],
    *rest: str | os.PathLike[str],
) -> None:
    given = [f"--{name}={value}" for name, value in options.items() if value is not None]
    command(["b2nd", *words, *given], path, *rest)


def append(
    path: str | os.PathLike[str],
    array: Any,
    /,
    *,
    axis: int = 0,
    dtype: Any = None,
    memory: int | None = None,
) -> None:
    """Append an array to a `.b2nd` or `.cat` along an axis, in place.

    Args:
        path: A file, or a sparse directory of Blosc2.
        array: Elements with equal extents along the other axes, of the type of the items.
        axis: The axis along which the array grows.
        dtype: Type of the items of a Caterva array. Without it, any elements of their size are taken.
        memory: Maximum memory for values in bytes.

    >>> zvf.dense.save("series.cat", np.zeros((2, 3), "f4"), chunks=(2, 3))
    >>> zvf.dense.append("series.cat", np.ones((1, 3), "f4"))
    >>> zvf.dense.open("series.cat", dtype="f4")[1:]
    array([[0., 0., 0.],
           [1., 1., 1.]], dtype=float32)
    """
    with _saved(array, Path(path)) as whole:
        options = {"axis": index(axis), "dtype": _name(dtype), "memory": memory}
        _change(["append"], options, path, whole)


def update(
    path: str | os.PathLike[str],
    array: Any,
    /,
    *,
    start: Sequence[int] | None = None,
    step: Sequence[int] | None = None,
    dtype: Any = None,
    memory: int | None = None,
) -> None:
    """Replace a box of a `.b2nd` or `.cat` by an array, in place.

    Args:
        path: A file, or a sparse directory of Blosc2.
        array: The new elements.
        start: First element of the box along each axis; 0 unless given.
        step: Step along each axis; 1 unless given.
        dtype: Type of the items of a Caterva array. Without it, any elements of their size are taken.
        memory: Maximum memory for values in bytes.
    """
    with _saved(array, Path(path)) as whole:
        options = {
            "start": _extents(start),
            "step": _extents(step),
            "dtype": _name(dtype),
            "memory": memory,
        }
        _change(["update"], options, path, whole)


def resize(
    path: str | os.PathLike[str], /, shape: Sequence[int], *, memory: int | None = None
) -> None:
    """Change the shape of a `.b2nd` or `.cat` in place. New elements are 0."""
    _change(["resize"], {"shape": _extents(shape), "memory": memory}, path)


def metalayers(path: str | os.PathLike[str], /) -> dict[str, Any]:
    """Return the metalayers of a `.b2nd` or `.cat`; None for content that is not MessagePack.

    Those of the trailer are also `Array.attributes`.
    """
    found, _ = command(["b2nd", "info"], path)
    trailer = {name: found["attributes"].get(name) for name in found["vlmetalayers"]}
    return {**found["metalayer_values"], **trailer}


def set_metalayers(
    path: str | os.PathLike[str],
    /,
    values: Mapping[str, Any] | None = None,
    *,
    remove: Sequence[str] = (),
) -> None:
    """Set and remove metalayers of a `.b2nd` or `.cat`, in place.

    A metalayer of the header keeps its length. Other names are metalayers of the trailer.

    >>> zvf.dense.save("volume.cat", np.zeros(3), metalayers={"unit": "mm"})
    >>> zvf.dense.set_metalayers("volume.cat", {"unit": "um", "made": [1, 2]})
    >>> zvf.dense.metalayers("volume.cat")
    {'unit': 'um', 'made': [1, 2]}
    """
    words = ["set", *(f"--remove={name}" for name in remove)]
    _change(words, {}, path, *_values(values or {}))


def query(
    path: str | os.PathLike[str], query: Mapping[str, Any], /, *, memory: int | None = None
) -> dict[str, Any]:
    """Reduce values of a `.tet` file as a query document of Tetration describes it.

    Returns the results under the names of Tetration, such as `operation_sum`.

    >>> zvf.dense.save("volume.tet", np.arange(24.0).reshape(2, 12))
    >>> found = zvf.dense.query("volume.tet", {"dataset": "volume", "filter": {"ge": 20}, "sum": [1]})
    >>> found["operation_reduced_sum"]
    [0.0, 86.0]
    """
    words = ["tet", "query"] + ([] if memory is None else [f"--memory={memory}"])
    found, _ = command(words, path, json.dumps(dict(query)))
    execution: dict[str, Any] = found["execution"]
    return execution


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
