"""Pictures of stores."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _zvf


class Picture:
    """A picture of a store. Notebooks show it; `numpy.asarray` returns its pixels.

    Attributes:
        width: Width in pixels.
        height: Height in pixels.
        levels: Levels that were drawn.
        vertices: Number of vertices that were drawn.
        items: Number of points, paths or links that were drawn.
        skipped_vertices: Number of vertices without a valid position.
        colors: Meaning of the colours.
        notes: Defects of the store that were worked around.
    """

    __slots__ = (
        "_raw", "colors", "height", "items", "levels", "notes", "skipped_vertices", "vertices",
        "width",
    )  # fmt: skip

    width: int
    height: int
    levels: list[int]
    vertices: int
    items: int
    skipped_vertices: int
    colors: str
    notes: list[str]

    def __init__(self, raw: _zvf.Picture) -> None:
        self._raw = raw
        for name, value in raw.description().items():
            setattr(self, name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file whose name ends in `.png`."""
        path = Path(path)
        if path.suffix.lower() != ".png":
            raise ValueError(f"{path}: the file name must end in .png")
        path.write_bytes(self._raw.png())

    def _repr_png_(self) -> bytes:
        return self._raw.png()

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        if copy is False:
            raise ValueError("the pixels of a picture are copied")
        return np.asarray(self._raw.pixels(), dtype=dtype)

    def __repr__(self) -> str:
        return f"Picture({self.width} x {self.height}, {self.vertices} vertices, {self.colors})"
