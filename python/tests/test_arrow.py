"""Results and inputs as tables of pyarrow, polars, pandas and DuckDB."""

from __future__ import annotations

import gc
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
    zvf.create("two.zv", kind="points", positions=np.zeros((3, 2)), vertex=frame(kind),
               bounds=((0, 0), (1, 1)), chunk_shape=(10, 10))  # fmt: skip
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
