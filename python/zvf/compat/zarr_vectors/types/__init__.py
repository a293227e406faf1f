"""Readers and writers of each kind of geometry."""

import sys as _sys

_parent = _sys.modules[__name__.rpartition(".")[0]]
# Modules that are not here come from the package, if it is installed.
__path__ = [f"{folder}/types" for folder in _parent.__path__]
