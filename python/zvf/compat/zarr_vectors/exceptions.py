"""The exceptions of `zarr_vectors`, raised for those of `zvf`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import zvf


class ZVError(Exception):
    """An operation failed."""


class StoreError(ZVError):
    """There is no store, or there is one already, or it is damaged."""


class ShardedPresenceError(StoreError):
    """Presence cannot be derived for a sharded array."""


class MetadataError(ZVError):
    """Metadata are missing, are not valid, or contradict the data."""


class ArrayError(ZVError):
    """An array has the wrong shape or type, or cannot be read."""


class ChunkingError(ZVError):
    """Vertices cannot be assigned to chunks."""


class ConventionError(ZVError):
    """A convention contradicts the contents of the store."""


class ValidationError(ZVError):
    """A store is not valid."""


class IngestError(ZVError):
    """A file cannot be read."""


class ExportError(ZVError):
    """A file cannot be written."""


class CoarseningError(ZVError):
    """A level cannot be built."""


class DracoError(ZVError):
    """Draco failed."""


class EditError(ZVError):
    """An edit cannot be applied."""


class ConcurrentEditError(ZVError):
    """The backend cannot keep writers apart."""


ZVFError = ZVError


@contextmanager
def translated() -> Iterator[None]:
    """Raise the exceptions of `zarr_vectors` in place of those of `zvf`."""
    try:
        yield
    except zvf.InputError as error:
        outside = "outside the bounds" in str(error)
        raise (MetadataError if outside else ArrayError)(str(error)) from error
    except zvf.UnsupportedError as error:
        raise MetadataError(str(error)) from error
    except zvf.NoSuchObjectError as error:
        raise ArrayError(str(error)) from error
    except zvf.Error as error:
        raise StoreError(str(error)) from error
