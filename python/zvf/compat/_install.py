"""Put the names of `zvf.compat.zarr_vectors` in the place of the package `zarr_vectors`."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

NAME = "zarr_vectors"
HERE = Path(__file__).parent / NAME


def install() -> None:
    """Make `import zarr_vectors` import `zvf.compat.zarr_vectors`.

    Modules that it does not have, as `zarr_vectors.building`, come from the package `zarr-vectors`
    where that is installed. Call it before anything imports `zarr_vectors`.

    Raises:
        ImportError: The package is imported already.
    """
    if installed():
        return
    if any(name == NAME or name.startswith(f"{NAME}.") for name in sys.modules):
        raise ImportError("zarr_vectors is imported already; call zvf.compat.install() first")
    found = importlib.machinery.PathFinder.find_spec(NAME)
    folders = [str(HERE)]
    if found is not None and found.submodule_search_locations is not None:
        folders += found.submodule_search_locations
    spec = importlib.util.spec_from_file_location(
        NAME, HERE / "__init__.py", submodule_search_locations=folders
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[NAME]
        raise


def installed() -> bool:
    """Return whether `zarr_vectors` is `zvf.compat.zarr_vectors`."""
    module = sys.modules.get(NAME)
    return module is not None and str(HERE) in getattr(module, "__path__", [])
