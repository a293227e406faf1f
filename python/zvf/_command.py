"""Commands of `zvf` that run in this process."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from . import _zvf
from ._errors import NotFoundError


def command(words: Sequence[str], *files: str | os.PathLike[str]) -> tuple[Any, list[str]]:
    """Run a command on files, the first of which it reads.

    Returns what it prints with `--json`, and its warnings.
    """
    names = [os.fspath(file) for file in files]
    if not os.path.exists(names[0]):
        raise NotFoundError(f"{names[0]} does not exist")
    return _zvf.command(["zvf", *words, "--json", "--", *names])
