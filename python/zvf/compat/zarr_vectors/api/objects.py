"""Objects and groups of a level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .._read import read
from .._store import module_of_package
from .result import ReadResult

if TYPE_CHECKING:
    from .level import Level

NAMES = "group_names"


class ObjectCatalog:
    """The objects of a level: `objects[7]` reads one, `objects[[7, 9]]` several."""

    __slots__ = ("_level",)

    def __init__(self, level: Level) -> None:
        self._level = level

    def _declared(self, name: str) -> int | None:
        value = self._level._attributes("object_index").get(name)
        return None if value is None else int(value)

    def __len__(self) -> int:
        """Return the number of ids, with those of objects without geometry."""
        return self._declared("num_objects") or 0

    @property
    def slots(self) -> int:
        """The number of ids, with those of objects without geometry."""
        return len(self)

    @property
    def count(self) -> int:
        """The number of objects with geometry."""
        present = self._declared("num_present")
        return int(self.present_mask().sum()) if present is None else present

    def __getitem__(self, key: int | Sequence[int] | slice) -> ReadResult:
        if isinstance(key, slice):
            ids = self.ids(present=False)[key].tolist()
        else:
            ids = np.atleast_1d(np.asarray(key, np.int64)).tolist()
        return self._level.select(objects=ids).read()

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids().tolist())

    def ids(self, *, present: bool = True) -> NDArray[Any]:
        """Return the ids of objects with geometry, or all."""
        if not len(self):
            return np.zeros(0, np.int64)
        arrays = module_of_package("core.arrays")
        ids = np.asarray(arrays.object_ids_for_rows(self._level.store))
        return ids[self.present_mask()] if present else ids

    def present_mask(self) -> NDArray[Any]:
        """Return whether each id has geometry."""
        arrays = module_of_package("core.arrays")
        return np.asarray(arrays.object_present_mask(self._level.store))

    def manifests(self, ids: Sequence[int] | None = None) -> dict[int, Any]:
        """Return the fragments of objects."""
        arrays = module_of_package("core.arrays")
        found: dict[int, Any] = arrays.read_object_manifests(self._level.store, ids=ids)
        return found

    def __contains__(self, object_id: int) -> bool:
        return len(self) > 0 and self[int(object_id)].vertex_count > 0

    def __repr__(self) -> str:
        return (
            f"ObjectCatalog(level={self._level.index}, count={self.count}, slots={self.slots})"
        )


class ObjectGroup:
    """A group of objects."""

    __slots__ = ("_id", "_level", "_name")

    def __init__(self, level: Level, group_id: int, name: str) -> None:
        self._level = level
        self._id = int(group_id)
        self._name = name

    @property
    def id(self) -> int:
        """The number of the group."""
        return self._id

    @property
    def name(self) -> str:
        """The name of the group."""
        return self._name

    @property
    def members(self) -> NDArray[Any]:
        """The ids of the objects."""
        dataset = self._level.dataset
        if dataset._address is None:
            arrays = module_of_package("core.arrays")
            ids = arrays.read_group_object_ids(self._level.store, self._id)
            return np.asarray(ids, np.int64)
        _, found = read(
            dataset._address, level=self._level.index, group_ids=[self._id], select=[], limit=0,
            client=dataset._client,
        )  # fmt: skip
        return found.groups.get(self._id, np.zeros(0, np.int64))

    def read(self, **kw: Any) -> ReadResult:
        """Read the objects."""
        return self._level.select(groups=[self._id], **kw).read()

    def __len__(self) -> int:
        return len(self.members)

    def __repr__(self) -> str:
        return f"ObjectGroup({self._name!r}, id={self._id}, members={len(self)})"


class GroupCatalog(Mapping[str, ObjectGroup]):
    """The groups of a level by name; those without a name are called `group_0` and so on."""

    __slots__ = ("_level",)

    def __init__(self, level: Level) -> None:
        self._level = level

    def names(self) -> tuple[str, ...]:
        """Return the names, in order of the numbers."""
        attributes = self._level._attributes("groups")
        names = [str(name) for name in attributes.get(NAMES) or ()]
        names += [""] * (int(attributes.get("num_groups", 0) or 0) - len(names))
        return tuple(name or f"group_{at}" for at, name in enumerate(names))

    def __getitem__(self, name: str) -> ObjectGroup:
        names = self.names()
        if name not in names:
            raise KeyError(f"no group named {name!r}; this level has {list(names) or 'none'}")
        return ObjectGroup(self._level, names.index(name), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __len__(self) -> int:
        return len(self.names())

    def by_id(self, group_id: int) -> ObjectGroup:
        """Return a group by number."""
        names = self.names()
        known = 0 <= group_id < len(names)
        return ObjectGroup(
            self._level, group_id, names[group_id] if known else f"group_{group_id}"
        )

    def name_rows(self, names: Sequence[str]) -> None:
        """Name the groups, in order of the numbers."""
        self._level._attributes("groups")[NAMES] = [str(name) for name in names]

    def __repr__(self) -> str:
        return f"GroupCatalog({list(self.names())})"
