"""Work divided into tasks that other processes run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Unpack

import numpy as np

from . import _zvf
from ._dataset import Dataset
from ._dataset import open as open_store
from ._geometry import geometry
from ._options import (
    CreateOptions,
    MigrateOptions,
    OpenOptions,
    PyramidOptions,
    SampleOptions,
    listed,
    plain,
    sampling,
)
from ._plan_files import Tasks, absolute
from ._raw import RawPlan
from ._result import Result
from ._tables import arrays_of, is_table

PATHS = ("lines", "polylines", "streamlines")
LINKED = ("skeletons", "graphs", "mesh")
# In the options of a new store, `node_copy` is a part of its design.
OPENING = tuple(name for name in OpenOptions.__annotations__ if name != "node_copy")


class TaskPlan(Tasks):
    """Work on a store, divided into tasks that run in any order, in any process, on any machine.

    `plan_create`, `plan_shares`, `plan_pyramid`, `plan_sample`, `plan_migrate` and `read_plan` make
    one. A plan can be pickled, or kept in a file with `write`. A task may be killed, and may run
    again or twice at once. Readers see no change until `commit`; then the result equals that of
    `zvf.create`, `Dataset.pyramid`, `Dataset.sample` or `zvf.migrate`.

    >>> tracts = zvf.open("tracts.zv")
    >>> plan = zvf.plan_pyramid("tracts.zv", levels=1, method="stride", factors=[2], tasks=2)
    >>> [plan.run(task) for task in range(plan.tasks)]
    [True, False]
    >>> plan.missing(), plan.commit()["level"]
    ([], 1)
    """

    __slots__ = ("_axes", "_kind")

    _raw: _zvf.TaskPlan
    _described: RawPlan

    def __init__(
        self,
        raw: _zvf.TaskPlan,
        options: Mapping[str, Any],
        address: str | None = None,
        kind: str | None = None,
        axes: Sequence[str] = (),
    ) -> None:
        self._raw = raw
        self._options = dict(options)
        self._address = address
        self._kind = kind
        self._axes = list(axes)
        self._described = raw.describe()

    def __reduce__(self) -> Any:
        state = (self._raw.json(), self._options, self._address, self._kind, self._axes)
        return _restored, state

    @property
    def job(self) -> str:
        """`create`, `pyramid`, `sample` or `migrate`."""
        return self._described["job"]

    @property
    def phase(self) -> str:
        """`fill`, `divide`, `link` or `write`. Plans begin with `write`, except those of
        `plan_shares`; only plans of skeletons, graphs and meshes have the phase `link`."""
        return self._described["phase"]

    @property
    def level(self) -> int | None:
        """The level that is built; `None` for a new store."""
        return self._described["level"]

    @property
    def report(self) -> dict[str, Any] | None:
        """The counts that `commit` returned; `None` before it."""
        return self._described["committed"]

    def write(self, address: str | os.PathLike[str], /) -> None:
        """Write the plan to a file or an object, for `zvf task run` and `read_plan`. `advance` and
        `commit` then update it."""
        full = absolute(address)
        self._raw.write(full)
        self._address = full

    def fill(
        self,
        share: int,
        source: Any,
        /,
        *,
        kind: str | None = None,
        companions: Sequence[str | os.PathLike[str]] = (),
        links: Literal["batch", "input"] = "batch",
    ) -> bool:
        """Read a share of the input, counted from 0, and keep it for the next phase.

        Returns whether there was something to do: a share that is filled already is not read.

        Args:
            share: The share.
            source: A file as for `zvf.create`; or a batch, or several batches: tables of pandas,
                polars or Arrow, results of queries, or dictionaries of `positions`,
                `part_offsets`, `part_objects`, `object_ids`, `links`, `vertex` and `link`. A path,
                and a tree of a skeleton, is in one batch.
            kind: Kind of the geometry of a file that may have several, or of tables, if the plan
                comes from `read_plan`.
            companions: Files that belong to a file.
            links: The vertex from which links count: `batch` for the first of their batch, `input`
                for the first of the whole input, which is that of the first share. With `input`,
                links of graphs and meshes connect vertices of any shares, and a batch may be a
                dictionary of links alone.
        """
        if links not in ("batch", "input"):
            raise ValueError(f"links is {links!r}; use batch or input")
        if isinstance(source, (str, os.PathLike)):
            files = [os.fspath(path) for path in companions]
            keywords = {"kind": kind, "companions": files}
            return self._raw.fill_from_file(share, os.fspath(source), keywords)
        batches = [source] if is_table(source) or isinstance(source, Result) else source
        kind = kind or self._kind
        made = [self._batch(batch, kind, links) for batch in batches]
        return self._raw.fill(share, made, links == "input")

    def _batch(self, batch: Any, kind: str | None, links: str) -> dict[str, Any]:
        if isinstance(batch, Result):
            names = ("positions", "part_offsets", "part_objects", "object_ids")
            arrays = {name: getattr(batch, name) for name in names}
            if batch.part_offsets is not None and len(batch.part_offsets):
                # Those of a batch count from the start of the whole result.
                arrays["part_offsets"] = batch.part_offsets - batch.part_offsets[0]
            if batch.links is not None:
                # Those of a batch count from the start of the whole result.
                first = batch.first_row if links == "batch" else 0
                arrays |= {"links": batch.links - first, "link": batch.link}
            return geometry({**arrays, "vertex": batch.vertex})
        if isinstance(batch, Mapping) and ("positions" in batch or "links" in batch):
            return geometry({"positions": np.zeros((0, 1)), **batch})
        if not is_table(batch):
            raise TypeError(
                f"a batch is a {type(batch).__name__}; use a table, a result of a query, or a "
                "dictionary of arrays"
            )
        if kind is None:
            raise TypeError("kind is missing; it tells what the columns of a table are")
        if kind in LINKED:
            raise TypeError(f"a table has no links; fill {kind} from dictionaries of arrays or files")
        return geometry(arrays_of(batch, self._axes, kind in PATHS))

    def advance(self, shares: Iterable[int] | None = None, /) -> TaskPlan:
        """Return the plan of the next phase, after all tasks of this one. May be repeated.

        Args:
            shares: The shares that make the store, in their order; all unless given.
        """
        raw = self._raw.advance(None if shares is None else list(shares))
        plan = TaskPlan(raw, self._options, self._address, self._kind, self._axes)
        if self._address is not None:
            raw.write(self._address)
        return plan

    def commit(self) -> dict[str, Any]:
        """Publish the result after all tasks, and return its counts.

        Raises:
            ConflictError: A task is not done, or the store was changed or replaced.
        """
        if self.report is None or self._address is not None:
            self._raw = self._raw.commit(self._address)
            self._described = self._raw.describe()
        return self.report or {}

    def discard(self) -> None:
        """Delete everything that the tasks have written, and the reservation of a new store."""
        self._raw.discard()

    def __repr__(self) -> str:
        level = "" if self.level is None else f", level {self.level}"
        return f"TaskPlan({self.job} {self.store!r}{level}, {self.phase}, {self.tasks} tasks)"


def _restored(
    text: str, options: dict[str, Any], address: str | None, kind: str | None, axes: list[str]
) -> TaskPlan:
    return TaskPlan(_zvf.TaskPlan(text, plain(options)), options, address, kind, axes)


@listed(CreateOptions)
def plan_create(
    store: str | os.PathLike[str],
    source: str | os.PathLike[str],
    /,
    *,
    kind: str | None = None,
    companions: Sequence[str | os.PathLike[str]] = (),
    tasks: int = 16,
    restart: bool = False,
    **options: Unpack[CreateOptions],
) -> TaskPlan:
    """Plan the creation of a store from a file, which this process divides.

    Args:
        store: Address of the new store, which is reserved.
        source: A file as for `zvf.create`.
        kind: Kind of the geometry of a file that may have several.
        companions: Files that belong to `source`.
        tasks: Number of tasks.
        restart: Discard an unfinished plan at the address.
        **options: `CreateOptions` lists the design of the store.

    >>> saved = zvf.open("tracts.zv").save("tracts.trk")
    >>> plan = zvf.plan_create("many.zv", "tracts.trk", tasks=2)
    >>> ran = [plan.run(task) for task in range(plan.tasks)]
    >>> plan.commit()["objects"]
    2
    """
    keywords: dict[str, Any] = {**plain(options), "kind": kind, "tasks": tasks, "restart": restart}
    keywords["companions"] = [os.fspath(path) for path in companions]
    raw = _zvf.plan_create(os.fspath(store), os.fspath(source), keywords)
    return TaskPlan(raw, _opening(options))


@listed(CreateOptions)
def plan_shares(
    store: str | os.PathLike[str],
    shares: int,
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
) -> TaskPlan:
    """Plan the creation of a store from shares of input that tasks read.

    Fill each share, advance the plan and run its tasks until the phase is `write`, and commit.
    The store equals that of the shares in their order, read by one process.

    Args:
        store: Address of the new store, which is reserved.
        shares: Number of shares.
        kind: points, lines, polylines, streamlines, skeletons, graphs or mesh.
        object: Attributes of objects, one row for each of `objects`.
        objects: Ids of the objects that these rows describe.
        groups: Object ids by group number, or by name.
        group: Attributes of groups.
        tasks: Number of tasks that write the store.
        restart: Discard an unfinished plan at the address.
        **options: `CreateOptions` lists the design of the store.

    >>> plan = zvf.plan_shares("cloud.zv", 2, kind="points", tasks=3)
    >>> plan.fill(0, {"positions": np.eye(3)}), plan.fill(1, {"positions": 5 * np.eye(3)})
    (True, True)
    >>> plan = plan.advance()
    >>> plan
    TaskPlan(create '...cloud.zv', divide, 2 tasks)
    >>> ran = [plan.run(share) for share in range(plan.tasks)]
    >>> plan = plan.advance()
    >>> ran = [plan.run(task) for task in range(plan.tasks)]
    >>> plan.commit()["vertices"]
    6
    """
    given = {"object": object, "objects": objects, "groups": groups, "group": group}
    tables = {name: values for name, values in given.items() if values is not None}
    keywords: dict[str, Any] = {**plain(options), "kind": kind, "tasks": tasks, "restart": restart}
    made = geometry({"positions": np.zeros((0, 1)), **tables})
    raw = _zvf.plan_shares(os.fspath(store), shares, made, keywords)
    axes = [axis if isinstance(axis, str) else axis[0] for axis in keywords.get("axes") or ()]
    return TaskPlan(raw, _opening(options), kind=kind, axes=axes)


@listed(PyramidOptions)
def plan_pyramid(
    store: str | os.PathLike[str] | Dataset,
    /,
    *,
    tasks: int = 16,
    **options: Unpack[PyramidOptions],
) -> TaskPlan:
    """Plan the first coarser level of a store that does not exist; `PyramidOptions` lists the
    arguments. Plan again after its commit; a plan without tasks means that all levels exist."""
    dataset = store if isinstance(store, Dataset) else open_store(store)
    raw = _zvf.plan_pyramid(dataset._raw, {**options, "tasks": tasks})
    return TaskPlan(raw, dataset._options)


@listed(SampleOptions)
def plan_sample(
    store: str | os.PathLike[str] | Dataset,
    volume: str | os.PathLike[str],
    /,
    into: str,
    *,
    tasks: int = 16,
    **options: Unpack[SampleOptions],
) -> TaskPlan:
    """Plan an attribute that tasks sample from a volume, as `Dataset.sample` does.

    Args:
        store: A store, of format 0.9.
        volume: A `.npy`, `.nii`, `.nii.gz`, `.b2nd` or `.tet` file that all tasks can read.
        into: Name of the attribute.
        tasks: Number of tasks.
        **options: `SampleOptions` lists the arguments.

    >>> np.save("t1.npy", np.arange(1000.0).reshape(10, 10, 10))
    >>> plan = zvf.plan_sample("tracts.zv", "t1.npy", into="t1", tasks=2)
    >>> ran = [plan.run(task) for task in range(plan.tasks)]
    >>> plan.commit()["vertices"]
    5
    >>> zvf.open("tracts.zv").query(objects=3).vertex["t1"]
    array([  0., 111., 211.])
    """
    dataset = store if isinstance(store, Dataset) else open_store(store)
    keywords = {**sampling(into, options), "tasks": tasks}
    raw = _zvf.plan_sample(dataset._raw, os.fspath(volume), keywords)
    return TaskPlan(raw, dataset._options)


@listed(MigrateOptions)
def plan_migrate(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    /,
    *,
    tasks: int = 16,
    restart: bool = False,
    **options: Unpack[MigrateOptions],
) -> TaskPlan:
    """Plan a migration to a new store, as `zvf.migrate` does it; `MigrateOptions` lists the
    arguments. The source must not change until the commit.

    Args:
        source: A store of any generation.
        target: Address of the new store, which is reserved.
        tasks: Number of tasks.
        restart: Discard an unfinished plan at the address.
        **options: `MigrateOptions` lists the arguments.

    >>> plan = zvf.plan_migrate("tracts.zv", "older.zv", profile="0.8", tasks=2)
    >>> ran = [plan.run(task) for task in range(plan.tasks)]
    >>> plan.commit()["to"]
    '0.8'
    """
    keywords: dict[str, Any] = {**plain(options), "tasks": tasks, "restart": restart}
    raw = _zvf.plan_migrate(os.fspath(source), os.fspath(target), keywords)
    return TaskPlan(raw, _opening(options))


@listed(PyramidOptions)
def build_levels(
    store: str | os.PathLike[str],
    run: Callable[[TaskPlan], None],
    /,
    *,
    tasks: int,
    **options: Unpack[PyramidOptions],
) -> list[dict[str, Any]]:
    """Build coarser levels with a function that runs all tasks of a plan; return their counts."""
    built = []
    while (plan := plan_pyramid(store, tasks=tasks, **options)).tasks > 0:
        try:
            run(plan)
            built.append(plan.commit())
        except BaseException:
            plan.discard()
            raise
    return built


@listed(OpenOptions)
def read_plan(address: str | os.PathLike[str], /, **options: Unpack[OpenOptions]) -> TaskPlan:
    """Read a plan that `TaskPlan.write` or `zvf task plan` wrote. `ValidationPlan.read` and
    `ExportPlan.read` read those of validations and exports.

    >>> zvf.plan_pyramid("tracts.zv", levels=1, tasks=2).write("plan.json")
    >>> zvf.read_plan("plan.json").level
    1
    """
    full = absolute(address)
    return TaskPlan(_zvf.read_plan(full, plain(options)), options, full)


def _opening(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a new store with which tasks open it."""
    return {name: options[name] for name in OPENING if name in options}
