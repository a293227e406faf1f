"""Attributes of nodes, and the metadata of applications in them."""

from __future__ import annotations

import json
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..exceptions import StoreError

KEY = "user_metadata"


class NodeAttributes(MutableMapping[str, Any]):
    """The attributes in the `zarr.json` of a folder, read and written at each use."""

    def __init__(self, folder: Path, *, writable: bool = True) -> None:
        self._file = folder / "zarr.json"
        self._writable = writable

    def _document(self) -> dict[str, Any]:
        try:
            found = json.loads(self._file.read_bytes())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise StoreError(f"{self._file} is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise StoreError(f"{self._file} is not an object of JSON")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes."""
        attributes = self._document().get("attributes")
        return attributes if isinstance(attributes, dict) else {}

    def _write(self, attributes: dict[str, Any]) -> None:
        if not self._writable:
            raise StoreError(f"{self._file}: the store was opened read-only; use mode='r+'")
        document = self._document()
        if not document:
            raise StoreError(f"{self._file} does not exist")
        document["attributes"] = attributes
        staged = self._file.with_suffix(".new")
        staged.write_text(json.dumps(document, indent=2))
        staged.replace(self._file)

    def __getitem__(self, key: str) -> Any:
        return self.to_dict()[key]

    def __setitem__(self, key: str, value: Any) -> None:
        self._write(self.to_dict() | {key: value})

    def __delitem__(self, key: str) -> None:
        attributes = self.to_dict()
        del attributes[key]
        self._write(attributes)

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())


class Namespace(MutableMapping[str, Any]):
    """The metadata of one application."""

    __slots__ = ("_attributes", "_name")

    def __init__(self, attributes: Any, name: str) -> None:
        self._attributes = attributes
        self._name = name

    def to_dict(self) -> dict[str, Any]:
        """Return all values."""
        block = self._attributes.get(KEY) or {}
        return dict(block.get(self._name) or {})

    def _write(self, values: dict[str, Any]) -> None:
        block = dict(self._attributes.get(KEY) or {})
        self._attributes[KEY] = block | {self._name: values}

    def __getitem__(self, key: str) -> Any:
        try:
            return self.to_dict()[key]
        except KeyError:
            raise KeyError(f"{key!r} not in namespace {self._name!r}") from None

    def __setitem__(self, key: str, value: Any) -> None:
        self._write(self.to_dict() | {key: value})

    def __delitem__(self, key: str) -> None:
        values = self.to_dict()
        del values[key]
        self._write(values)

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        """Set several values with one write."""
        values = self.to_dict()
        values.update(dict(other), **kwargs)
        self._write(values)

    @contextmanager
    def transact(self) -> Iterator[dict[str, Any]]:
        """Change a dictionary of the values, which is written once at the end."""
        values = self.to_dict()
        yield values
        self._write(values)

    def compare_and_set(self, key: str, expect: Any, value: Any) -> bool:
        """Set a value if it is the expected one; `None` is absent."""
        values = self.to_dict()
        if values.get(key) != expect:
            return False
        self._write(values | {key: value})
        return True

    def clear(self) -> None:
        """Remove all values."""
        self._write({})

    def __repr__(self) -> str:
        return f"Namespace({self._name!r}, {len(self)} key(s))"


class Metadata:
    """The metadata of applications on a node."""

    __slots__ = ("_attributes",)

    def __init__(self, attributes: Any) -> None:
        self._attributes = attributes

    def namespace(self, name: str) -> Namespace:
        """Return the metadata of an application."""
        if not name or "/" in name:
            raise ValueError(f"namespace name {name!r} must be non-empty and contain no '/'")
        return Namespace(self._attributes, name)

    def __getitem__(self, name: str) -> Namespace:
        return self.namespace(name)

    def names(self) -> tuple[str, ...]:
        """Return the names of the applications."""
        return tuple(sorted(self._attributes.get(KEY) or {}))

    def __contains__(self, name: str) -> bool:
        return name in self.names()

    def drop(self, name: str) -> None:
        """Remove the metadata of an application."""
        block = dict(self._attributes.get(KEY) or {})
        block.pop(name, None)
        self._attributes[KEY] = block

    def __repr__(self) -> str:
        return f"Metadata({list(self.names())})"
