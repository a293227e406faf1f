"""Geometry for the extension module: contiguous arrays and lists of text."""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from . import _zvf
from ._raw import RawColumn, values_of

Numbers: TypeAlias = tuple[str, int, NDArray[np.uint8]]
"""The type of the values, the number of values in a row, and the bytes."""

FAMILIES = ("vertex", "link", "fragment", "fragment_rows", "object", "group")
IDS = ("part_offsets", "part_objects", "object_ids", "objects")


def geometry(
    given: Mapping[str, Any], types: Mapping[str, np.dtype[Any]] | None = None
) -> dict[str, Any]:
    """Convert the arguments of `zvf.create` that are not `None`.

    Args:
        given: The arguments.
        types: Types of attributes by name, such as `vertex.fa`, for columns without a type, such as
            lists.
    """
    unknown = given.keys() - {"positions", "links", "groups", *IDS, *FAMILIES}
    if unknown:
        raise TypeError(f"there is no argument {min(unknown)!r}; see help(zvf.GeometryArrays)")
    if "positions" not in given:
        raise TypeError("positions are missing")
    links, groups, types = given.get("links"), given.get("groups"), types or {}
    array = _positions(given["positions"])
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(
            f"positions has the shape {array.shape}; it needs a row for each vertex and a column "
            "for each axis"
        )
    made: dict[str, Any] = {"positions": _numbers("positions", array)}
    for name in IDS:
        if given.get(name) is not None:
            made[name] = integers(name, given[name], 1)
    if links is not None:
        made["links"] = integers("links", links, 2)
    for family in FAMILIES:
        if given.get(family) is not None:
            made[family] = columns(family, given[family], types)
    if groups is not None:
        made |= _groups(groups, made.get("group", {}))
    return made


def _positions(values: Any) -> NDArray[Any]:
    """Return coordinates; a table has a column for each axis."""
    if is_arrow(values) and hasattr(values, "columns"):
        axes = [_joined(chunks) for chunks in _zvf.arrow_columns(values)]
        return np.stack([array_of("positions", axis) for axis in axes], axis=1)
    return array_of("positions", values)


def columns(family: str, table: Any, types: Mapping[str, np.dtype[Any]]) -> dict[str, Any]:
    """Convert the attributes of a family."""
    return {
        name: _column(f"{family}.{name}", _typed(column, types.get(f"{family}.{name}")))
        for name, column in columns_of(family, table)
    }


