"""Operations that asyncio awaits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from . import _zvf


async def awaited(start: Callable[[Callable[[Any, Any], None]], _zvf.Task]) -> Any:
    """Start an operation and wait for what it passes to its callback on another thread."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(value: Any, error: Any) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def done(value: Any, error: Any) -> None:
        # A loop that was closed meanwhile has no waiting task.
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, value, error)

    task = start(done)
    try:
        return await future
    finally:
        task.cancel()
