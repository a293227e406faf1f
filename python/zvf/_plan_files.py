"""Plans of work that leaves the store as it is: validations and exports."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self, Unpack

from . import _zvf
from ._dataset import Dataset
from ._dataset import open as open_store
from ._options import OpenOptions, PrecomputedOptions, ValidateOptions, listed, plain
from ._raw import RawPlan, RawPlanFile
from ._reports import PrecomputedReport, Validation, findings


class Tasks:
    """Work divided into tasks."""

    __slots__ = ("_address", "_described", "_options", "_raw")

    _raw: _zvf.TaskPlan | _zvf.PlanFile
    _described: RawPlan | RawPlanFile

    @property
    def store(self) -> str:
        """The address of the store."""
        return self._described["store"]

    @property
    def tasks(self) -> int:
        """The number of tasks, of this phase if there are several."""
        return self._described["tasks"]

    def run(self, task: int, /) -> bool:
        """Run a task, counted from 0. Returns whether there was something to do."""
        return self._raw.run(task)

    def missing(self) -> list[int]:
        """Return the tasks that are not done."""
        return self._raw.missing()


class _PlanFile(Tasks):
    """Work divided into tasks, whose plan is a file from the start."""

    __slots__ = ()

    _is_export: ClassVar[bool]
    _raw: _zvf.PlanFile
    _described: RawPlanFile

    def __init__(self, raw: _zvf.PlanFile, address: str, options: Mapping[str, Any]) -> None:
        self._raw = raw
        self._address = address
        # The plan says whether requests for the store are signed. Those for the plan are.
        left = ("anonymous", "level", "limit")
        self._options = {name: value for name, value in options.items() if name not in left}
        self._described = raw.describe()

    def __reduce__(self) -> Any:
        return partial(type(self).read, self._address, **self._options), ()

    @classmethod
    @listed(OpenOptions)
    def read(cls, address: str | os.PathLike[str], /, **options: Unpack[OpenOptions]) -> Self:
        """Read a plan of this kind, which Python or `zvf task plan` wrote."""
        full = absolute(address)
        return cls(_zvf.PlanFile(cls._is_export, full, plain(options)), full, options)

    def _committed(self) -> dict[str, Any]:
        self._raw = self._raw.commit()
        self._described = self._raw.describe()
        return self._described["report"] or {}


class ValidationPlan(_PlanFile):
    """A validation, divided into tasks that run in any order, in any process, on any machine.

    `plan_validation` makes one, and `ValidationPlan.read` reads it. A task may be killed, and may
    run again or twice at once. Nothing is written into the store: until `commit`, the outcomes of
    the tasks are in the folder `.zvf` beside the plan. A pickled plan is its address, from which
    other processes read it.

    >>> plan = zvf.plan_validation("tracts.zv", "check.json", tasks=2)
    >>> [plan.run(task) for task in range(plan.tasks)]
    [True, True]
    >>> zvf.ValidationPlan.read("check.json").commit().ok
    True
    """

    __slots__ = ()

    _is_export = False

    @property
    def level(self) -> int:
        """The depth of the validation, from 1 to 4."""
        return self._described["level"]

    @property
    def report(self) -> Validation | None:
        """What `commit` returned; `None` before it."""
        report = self._described["report"]
        return None if report is None else Validation(**findings({**report}))

    def commit(self) -> Validation:
        """Join the outcomes of all tasks and do the other checks. Returns the findings, which equal
        those of `zvf.validate`. May be repeated.

        Raises:
            ConflictError: A task is not done, or the store was changed.
        """
        return Validation(**findings({**self._committed()}))

    def __repr__(self) -> str:
        return f"ValidationPlan({self.store!r}, level {self.level}, {self.tasks} tasks)"


class ExportPlan(_PlanFile):
    """An export for Neuroglancer, divided into tasks that run in any order, in any process, on any
    machine.

    `plan_export` makes one, and `ExportPlan.read` reads it. A task may be killed, and may run again
    or twice at once. No program opens the layers until `commit`; then the files equal those of
    `Dataset.export_precomputed`. A pickled plan is its address, from which other processes read it.

    >>> plan = zvf.plan_export("tracts.zv", "tracts.precomputed", "export.json", tasks=2)
    >>> ran = [plan.run(task) for task in range(plan.tasks)]
    >>> zvf.ExportPlan.read("export.json").commit().layers
    [('annotations', 2), ('skeletons', 2), ('groups', 2)]
    """

    __slots__ = ()

    _is_export = True

    @property
    def target(self) -> str:
        """The folder or the address of the export."""
        return self._described["target"]

    @property
    def report(self) -> PrecomputedReport | None:
        """What `commit` returned; `None` before it."""
        report = self._described["report"]
        return None if report is None else PrecomputedReport(**report)

    def commit(self) -> PrecomputedReport:
        """Check that every file is there, and publish the export. May be repeated.

        Raises:
            ConflictError: A task is not done, or the store was changed or the plan replaced.
        """
        return PrecomputedReport(**self._committed())

    def __repr__(self) -> str:
        return f"ExportPlan({self.store!r} to {self.target!r}, {self.tasks} tasks)"


@listed(ValidateOptions)
def plan_validation(
    store: str | os.PathLike[str],
    plan: str | os.PathLike[str],
    /,
    *,
    tasks: int = 16,
    **options: Unpack[ValidateOptions],
) -> ValidationPlan:
    """Plan a validation, as `zvf.validate` does it: list the store, and write the plan.

    Args:
        store: A store, which may be read-only.
        plan: File or address of the plan, which all tasks can read and beside which they can write.
            It is replaced, and cannot be inside the store.
        tasks: Number of tasks.
        **options: `ValidateOptions` lists the arguments.

    >>> zvf.plan_validation("tracts.zv", "check.json", level=3, tasks=2)
    ValidationPlan('...tracts.zv', level 3, 2 tasks)
    """
    full = absolute(plan)
    keywords: dict[str, Any] = {**plain(options), "tasks": tasks}
    raw = _zvf.plan_validation(os.fspath(store), full, keywords)
    return ValidationPlan(raw, full, options)


@listed(PrecomputedOptions)
def plan_export(
    store: str | os.PathLike[str] | Dataset,
    target: str | os.PathLike[str],
    plan: str | os.PathLike[str],
    /,
    *,
    tasks: int = 16,
    restart: bool = False,
    **options: Unpack[PrecomputedOptions],
) -> ExportPlan:
    """Plan an export, as `Dataset.export_precomputed` does it: read the store, divide its
    annotations, reserve the target, and write the plan.

    Args:
        store: A store, whose present state is exported.
        target: A new folder, or the address of an empty prefix of a bucket.
        plan: File or address of the plan, which all tasks can read and the commit updates.
        tasks: Number of tasks. Some may have nothing to do.
        restart: Discard an unfinished plan for the target.
        **options: `PrecomputedOptions` lists the arguments.

    >>> zvf.plan_export("tracts.zv", "tracts.precomputed", "export.json", tasks=2)
    ExportPlan('...tracts.zv' to '...tracts.precomputed', 2 tasks)
    """
    full = absolute(plan)
    dataset = store if isinstance(store, Dataset) else open_store(store)
    keywords: dict[str, Any] = {**options, "tasks": tasks, "restart": restart}
    raw = _zvf.plan_export(dataset._raw, os.fspath(target), full, keywords)
    return ExportPlan(raw, full, dataset._options)


def absolute(address: str | os.PathLike[str]) -> str:
    """Return the address of a plan, which tasks read from other folders."""
    text = os.fspath(address)
    return text if ":" in text else os.path.abspath(text)
