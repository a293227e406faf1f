"""Stores that the tasks of Ray read and write.

Ray schedules and repeats tasks; this module only divides the work. The stores equal those of
`zvf.create` and `Dataset.pyramid`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Unpack

import ray
import ray.data
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasink, Datasource, ReadTask

from ._dataset import SELECTIONS, Dataset
from ._dataset import open as open_store
from ._frames import arrow_table
from ._options import CreateOptions, PyramidOptions, QueryOptions, listed
from ._partition import Partition
from ._result import Result
from ._tasks import TaskPlan, build_levels, plan_shares

TableName = Literal["vertices", "objects", "links"]


class StoreDatasource(Datasource):  # type: ignore[misc]
    """A query of a store, with a read task for each part of it.

    `read` makes one and reads it. The number of rows and bytes of each task are known before it
    runs.
    """

    @listed(QueryOptions)
    def __init__(
        self,
        store: str | os.PathLike[str] | Dataset,
        /,
        *,
        table: TableName = "vertices",
        **query: Unpack[QueryOptions],
    ) -> None:
        super().__init__()
        self._dataset = store if isinstance(store, Dataset) else open_store(store)
        self._table = table
        self._query = query
        self._parts: list[Partition] = []

    def estimate_inmemory_data_size(self) -> int | None:
        """Return the size of the vertices, as far as it is known."""
        return sum(part.bytes or 0 for part in self._divided(1)) or None

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Return a task for each part of the query."""
        # The counts of a query with a selection are estimates, and Ray takes them as exact.
        is_exact = self._table == "vertices" and not self._query.keys() & SELECTIONS
        limit, table, tasks = per_task_row_limit, self._table, []
        for part in self._divided(parallelism):
            rows = part.rows if is_exact and limit is None else None
            metadata = BlockMetadata(
                num_rows=rows, size_bytes=part.bytes, input_files=None, exec_stats=None
            )
            read = _Reading(part, table)
            tasks.append(ReadTask(read, metadata, per_task_row_limit=limit))
        return tasks

    def _divided(self, parts: int) -> list[Partition]:
        return self._dataset.partitions(max(parts, 1), **self._query)


class _Reading:
    """The function of a read task."""

    def __init__(self, part: Partition, table: TableName) -> None:
        self._part, self._table = part, table

    def __call__(self) -> Iterator[Any]:
        for batch in self._part.batches():
            yield arrow_table(batch, self._table)


class StoreDatasink(Datasink):  # type: ignore[misc]
    """A new store of points or paths, which appears when all blocks are written.

    `create` makes one and writes a dataset to it.
    """

    @listed(CreateOptions)
    def __init__(
        self,
        store: str | os.PathLike[str],
        /,
        *,
        kind: str,
        tasks: int = 16,
        restart: bool = False,
        tables: Mapping[str, Any] | None = None,
        **options: Unpack[CreateOptions],
    ) -> None:
        self._plan: TaskPlan | None = None
        self._given: dict[str, Any] = {
            **options, **(tables or {}), "kind": kind, "tasks": tasks, "restart": restart,
        }  # fmt: skip
        self._store = os.fspath(store)
        self.report: dict[str, Any] = {}

    def on_write_start(self, schema: Any = None) -> None:
        """Reserve the place of the store."""
        self._plan = plan_shares(self._store, 0, **self._given)

    def write(self, blocks: Iterable[Any], ctx: Any) -> int:
        """Keep the rows of a task beside the store."""
        share = int(ctx.task_idx)
        tables = [BlockAccessor.for_block(block).to_arrow() for block in blocks]
        self._reserved().fill(share, [table for table in tables if table.num_rows > 0])
        return share

    def on_write_complete(self, write_result: Any) -> None:
        """Write the store from the rows of all tasks, in their order, and publish it."""
        plan = self._reserved().advance(sorted(write_result.write_returns))
        _run(plan)
        while plan.phase != "write":
            plan = plan.advance()
            _run(plan)
        self.report = plan.commit()

    def on_write_failed(self, error: Exception) -> None:
        """Delete what was written."""
        if self._plan is not None:
            self._plan.discard()

    def _reserved(self) -> TaskPlan:
        if self._plan is None:
            raise RuntimeError("on_write_start comes first")
        return self._plan


