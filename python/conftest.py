"""Stores that tests and the examples of docstrings use."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import zvf

# `cargo xtask python --clusters` tests them.
engines = {"ray": "zvf/ray.py", "pyspark": "zvf/spark.py"}
collect_ignore = [path for package, path in engines.items() if find_spec(package) is None]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own for every test and example, with `tracts.zv`."""
    monkeypatch.chdir(tmp_path)
    positions = np.array([[0, 0, 0], [1, 1, 1], [2, 1, 1], [9, 9, 9], [8, 9, 9]], np.float32)
    zvf.create(
        "tracts.zv",
        kind="streamlines",
        positions=positions,
        part_offsets=[0, 3, 5],
        part_objects=[3, 8],
        vertex={"fa": [0.4, 0.5, 0.6, 0.7, 0.8]},
        object={"length": np.array([2.5, 1], np.float32)},
        objects=[3, 8],
        groups={0: [3], 1: [8, 3]},
        chunk_shape=(5, 5, 5),
    )
    yield tmp_path


@pytest.fixture(autouse=True)
def names(doctest_namespace: dict[str, object]) -> None:
    """Names that examples use without an import."""
    doctest_namespace["zvf"] = zvf
    doctest_namespace["np"] = np
