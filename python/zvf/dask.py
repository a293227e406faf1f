"""Stores that the workers of Dask read and write.

Dask schedules and repeats tasks; this module only divides the work. The stores equal those of
`zvf.create` and `Dataset.pyramid`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, Unpack

import dask
import dask.bag

from ._dataset import Dataset
from ._dataset import open as open_store
from ._frames import frame
from ._options import CreateOptions, PyramidOptions, QueryOptions, listed
from ._partition import Partition
from ._result import Result
from ._tasks import TaskPlan, build_levels, plan_shares

TableName = Literal["vertices", "objects", "links"]


@listed(QueryOptions)
def read_bag(
    store: str | os.PathLike[str] | Dataset,
    /,
    *,
    partitions: int = 16,
    **query: Unpack[QueryOptions],
) -> Any:
    """Return a bag of the results of the parts of a query, each a `zvf.Result`.

    Args:
        store: A store, which all workers can open.
        partitions: Number of parts, at most.
        **query: What to select and to read; only that is read.

    >>> import zvf.dask
    >>> bag = zvf.dask.read_bag("tracts.zv", partitions=2, where="fa > 0.4", select=["fa"])
    >>> bag.map(len).compute(scheduler="synchronous")
    [2, 2]
    """
    parts = _opened(store).partitions(partitions, **query)
    return dask.bag.from_delayed([dask.delayed(_results)(part) for part in parts])


@listed(QueryOptions)
def read(
    store: str | os.PathLike[str] | Dataset,
    /,
    *,
    partitions: int = 16,
    table: TableName = "vertices",
    **query: Unpack[QueryOptions],
) -> Any:
    """Return a query as a `dask.dataframe`, with a partition for each part of the query.

    The columns are those of `Result.table`, with a column for each value of attributes that have
    several: `vertex.rgb[0]`. The column `part` counts from 0 in each partition.

    Args:
        store: A store, which all workers can open.
        partitions: Number of partitions, at most.
        table: vertices, objects or links. An object with vertices in several partitions is in the
            objects of each.
        **query: What to select and to read; only that is read.

    >>> import zvf.dask
    >>> frame = zvf.dask.read("tracts.zv", partitions=2, where="fa > 0.4", select=["fa"])
    >>> frame.npartitions, float(frame["vertex.fa"].max().compute(scheduler="synchronous"))
    (2, 0.8)
    """
    import dask.dataframe

    dataset = _opened(store)
    parts = dataset.partitions(partitions, **query)
    one: QueryOptions = {**query, "limit": 1}
    empty = frame(dataset.query(**one), table).iloc[:0]
    return dask.dataframe.from_map(_frame, parts, table=table, meta=empty)


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
    links: Literal["batch", "input"] = "batch",
    tasks: int | None = None,
    restart: bool = False,
    **options: Unpack[CreateOptions],
) -> dict[str, Any]:
    """Write a bag or a dataframe as a new store, on the workers.

    A partition is computed once. Its geometry is kept beside the store until the end. If the work
    fails, what was written is deleted; if this process is killed, `restart=True` deletes it.

    Args:
        data: A `dask.dataframe` with a row for each vertex, as a table of `zvf.create`; or a
            bag of such tables, of results of queries, or of dictionaries of arrays. The rows of a
            path are in one table, and those of a tree in one dictionary. Only dictionaries and
            results have links.
        store: Address of the new store, which all workers can write.
        kind: points, lines, polylines, streamlines, skeletons, graphs or mesh.
        object: Attributes of objects, one row for each of `objects`.
        objects: Ids of the objects that these rows describe.
        groups: Object ids by group number, or by name.
        group: Attributes of groups.
        links: The vertex from which links count, as in `TaskPlan.fill`.
        tasks: Number of tasks that write the store; twice the number of partitions unless given.
        restart: Discard an unfinished creation at the address.
        **options: `CreateOptions` lists the design of the store.

    Returns:
        The counts of the store.
    """
    parts = data.to_delayed()
    plan = plan_shares(
        store, len(parts), kind=kind, object=object, objects=objects, groups=groups, group=group,
        tasks=tasks or 2 * len(parts), restart=restart, **options,
    )  # fmt: skip
    try:
        fill = dask.delayed(_fill, pure=False)
        dask.compute(*[fill(plan, share, part, links) for share, part in enumerate(parts)])
        while plan.phase != "write":
            plan = plan.advance()
            _run(plan)
        return plan.commit()
    except BaseException:
        plan.discard()
        raise


@listed(PyramidOptions)
def build_pyramid(
    store: str | os.PathLike[str],
    /,
    *,
    tasks: int = 16,
    **options: Unpack[PyramidOptions],
) -> list[dict[str, Any]]:
    """Build the coarser levels of a store on the workers, and return the counts of each.

    Args:
        store: A store, which all workers can write.
        tasks: Number of tasks for each level.
        **options: `PyramidOptions` lists them.
    """
    return build_levels(store, _run, tasks=tasks, **options)


def _run(plan: TaskPlan) -> None:
    run = dask.delayed(_run_task, pure=False)
    dask.compute(*[run(plan, task) for task in range(plan.tasks)])


def _run_task(plan: TaskPlan, task: int) -> bool:
    return plan.run(task)


def _fill(
    plan: TaskPlan, share: int, source: Any, links: Literal["batch", "input"]
) -> bool:
    if isinstance(source, Iterator):
        source = list(source)
    return plan.fill(share, source, links=links)


def _results(part: Partition) -> Iterable[Result]:
    return [part.query()]


def _frame(part: Partition, table: TableName) -> Any:
    return frame(part.query(), table)


def _opened(store: str | os.PathLike[str] | Dataset) -> Dataset:
    return store if isinstance(store, Dataset) else open_store(store)