@listed(QueryOptions)
def read(
    store: str | os.PathLike[str] | Dataset,
    /,
    *,
    partitions: int = 16,
    table: TableName = "vertices",
    **query: Unpack[QueryOptions],
) -> Any:
    """Return a query as a dataset of Ray, with a block or more for each part of the query.

    The columns are those of `Result.table`, with a column for each value of attributes that have
    several: `vertex.rgb[0]`. The column `part` counts from 0 in each block.

    Args:
        store: A store, which all nodes can open.
        partitions: Number of read tasks, at most.
        table: vertices, objects or links. An object with vertices in several parts is in the
            objects of each.
        **query: What to select and to read; only that is read.
    """
    source = StoreDatasource(store, table=table, **query)
    return ray.data.read_datasource(source, override_num_blocks=partitions)


@listed(CreateOptions)
def create(
    data: Any,
    store: str | os.PathLike[str],
    /,
    *,
    kind: str,
    object: Any = None,
    objects: Any = None,
    groups: Mapping[Any, Any] | None = None,
    group: Any = None,
    tasks: int = 16,
    restart: bool = False,
    **options: Unpack[CreateOptions],
) -> dict[str, Any]:
    """Write a dataset of Ray as a new store of points or paths, and return its counts.

    The geometry is kept beside the store until the end. If the work fails, what was written is
    deleted; if this process is killed, `restart=True` deletes it.

    Args:
        data: A dataset with a row for each vertex, as a table of `zvf.create`. The rows of a path
            are in one block.
        store: Address of the new store, which all nodes can write.
        kind: points, lines, polylines or streamlines.
        object: Attributes of objects, one row for each of `objects`.
        objects: Ids of the objects that these rows describe.
        groups: Object ids by group number, or by name.
        group: Attributes of groups.
        tasks: Number of tasks that write the store.
        restart: Discard an unfinished creation at the address.
        **options: `CreateOptions` lists the design of the store.
    """
    tables = {"object": object, "objects": objects, "groups": groups, "group": group}
    sink = StoreDatasink(
        store, kind=kind, tasks=tasks, restart=restart, tables=tables, **options
    )
    data.write_datasink(sink)
    return sink.report


@listed(PyramidOptions)
def build_pyramid(
    store: str | os.PathLike[str],
    /,
    *,
    tasks: int = 16,
    **options: Unpack[PyramidOptions],
) -> list[dict[str, Any]]:
    """Build the coarser levels of a store by tasks of Ray, and return the counts of each.

    Args:
        store: A store, which all nodes can write.
        tasks: Number of tasks for each level.
        **options: `PyramidOptions` lists them.
    """
    return build_levels(store, _run, tasks=tasks, **options)


@listed(QueryOptions)
def map_cells(
    store: str | os.PathLike[str] | Dataset,
    function: Callable[[Result], Any],
    /,
    *,
    partitions: int = 16,
    **query: Unpack[QueryOptions],
) -> list[Any]:
    """Call a function with the result of each part of a query, in tasks of Ray, and return what it
    returns, in the order of the parts.

    Args:
        store: A store, which all nodes can open.
        function: The function.
        partitions: Number of parts, at most.
        **query: What to select and to read; only that is read.
    """
    dataset = store if isinstance(store, Dataset) else open_store(store)
    parts = dataset.partitions(partitions, **query)
    call = ray.remote(_call).options(max_retries=-1)
    mapped: list[Any] = ray.get([call.remote(function, part) for part in parts])
    return mapped


def _call(function: Callable[[Result], Any], part: Partition) -> Any:
    return function(part.query())


def _run(plan: TaskPlan) -> None:
    # Repeated for as long as workers die. Exceptions of the engine end the work.
    run = ray.remote(_run_task).options(max_retries=-1)
    ray.get([run.remote(plan, task) for task in range(plan.tasks)])


def _run_task(plan: TaskPlan, task: int) -> bool:
    return plan.run(task)
