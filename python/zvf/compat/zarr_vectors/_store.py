"""Stores by path, by URL, and by handles of the package `zarr-vectors`."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import unquote, urlparse

import zvf

from .exceptions import StoreError, ZVError, translated

LOG = logging.getLogger("zvf.compat")
"""Logs the calls that the engine runs (`engine`) and those of the package (`package`)."""


class NotOfEngine(Exception):  # noqa: N818 - a reason to call the package, which is no error
    """Something that the engine does not do."""


def address_of(source: Any) -> str:
    """Return the address of a path, of a URL, or of an open store."""
    if isinstance(source, zvf.Dataset):
        return source.address
    if isinstance(source, (str, os.PathLike)):
        text = os.fspath(source)
    else:
        text = str(_attribute(source, "url"))
        # Other handles have clients of Python, which the engine cannot use.
        if not text.startswith("file:") or _attribute(source, "prefix"):
            raise NotOfEngine("the store is not a folder")
    if text.startswith("file:"):
        return unquote(urlparse(text).path)
    return text


def _attribute(source: Any, name: str) -> Any:
    try:
        return getattr(source, name)
    except AttributeError:
        return None


def opened(source: Any, client: Mapping[str, str] | None = None) -> zvf.Dataset:
    """Open a store for reading."""
    if isinstance(source, zvf.Dataset):
        return source
    address = address_of(source)
    with translated():
        return zvf.open(address, options=client) if client else zvf.open(address)


def root_attributes(address: str) -> dict[str, Any] | None:
    """Return the attributes of the root of a local store; `None` if there is none."""
    try:
        document = json.loads((Path(address) / "zarr.json").read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError as error:
        raise StoreError(f"{address}/zarr.json is not JSON: {error}") from error
    attributes = document.get("attributes")
    return attributes if isinstance(attributes, dict) else {}


def level_chunk_shape(store: zvf.Dataset, level: int) -> list[float]:
    """Return the extent of a chunk of a level."""
    if level == 0:
        return store.chunk_shape
    own = level_block(store, level).get("chunk_shape")
    return list(map(float, own)) if own else store.chunk_shape


def level_block(store: zvf.Dataset, level: int) -> dict[str, Any]:
    """Return what a level of a local store declares."""
    if "://" in store.address:
        raise NotOfEngine("what a level of a remote store declares")
    document = json.loads((Path(store.address) / str(level) / "zarr.json").read_bytes())
    block = document.get("attributes", {}).get("zarr_vectors_level")
    return block if isinstance(block, dict) else {}


def module_of_package(name: str) -> Any:
    """Import a module that only the package `zarr-vectors` has."""
    try:
        return import_module(f".{name}", __package__)
    except ModuleNotFoundError as error:
        raise ZVError(
            f"{name} is a module of the package zarr-vectors: install it, and call "
            "zvf.compat.install() before it is imported"
        ) from error


def of_package(module: str, name: str, reason: object) -> Any:
    """Return a function of the package `zarr-vectors`, for what the engine does not do."""
    package = sys.modules[__package__]
    loaded = f"{__package__}._package.{module}"
    if loaded not in sys.modules:
        file = Path(*module.split(".")).with_suffix(".py")
        for folder in list(package.__path__)[1:]:
            if (Path(folder) / file).exists():
                break
        else:
            raise ZVError(
                f"{name}: {reason}; the package zarr-vectors does, if it is installed and "
                "zvf.compat.install() is called before it is imported"
            )
        spec = importlib.util.spec_from_file_location(loaded, Path(folder) / file)
        assert spec is not None and spec.loader is not None
        sys.modules[loaded] = made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
    LOG.debug("package %s: %s", name, reason)
    return getattr(sys.modules[loaded], name)


P = ParamSpec("P")
R = TypeVar("R")


def or_package(function: Callable[P, R]) -> Callable[P, R]:
    """Call the function of the package where the engine does not do what is asked."""
    module = function.__module__.removeprefix(f"{__package__}.")

    @wraps(function)
    def calls(*arguments: P.args, **keywords: P.kwargs) -> R:
        try:
            return function(*arguments, **keywords)
        except NotOfEngine as reason:
            other: Callable[P, R] = of_package(module, function.__name__, reason)
        return other(*arguments, **keywords)

    return calls
