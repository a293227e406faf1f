"""Exceptions of the package."""

from __future__ import annotations


class Error(Exception):
    """An operation on a store failed. The message names the file or object, and the cause.

    Attributes:
        key: The array or object that is damaged, if known.
        chunk: The chunk of that array, if known.
    """

    key: str | None = None
    chunk: str | None = None


class NotFoundError(Error, FileNotFoundError):
    """There is no store at the address."""


class ExistsError(Error, FileExistsError):
    """There is something at the address of the new store, or it cannot be created there."""


class DamagedError(Error):
    """The store contradicts itself or the specification."""


class AccessError(Error, OSError):
    """An object cannot be read or written."""


class ConflictError(Error):
    """Another writer changed the same part of the store first. Nothing was changed."""


class UnsupportedError(Error, NotImplementedError):
    """The store has a form, or is at an address, that does not support the operation."""


class MemoryLimitError(Error, MemoryError):
    """The operation exceeds the memory budget. Nothing was allocated for it."""


class InputError(Error, ValueError):
    """The query or the geometry does not fit the store."""


class NoSuchObjectError(Error, LookupError):
    """The store has no such object or group."""


class ZvfWarning(UserWarning):
    """Something about a result that its caller may not expect, such as a box whose bounds are swapped."""
