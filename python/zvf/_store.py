"""Operations on whole stores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Unpack

from . import _zvf
from ._command import command
from ._options import MigrateOptions, ValidateOptions, listed, plain
from ._progress import Progress, shown
from ._reports import Migration, Repair, SavedFiles, Seal, Validation, findings


@listed(ValidateOptions)
def validate(
    store: str | os.PathLike[str],
    /,
    *,
    progress: Progress = None,
    **options: Unpack[ValidateOptions],
) -> Validation:
    """Check a store against the rules of the format. `ValidateOptions` lists the arguments.

    >>> found = zvf.validate("tracts.zv")
    >>> found.ok, found.findings
    (True, [])
    """
    with shown(progress, f"checking {os.fspath(store)}") as callback:
        keywords: dict[str, Any] = {**plain(options), "progress": callback}
        return Validation(**findings(_zvf.validate(os.fspath(store), keywords)))


@listed(ValidateOptions)
def repair(
    store: str | os.PathLike[str],
    /,
    *,
    trust_files: bool = False,
    **options: Unpack[ValidateOptions],
) -> Repair:
    """Repair the findings that have one correct value, and check the store.

    Values that follow from damaged data are left as they are. In a sealed store, every file that
    differs from the inventory counts as damaged.

    Args:
        store: The store.
        trust_files: Take files as right where they differ from the inventory of a sealed store or
            from the node copy. Another program that changes a store leaves such differences.
            Nothing distinguishes them from damage: use this only if no file was damaged. Call
            `zvf.seal` afterwards if the store is sealed.
        **options: `ValidateOptions` lists the arguments.

    >>> zvf.repair("tracts.zv").repaired
    []
    """
    keywords: dict[str, Any] = {**plain(options), "trust_files": trust_files}
    return Repair(**findings(_zvf.repair(os.fspath(store), keywords)))


@listed(ValidateOptions)
def seal(
    store: str | os.PathLike[str],
    /,
    *,
    progress: Progress = None,
    **options: Unpack[ValidateOptions],
) -> Seal:
    """Check a store, and seal it if there is no error.

    A sealed store has an inventory of all files, against which every read is checked: damaged,
    exchanged and missing files are errors. Changes by zvf update the inventory.

    >>> zvf.seal("tracts.zv").ok
    True
    """
    with shown(progress, f"sealing {os.fspath(store)}") as callback:
        keywords: dict[str, Any] = {**plain(options), "progress": callback}
        return Seal(**findings(_zvf.seal(os.fspath(store), keywords)))


def convert(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    *,
    kind: str | None = None,
    companions: Sequence[str | os.PathLike[str]] = (),
    strict: bool = False,
    reference: str | os.PathLike[str] | None = None,
) -> SavedFiles:
    """Convert a file of geometry to another format, without a store.

    Files are read and written in batches where both formats allow it.

    Args:
        source: A file of any format that `zvf.create` reads, or a `.npz`, `.csv`, `.arrow` or
            `.parquet`.
        target: A file of any format that `Dataset.save` writes.
        kind: Kind of the geometry, for tables.
        companions: Files that belong to `source`.
        strict: Fail, and write nothing, if the format of `target` cannot hold all data.
        reference: The NIfTI image in whose voxel grid a `.trk` or `.trx` file is written.

    >>> saved = zvf.open("tracts.zv").save("tracts.trk")
    >>> zvf.convert("tracts.trk", "tracts.tck").left_out[1]
    'vertex.fa: not supported by tck'
    """
    words = ["convert", *(f"--with={os.fspath(path)}" for path in companions)]
    words += [f"--kind={kind}"] if kind is not None else []
    words += ["--strict"] if strict else []
    words += [f"--reference={os.fspath(reference)}"] if reference is not None else []
    found, _ = command(words, source, target)
    return SavedFiles(**found)


@listed(MigrateOptions)
def migrate(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    *,
    progress: Progress = None,
    **options: Unpack[MigrateOptions],
) -> Migration:
    """Rewrite a store of any generation as one of 0.9, 0.10 or 0.8. `MigrateOptions` lists the arguments.

    >>> zvf.migrate("tracts.zv", "older.zv", profile="0.8").to_generation
    '0.8'
    >>> zvf.open("older.zv").query().objects
    array([3, 8])
    """
    with shown(progress, f"migrating {os.fspath(source)}") as callback:
        keywords: dict[str, Any] = {**plain(options), "progress": callback}
        return Migration(**_zvf.migrate(os.fspath(source), os.fspath(target), keywords))
