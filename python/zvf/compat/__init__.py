"""Programs written for the package `zarr_vectors`.

`import zvf.compat.zarr_vectors` offers the names of that package, and `install` puts them in its
place for programs that cannot be changed. Stores are read and written by the engine.
"""

from ._install import install, installed

__all__ = ["install", "installed"]
