"""The names of the package `zarr_vectors`, with the engine underneath."""

from importlib import import_module as _import_module
from typing import Any as _Any

from . import exceptions as exceptions
from . import types as types
from ._api_version import FEATURES, __api_version__, require_api
from .api import (
    Attributes,
    AttributeSpec,
    Axis,
    CellRef,
    CellSet,
    Dataset,
    FormatError,
    Grid,
    GridCapacity,
    Layout,
    Level,
    ObjectCatalog,
    Query,
    ReadError,
    ReadResult,
    Schema,
    SchemaConflict,
    Selection,
    SizeHints,
    StorageOptions,
    aopen,
    coarsen_methods,
    create,
    create_dataset,
    open,
    open_dataset,
    open_or_create,
    require_format,
)

__version__ = "0.9.2"

# What comes from the package, if it is installed.
_HOMES = {
    "EditPlan": ".api", "stability": "._stability",
    "detect_scheme": ".core.backends", "Group": ".core.group", "FsGroup": ".core.store",
    "create_store": ".core.store", "open_store": ".core.store", "rebind": ".core.store",
    "ZVWriter": ".lazy.writer", "RechunkSpec": ".rechunk", "rechunk": ".rechunk",
    "rechunk_by_attribute": ".rechunk",
}  # fmt: skip

__all__ = [
    "AttributeSpec", "Attributes", "Axis", "CellRef", "CellSet", "Dataset", "FEATURES",
    "FormatError", "Grid", "GridCapacity", "Layout", "Level", "ObjectCatalog", "Query",
    "ReadError", "ReadResult", "Schema", "SchemaConflict", "Selection", "SizeHints",
    "StorageOptions", "__api_version__", "__version__", "aopen", "coarsen_methods", "create",
    "create_dataset", "exceptions", "open", "open_dataset", "open_or_create", "require_api",
    "require_format", "types",
]  # fmt: skip


def __getattr__(name: str) -> _Any:
    home = _HOMES.get(name)
    if home is None:
        if name == "building":
            return _import_module(".building", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_import_module(home, __name__), name)
