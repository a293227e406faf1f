"""Results and inputs as tables of pyarrow, polars, pandas and DuckDB."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf

duckdb: Any = pytest.importorskip("duckdb")
pa: Any = pytest.importorskip("pyarrow")
pd: Any = pytest.importorskip("pandas")
pl: Any = pytest.importorskip("polars")


def test_a_result_is_a_table() -> None:
    result = zvf.open("tracts.zv").query()
    table = pa.table(result)
    assert table.column_names == ["x", "y", "z", "part", "object_id", "vertex.fa"]
    assert table["x"].to_pylist() == [0, 1, 2, 9, 8]
    assert table["part"].to_pylist() == [0, 0, 0, 1, 1]
    assert table["object_id"].to_pylist() == [3, 3, 3, 8, 8]
    assert table.schema.metadata[b"axes"] == b'["x", "y", "z"]'
    # The attribute is the memory of the result.
    values = table["vertex.fa"].chunk(0).buffers()[1]
    assert values.address == result.vertex["fa"].ctypes.data
    frame = pl.DataFrame(result)
    assert pl.from_arrow(result).struct.unnest().equals(frame)
    assert frame.filter(pl.col("vertex.fa") > 0.6)["object_id"].to_list() == [8, 8]
    del result
    gc.collect()
    assert frame["vertex.fa"].sum() == pytest.approx(3.0)
    batch = pa.record_batch(zvf.open("tracts.zv").query())
    assert batch.num_rows == 5
    schema = pa.schema(zvf.open("tracts.zv").query())
    assert schema.field("vertex.fa").type == pa.float64()


def test_duckdb_queries_a_result() -> None:
    result = zvf.open("tracts.zv").query()
    rows = duckdb.sql(
        'select object_id, count(*), round(avg("vertex.fa"), 3) from result group by object_id order by 1'
    )
    assert rows.fetchall() == [(3, 3, 0.5), (8, 2, 0.75)]
    objects = result.table("objects")
    assert duckdb.sql('select max("object.length") from objects').fetchall() == [(2.5,)]


@pytest.fixture
def graph() -> zvf.Result:
    zvf.create(
        "graph.zv",
        kind="graphs",
        positions=np.zeros((3, 3)),
        object_ids=[0, 0, 1],
        links=[[0, 1]],
        vertex={
            "label": ["a", None, "b"],
            "rgb": np.arange(9, dtype=np.uint8).reshape(3, 3),
            "half": np.array([1, 2, 3], np.float16),
            "wave": np.array([1 + 2j, 0, 1j], np.complex64),
            "on": np.array([True, False, True]),
        },
        link={"weight": np.array([0.5], np.float32)},
        object={"name": [None, None], "size": [1, 2]},
        bounds=((0, 0, 0), (1, 1, 1)),
        chunk_shape=(1, 1, 1),
    )
    return zvf.open("graph.zv").query()


def test_every_type(graph: zvf.Result) -> None:
    table = pa.table(graph)
    table.validate(full=True)
    assert table["object_id"].to_pylist() == [0, 0, 1]
    assert table["vertex.label"].to_pylist() == ["a", None, "b"]
    assert pa.types.is_dictionary(table["vertex.label"].type)
    assert table["vertex.rgb"].to_pylist() == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]
    assert table["vertex.half"].to_pylist() == [1, 2, 3]
    assert table["vertex.wave"].to_pylist() == [[1, 2], [0, 0], [0, 1]]
    assert table["vertex.on"].to_pylist() == [True, False, True]
    assert table["vertex.half"].type == pa.float16()
    links = pa.table(graph.table("links"))
    links.validate(full=True)
    assert (links["links"].to_pylist(), links["link.weight"].to_pylist()) == ([[0, 1]], [0.5])
    objects = pa.table(graph.table("objects"))
    objects.validate(full=True)
    assert objects["object.name"].to_pylist() == [None, None]
    assert pl.DataFrame(graph)["vertex.label"].to_list() == ["a", None, "b"]


def test_empty_results() -> None:
    result = zvf.open("tracts.zv").query(where="fa > 5")
    table = pa.table(result)
    table.validate(full=True)
    assert (table.num_rows, table.column_names[-1]) == (0, "vertex.fa")
    with pytest.raises(TypeError, match="no links"):
        result.table("links")
    with pytest.raises(ValueError, match="vertices, objects or links"):
        result.table("groups")  # type: ignore[arg-type]


def test_empty_results_with_complex_numbers() -> None:
    wave = np.array([1 + 2j, 3j], np.complex64)
    vertex = {"wave": wave, "pair": np.ones((2, 2), np.complex128), "q": [1, 2]}
    zvf.create("wave.zv", kind="points", positions=np.eye(2), vertex=vertex)
    for where, rows in [("q > 0", 2), ("q > 5", 0)]:
        table = pa.table(zvf.open("wave.zv").query(where=where))
        table.validate(full=True)
        assert table.num_rows == rows
        assert table.schema.field("vertex.wave").type.list_size == 2
        assert table.schema.field("vertex.pair").type.list_size == 4


def frame(kind: str) -> Any:
    columns = {"x": [0.0, 1, 5], "y": [0.0, 1, 5], "fa": [0.1, 0.2, 0.3], "side": ["l", None, "r"]}
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[kind](columns)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_tables_are_input(kind: str) -> None:
    zvf.create("one.zv", kind="points", source=frame(kind), chunk_shape=(10, 10))
    found = zvf.open("one.zv").query()
    assert found.positions.tolist() == [[0, 0], [1, 1], [5, 5]]
    assert found.vertex["fa"].tolist() == [0.1, 0.2, 0.3]
    assert found.vertex["side"].tolist() == ["l", None, "r"]
    made: Any = {"positions": np.zeros((3, 2)), "bounds": ((0, 0), (1, 1)), "chunk_shape": (10, 10)}
    with pytest.raises(zvf.Error, match='"x" has the name of an axis'):
        zvf.create("two.zv", kind="points", vertex=frame(kind), **made)
    zvf.create("two.zv", kind="points", vertex=frame(kind), axes=["u", "v"], **made)
    assert sorted(zvf.open("two.zv").query().vertex) == ["fa", "side", "x", "y"]


class Stream:
    """A table with the PyCapsule of a stream only, as those of many packages."""

    def __init__(self, table: Any) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


def chunked() -> Any:
    """Two batches with columns of every form, the words of which have other codes in each."""
    def batch(first: int, words: list[str | None]) -> Any:
        rgb = pa.FixedSizeListArray.from_arrays(pa.array(range(3 * first, 3 * first + 6), "uint8"), 3)
        return {
            "x": [first, first + 1.0], "y": [0.0, 0.0], "z": [0.0, 0.0],
            "rgb": rgb,
            "side": pa.array(words).dictionary_encode(),
            "note": pa.array([None, str(first)], pa.large_string()),
            "fa": [0.5, None],
            "on": [True, False],
            "half": pa.array(np.array([1, 2], np.float16)),
        }  # fmt: skip

    return pa.concat_tables([pa.table(batch(0, ["l", "r"])), pa.table(batch(2, [None, "m"]))])


@pytest.mark.parametrize("form", ["pyarrow", "stream", "polars", "duckdb", "batch"])
def test_any_arrow_table_is_input(form: str) -> None:
    table = chunked()
    source: Any
    if form == "pyarrow":
        source = table
    elif form == "stream":
        source = Stream(table)
    elif form == "polars":
        source = pl.DataFrame(table)
    elif form == "duckdb":
        table = table.drop_columns(["half"])  # DuckDB widens it.
        rows = table
        source = duckdb.sql("from rows")
    else:
        source = table.unify_dictionaries().combine_chunks().to_batches()[0]
    zvf.create("one.zv", kind="points", source=source, chunk_shape=(10, 10, 10))
    found = zvf.open("one.zv").query()
    assert found.positions[:, 0].tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(found.vertex["rgb"], np.arange(12).reshape(4, 3))
    assert found.vertex["rgb"].dtype == np.uint8
    assert found.vertex["side"].tolist() == ["l", "r", None, "m"]
    assert found.vertex["note"].tolist() == [None, "0", None, "2"]
    np.testing.assert_array_equal(found.vertex["fa"], [0.5, np.nan, 0.5, np.nan])
    assert found.vertex["on"].tolist() == [True, False, True, False]
    if form != "duckdb":
        assert found.vertex["half"].dtype == np.float16
    if form == "polars":
        zvf.create("axes.zv", kind="points", positions=source.select("x", "y", "z"))
        np.testing.assert_array_equal(zvf.open("axes.zv").query().positions, found.positions)
    # The same columns as attributes, and single columns of the package.
    names = {"rgb", "side", "fa"}
    vertex = {name: table[name] for name in names}
    positions = pa.FixedSizeListArray.from_arrays(pa.array(np.arange(8.0)), 2)
    zvf.create("two.zv", kind="points", positions=positions, vertex=vertex, chunk_shape=(10, 10))
    two = zvf.open("two.zv").query()
    assert set(two.vertex) == names and two.positions.tolist()[3] == [6, 7]
    assert two.vertex["side"].tolist() == ["l", "r", None, "m"]


@pytest.mark.parametrize(
    ("column", "error", "says"),
    [
        (pa.array([1, None]), ValueError, "n has missing values, which int64"),
        (pa.array([True, None]), ValueError, "n has missing values, which bool"),
        (pa.array([0, 1], pa.timestamp("s")), TypeError, 'n" has the type Timestamp'),
        (pa.array([[1], [1, 2]]), TypeError, 'n" has the type List'),
        (pa.array([[1, None], [1, 2]], pa.list_(pa.int64(), 2)), ValueError, 'n" has null'),
        (pa.array([{"a": 1}, {"a": 2}]), TypeError, 'n" has the type Struct'),
        (pl.Series([1, None]), ValueError, "n has missing values, which int64"),
    ],
)
def test_arrow_columns_that_are_refused(column: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        zvf.create("one.zv", kind="points", positions=[[0.0], [1]], vertex={"n": column})
    zvf.create("one.zv", kind="points", positions=[[0.0], [1]])
    table = pa.table({"x": [0.0, 1], "n": pa.array(column)})
    with pytest.raises(error, match=says):
        zvf.create("one.zv", kind="points", source=table, overwrite=True)
    assert len(zvf.open("one.zv").query()) == 2


@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, duckdb.from_arrow, dict])
def test_missing_coordinates_and_ids_of_a_table_are_refused(make: Any) -> None:
    """They were stored as 0."""
    def create(kind: str, **columns: list[Any]) -> zvf.Result:
        table = pa.table({"x": [1.0, 2, 3], "y": [0.0, 0, 0], "object_id": [5, 6, 7]} | columns)
        # A dictionary has the columns of pyarrow.
        source = make(zip(table.column_names, table.columns)) if make is dict else make(table)
        zvf.create("one.zv", kind=kind, source=source, overwrite=True)
        return zvf.open("one.zv").query()

    assert create("points").objects.tolist() == [5, 6, 7]
    with pytest.raises(zvf.InputError, match="finite"):
        create("points", x=[1.0, None, 3])
    with pytest.raises(ValueError, match="x has missing values, which int64"):
        create("points", x=[1, None, 3])
    for kind in ("points", "streamlines"):
        with pytest.raises(ValueError, match="object_id has missing values, which int64"):
            create(kind, object_id=[5, None, 7])
    with pytest.raises(ValueError, match="part has missing values, which int64"):
        create("streamlines", part=[0, None, 1])


def test_tables_without_rows() -> None:
    table = pa.schema([("x", pa.float32()), ("side", pa.string())]).empty_table()
    with pytest.raises(zvf.InputError, match="vert"):
        zvf.create("none.zv", kind="points", source=table)
    tracts = zvf.open("tracts.zv")
    nothing = tracts.query(where="fa > 5")
    with pytest.raises(zvf.InputError, match="vert"):
        zvf.create("none.zv", kind="streamlines", source=nothing)


def test_text_of_pandas() -> None:
    text = pd.Series(["l", pd.NA, "r"], dtype="string")
    codes = pd.Series(["a", None, "a"], dtype="category")
    vertex = {"side": text, "code": codes}
    zvf.create("text.zv", kind="points", positions=np.eye(3), vertex=vertex, chunk_shape=(9,) * 3)
    found = zvf.open("text.zv").query()
    assert found.vertex["side"].tolist() == ["l", None, "r"]
    assert found.vertex["code"].tolist() == ["a", None, "a"]


@pytest.mark.parametrize("package", ["", "[pyarrow]"])
def test_nullable_columns_of_pandas(package: str) -> None:
    """Regression test: integers with a missing value were stored as rounded floats."""
    def series(values: list[Any], dtype: str) -> Any:
        return pd.Series(values, dtype=dtype + package if package else dtype.title())

    large = 2**53 + 1
    codes = pd.Categorical.from_codes([0, -1], [large])
    flags = pd.Series([True, None], dtype=f"bool{package}" if package else "boolean")
    for column, of in (series([large, None], "int64"), "int64"), (codes, "int64"), (flags, "bool"):
        with pytest.raises(ValueError, match=f"vertex.n has missing values, which {of}.*fill"):
            zvf.create("one.zv", kind="points", positions=np.eye(2), vertex={"n": column})
    ids = pd.DataFrame({"x": [0.0, 1], "object_id": series([large, None], "int64")})
    with pytest.raises(ValueError, match="object_id has missing values, which int64"):
        zvf.create("one.zv", kind="points", source=ids)
    links = pd.DataFrame({"a": series([1, None], "int64"), "b": [0, 0]})
    with pytest.raises(ValueError, match="links has missing values, which int64"):
        zvf.create("one.zv", kind="graphs", positions=np.eye(2), links=links)
    vertex = {
        "n": series([large, 2], "int64"),
        "fa": series([0.5, None], "float" if package else "float32"),
        "is_on": flags.fillna(False),
        "side": pd.Series(["l", None], dtype=f"string{package}"),
        "code": pd.Categorical.from_codes([0, 0], [large]),
    }
    positions = pd.DataFrame({"x": series([1, 2], "int64"), "y": [0.5, 1.5]})
    zvf.create("one.zv", kind="points", positions=positions, vertex=vertex, chunk_shape=(9, 9))
    found = zvf.open("one.zv").query()
    assert found.positions.tolist() == [[1, 0.5], [2, 1.5]]
    assert found.vertex["n"].dtype == np.int64 and found.vertex["n"].tolist() == [large, 2]
    assert found.vertex["code"].tolist() == [large, large]
    assert found.vertex["fa"].dtype == np.float32
    np.testing.assert_array_equal(found.vertex["fa"], [0.5, np.nan])
    assert found.vertex["is_on"].tolist() == [True, False]
    assert found.vertex["side"].tolist() == ["l", None]


@pytest.mark.parametrize(
    "table",
    [
        pa.table([[0.0, 1], [1, 2], [3, 4]], names=["x", "q", "q"]),
        pd.DataFrame([[0.0, 1, 2], [1, 3, 4]], columns=["x", "q", "q"]),
    ],
)
def test_columns_with_one_name_are_refused(table: Any) -> None:
    """Regression test: one of the columns was lost."""
    with pytest.raises(ValueError, match="source has several columns named 'q'"):
        zvf.create("one.zv", kind="points", source=table)
    with pytest.raises(ValueError, match="vertex has several columns named 'q'"):
        zvf.create("one.zv", kind="points", positions=np.eye(2), vertex=table)
    with pytest.raises(ValueError, match=r"the columns q and vertex\.q.*rename"):
        zvf.create("one.zv", kind="points", source={"x": [0.0], "q": [1], "vertex.q": [2]})
    zvf.create("one.zv", kind="points", positions=table, chunk_shape=(9, 9, 9))
    assert zvf.open("one.zv").query().positions.shape == (2, 3)


def test_a_result_becomes_a_store(graph: zvf.Result) -> None:
    zvf.create("again.zv", kind="graphs", source=graph, chunk_shape=(1, 1, 1))
    found = zvf.open("again.zv").query()
    assert graph.links is not None and found.links is not None
    assert found.links.tolist() == graph.links.tolist()
    assert found.vertex["label"].tolist() == ["a", None, "b"]
    np.testing.assert_array_equal(found.vertex["wave"], graph.vertex["wave"])
    np.testing.assert_array_equal(found.link["weight"], graph.link["weight"])
    assert found.object["size"].tolist() == [1, 2]
    tracts = zvf.open("tracts.zv")
    near = tracts.query(groups=[1], where="object.length < 2")
    zvf.create("near.zv", kind="streamlines", source=near, bounds=[0, 0, 0, 9, 9, 9])
    copy = zvf.open("near.zv")
    assert copy.query(groups=1).objects.tolist() == [8] and copy.axes == tracts.axes
    copy.append(**tracts.query(objects=3).arrays())
    both = copy.query()
    assert dict(zip(both.objects.tolist(), both.object["length"].tolist(), strict=True)) == {
        3: 2.5, 8: 1,
    }  # fmt: skip
    with pytest.raises(TypeError, match="source is a result; leave out vertex"):
        zvf.create("other.zv", kind="streamlines", source=near, vertex={"a": [1, 2]})


def test_attributes_of_fragments_become_those_of_objects() -> None:
    zvf.create(
        "plain.zv", kind="polylines", positions=np.arange(12.0).reshape(4, 3),
        part_offsets=[0, 2, 4], fragment={"q": [1.0, np.nan]},
    )  # fmt: skip
    found = zvf.open("plain.zv").query(objects=[1, 0])
    q = found.arrays()["fragment"]["q"]
    np.testing.assert_array_equal(q, [np.nan, 1])
    found.fragment._made["q"] = np.arange(4.0)
    with pytest.raises(ValueError, match="fragment.q differs within an object"):
        found.arrays()
    found.fragment._made["q"] = np.zeros(4)
    found.part_objects, found.part_offsets, found.object_ids = None, None, np.array([-1, -1, 0, 0])
    with pytest.raises(ValueError, match="no object or to several"):
        found.arrays()


@pytest.fixture
def cloud() -> zvf.Dataset:
    """Points with text, some of whose words first appear in later batches."""
    rows = np.arange(3000)
    positions = np.column_stack([rows % 100, rows // 100, np.zeros(3000)]).astype(np.float32)
    zvf.create(
        "cloud.zv", kind="points", positions=positions, chunk_shape=(20, 20, 20),
        vertex={
            "n": rows, "half": np.where(rows % 7, rows / 2, np.nan),
            "word": [None if row % 5 == 0 else f"w{row // 50}" for row in range(3000)],
        },
    )  # fmt: skip
    return zvf.open("cloud.zv")


def test_batches_are_a_stream(cloud: zvf.Dataset) -> None:
    whole = pa.table(cloud.query())
    batches = cloud.batches(batch_rows=100)
    assert pa.schema(batches).names == whole.column_names
    reader = pa.RecordBatchReader.from_stream(batches)
    parts = list(reader)
    assert len(parts) >= 30 and max(part.num_rows for part in parts) <= 100
    for part in parts:
        part.validate(full=True)
    for name in whole.column_names:
        values = [value for part in parts for value in part[name].to_pylist()]
        np.testing.assert_array_equal(values, whole[name].to_pylist(), name)
    assert (batches.levels, batches.skipped, batches.notes) == ([], [], [])
    # Each stream is a query of its own.
    assert duckdb.sql('select sum("vertex.n"), count("vertex.word") from batches').fetchall() == [
        (2999 * 1500, 2400)
    ]
    joined = 'select count(*) from batches a join batches b on a."vertex.n" = b."vertex.n" + 1'
    assert duckdb.sql(joined).fetchall() == [(2999,)]
    frame = pl.DataFrame(cloud.batches(batch_rows=500, where="n < 700", select=["n", "word"]))
    assert frame["vertex.n"].sort().to_list() == list(range(700))
    assert frame.columns == ["x", "y", "z", "vertex.n", "vertex.word"]
    assert frame.filter(pl.col("vertex.n") == 699)["vertex.word"].to_list() == ["w13"]
    nothing = cloud.batches(where="n < 0")
    assert pa.table(nothing).num_rows == 0 and pa.schema(nothing).names == whole.column_names
    assert len(next(batches)) == 100
    with pytest.raises(ValueError, match="call batches again"):
        pa.table(batches)


def test_streams_of_paths_and_errors() -> None:
    tracts = zvf.open("tracts.zv")
    table = pa.RecordBatchReader.from_stream(tracts.batches(batch_rows=3)).read_all()
    assert table.to_pydict() == pa.table(tracts.query()).to_pydict()
    [part] = tracts.partitions(1)
    assert pa.table(part.batches()).num_rows == 5
    stale = part.batches()
    tracts.delete(objects=8)
    assert pa.RecordBatchReader.from_stream(tracts.batches()).read_all().num_rows == 3
    with pytest.raises((zvf.Error, pa.ArrowInvalid)):
        pa.table(stale)
    with pytest.raises(zvf.InputError, match="fb"):
        pa.table(tracts.batches(where="fb > 1"))
    cells = [file for file in Path("tracts.zv/0/vertices").rglob("*") if file.is_file()]
    for cell in cells:
        if cell.name != "zarr.json":
            cell.write_bytes(cell.read_bytes()[:5])
    with pytest.raises((zvf.DamagedError, pa.ArrowInvalid), match="vertices"):
        pa.RecordBatchReader.from_stream(zvf.open("tracts.zv").batches()).read_all()


PEAK = """
import duckdb, numpy as np, pyarrow as pa, zvf
def peak():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) >> 10
types = pa.schema([("x", pa.float64()), ("y", pa.float64()), ("q", pa.int64()), ("word", pa.string())])
def rows(batches):
    for batch in range(batches):
        n = np.arange(batch * 50_000, (batch + 1) * 50_000)
        words = pa.array([f"word {one % 1000}" for one in n.tolist()])
        yield pa.record_batch([pa.array(n % 1000 * 1.0), pa.array(n // 1000 * 1.0), pa.array(n), words], types)
def run(count, name):
    source = pa.RecordBatchReader.from_batches(types, rows(count))
    report = zvf.create(name, kind="points", source=source, memory=24 << 20)
    created = peak()
    batches = zvf.open(name, cache=0).batches(batch_rows=20_000)
    counted = sum(batch.num_rows for batch in pa.RecordBatchReader.from_stream(batches))
    read = peak()
    values = 'select sum("vertex.q"), count(distinct "vertex.word") from batches'
    return report.vertices, counted, *duckdb.sql(values).fetchall()[0], created, read
run(5, "few.zv")
before = peak()
*values, created, read = run(40, "many.zv")
print(*values, created - before, read - created, peak() - read)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_streams_are_not_held_in_memory() -> None:
    """Two million rows, which take 130 MB."""
    path = {"PYTHONPATH": str(Path(zvf.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", PEAK], capture_output=True, text=True, check=True,
        env={**os.environ, **path},
    )  # fmt: skip
    # DuckDB may print a bar before.
    printed = map(int, done.stdout.split()[-7:])
    rows, counted, total, words, created, read, queried = printed
    assert (rows, counted, total, words) == (2_000_000, 2_000_000, 1_999_999 * 1_000_000, 1000)
    assert created < 60 and read < 50 and queried < 60, done.stdout
    assert not list(Path().glob(".zvf-*"))


def test_a_stream_that_is_larger_than_memory_is_the_same_store() -> None:
    def rows() -> Any:
        n = np.arange(8000)
        words = [None if one % 3 == 0 else f"w{one % 50}" for one in range(8000)]
        table = pa.table({
            "x": n % 50 * 1.0, "y": n // 50 * 1.0, "object_id": n // 1000,
            "half": pa.array([None if one % 4 == 0 else one / 2 for one in range(8000)]),
            "word": pa.array(words).dictionary_encode(), "on": n % 2 == 0,
            "rgb": pa.FixedSizeListArray.from_arrays(pa.array(np.arange(24000) % 256, pa.uint8()), 3),
        })  # fmt: skip
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(100))

    made: dict[str, Any] = {
        "kind": "points", "chunk_shape": (10, 10), "bounds": ((0, 0), (50, 160)), "name": "made",
    }  # fmt: skip
    zvf.create("whole.zv", source=rows(), **made)
    report = zvf.create("parts.zv", source=rows(), memory=1 << 20, **made)
    assert report.vertices == 8000
    stores = [
        {
            file.relative_to(name): file.read_bytes()
            for file in Path(name).rglob("*")
            if file.is_file() and ".zvf" not in file.parts
        }
        for name in ("whole.zv", "parts.zv")
    ]
    assert stores[0].keys() == stores[1].keys() and stores[0] == stores[1]
    types = pa.schema([("x", pa.float64()), ("n", pa.int64())])
    late = [pa.record_batch([[0.0] * 9000, [1] * 9000], types), pa.record_batch([[1.0], [None]], types)]
    with pytest.raises(ValueError, match="n has missing values, which int64"):
        source = pa.RecordBatchReader.from_batches(types, late)
        zvf.create("late.zv", kind="points", source=source, memory=64 << 10)
    no_axes = pa.table({"a": np.arange(9000.0)})
    with pytest.raises(zvf.InputError, match="source") as refused:
        zvf.create("late.zv", kind="points", source=no_axes, memory=64 << 10)
    assert ".zvf-" not in str(refused.value)
    assert not Path("late.zv").exists() and not list(Path().glob(".zvf-*"))


def test_polars_scans_a_store(cloud: zvf.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    import zvf.polars

    asked: list[dict[str, Any]] = []
    batches = zvf.Dataset.batches

    def recorded(dataset: zvf.Dataset, **options: Any) -> zvf.Batches:
        asked.append(options)
        return batches(dataset, **options)

    monkeypatch.setattr(zvf.Dataset, "batches", recorded)
    lazy, n, half = zvf.polars.scan("cloud.zv"), pl.col("vertex.n"), pl.col("vertex.half")
    whole = lazy.collect()
    assert whole.equals(pl.DataFrame(cloud.query())) and whole.shape == (3000, 6)
    filters = [
        n > 2500, n == 7, n.is_between(10, 20), 30 > n, n != 5, half > 1490.5, half <= 2, half == 8.5,
        half != 8.5, half >= 1499, (pl.col("x") <= 3) & (pl.col("y") > 28), pl.col("vertex.word") == "w3",
        pl.col("vertex.word") != "w3", n.is_in([1, 2]), (n < 5) | (n > 2990), half.is_nan(), ~(n < 2990),
        pl.col("vertex.word").is_null(), (n < 50) & half.is_not_nan(), pl.col("x") == 0.1, n > 5.5,
    ]  # fmt: skip
    for condition in filters:
        found = lazy.filter(condition).collect()
        assert found.equals(whole.filter(condition)), str(condition)
    asked.clear()
    assert lazy.filter(n < 5).select("x", "vertex.n").collect()["vertex.n"].to_list() == [0, 1, 2, 3, 4]
    assert asked[0]["where"] == 'vertex."n" < 5' and asked[0]["select"] == ["vertex.n"]
    asked.clear()
    assert lazy.select("y").head(3).collect()["y"].to_list() == whole["y"].head(3).to_list()
    assert (asked[0]["limit"], asked[0]["select"]) == (3, [])
    # A further predicate would change what these select.
    limited = zvf.polars.scan(cloud, limit=100, where="n >= 0")
    assert len(limited.filter(n < 5000).collect()) == 100
    assert limited.filter(n < 3).collect().equals(whole.head(100).filter(n < 3))
    paths = zvf.polars.scan("tracts.zv").filter(pl.col("vertex.fa") > 0.55).collect()
    assert paths["part"].to_list() == [0, 1, 1] and paths["object_id"].to_list() == [3, 8, 8]
