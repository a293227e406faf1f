"""Progress of long operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, TypeAlias

Progress: TypeAlias = Callable[[int, int], object] | bool | None
"""A function of the work done and all work known so far, or `True` for a bar of tqdm or rich."""


@contextmanager
def shown(progress: Progress, title: str) -> Iterator[Callable[[int, int], object] | None]:
    """Return the function that an operation calls with its progress."""
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield progress
    elif progress is True:
        with _bar(title) as update:
            yield update
    else:
        raise TypeError(f"progress is a {type(progress).__name__}; use a function, or True")


@contextmanager
def _bar(title: str) -> Iterator[Callable[[int, int], object]]:
    if (tqdm := _module("tqdm.auto")) is not None:
        with tqdm.tqdm(desc=title) as bar:

            def update(done: int, total: int) -> None:
                bar.total = total
                bar.update(done - bar.n)

            yield update
    elif (rich := _module("rich.progress")) is not None:
        with rich.Progress() as bars:
            task = bars.add_task(title)
            yield lambda done, total: bars.update(task, completed=done, total=total)
    else:
        raise ImportError(
            "progress=True needs tqdm or rich, as `pip install tqdm`; or pass a function of the "
            "work done and all work"
        )


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return None
