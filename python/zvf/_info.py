"""Contents of stores, and plans of queries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class AttributeInfo:
    """An attribute of a level."""

    family: str
    """vertex, fragment, link, object or group."""
    name: str
    """Name."""
    dtype: str
    """Type of a value, or `text`."""
    channels: int | None
    """Number of values in a row, if the metadata declare it."""
    channel_names: list[str]
    """Names of the channels, if any."""
    unit: str | None
    """Unit, if any."""


@dataclass(frozen=True)
class GroupInfo:
    """A group of objects."""

    id: int
    """Number."""
    name: str | None
    """Name, if any: the attribute `name`."""
    size: int
    """Number of members."""
    attributes: dict[str, Any]
    """Other attributes by name."""


@dataclass(frozen=True)
class LinkInfo:
    """The links of a level to one level, or inside it."""

    delta: int
    """The other level minus this one: 0 for links inside the level, positive for coarser levels."""
    families: dict[str, int]
    """The number of ends of a link, by the node of the links."""
    attributes: dict[str, list[str]]
    """The nodes of the values of each attribute, by name."""


@dataclass(frozen=True)
class StoredLinks:
    """Links of one node as they are stored."""

    chunks: NDArray[np.int64]
    """The coordinates of the chunk of each end: links, ends, coordinates."""
    rows: NDArray[np.int64]
    """The row of each end in its chunk: links, ends. Of links to another level, the first end is in
    this level."""
    attributes: dict[str, NDArray[Any]]
    """The attributes by name, with a row for each link."""


@dataclass(frozen=True)
class LevelInfo:
    """The contents of a level, counted."""

    level: int
    vertices: int | None
    objects: int | None
    links: int | None
    chunks: int
    bytes: int
    is_additive: bool
    """True if each point is stored on one level only."""
    is_behind: bool
    """True if a finer level has changed since the level was built."""


@dataclass(frozen=True)
class StoreInfo:
    """The contents of a store, counted."""

    profile: str
    levels: list[LevelInfo]
    notes: list[str]
    """Faults of the metadata that do not prevent reading."""


@dataclass(frozen=True)
class Counts:
    """Number of vertices, parts, objects and links that a query selects."""

    level: int
    vertices: int
    parts: int | None
    objects: int | None
    links: int | None
    levels: list[tuple[int, int]]
    notes: list[str]


@dataclass(frozen=True)
class Operator:
    """An operator of a query plan, and its reads."""

    depth: int
    name: str
    details: str
    level: int
    requests: int
    round_trips: int
    bytes: int | None

    def __str__(self) -> str:
        size = "" if self.bytes is None else f", {self.bytes} bytes"
        details = f" {self.details}" if self.details else ""
        return f"{'  ' * self.depth}{self.name}{details} ({self.requests} requests{size})"


@dataclass(frozen=True)
class Plan:
    """The plan of a query. `print` shows its operators as a tree."""

    requests: int
    """Number of requests in the first round trip."""
    bytes: int | None
    """Number of bytes that they read, if known."""
    at_most: int | None
    """Total size of the cells that they read from in bytes, if known."""
    levels: list[tuple[int, int]]
    operators: list[Operator]
    notes: list[str]

    def __str__(self) -> str:
        return "\n".join([*map(str, self.operators), *(f"note: {note}" for note in self.notes)])
