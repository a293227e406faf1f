"""Tables that are read in batches."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ._errors import Error

POINTS = ("points", "point_cloud")

MEMORY = 1 << 30
"""Memory of `zvf.create` unless given."""

COPIES = 6
"""Copies of the geometry while a store is planned as a whole."""


class HeldTable:
    """A table of Arrow that has been taken from its stream."""

    __slots__ = ("_table",)

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def held_bytes(options: Mapping[str, Any]) -> int:
    """Return the size of a table that is read as a whole."""
    memory = options.get("memory")
    return int(MEMORY if memory is None else memory) // COPIES


def is_in_batches(options: Mapping[str, Any]) -> bool:
    """Return whether a store of this design is written in batches."""
    return not options.get("overwrite") and options.get("profile") != "0.8-padded"


def temporary_folder(store: str) -> str:
    """Return a folder for data of the size of a store: that of a local one."""
    folder = os.path.dirname(os.path.abspath(store))
    return folder if "://" not in store and os.path.isdir(folder) else tempfile.gettempdir()


@contextmanager
def removed(path: str | os.PathLike[str]) -> Iterator[None]:
    """Remove the temporary file of a source at the end, and name the source in errors instead."""
    try:
        yield
    except (Error, ValueError) as error:
        texts = [
            part.replace(os.fspath(path), "source") if isinstance(part, str) else part
            for part in error.args
        ]
        error.args = tuple(texts)
        raise
    finally:
        os.unlink(path)
