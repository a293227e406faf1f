"""Operations on whole stores."""

from __future__ import annotations

import os
from typing import Any, Unpack

from . import _zvf
from ._options import MigrateOptions, ValidateOptions, plain
from ._progress import Progress, shown
from ._reports import Migration, Repair, Validation, findings


def validate(store: str | os.PathLike[str], /, **options: Unpack[ValidateOptions]) -> Validation:
    """Check a store against the rules of the format. `ValidateOptions` lists the arguments.

    >>> found = zvf.validate("tracts.zv")
    >>> found.ok, found.findings
    (True, [])
    """
    return Validation(**findings(_zvf.validate(os.fspath(store), plain(options))))


def repair(store: str | os.PathLike[str], /, **options: Unpack[ValidateOptions]) -> Repair:
    """Repair what has one correct value, in one transaction, and check the store.

    >>> zvf.repair("tracts.zv").repaired
    []
    """
    return Repair(**findings(_zvf.repair(os.fspath(store), plain(options))))


def migrate(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    *,
    progress: Progress = None,
    **options: Unpack[MigrateOptions],
) -> Migration:
    """Rewrite a store of any generation as one of 0.9 or 0.8. `MigrateOptions` lists the arguments.

    >>> zvf.migrate("tracts.zv", "older.zv", profile="0.8").to_generation
    '0.8'
    >>> zvf.open("older.zv").query().objects
    array([3, 8])
    """
    with shown(progress, f"migrating {os.fspath(source)}") as callback:
        keywords: dict[str, Any] = {**plain(options), "progress": callback}
        return Migration(**_zvf.migrate(os.fspath(source), os.fspath(target), keywords))
