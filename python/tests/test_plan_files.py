"""Plans of validations and exports."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf


def files(folder: str) -> dict[str, bytes]:
    found = [path for path in Path(folder).rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def paths(store: str) -> None:
    """Create a store of 30 paths in many chunks."""
    numbers = np.random.default_rng(5)
    zvf.create(
        store, kind="streamlines", chunk_shape=(20, 20, 20), seal=False,
        positions=np.cumsum(numbers.random((900, 3), np.float32), axis=0) % 100,
        part_offsets=np.arange(0, 901, 30), vertex={"fa": numbers.random(900)},
        object={"length": np.arange(30.0)}, objects=np.arange(30), groups={"some": [3, 29]},
    )  # fmt: skip


def damage(store: str) -> None:
    """Truncate two cells."""
    cells = sorted(Path(store, "0", "vertices", "c").rglob("*"))
    for cell in [path for path in cells if path.is_file()][:2]:
        cell.write_bytes(cell.read_bytes()[:-3])


def command(*words: str) -> None:
    """Run the command in another process."""
    path = str(Path(zvf.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    line = [sys.executable, "-m", "zvf", *words]
    subprocess.run(line, check=True, capture_output=True, env=environment)


def run_by_copies(plan: zvf.ValidationPlan | zvf.ExportPlan) -> None:
    """Run each task by a copy as another process has it, the last one first, and again."""
    for task in reversed(range(plan.tasks)):
        pickle.loads(pickle.dumps(plan)).run(task)
        assert not plan.run(task)
        assert plan.missing() == [one for one in plan.missing() if one < task]
    assert plan.missing() == []


@pytest.mark.parametrize("options", [{}, {"limit": 1}, {"level": 3}, {"level": 2}])
def test_planned_validations_find_what_one_process_finds(options: Any) -> None:
    paths("sound.zv")
    paths("damaged.zv")
    damage("damaged.zv")
    for store in ("sound.zv", "damaged.zv"):
        before = files(store)
        plan = zvf.plan_validation(store, "plans/check.json", tasks=3, **options)
        assert (plan.tasks, plan.level, plan.report) == (3, options.get("level", 4), None)
        assert Path(plan.store) == Path(store).resolve() and plan.missing() == [0, 1, 2]
        assert plan.run(1) and plan.missing() == [0, 2]
        with pytest.raises(zvf.ConflictError, match="2 of 3 tasks are not done"):
            plan.commit()
        run_by_copies(plan)
        found = plan.commit()
        expected = zvf.validate(store, **options)
        assert found.findings == expected.findings and found.unlisted == expected.unlisted
        assert bool(found) == bool(expected) == (store == "sound.zv" or options.get("level") == 2)
        assert bool(found.unlisted) == (store == "damaged.zv" and "limit" in options)
        assert plan.report == found == plan.commit()
        assert pickle.loads(pickle.dumps(plan)).report == found
        assert not plan.run(0) and plan.missing() == []
        assert files(store) == before
        assert list(files("plans")) == ["check.json"]


def test_validations_are_planned_and_run_by_the_command() -> None:
    command("task", "plan", "check.json", "--tasks", "2", "validate", "tracts.zv", "--level", "3")
    plan = zvf.ValidationPlan.read("check.json")
    assert (plan.tasks, plan.level) == (2, 3) and plan.run(1)
    command("task", "run", "check.json", "--index", "0")
    assert plan.missing() == []
    command("task", "commit", "check.json")
    assert plan.commit().ok
    plan = zvf.plan_validation("tracts.zv", "check.json", tasks=1)
    command("task", "run", "check.json", "--index", "0")
    assert plan.commit() == zvf.ValidationPlan.read("check.json").report


def test_validations_of_changed_stores_fail() -> None:
    plan = zvf.plan_validation("tracts.zv", "check.json", tasks=2)
    assert plan.run(0)
    zvf.open("tracts.zv").delete(objects=[8])
    with pytest.raises(zvf.ConflictError, match="plan again"):
        plan.run(1)
    done = zvf.plan_validation("tracts.zv", "check.json", tasks=2)
    with pytest.raises(zvf.ConflictError, match="plan again"):
        plan.run(1)
    run_by_copies(done)
    zvf.open("tracts.zv").delete(objects=[3])
    with pytest.raises(zvf.ConflictError, match="plan again"):
        done.commit()


@pytest.mark.parametrize(
    "options", [{}, {"sharded": True}, {"layers": ["skeletons"], "properties": ["fa"]}]
)
def test_planned_exports_have_the_files_of_one_process(options: Any) -> None:
    paths("paths.zv")
    url = "http://localhost:8000/many.precomputed"
    plan = zvf.plan_export(
        "paths.zv", "many.precomputed", "plans/export.json", tasks=3, url=url, **options
    )
    assert (plan.tasks, plan.report) == (3, None) and plan.missing()
    assert Path(plan.store) == Path("paths.zv").resolve()
    assert Path(plan.target) == Path("many.precomputed").resolve()
    with pytest.raises(zvf.ConflictError, match="of 3 tasks are not done"):
        plan.commit()
    run_by_copies(plan)
    assert not Path("many.precomputed").exists()
    report = plan.commit()
    assert report == zvf.open("paths.zv").export_precomputed("one.precomputed", url=url, **options)
    assert report.neuroglancer is not None
    assert plan.report == report == plan.commit()
    assert pickle.loads(pickle.dumps(plan)).report == report
    assert not plan.run(0) and plan.missing() == []
    assert files("many.precomputed") == files("one.precomputed")
    assert list(files("plans")) == ["export.json"]
    assert {path.name for path in Path().iterdir()} == {
        "tracts.zv", "paths.zv", "plans", "one.precomputed", "many.precomputed"
    }  # fmt: skip


def test_meshes_are_exported_by_tasks_of_the_command() -> None:
    corners = np.array([[0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]], np.float32)
    zvf.create("mesh.zv", kind="mesh", positions=corners, object_ids=np.full(4, 7),
               links=[[0, 1, 2], [0, 1, 3], [0, 2, 3], [1, 2, 3]])  # fmt: skip
    mesh = zvf.open("mesh.zv", memory_budget=1 << 28)
    command("task", "plan", "export.json", "--tasks", "2", "export", "precomputed", "mesh.zv", "a")
    plan = zvf.ExportPlan.read("export.json")
    for task in plan.missing():
        assert plan.run(task)
    report = plan.commit()
    plan = zvf.plan_export(mesh, "b", "export.json", tasks=2)
    for task in pickle.loads(pickle.dumps(plan)).missing():
        command("task", "run", "export.json", "--index", str(task))
    command("task", "commit", "export.json")
    assert plan.commit() == report
    assert files("a") == files("b")


def test_exports_of_changed_stores_and_reserved_targets_fail() -> None:
    old = zvf.plan_export("tracts.zv", "out", "old.json", tasks=2)
    for export in (
        lambda: zvf.plan_export("tracts.zv", "out", "new.json"),
        lambda: zvf.open("tracts.zv").export_precomputed("out"),
    ):
        with pytest.raises(zvf.ExistsError, match="restart=True"):
            export()
    new = zvf.plan_export("tracts.zv", "out", "new.json", tasks=2, restart=True)
    for use in (lambda: old.run(0), old.missing, old.commit):
        with pytest.raises(zvf.ConflictError, match="the plan replaced"):
            use()
    for task in new.missing():
        new.run(task)
    late = zvf.plan_export("tracts.zv", "late", "late.json", tasks=1)
    zvf.open("tracts.zv").delete(objects=[8])
    for change in (lambda: late.run(0), new.commit):
        with pytest.raises(zvf.ConflictError, match="plan again"):
            change()
    Path("full").mkdir()
    with pytest.raises(zvf.ExistsError, match="full"):
        zvf.plan_export("tracts.zv", "full", "full.json")


def test_a_plan_is_used_from_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    check = zvf.plan_validation("tracts.zv", "check.json", tasks=1)
    export = zvf.plan_export("tracts.zv", "out", "export.json", tasks=1)
    plans: list[zvf.ValidationPlan | zvf.ExportPlan] = [check, export]
    copies = pickle.dumps(plans)
    Path("elsewhere").mkdir()
    monkeypatch.chdir("elsewhere")
    for plan, copy in zip(plans, pickle.loads(copies), strict=True):
        assert copy.run(0) and plan.missing() == []
        assert plan.commit() == copy.commit() == plan.report
    assert not files(".")
    assert repr(check) == f"ValidationPlan({check.store!r}, level 4, 1 tasks)"
    assert repr(export) == f"ExportPlan({export.store!r} to {export.target!r}, 1 tasks)"


def test_a_plan_of_other_work_names_its_reader() -> None:
    zvf.plan_validation("tracts.zv", "check.json", tasks=1)
    zvf.plan_export("tracts.zv", "out", "export.json", tasks=1)
    zvf.plan_pyramid("tracts.zv", levels=1, tasks=1).write("level.json")
    Path("empty.json").write_text("{}")
    readers: dict[str, tuple[Any, str]] = {
        "zvf.ValidationPlan.read": (zvf.ValidationPlan.read, "check.json"),
        "zvf.ExportPlan.read": (zvf.ExportPlan.read, "export.json"),
        "zvf.read_plan": (zvf.read_plan, "level.json"),
    }
    for read, own in readers.values():
        assert read(own).tasks == 1
        for name, (_, other) in readers.items():
            if other != own:
                with pytest.raises(zvf.InputError, match=f"{other} .* read it with `{name}`"):
                    read(other)
        with pytest.raises(zvf.InputError, match="is not a plan"):
            read("empty.json")
        with pytest.raises(zvf.InputError, match="there is no plan"):
            read("absent.json")


def test_faults_of_plans_are_named() -> None:
    plan = zvf.plan_validation("tracts.zv", "check.json", tasks=2)
    export = zvf.plan_export("tracts.zv", "out", "export.json", tasks=2)
    runs: list[Callable[[int], bool]] = [plan.run, export.run]
    for run in runs:
        with pytest.raises(zvf.InputError, match="there is no task 2"):
            run(2)
    with pytest.raises(zvf.InputError, match="another folder"):
        zvf.plan_validation("tracts.zv", "tracts.zv/check.json")
    with pytest.raises(ValueError, match="tasks is 0"):
        zvf.plan_validation("tracts.zv", "check.json", tasks=0)
    with pytest.raises(ValueError, match="level is 5"):
        zvf.plan_validation("tracts.zv", "check.json", level=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no layer"):
        zvf.plan_export("tracts.zv", "new", "new.json", layers=["lines"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="restart"):
        zvf.plan_validation("tracts.zv", "check.json", restart=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="progress"):
        zvf.plan_export("tracts.zv", "new", "new.json", progress=True)  # type: ignore[call-arg]
    for planned in (
        lambda: zvf.plan_validation("absent.zv", "new.json"),
        lambda: zvf.plan_export("absent.zv", "new", "new.json"),
    ):
        with pytest.raises(zvf.NotFoundError, match="absent.zv"):
            planned()
    assert not Path("new.json").exists() and not list(Path().glob("*new*"))
    # The plan that failed has replaced nothing.
    assert plan.run(0) and export.missing()