def _groups(groups: Mapping[Any, Any], attributes: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(groups, Mapping):
        raise TypeError(f"groups is a {type(groups).__name__}; use a dictionary of object ids")
    members = [integers(f"group {name!r}", ids, 1) for name, ids in groups.items()]
    names = list(groups)
    if all(isinstance(name, str) for name in names):
        if names and "name" in attributes:
            raise ValueError("groups have names, and the attribute group.name has others")
        named = {"name": names} if names else {}
        return {"groups": dict(enumerate(members)), "group": attributes | named}
    if any(isinstance(name, str) for name in names):
        raise TypeError("groups have numbers or names, not both")
    numbers = [_group_number(name) for name in names]
    return {"groups": dict(zip(numbers, members, strict=True))}


def _group_number(name: Any) -> int:
    try:
        return index(name)
    except TypeError:
        raise TypeError(f"the number of a group must be an integer, not {name!r}") from None


def is_arrow(values: Any) -> bool:
    """Return whether an object exports Arrow data by a PyCapsule. pandas does so only if pyarrow is
    installed; otherwise its columns are NumPy arrays."""
    is_pandas = hasattr(values, "iloc")
    return not is_pandas and (
        hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")
    )


def _joined(chunks: list[RawColumn]) -> NDArray[Any]:
    """Return the chunks of an Arrow column as one array."""
    parts = [values_of(chunk) for chunk in chunks]
    if len(parts) == 1:
        return parts[0]
    joined = np.concatenate([np.ma.getdata(part) for part in parts])
    if not any(isinstance(part, np.ma.MaskedArray) for part in parts):
        return joined
    masks = np.concatenate([np.ma.getmaskarray(part) for part in parts])
    masked: NDArray[Any] = np.ma.MaskedArray(joined, mask=masks)
    return masked


def with_index(table: Any) -> Any:
    """Return a table of pandas with the named levels of its index as columns, unless it has such columns."""
    index = getattr(table, "index", None)
    names = [name for name in getattr(index, "names", ()) if name is not None]
    levels = [name for name in names if name not in table.columns]
    return table.reset_index(level=levels) if levels else table


def columns_of(family: str, table: Any) -> list[tuple[str, Any]]:
    """Return the columns of a mapping, or of a table of pandas or of any package with Arrow's
    PyCapsules. Their names differ."""
    if isinstance(table, Mapping):
        pairs = list(table.items())
    elif is_arrow(table):
        pairs = [(chunks[0][0], _joined(chunks)) for chunks in _zvf.arrow_columns(table)]
    elif hasattr(table, "columns"):
        table = with_index(table)
        pairs = [(name, table[name]) for name in table.columns]
    else:
        raise TypeError(
            f"{family} is a {type(table).__name__}; use a dictionary of columns, or a table of "
            "pandas, polars or pyarrow"
        )
    known = set()
    for name, _ in pairs:
        if not isinstance(name, str):
            raise TypeError(f"{family} has a column named {name!r}; names are text")
        if name in known:
            raise ValueError(f"{family} has several columns named {name!r}; rename all but one")
        known.add(name)
    return pairs


def _typed(values: Any, dtype: np.dtype[Any] | None) -> Any:
    """Give a list of numbers the type of a stored attribute, if no number changes by more than
    rounding."""
    if dtype is None or not isinstance(values, (list, tuple)):
        return values
    array = _listed(values)
    if array.dtype.kind not in "biuf":
        return values
    with np.errstate(invalid="ignore", over="ignore"):
        typed = array.astype(dtype)
    if dtype.kind == "f":
        # A number above the range of the type becomes infinite.
        fits = np.array_equal(np.isfinite(typed), np.isfinite(array))
    else:
        fits = np.array_equal(typed, array)
    return typed if fits else values


def _column(name: str, values: Any) -> Numbers | list[str | None]:
    array = array_of(name, values)
    if array.dtype.kind in "OUT":
        if array.ndim != 1:
            raise ValueError(f"{name} has the shape {array.shape}; text has one value to a row")
        return [_text(name, row, value) for row, value in enumerate(array.tolist())]
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise ValueError(
            f"{name} has the shape {array.shape}; a column has one row for each item, with one "
            "value or several"
        )
    return _numbers(name, array)


def _text(name: str, row: int, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    # The missing text of pandas.
    is_nan = isinstance(value, (float, np.floating)) and value != value
    if is_nan or type(value).__name__ == "NAType":
        return None
    raise TypeError(
        f"{name} has a value of type {type(value).__name__} in row {row}; a column holds numbers, "
        "or text and None"
    )


def array_of(name: str, values: Any) -> NDArray[Any]:
    """Return a column as an array: missing floats as NaN. Other numbers cannot express them."""
    if not isinstance(values, np.ndarray) and is_arrow(values):
        values = _joined(_zvf.arrow_column(name, values))
    if isinstance(values, np.ma.MaskedArray):
        # The mask of a structured array has the fields of the array.
        if not np.ascontiguousarray(np.ma.getmaskarray(values)).view(np.bool_).any():
            return values.data
        if values.dtype.kind != "f":
            raise _missing(name, values.dtype)
        return values.filled(np.nan)
    if hasattr(values, "toarray") and hasattr(values, "tocsr"):
        raise TypeError(f"{name} is a sparse matrix of scipy; pass its toarray()")
    if not isinstance(values, np.ndarray) and hasattr(values, "to_numpy"):
        values = _of_pandas(name, values)
    try:
        return _listed(values)
    except ValueError as error:
        raise ValueError(f"{name} is not an array: {error}") from None


def _missing(name: str, dtype: np.dtype[Any]) -> ValueError:
    return ValueError(
        f"{name} has missing values, which {dtype} cannot express; fill them, as `filled` of a "
        "masked array does, or convert an attribute to floats"
    )


def _of_pandas(name: str, values: Any) -> Any:
    """Return a column or a table of pandas as an array. By itself, `to_numpy` returns nullable
    integers with a missing value as float64, which rounds them."""
    if hasattr(values, "iloc") and hasattr(values, "columns"):
        if all(isinstance(dtype, np.dtype) for dtype in values.dtypes):
            return values.to_numpy()
        axes = [array_of(name, values.iloc[:, at]) for at in range(values.shape[1])]
        return np.stack(axes, axis=1)
    dtype = getattr(values, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype):
        return values.to_numpy()
    categories = getattr(dtype, "categories", None)
    dtype = dtype if categories is None else categories.dtype
    dtype = getattr(dtype, "numpy_dtype", dtype)
    kind = dtype.kind if isinstance(dtype, np.dtype) else "O"
    if kind == "f":
        return values.to_numpy(dtype, na_value=np.nan)
    if kind not in "biu":
        return values.to_numpy()
    if np.any(values.isna()):
        raise _missing(name, dtype)
    return values.to_numpy(dtype)


def _listed(values: Any) -> NDArray[Any]:
    """Return an array, for a list with text one of its objects. NumPy would write the other objects
    as text, drop NUL at the end, and take the memory of the longest text for each row."""
    types = set(map(type, values)) if isinstance(values, (list, tuple)) else ()
    if any(issubclass(of, str) for of in types):
        return np.fromiter(values, object, len(values))
    return np.asarray(values)


def _numbers(name: str, array: NDArray[Any]) -> Numbers:
    if array.dtype.kind not in "biufc" or array.dtype.itemsize > 16:
        raise TypeError(f"{name} has values of type {array.dtype}, which a store cannot hold")
    width = array.shape[1] if array.ndim == 2 else 1
    plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return array.dtype.name, width, plain.reshape(-1).view(np.uint8)


def integers(name: str, values: Any, axes: int) -> NDArray[np.int64]:
    array = array_of(name, values)
    if array.size == 0 and array.ndim == axes:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"{name} has values of type {array.dtype}; it needs integers")
    if array.ndim != axes:
        raise ValueError(f"{name} has {array.ndim} axes; it needs {axes}")
    if array.dtype == np.uint64 and array.size and array.max() > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has {array.max()}, which does not fit 64 bits with a sign")
    return np.ascontiguousarray(array, dtype=np.int64)
