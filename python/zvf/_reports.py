"""Reports of changes and of operations on whole stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ChangeReport:
    """A committed change."""

    transaction: int
    """Number of the transaction."""
    added: int
    """Number of added vertices."""
    removed: int
    """Number of removed vertices."""
    objects: NDArray[np.int64]
    """Ids of the objects that were added or replaced; after a deletion, ids of the deleted objects."""
    chunks: int
    """Number of changed chunks."""
    severed: int
    """Number of links removed because one of their ends was removed."""
    bytes: int
    """Number of bytes written."""
    notes: list[str] = field(default_factory=list)
    """Differences between the geometry that was given and the one that was added."""


@dataclass(frozen=True)
class BuiltLevel:
    """A level that was built."""

    level: int
    method: str
    vertices: int
    objects: int | None
    links: int
    chunks: int
    bytes: int
    error: float | None
    """Largest displacement of the geometry, if the method measures it."""
    dropped_pieces: int
    """Number of connected pieces of meshes that are smaller than an edge of the level, or than `cull`."""


@dataclass(frozen=True)
class SampleReport:
    """An attribute that was sampled from a volume."""

    transaction: int
    """Number of the transaction."""
    vertices: int
    """Number of sampled vertices."""
    outside: int
    """Number of vertices outside the volume."""
    chunks: int
    """Number of chunks with values."""
    bytes: int
    """Number of bytes written."""
    notes: list[str] = field(default_factory=list)
    """Reasons to doubt the map from positions to voxels."""


@dataclass(frozen=True)
class AttributeReport:
    """Attributes that were written."""

    transaction: int
    """Number of the transaction."""
    vertices: int
    """Number of vertices of the level."""
    objects: int
    """Number of objects with rows, for attributes of objects."""
    chunks: int
    """Number of chunks with values."""
    bytes: int
    """Number of bytes written."""


@dataclass(frozen=True)
class SavedFiles:
    """Files that were written."""

    files: list[str]
    """The files."""
    vertices: int
    """Number of vertices in them."""
    left_out: list[str]
    """Data that their format cannot store."""
    notes: list[str]
    """Defects of the source that were worked around."""


@dataclass(frozen=True)
class PrecomputedReport:
    """Layers for Neuroglancer that were written."""

    layers: list[tuple[str, int]]
    """Folder of each layer, and its number of annotations or segments."""
    files: int
    """Number of files."""
    bytes: int
    """Number of bytes."""
    notes: list[str]
    """Data that the layers do not contain."""
    neuroglancer: str | None
    """A link to the viewer, if the address of the folder is given."""


@dataclass(frozen=True)
class Finding:
    """A violation of a rule of the format."""

    code: str
    """Code of the rule, which `docs/rules.md` explains."""
    severity: str
    """error, warning or note."""
    title: str
    """The rule."""
    path: str
    """Node or file, relative to the store; empty for its root."""
    location: str | None
    """Place inside: a path in its JSON, a chunk, a row or an object."""
    message: str
    """The fault."""
    remedy: str
    """The remedy."""
    repairable: bool
    """True if `zvf.repair` repairs it."""

    def __str__(self) -> str:
        place = ", ".join(part for part in (self.path or "/", self.location) if part)
        return f"{self.severity} {self.code} at {place}: {self.message}"


@dataclass(frozen=True)
class Validation:
    """The findings in a store. It is true if there is no error."""

    findings: list[Finding]
    """Findings by path."""
    unlisted: dict[str, int]
    """Number of findings that are not listed, by the code of their rule."""
    cells: int
    """Number of checked cells."""
    bytes: int
    """Number of decoded bytes of checked cells."""
    ok: bool
    """True if there is no error."""

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings]
        lines += [f"{count} more findings of {code}" for code, count in self.unlisted.items()]
        return "\n".join(lines) if lines else f"no findings in {self.cells} cells"


@dataclass(frozen=True)
class Repair(Validation):
    """The repaired findings and the remaining ones."""

    repaired: list[Finding]
    """Findings that were repaired."""
    trusted: int
    """Number of files that differed from the inventory of a sealed store, and that `trust_files`
    took as right."""
    transaction: int | None
    """Number of the transaction, if anything was repaired."""


@dataclass(frozen=True)
class Seal(Validation):
    """The findings in a store, which is sealed if there is no error."""

    transaction: int | None
    """Number of the transaction that sealed it, if any."""


@dataclass(frozen=True)
class Migration:
    """A store that was rewritten in another generation."""

    from_generation: str
    to_generation: str
    levels: int
    vertices: int
    objects: int
    """Number of files or objects written."""
    links: int
    bytes: int
    repaired: list[str]
    """Faults of the old store that the new one does not have."""
    lost: list[str]
    """Contents of the old store that the new one does not have."""


def findings(raw: dict[str, Any]) -> dict[str, Any]:
    """Replace the findings in what the extension module returns by objects."""
    for name in raw.keys() & {"findings", "repaired"}:
        raw[name] = [Finding(**finding) for finding in raw[name]]
    return raw
