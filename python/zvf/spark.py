"""Stores that the executors of Spark read and write.

Spark schedules and repeats tasks; this module only divides the work. The stores equal those of
`zvf.create` and `Dataset.pyramid`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from typing import Any, Literal, Unpack

from pyspark import TaskContext

from ._dataset import Dataset
from ._dataset import open as open_store
from ._frames import arrow_table
from ._options import CreateOptions, PyramidOptions, QueryOptions, listed
from ._partition import Partition
from ._result import Result
from ._tasks import TaskPlan, build_levels, plan_shares

pyarrow: Any = import_module("pyarrow")
TableName = Literal["vertices", "objects", "links"]


@listed(QueryOptions)
def read(
    spark: Any,
    store: str | os.PathLike[str] | Dataset,
    /,
    *,
    partitions: int = 16,
    table: TableName = "vertices",
    **query: Unpack[QueryOptions],
) -> Any:
    """Return a query as a dataframe of Spark, with a partition for each part of the query.

    The columns are those of `Result.table`, with a column for each value of attributes that have
    several: `vertex.rgb[0]`. The column `part` counts from 0 in each partition. Spark has no
    unsigned integers, so these columns have the next wider type; values of 64 bits must be less
    than 2^63.

    Args:
        spark: The session.
        store: A store, which all executors can open.
        partitions: Number of partitions, at most.
        table: vertices, objects or links. An object with vertices in several partitions is in the
            objects of each.
        **query: What to select and to read; only that is read. Conditions on the dataframe are
            evaluated after reading.
    """
    dataset = store if isinstance(store, Dataset) else open_store(store)
    parts = dataset.partitions(partitions, **query)
    one: QueryOptions = {**query, "limit": 1}
    empty = _signed(dataset.query(**one), table).slice(0, 0)
    schema = spark.createDataFrame(empty).schema
    return _mapped(spark, len(parts), partial(_rows, parts, table), schema)


@listed(CreateOptions)
def create(
    frame: Any,
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
    """Write a dataframe of Spark as a new store of points or paths, and return its counts.

    The geometry is kept beside the store until the end. If the work fails, what was written is
    deleted; if this process is killed, `restart=True` deletes it.

    Args:
        frame: A dataframe with a row for each vertex, as a table of `zvf.create`. The rows of a
            path follow each other in one partition.
        store: Address of the new store, which all executors can write.
        kind: points, lines, polylines or streamlines.
        object: Attributes of objects, one row for each of `objects`.
        objects: Ids of the objects that these rows describe.
        groups: Object ids by group number, or by name.
        group: Attributes of groups.
        tasks: Number of tasks that write the store.
        restart: Discard an unfinished creation at the address.
        **options: `CreateOptions` lists the design of the store.
    """
    # The number of partitions is known once the dataframe is computed.
    plan = plan_shares(
        store, 0, kind=kind, object=object, objects=objects, groups=groups, group=group,
        tasks=tasks, restart=restart, **options,
    )  # fmt: skip
    try:
        filled = frame.mapInArrow(partial(_fill, plan), "share long").collect()
        plan = plan.advance(sorted(row.share for row in filled))
        _run(frame.sparkSession, plan)
        while plan.phase != "write":
            plan = plan.advance()
            _run(frame.sparkSession, plan)
        return plan.commit()
    except BaseException:
        plan.discard()
        raise


@listed(PyramidOptions)
def build_pyramid(
    spark: Any,
    store: str | os.PathLike[str],
    /,
    *,
    tasks: int = 16,
    **options: Unpack[PyramidOptions],
) -> list[dict[str, Any]]:
    """Build the coarser levels of a store by tasks of Spark, and return the counts of each.

    Args:
        spark: The session.
        store: A store, which all executors can write.
        tasks: Number of tasks for each level.
        **options: `PyramidOptions` lists them.
    """
    return build_levels(store, partial(_run, spark), tasks=tasks, **options)


def _run(spark: Any, plan: TaskPlan) -> None:
    _mapped(spark, plan.tasks, partial(_run_task, plan), "task long").collect()


def _mapped(
    spark: Any, tasks: int, function: Callable[[int], Iterable[Any]], schema: Any
) -> Any:
    """Return a dataframe of the batches that a function returns for each task, with a partition
    for each task."""
    numbers = spark.range(0, tasks, 1, max(tasks, 1))
    return numbers.mapInArrow(partial(_called, function), schema)


def _called(function: Callable[[int], Iterable[Any]], batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        for task in batch.column(0).to_pylist():
            yield from function(task)


def _fill(plan: TaskPlan, batches: Iterator[Any]) -> Iterator[Any]:
    share = TaskContext.get().partitionId()
    # One table, because the rows of a path may be in several batches.
    found = [batch for batch in batches if batch.num_rows > 0]
    plan.fill(share, [pyarrow.Table.from_batches(found)] if found else [])
    yield pyarrow.RecordBatch.from_pydict({"share": [share]})


def _run_task(plan: TaskPlan, task: int) -> Iterable[Any]:
    plan.run(task)
    return ()


def _rows(parts: list[Partition], table: TableName, task: int) -> Iterator[Any]:
    for batch in parts[task].batches():
        yield from _signed(batch, table).to_batches()


def _signed(result: Result, table: TableName) -> Any:
    """Return a table with the types of Spark."""
    wider = {
        pyarrow.uint8(): pyarrow.int16(),
        pyarrow.uint16(): pyarrow.int32(),
        pyarrow.uint32(): pyarrow.int64(),
        pyarrow.uint64(): pyarrow.int64(),
        pyarrow.float16(): pyarrow.float32(),
    }
    found = arrow_table(result, table)
    fields = [field.with_type(wider.get(field.type, field.type)) for field in found.schema]
    return found.cast(pyarrow.schema(fields))
