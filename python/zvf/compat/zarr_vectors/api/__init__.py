"""Stores by what is in them: the interface that `zarr_vectors` re-exports."""

import sys as _sys
from typing import Any as _Any

_parent = _sys.modules[__name__.rpartition(".")[0]]
# Modules that are not here, as `edit`, come from the package, if it is installed.
__path__ = [f"{folder}/api" for folder in _parent.__path__]

from .._store import module_of_package as _module_of_package  # noqa: E402
from .dataset import (  # noqa: E402
    Dataset,
    FormatError,
    aopen,
    create,
    open,
    open_or_create,
    require_format,
)
from .grid import CellRef, CellSet, Grid, GridCapacity  # noqa: E402
from .level import Level  # noqa: E402
from .objects import ObjectCatalog  # noqa: E402
from .result import Attributes, ReadError, ReadResult  # noqa: E402
from .schema import (  # noqa: E402
    AttributeSpec,
    Axis,
    Layout,
    Schema,
    SchemaConflict,
    SizeHints,
    StorageOptions,
)
from .select import Query, Selection  # noqa: E402

open_dataset, create_dataset = open, create

__all__ = [
    "AttributeSpec", "Attributes", "Axis", "CellRef", "CellSet", "Dataset", "FormatError", "Grid",
    "GridCapacity", "Layout", "Level", "ObjectCatalog", "Query", "ReadError", "ReadResult",
    "Schema", "SchemaConflict", "Selection", "SizeHints", "StorageOptions", "aopen",
    "coarsen_methods", "create", "create_dataset", "open", "open_dataset", "open_or_create",
    "require_format",
]  # fmt: skip


def coarsen_methods() -> tuple[str, ...]:
    """Return the methods of `build_pyramid`, by the package."""
    registry = _module_of_package("multiresolution.registry")
    return tuple(sorted({"per_object", *registry.registered_coarsen_strategies()}))


def __getattr__(name: str) -> _Any:
    if name == "EditPlan":
        return _module_of_package("api.edit").EditPlan
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
