"""Stores that Dask, Ray and Spark build while their workers are killed, equal to those of one process.

Each engine has two nodes with one core. In each phase of each kind of store, `--kills` workers are killed with
SIGKILL. Then a process that drives a creation of points is killed, and a second one creates the store. The scripts
of the guide run as well, and their stores are compared with the input.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import psutil
import pytest

zvf = pytest.importorskip("zvf", reason="the Python package is not built: `cargo xtask python`", exc_type=ImportError)

pytestmark = pytest.mark.cluster
DOCS = Path(__file__).resolve().parents[1] / "docs"
SHARES = 8
TASKS = 8
LEVELS = 2
CHUNK = (8.0, 8.0, 8.0)
# Files that tasks write when they are done, by phase.
PHASES = ("filled", "divided", "linked", "result")
ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DEDUP_LOGS": "0",
    # Ray gives up after ten waits for an actor, by default of 5 s, which it takes to start on a busy
    # machine.
    "RAY_DATA_AUTOSCALING_COORDINATOR_REQUEST_GET_TIMEOUT_S": "60",
    # Workers import this module.
    "PYTHONPATH": os.pathsep.join(map(str, [DOCS.parent / "python", DOCS.parent / "conformance"])),
    # The module is a debug build, which warns.
    "PYTHONWARNINGS": "ignore",
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
    # Processes of Java that live for seconds spend most of their time on compiling themselves.
    "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


class Points:
    """Points with numbers and text."""

    kind = "points"
    options: dict[str, Any] = {"chunk_shape": CHUNK, "bin_shape": (4.0, 4.0, 4.0)}
    pyramid: dict[str, Any] = {"levels": LEVELS}

    @staticmethod
    def share(share: int) -> pandas.DataFrame:
        numbers = np.random.default_rng(share)
        at = 64 * numbers.random((12_000, 3), np.float32)
        words = np.array(["axon", "soma", "glia", f"only {share}"])
        return pandas.DataFrame({
            "x": at[:, 0], "y": at[:, 1], "z": at[:, 2], "q": at.sum(axis=1),
            "label": words[numbers.integers(0, 4, len(at))],
        })


class Paths:
    """Streamlines with ids and attributes of objects."""

    kind = "streamlines"
    count = 400
    options: dict[str, Any] = {"chunk_shape": CHUNK}
    pyramid: dict[str, Any] = {"levels": LEVELS, "method": "stride", "factors": [2, 2]}

    @classmethod
    def share(cls, share: int) -> pandas.DataFrame:
        numbers = np.random.default_rng(100 + share)
        steps = numbers.normal(size=(cls.count, 30, 3)).cumsum(axis=1)
        at = np.clip(32 + steps, 0, 64).reshape(-1, 3).astype(np.float32)
        ids = np.repeat(share * cls.count + np.arange(cls.count), 30)
        return pandas.DataFrame({
            "x": at[:, 0], "y": at[:, 1], "z": at[:, 2], "fa": numbers.random(len(at)), "object_id": ids
        })


class Graph:
    """A graph with links between all shares. Only Dask creates it: tables have no links."""

    kind = "graphs"
    count = 4_000
    options: dict[str, Any] = {"chunk_shape": CHUNK}
    pyramid: dict[str, Any] = {"levels": LEVELS}

    @classmethod
    def share(cls, share: int) -> dict[str, Any]:
        numbers = np.random.default_rng(200 + share)
        at = 64 * numbers.random((cls.count, 3), np.float32)
        first = share * cls.count
        near = np.arange(first, first + cls.count - 1)
        links = np.stack([near, near + 1], axis=1)
        far = numbers.integers(0, SHARES * cls.count, (500, 2))
        links = np.concatenate([links, far[far[:, 0] != far[:, 1]]])
        return {
            "positions": at, "object_ids": numbers.integers(0, 9, cls.count), "links": links,
            "vertex": {"q": at.sum(axis=1)}, "link": {"w": numbers.random(len(links))},
        }

    @classmethod
    def whole(cls) -> dict[str, Any]:
        shares = [cls.share(share) for share in range(SHARES)]
        arrays = {
            name: np.concatenate([share[name] for share in shares]) for name in ("positions", "object_ids", "links")
        }
        vertex = {"q": np.concatenate([share["vertex"]["q"] for share in shares])}
        link = {"w": np.concatenate([share["link"]["w"] for share in shares])}
        return {**arrays, "vertex": vertex, "link": link}


def files(store: Path) -> dict[str, bytes]:
    """Return the files of a store. Names of transactions differ between equal stores."""
    found = {
        str(path.relative_to(store)): path.read_bytes()
        for path in store.rglob("*")
        if path.is_file() and ".zvf" not in path.relative_to(store).parts
    }
    root = found["zarr.json"].decode()
    root = re.sub(r'"id":\s*"[0-9a-f]{32}"', '"id":""', root)
    # Parts of the inventory are named after the transaction that wrote them.
    found["zarr.json"] = re.sub(r'"\.zvf/seal/[^"]*"', '""', root).encode()
    return found


def check_equal(store: Path, expected: Path) -> None:
    one, other = files(store), files(expected)
    assert len(one) > 20, len(one)
    assert one.keys() == other.keys(), sorted(one.keys() ^ other.keys())[:10]
    differ = [name for name, content in one.items() if other[name] != content]
    assert not differ, f"{store}: {len(differ)} of {len(one)} files differ, as {differ[:5]}"
    left = [path.name for path in (store / ".zvf").glob("*") if path.name not in ("log", "lock", "seal")]
    assert not left, f"{store}: .zvf has {left}"


class Killer:
    """Kills a worker when the first task of a phase is done, and again every few moments."""

    def __init__(
        self, store: Path, pids: Callable[[], list[int]], kills: int, phases: tuple[str, ...] = PHASES
    ) -> None:
        self.store, self.pids, self.kills, self.phases = store, pids, kills, phases
        self.killed: dict[str, int] = {}
        self._numbers = random.Random(7)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Killer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._end.wait(0.003):
            for job in self.store.glob(".zvf/*/"):
                with contextlib.suppress(OSError):
                    self._look(job)

    def _look(self, job: Path) -> None:
        names = [path.name for path in job.iterdir()]
        for phase in self.phases:
            done = sum(re.fullmatch(rf"{phase}-\d+", name) is not None for name in names)
            key = f"{job.name[:4]} {phase}"
            if done > self.killed.get(key, 0) and self.killed.get(key, 0) < self.kills:
                pids = self.pids()
                if pids:
                    os.kill(self._numbers.choice(pids), signal.SIGKILL)
                    self.killed[key] = self.killed.get(key, 0) + 1

    def check(self, phases: int) -> None:
        """Check that a worker was killed in each phase."""
        assert len(self.killed) == phases, self.killed


def descendants() -> dict[int, tuple[int, str]]:
    """Return the parents and commands of the processes that this process started, and of those
    that they started."""
    found: dict[int, tuple[int, str]] = {}
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found[process.pid] = process.ppid(), " ".join(process.cmdline())
    return found


class Dask:
    """Two workers of Dask, each a process."""

    name = "dask"

    def __init__(self) -> None:
        import dask
        import zvf.dask
        from distributed import Client, LocalCluster

        dask.config.set({
            "distributed.scheduler.allowed-failures": 50,
            # A cluster on one machine dismisses workers that are not back in time, 15 s by default,
            # and waits for ever once it has dismissed all.
            "distributed.deploy.lost-worker-timeout": "10 minutes",
            "distributed.nanny.pre-spawn-environ.PYTHONWARNINGS": "ignore",
        })
        self.cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=60)
        self.client = Client(self.cluster)
        self.zvf, self.read, self.build_pyramid = zvf.dask, zvf.dask.read, zvf.dask.build_pyramid

    def pids(self) -> list[int]:
        return [pid for worker in self.cluster.workers.values() if (pid := worker.pid)]

    def data(self, kind: Any) -> Any:
        import dask.bag

        return dask.bag.from_sequence(range(SHARES), npartitions=SHARES).map(kind.share)

    def table(self, frame: Any) -> pandas.DataFrame:
        assert frame.npartitions == 5
        made = frame.compute()
        assert list(made.columns) == list(frame.columns), made.columns
        return made

    def lengths(self, store: Path) -> list[int]:
        """Return the number of vertices of each part of a store, in another form."""
        return self.zvf.read_bag(store, partitions=3).map(len).compute()

    def close(self) -> None:
        self.client.close()
        self.cluster.close()


class Ray:
    """Two nodes of Ray on this machine."""

    name = "ray"

    def __init__(self) -> None:
        import ray
        import zvf.ray
        from ray.cluster_utils import Cluster

        node = {"num_cpus": 1, "object_store_memory": 100_000_000, "include_dashboard": False}
        self.cluster = Cluster(initialize_head=True, head_node_args=node)
        del node["include_dashboard"]
        self.cluster.add_node(**node)
        ray.init(address=self.cluster.address, log_to_driver=False, logging_level="ERROR")
        assert sum(one["Alive"] for one in ray.nodes()) == 2
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        self.ray, self.zvf, self.read, self.build_pyramid = ray, zvf.ray, zvf.ray.read, zvf.ray.build_pyramid

    def pids(self) -> list[int]:
        busy = re.compile("ray::.*(_run_task|Write|Map|Read)")
        return [pid for pid, (_, command) in descendants().items() if busy.match(command)]

    def data(self, kind: Any) -> Any:
        shares = self.ray.data.range(SHARES, override_num_blocks=SHARES)
        return shares.map_batches(lambda rows: kind.share(int(rows["id"][0])), batch_size=None)

    def table(self, data: Any) -> pandas.DataFrame:
        made = data.to_pandas()
        assert data.count() == len(made)
        return made

    def lengths(self, store: Path) -> list[int]:
        size, positions = self.zvf.StoreDatasource(store).estimate_inmemory_data_size(), zvf.open(store).query().positions
        assert size and size > 0.5 * positions.nbytes, size
        return self.zvf.map_cells(store, len, partitions=3)

    def close(self) -> None:
        self.ray.shutdown()
        self.cluster.shutdown()


class Spark:
    """Two executors of Spark, each with one core."""

    name = "spark"

    def __init__(self) -> None:
        import zvf.spark
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local-cluster[2,1,1024]").config(map={
            "spark.task.maxFailures": "50",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.executorEnv.PYTHONWARNINGS": "ignore",
        })
        self.session, self.zvf = builder.getOrCreate(), zvf.spark
        self.session.sparkContext.setLogLevel("OFF")
        self.read = partial(zvf.spark.read, self.session)
        self.build_pyramid = partial(zvf.spark.build_pyramid, self.session)

    def pids(self) -> list[int]:
        """Return the workers, which a daemon of each executor forks."""
        ours = descendants()
        daemons = {pid for pid, (_, command) in ours.items() if "pyspark.daemon" in command}
        return [pid for pid in daemons if ours[pid][0] in daemons]

    def data(self, kind: Any) -> Any:
        import pyarrow

        def share(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for number in batch["id"].to_pylist():
                    yield from pyarrow.Table.from_pandas(kind.share(number)).to_batches()
        first = pyarrow.Table.from_pandas(kind.share(0)[:1])
        schema = self.session.createDataFrame(first).schema
        return self.session.range(0, SHARES, 1, SHARES).mapInArrow(share, schema)

    def table(self, frame: Any) -> pandas.DataFrame:
        assert frame.rdd.getNumPartitions() == 5
        return frame.toPandas()

    def close(self) -> None:
        self.session.stop()


ENGINES = {engine.name: engine for engine in (Dask, Ray, Spark)}


def check_reads(engine: Any, store: Path, kind: Any) -> None:
    """Compare what an engine reads in parts with the results of queries."""
    whole = zvf.open(store).query()
    made = engine.table(engine.read(store, partitions=5))
    np.testing.assert_array_equal(made[["x", "y", "z"]].to_numpy(), whole.positions)
    column, least = ("q", 100) if kind is Points else ("fa", 0.5)
    where = f"{column} > {least}"
    few = engine.table(engine.read(store, partitions=5, where=where, select=[column]))
    count = zvf.open(store).count(where=where).vertices
    assert 0 < len(few) == count < len(whole), (len(few), count)
    if hasattr(engine, "lengths"):
        lengths = engine.lengths(store)
        assert len(lengths) == 3 and sum(lengths) == len(whole), lengths


@pytest.fixture(scope="module", params=ENGINES)
def kind_of_engine(request, module):
    os.environ.update(ENVIRONMENT)
    pytest.importorskip({"dask": "distributed", "ray": "ray", "spark": "pyspark"}[request.param])
    if request.param == "spark" and shutil.which("java") is None:
        pytest.skip("Spark, because Java 17 or newer is missing (java)")
    return ENGINES[request.param]


@pytest.fixture(scope="module")
def engine(kind_of_engine):
    running = kind_of_engine()
    yield running
    running.close()


@pytest.fixture(scope="module")
def expected(module, tmp_path_factory):
    """Returns the store of one process, made with `zvf create` and `zvf pyramid`, by way of arrays."""
    folder = tmp_path_factory.mktemp("expected")

    def one_process(kind: Any) -> Path:
        store = folder / f"{kind.kind}.zv"
        if store.exists():
            return store
        if kind is Graph:
            zvf.create(store, kind=kind.kind, **kind.whole(), name="store", **kind.options)
        else:
            table = pandas.concat([kind.share(share) for share in range(SHARES)], ignore_index=True)
            zvf.create(store, kind=kind.kind, source=table, name="store", **kind.options)
        zvf.open(store).pyramid(**kind.pyramid)
        assert zvf.validate(store).ok
        return store

    return one_process


# Tables have no links, so only Dask creates graphs.
KINDS = [(name, kind) for name in ENGINES for kind in (Points, Paths, Graph) if kind is not Graph or name == "dask"]


@pytest.mark.parametrize(
    "kind_of_engine, kind", KINDS, indirect=["kind_of_engine"], ids=[f"{name}-{kind.kind}" for name, kind in KINDS]
)
def test_killed_workers(kind, engine, expected, tmp_path, pytestconfig, tell) -> None:
    kills, store, begun = pytestconfig.getoption("--kills"), tmp_path / f"{kind.kind}.zv", time.monotonic()
    wanted, more = expected(kind), {"links": "input"} if kind is Graph else {}
    with Killer(store, engine.pids, kills) as killer:
        report = engine.zvf.create(
            engine.data(kind), store, kind=kind.kind, tasks=TASKS, name="store", **more, **kind.options
        )
        levels = engine.build_pyramid(store, tasks=TASKS, **kind.pyramid)
    if kills:
        # Only geometry with links has the phase of links.
        killer.check(len(PHASES) - (kind is not Graph) + LEVELS)
    assert [level["level"] for level in levels] == [1, 2], levels
    assert report["vertices"] == len(zvf.open(store).query(select=[]))
    check_equal(store, wanted)
    if kind is not Graph:
        check_reads(engine, store, kind)
    killed, seconds = sum(killer.killed.values()), time.monotonic() - begun
    tell(f"{engine.name}: {kind.kind}: {killed} workers killed, {seconds:.1f} s")


def drive(engine: type, store: Path, is_killed: bool) -> None:
    """Create a store; a process that is killed dies when the first share is divided."""
    os.environ.update(ENVIRONMENT)
    running = engine()
    if is_killed:
        Killer(store, lambda: [os.getpid()], 1, ("divided",)).__enter__()
    running.zvf.create(
        running.data(Points), store, kind="points", tasks=TASKS, name="store", restart=True, **Points.options
    )
    running.close()


def test_killed_driver(kind_of_engine, expected, tmp_path, tell) -> None:
    """Kill the process that drives a creation; the next one creates the store."""
    store = tmp_path / "points.zv"
    for is_killed in (True, False):
        # A program, not a fork: the engines send what is defined in its main module to workers.
        driver = [sys.executable, __file__, kind_of_engine.name, str(store), *["--killed"] * is_killed]
        with subprocess.Popen(driver, start_new_session=True) as process:
            try:
                code = process.wait(240)
            finally:
                # The nodes of Ray outlive it.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
        assert code == (-signal.SIGKILL if is_killed else 0), code
        try:
            zvf.open(store)
            assert not is_killed, "a store appeared"
        except zvf.DamagedError as error:
            assert is_killed and "is not complete" in str(error), error
    zvf.open(store).pyramid(**Points.pyramid)
    check_equal(store, expected(Points))
    tell(f"{kind_of_engine.name}: the driver was killed")


def rows_of(table: pandas.DataFrame) -> pandas.DataFrame:
    """Return the columns of `Points` in an order that depends on the rows only."""
    columns = table[["x", "y", "z", "q", "label"]].astype({"label": object})
    return columns.sort_values(["x", "y", "z"], ignore_index=True)


def test_guide(kind_of_engine, tmp_path, tell) -> None:
    """Run the scripts of a page, and compare their store with the input."""
    page, begun = DOCS / f"{kind_of_engine.name}.md", time.monotonic()
    scripts = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    assert scripts, page
    tables = [Points.share(share) for share in range(4)]
    for share, table in enumerate(tables):
        table.to_parquet(tmp_path / f"cells-{share}.parquet")
    for number, script in enumerate(scripts):
        path = tmp_path / f"script{number}.py"
        path.write_text(script)
        subprocess.run([sys.executable, str(path)], cwd=tmp_path, check=True, timeout=600)
    assert zvf.validate(tmp_path / "cells.zv").ok
    store = zvf.open(tmp_path / "cells.zv")
    assert store.levels == [0, 1, 2], store.levels
    found = store.query()
    at = dict(zip("xyz", found.positions.T, strict=True))
    made = pandas.DataFrame({**at, **{name: found.vertex[name] for name in ("q", "label")}})
    pandas.testing.assert_frame_equal(rows_of(made), rows_of(pandas.concat(tables)))
    tell(f"{page.name}: {len(scripts)} scripts ran, {time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    drive(ENGINES[sys.argv[1]], Path(sys.argv[2]), "--killed" in sys.argv)
