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
