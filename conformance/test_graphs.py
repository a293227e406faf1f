"""Graphs beside networkx and geff: GraphML, edge lists with tables of nodes, and geff in both formats of Zarr."""

import collections

import geff
import networkx
import numpy as np
import pandas
import pytest


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def graph(request):
    """A graph with coordinates, and attributes that some nodes and edges lack."""
    random = np.random.default_rng(10)
    graph = networkx.gnm_random_graph(400, 900, seed=7, directed=request.param)
    for node, values in graph.nodes(data=True):
        x, y, z = (random.random(3) * 100).tolist()
        values.update(x=x, y=y, z=z, label=f"n & {node}", count=node * 3, seen=bool(node % 2))
        if node % 3:
            values["score"] = float(random.random())
    for first, second, values in graph.edges(data=True):
        values["weight"] = float(random.random())
        if (first + second) % 2:
            values["kind"] = "it's a 'road'"
    return graph


def without(graph, nodes=(), edges=()):
    """Returns a copy without some attributes."""
    copy = graph.copy()
    for names, all_values in ((nodes, dict(copy.nodes(data=True)).values()), (edges, (e[2] for e in copy.edges(data=True)))):
        for values in all_values:
            for name in names:
                values.pop(name, None)
    return copy


def check(read, graph, scalars, text=("label",)):
    """Compares arrays with a graph whose nodes and edges are the same but for their order."""
    ids = read["vertex.node_id"].tolist()
    assert sorted(ids) == sorted(graph.nodes)
    places = [graph.nodes[node] for node in ids]
    expected = np.array([[place[axis] for axis in "xyz"] for place in places], "f8")
    assert np.array_equal(read["positions"], expected)
    for key in scalars:
        wanted = np.array([place.get(key, np.nan) for place in places], "f8")
        assert np.array_equal(read[f"vertex.{key}"].astype("f8"), wanted, equal_nan=True), key
    for key in text:
        assert read[f"vertex.{key}"].tolist() == [place[key] for place in places], key

    def edge(first, second, weight, kind):
        ends = (first, second) if graph.is_directed() else tuple(sorted((first, second)))
        return (*ends, weight, kind)

    kinds = read["link.kind"].tolist() if "link.kind" in read else [""] * len(read["links"])
    links = ((ids[first], ids[second]) for first, second in read["links"])
    found = (edge(*ends, *values) for ends, *values in zip(links, read["link.weight"].tolist(), kinds))
    edges = ((one, two, data["weight"], data.get("kind", "")) for one, two, data in graph.edges(data=True))
    assert collections.Counter(found) == collections.Counter(edge(*values) for values in edges)


def test_graphml(graph, files):
    source = files.folder / "graph.graphml"
    networkx.write_graphml(graph, source)
    check(files.zvf.query(files.store(source)), graph, ["count", "seen", "score"])
    files.equal(source.name)


@pytest.mark.parametrize("data", [True, ["weight"]], ids=["dictionary", "columns"])
def test_edge_list(data, graph, files):
    source, table = files.folder / "graph.edgelist", files.folder / "nodes.csv"
    nodes = pandas.DataFrame.from_dict(dict(graph.nodes(data=True)), orient="index")
    nodes.to_csv(table, index_label="id")
    written = graph if data is True else without(graph, edges=["kind"])
    networkx.write_edgelist(written, source, data=data)
    words = ["--directed"] if graph.is_directed() else []
    store = files.store(source, "--with", table, *words)
    check(files.zvf.query(store), written, ["count", "seen", "score"])
    files.equal(source.name)


@pytest.mark.parametrize("version", [2, 3])
def test_geff(version, graph, files):
    written = without(graph, nodes=["score"], edges=["kind"])
    for node, values in written.nodes(data=True):
        values["t"] = node % 5
    source = files.folder / "graph.geff"
    axes = dict(axis_names=["t", "z", "y", "x"], axis_types=["time", "space", "space", "space"])
    geff.write(written, source, zarr_format=version, **axes)
    read, _ = geff.read(source)
    found = files.zvf.query(files.store(source))
    ids = found["vertex.node_id"].tolist()
    # Axes are in the order of the file.
    assert found["positions"].tolist() == [[read.nodes[node][axis] for axis in "tzyx"] for node in ids]
    ends = (lambda *pair: pair) if graph.is_directed() else (lambda *pair: tuple(sorted(pair)))
    pairs = (ends(ids[one], ids[two]) for one, two in found["links"])
    wanted = {ends(one, two): values["weight"] for one, two, values in read.edges(data=True)}
    assert dict(zip(pairs, found["link.weight"].tolist())) == wanted
    for key in ("label", "count", "seen"):
        assert found[f"vertex.{key}"].tolist() == [read.nodes[node][key] for node in ids], key
    files.equal(f"{source.name}, Zarr {version}")
