"""Plans of tasks, and parts of queries."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf

pandas: Any = pytest.importorskip("pandas")
pytest.importorskip("dask.dataframe")

SHARES = 3


def files(store: str) -> dict[str, bytes]:
    """Return the files of a store. Names of transactions differ between equal stores."""
    found = {
        str(path.relative_to(store)): path.read_bytes()
        for path in Path(store).rglob("*")
        if path.is_file() and ".zvf" not in path.parts
    }
    root = found["zarr.json"].decode()
    found["zarr.json"] = re.sub(r'"id":\s*"[0-9a-f]{32}"', '"id":""', root).encode()
    return found


def share(at: int) -> Any:
    numbers = np.random.default_rng(at)
    rows = 50 * numbers.random((400, 3))
    words = np.array(["axon", "soma", f"only {at}"])
    table = pandas.DataFrame(rows, columns=["x", "y", "z"])
    return table.assign(q=rows.sum(axis=1), label=words[numbers.integers(0, 3, 400)])


def paths(at: int) -> dict[str, Any]:
    numbers = np.random.default_rng(at)
    positions = np.cumsum(numbers.random((300, 3), np.float32), axis=0)
    return {"positions": positions, "part_offsets": np.arange(0, 301, 30),
            "vertex": {"fa": numbers.random(300)}}  # fmt: skip


def finish(plan: zvf.TaskPlan) -> dict[str, Any]:
    """Run the rest of a plan, each task by a copy as another process has it."""
    while plan.phase != "write":
        plan = pickle.loads(pickle.dumps(plan.advance()))
        for task in range(plan.tasks):
            pickle.loads(pickle.dumps(plan)).run(task)
            assert not plan.run(task)
    assert plan.missing() == []
    return plan.commit()


def test_shares_of_tables_make_the_store_of_the_whole_table() -> None:
    tables = [share(at) for at in range(SHARES)]
    design: Any = {"kind": "points", "chunk_shape": (10, 10, 10), "name": "cloud"}
    zvf.create("whole.zv", source=pandas.concat(tables, ignore_index=True), **design)
    plan = zvf.plan_shares("many.zv", SHARES, tasks=2, **design)
    assert (plan.job, plan.phase, plan.tasks, plan.level) == ("create", "fill", SHARES, None)
    with pytest.raises(zvf.DamagedError, match="is not complete"):
        zvf.open("many.zv")
    with pytest.raises(zvf.ExistsError):
        zvf.plan_shares("many.zv", 1, **design)
    for at, table in enumerate(tables):
        assert plan.missing() == list(range(at, SHARES))
        assert plan.fill(at, [table.iloc[:150], table.iloc[150:]])
    assert not plan.fill(0, tables[0])
    report = finish(plan)
    assert report["vertices"] == 400 * SHARES
    assert files("many.zv") == files("whole.zv")
    assert {path.name for path in Path("many.zv/.zvf").glob("*")} <= {"log", "lock"}


def test_shares_of_paths_results_and_files_make_one_store() -> None:
    parts = [paths(at) for at in range(SHARES)]
    zvf.create("first.zv", kind="streamlines", **parts[0], chunk_shape=(10, 10, 10))
    zvf.create("last.zv", kind="streamlines", **parts[2], chunk_shape=(10, 10, 10),
               part_objects=np.arange(20, 30))  # fmt: skip
    zvf.open("last.zv").save("last.trx")
    plan = zvf.plan_shares(
        "many.zv", SHARES, kind="streamlines", chunk_shape=(10, 10, 10), name="many",
        object={"length": np.arange(30.0)}, objects=np.arange(30), groups={"some": [3, 29]},
    )  # fmt: skip
    plan.fill(0, zvf.open("first.zv").batches(batch_rows=100))
    plan.fill(1, parts[1])
    plan.fill(2, {**parts[2]})
    finish(plan)
    whole: Any = {
        "positions": np.concatenate([part["positions"] for part in parts]),
        "part_offsets": np.arange(0, 901, 30),
        "vertex": {"fa": np.concatenate([part["vertex"]["fa"] for part in parts])},
    }
    zvf.create(
        "whole.zv", kind="streamlines", **whole, chunk_shape=(10, 10, 10), name="many",
        object={"length": np.arange(30.0)}, objects=np.arange(30), groups={"some": [3, 29]},
    )  # fmt: skip
    assert files("many.zv") == files("whole.zv")
    plan = zvf.plan_shares("trx.zv", 1, kind="streamlines")
    assert plan.fill(0, "last.trx")
    assert finish(plan)["objects"] == 10


def graph(at: int) -> dict[str, Any]:
    """Return a share of a graph: a chain of 200 vertices with a link to the share before."""
    numbers = np.random.default_rng(at)
    first = 200 * at
    links = np.stack([np.arange(first + 1, first + 200), np.arange(first, first + 199)], axis=1)
    links = np.concatenate([links, [[first, max(first - 120, 7)]]])
    return {"positions": 30 * numbers.random((200, 3)), "links": links,
            "object_ids": numbers.integers(0, 3, 200), "link": {"w": numbers.random(200)}}  # fmt: skip


def tree(at: int) -> dict[str, Any]:
    numbers = np.random.default_rng(at)
    parents = [int(numbers.integers(max(0, child - 4), child)) for child in range(1, 150)]
    return {"positions": np.cumsum(numbers.random((150, 3)), axis=0),
            "links": np.stack([np.arange(1, 150), parents], axis=1),
            "object_ids": np.full(150, 9 - at), "vertex": {"radius": numbers.random(150)}}  # fmt: skip


def joined(parts: list[dict[str, Any]], offset: int = 0) -> dict[str, Any]:
    """Return the whole input; links of a part count from its first vertex, or from `offset` on."""
    whole = {name: np.concatenate([part[name] for part in parts])
             for name in ("positions", "object_ids")}  # fmt: skip
    links = [part["links"] + at * offset for at, part in enumerate(parts)]
    families: dict[str, Any] = {
        family: {name: np.concatenate([part[family][name] for part in parts])
                 for name in parts[0][family]}
        for family in ("vertex", "link") if family in parts[0]}  # fmt: skip
    return {**whole, "links": np.concatenate(links), **families}


def test_links_connect_shares() -> None:
    design: Any = {"kind": "graphs", "chunk_shape": (10, 10, 10), "name": "one"}
    parts = [graph(at) for at in range(SHARES)]
    zvf.create("whole.zv", **joined(parts), **design)
    plan = zvf.plan_shares("many.zv", SHARES, tasks=3, **design)
    for at, part in enumerate(parts):
        alone = {name: part[name] for name in ("links", "link")}
        rest = {name: part[name] for name in ("positions", "object_ids")}
        assert plan.fill(at, [alone, rest], links="input")
    assert finish(plan)["vertices"] == 200 * SHARES
    assert files("many.zv") == files("whole.zv")
    design["kind"] = "skeletons"
    trees = [tree(at) for at in range(SHARES)]
    zvf.create("trees.zv", **joined(trees, 150), **design)
    plan = zvf.plan_shares("tasks.zv", SHARES, tasks=2, **design)
    for at, part in enumerate(trees):
        plan.fill(at, part)
    finish(plan)
    assert files("tasks.zv") == files("trees.zv")


def test_chosen_shares_make_the_store() -> None:
    plan = zvf.plan_shares("some.zv", 0, kind="points", chunk_shape=(10, 10, 10), tasks=2)
    for at in (7, 2, 4):
        plan.fill(at, share(at))
    with pytest.raises(zvf.ConflictError, match="not done"):
        plan.advance([2, 3])
    plan = plan.advance([2, 7])
    assert plan.tasks == 2
    assert finish_from(plan)["vertices"] == 800
    np.testing.assert_array_equal(
        np.sort(zvf.open("some.zv").query().vertex["q"]),
        np.sort(np.concatenate([share(2)["q"], share(7)["q"]])),
    )


def finish_from(plan: zvf.TaskPlan) -> dict[str, Any]:
    for task in range(plan.tasks):
        plan.run(task)
    return finish(plan)


def test_faults_of_plans_are_named() -> None:
    graph = zvf.plan_shares("graph.zv", 1, kind="graphs")
    with pytest.raises(TypeError, match="a table has no links"):
        graph.fill(0, share(0))
    with pytest.raises(zvf.InputError, match="vertex"):
        graph.fill(0, {"positions": np.eye(3), "links": [[0, 3]]})
    graph.discard()
    with pytest.raises(ValueError, match="overwrite"):
        zvf.plan_shares("tracts.zv", 1, kind="points", overwrite=True)
    with pytest.raises(zvf.ExistsError):
        zvf.plan_shares("tracts.zv", 1, kind="points")
    plan = zvf.plan_shares("many.zv", 2, kind="points")
    plan.fill(0, share(0))
    with pytest.raises(zvf.InputError, match="fill all shares"):
        plan.run(0)
    with pytest.raises(zvf.ConflictError, match="1 of 2 tasks"):
        plan.advance()
    with pytest.raises(zvf.InputError, match="equal attributes"):
        plan.fill(1, {"positions": np.eye(3)})
        plan.advance()
    with pytest.raises(TypeError, match="a batch is a int"):
        plan.fill(1, [4])
    plan.discard()
    with pytest.raises(zvf.ConflictError, match="changed or replaced"):
        plan.fill(1, share(1))
    assert not list(Path("many.zv").rglob("*"))
    again = zvf.plan_shares("many.zv", 1, kind="points")
    zvf.plan_shares("many.zv", 1, kind="points", restart=True)
    with pytest.raises(zvf.ConflictError):
        again.fill(0, share(0))


def test_levels_and_files_by_tasks_equal_those_of_one_process() -> None:
    zvf.open("tracts.zv").save("tracts.trk")
    zvf.create("whole.zv", source="tracts.trk", chunk_shape=(5, 5, 5), name="one")
    plan = zvf.plan_create("many.zv", "tracts.trk", chunk_shape=(5, 5, 5), name="one", tasks=3)
    plan.write("plan.json")
    command = [sys.executable, "-m", "zvf", "task", "run", "plan.json", "--index", "1"]
    path = str(Path(zvf.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    subprocess.run(command, check=True, capture_output=True, env=environment)
    plan = zvf.read_plan("plan.json")
    assert 1 not in plan.missing() and plan.store.endswith("many.zv")
    assert finish_written(plan) == zvf.read_plan("plan.json").report
    assert files("many.zv") == files("whole.zv")
    levels: Any = {"levels": 2, "method": "stride", "factors": [2, 2]}
    zvf.open("whole.zv").pyramid(**levels)
    built = []
    while (plan := zvf.plan_pyramid("many.zv", tasks=2, **levels)).tasks:
        built.append(finish_written(plan)["level"])
    assert built == [1, 2] and zvf.open("many.zv").levels == [0, 1, 2]
    assert files("many.zv") == files("whole.zv")


def finish_written(plan: zvf.TaskPlan) -> dict[str, Any]:
    for task in plan.missing():
        plan.run(task)
    return plan.commit()


def test_planned_samples_equal_those_of_one_process() -> None:
    np.save("t1.npy", np.random.default_rng(1).random((40, 40, 40), np.float32))
    for store in ("one.zv", "many.zv"):
        zvf.create(store, kind="streamlines", chunk_shape=(20, 20, 20), name="n", **paths(0))
    affine = np.diag([0.25, 0.25, 0.25, 1.0])
    for options in (
        {"affine": affine, "outside": -1.0},
        {"reduce": "mean", "interpolation": "cubic", "memory": 1 << 20, "outside": -2.0},
        {"reduce": "max", "overwrite": True, "outside": "edge"},
    ):
        given: Any = options
        report = zvf.open("one.zv").sample("t1.npy", into="t1", **given)
        plan = zvf.plan_sample("many.zv", "t1.npy", into="t1", tasks=3, **given)
        assert (plan.job, plan.phase, plan.tasks, plan.level) == ("sample", "write", 3, None)
        with pytest.raises(zvf.ConflictError, match="of 3 tasks are not done"):
            plan.commit()
        for task in range(plan.tasks):
            pickle.loads(pickle.dumps(plan)).run(task)
            assert not plan.run(task)
        assert plan.commit()["vertices"] == report.vertices
        assert not plan.run(0)
        assert files("many.zv") == files("one.zv")
    plan = zvf.plan_sample("many.zv", "t1.npy", into="other", tasks=1)
    zvf.open("many.zv").delete(objects=[0])
    with pytest.raises(zvf.ConflictError, match="plan again"):
        plan.run(0)
    with pytest.raises(zvf.ExistsError, match="t1"):
        zvf.plan_sample("many.zv", "t1.npy", into="t1")
    with pytest.raises(ValueError, match="reduce is"):
        zvf.plan_sample("many.zv", "t1.npy", into="t1", reduce="median")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        zvf.plan_sample("many.zv", "t1.npy", into="t2", progress=True)  # type: ignore[call-arg]


def test_planned_migrations_equal_those_of_one_process() -> None:
    zvf.create("old.zv", kind="streamlines", chunk_shape=(20, 20, 20), name="n", **paths(0))
    found = zvf.migrate("old.zv", "one.zv", profile="0.8", compression="zstd")
    plan = zvf.plan_migrate("old.zv", "many.zv", profile="0.8", compression="zstd", tasks=3)
    assert (plan.job, plan.phase, plan.tasks) == ("migrate", "write", 3)
    with pytest.raises(zvf.DamagedError, match="is not complete"):
        zvf.open("many.zv")
    with pytest.raises(zvf.ExistsError):
        zvf.plan_migrate("old.zv", "many.zv")
    plan.write("plan.json")
    for task in range(plan.tasks):
        assert zvf.read_plan("plan.json").run(task)
    report = zvf.read_plan("plan.json").commit()
    assert (report["from"], report["to"]) == (found.from_generation, found.to_generation)
    assert report["bytes_written"] == found.bytes
    assert zvf.read_plan("plan.json").commit() == report
    assert files("many.zv") == files("one.zv")
    with pytest.raises(ValueError, match="cannot overwrite"):
        zvf.plan_migrate("old.zv", "many.zv", overwrite=True)


def test_parts_of_a_query_are_its_result() -> None:
    tables = [share(at) for at in range(SHARES)]
    zvf.create("cloud.zv", kind="points", source=pandas.concat(tables, ignore_index=True),
               chunk_shape=(10, 10, 10))  # fmt: skip
    cloud = zvf.open("cloud.zv")
    query: Any = {"where": "q > 60", "select": ["q"]}
    parts = cloud.partitions(4, **query)
    assert len(parts) == 4 and all(part.bounds and part.bytes for part in parts)
    copies = pickle.loads(pickle.dumps(parts))
    whole = cloud.query(**query)
    for kept in (parts, copies):
        found = [part.query() for part in kept]
        np.testing.assert_array_equal(np.concatenate([one.positions for one in found]), whole.positions)
    rows = [len(batch) for part in copies for batch in part.batches(batch_rows=50)]
    assert sum(rows) == len(whole) and max(rows) <= 50
    assert sum(part.rows or 0 for part in cloud.partitions(4)) == 400 * SHARES
    unused = pickle.loads(pickle.dumps(parts))
    cloud.delete_vertices(where="q > 100")
    for part in (unused[0], parts[0]):
        with pytest.raises(zvf.ConflictError, match="divided at transaction 0"):
            part.query()


@pytest.mark.parametrize("follow", ["when_gone", "always"])
def test_a_query_is_divided_at_the_transaction_that_it_reads(follow: Any) -> None:
    """Regression test: parts after the commit of another writer could never be run."""
    tracts = zvf.open("tracts.zv", follow=follow)
    parts = tracts.partitions(2)
    zvf.open("tracts.zv").delete(objects=[8])
    # The first batch would be of the next transaction, with the parts of the one before.
    with pytest.raises(zvf.ConflictError, match="divided at transaction 0"):
        list(parts[0].batches())
    divided = tracts.partitions(2)
    assert tracts.transaction == 1
    for part in (*divided, *pickle.loads(pickle.dumps(divided))):
        assert part.query().objects.tolist() == [3]
        assert [batch.objects.tolist() for batch in part.batches()] == [[3]]


def test_pickled_plans_keep_the_options_of_opening() -> None:
    """Regression test: workers opened the store with the defaults."""
    options: Any = {"memory_budget": 1 << 26, "retries": 1, "timeout": 9.0, "check_seal": False,
                    "follow": "never", "cache": 0, "concurrency": 2}  # fmt: skip
    levels: Any = {"levels": 1, "method": "stride", "factors": [2]}
    np.save("t1.npy", np.zeros((2, 2, 2)))
    tracts = zvf.open("tracts.zv", node_copy=False, **options)
    kept = [
        (zvf.plan_pyramid(tracts, **levels), {"node_copy": False}),
        (zvf.plan_sample(tracts, "t1.npy", into="t1"), {"node_copy": False}),
        # In these, node_copy belongs to the design of the new store.
        (zvf.plan_shares("new.zv", 1, kind="points", node_copy=False, **options), {}),
        (zvf.plan_migrate("tracts.zv", "newer.zv", node_copy=False, **options), {}),
    ]
    for plan, more in kept:
        assert pickle.loads(pickle.dumps(plan))._options == options | more
    small = zvf.plan_pyramid(zvf.open("tracts.zv", memory_budget=20_000), **levels)
    assert pickle.loads(pickle.dumps(small))._options == {"memory_budget": 20_000}


def test_a_graph_is_filled_from_batches_of_a_result() -> None:
    """Regression test: the links of later batches lost the rows before their batch."""
    zvf.create("whole.zv", **joined([graph(at) for at in range(SHARES)]), kind="graphs",
               chunk_shape=(10, 10, 10))  # fmt: skip
    whole = zvf.open("whole.zv")
    batches = list(whole.batches(batch_rows=100))
    assert len(batches) > 1
    plan = zvf.plan_shares("many.zv", 1, kind="graphs", chunk_shape=(10, 10, 10), tasks=2)
    plan.fill(0, batches, links="input")
    assert finish(plan)["vertices"] == 200 * SHARES

    def ends(store: str) -> Any:
        found = zvf.open(store).query()
        assert found.links is not None
        steps = np.concatenate([*found.positions[found.links.T], found.link["w"][:, None]], axis=1)
        return steps[np.argsort(found.link["w"])]

    np.testing.assert_array_equal(ends("many.zv"), ends("whole.zv"))


def test_dask_reads_and_writes_stores() -> None:
    import dask
    import dask.bag
    import dask.dataframe

    import zvf.dask

    design: Any = {"kind": "points", "chunk_shape": (10, 10, 10), "name": "cloud"}
    tables = [share(at) for at in range(SHARES)]
    zvf.create("whole.zv", source=pandas.concat(tables, ignore_index=True), **design)
    with dask.config.set(scheduler="threads"):
        for data in (
            dask.bag.from_sequence(range(SHARES), npartitions=SHARES).map(share),
            dask.dataframe.from_map(share, range(SHARES)),
        ):
            report = zvf.dask.create(data, "many.zv", tasks=4, restart=True, **design)
            assert report["vertices"] == 400 * SHARES
            assert files("many.zv") == files("whole.zv")
            assert [level["level"] for level in zvf.dask.build_pyramid("many.zv", levels=1)] == [1]
            for path in sorted(Path("many.zv").rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
        read = zvf.dask.read("whole.zv", partitions=3, where="q > 60")
        expected = zvf.open("whole.zv").query(where="q > 60")
        made = read.compute()
        assert list(made.columns) == ["x", "y", "z", "vertex.label", "vertex.q"]
        np.testing.assert_array_equal(made["x"].to_numpy(), expected.positions[:, 0])
        assert made["vertex.label"].tolist() == expected.vertex["label"].tolist()
        counts = zvf.dask.read_bag("whole.zv", partitions=3, where="q > 60").map(len).compute()
        assert len(counts) == 3 and sum(counts) == len(expected)

        trees = dask.bag.from_sequence(range(SHARES), npartitions=SHARES).map(tree)
        forest: Any = {"kind": "skeletons", "chunk_shape": (10, 10, 10), "name": "one"}
        zvf.create("trees.zv", **joined([tree(at) for at in range(SHARES)], 150), **forest)
        zvf.dask.create(trees, "forest.zv", tasks=4, **forest)
        assert files("forest.zv") == files("trees.zv")

        def fail(at: int) -> Any:
            if at:
                raise RuntimeError("no input")
            return share(at)

        broken = dask.bag.from_sequence(range(SHARES), npartitions=SHARES).map(fail)
        with pytest.raises(RuntimeError, match="no input"):
            zvf.dask.create(broken, "broken.zv", **design)
        assert not list(Path("broken.zv").rglob("*"))


def test_the_scripts_of_the_guide_run() -> None:
    page = Path(__file__).parents[2] / "docs" / "clusters.md"
    scripts = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    zvf.create("cloud.zv", kind="points", positions=np.random.default_rng(3).random((50, 3)))
    for name in ("west", "east"):
        zvf.open("cloud.zv").save(f"{name}.laz")
    for script in scripts:
        exec(compile(script, str(page), "exec"), {})
    assert len(zvf.open("city.zv").query()) == 100
    assert not list(Path("city.zv").rglob("job.json"))


def test_a_plan_is_the_same_in_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = zvf.plan_pyramid("tracts.zv", levels=1, tasks=2)
    plan.write("plan.json")
    read = zvf.read_plan("plan.json")
    Path("other").mkdir()
    monkeypatch.chdir("other")
    report = finish_written(pickle.loads(pickle.dumps(read)))
    assert plan.commit() == read.commit() == report
    assert list(Path().iterdir()) == []
    assert len(zvf.open("../tracts.zv").info().levels) == 2
