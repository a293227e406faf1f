"""Tests that the comparison of responses detects differences."""

import copy
import json
import shutil
import sys

import compare
import neuroglancer_rules
import pack
import run
from content import Content, queries, response


def sample():
    """Returns links and objects with attributes of every form."""
    content = Content("links", "xy")
    content.positions = [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [2.0, 3.0]]
    content.own([(7, [0, 1]), (3, [2, 3])])
    content.links = [[0, 1], [2, 3], [1, 2]]
    content.vertex = {"a": [1, 2, None, {"float": "nan"}]}
    content.fragment = {"f": [[1, 2], [1, 2], [3, 4], [3, 4]]}
    content.link = {"w": ["x", "y", "z"]}
    content.object = {"o": [0.5, None]}
    content.groups, content.group = [[7], [3, 7]], {"g": [1, 2]}
    return content


def test_filters_select_stores_queries_and_parts():
    class Store:
        def __init__(self, name, generation, *features):
            self.name, self.entry = name, {"generation": generation, "geometry": ["points"], "features": features}

    stores = [Store("zvf-08/a", "0.8.1"), Store("zvf-09/a", "0.9"), Store("zvf-09/b", "0.9", "bins")]
    selection = run.Filter(store=["*/a"], query=["all"], generation=["0.9"])
    assert selection.stores(stores) == stores[1:2]
    assert str(selection) == "store */a; query all; generation 0.9"
    assert run.Filter(store=[]).stores(stores) == stores
    assert run.Filter(without=["bins"], geometry=["points", "lines"]).stores(stores) == stores[:2]
    assert run.Filter(part=["vertex"]).parts({"vertex.a": 1, "positions": 2}) == {"vertex.a": 1}


def test_faults_of_runners_and_manifests_are_a_sentence(tmp_path):
    for name in ("run.py", "compare.py"):
        shutil.copy(pack.HERE / name, tmp_path)
    manifest, said = tmp_path / "manifest.json", tmp_path / "says.py"
    entry = {"name": "a", "generation": "0.9", "geometry": [], "features": [], "path": ".", "answers": "none"}
    healthy = {"version": run.VERSION, "features": {}, "stores": [entry], "damaged": []}
    python = pack.shlex.join([sys.executable, str(said)])
    for wanted, scope, runner, written in [
        ("declares the scope 5", 5, python, healthy),
        ("declares the scope {\"query\": 5}", {"query": 5}, python, healthy),
        ("declares the scope {\"size\": []}", {"size": []}, python, healthy),
        ("does not start: No such file", {}, "/absent/program", healthy),
        ("the command of the runner is empty", {}, " ", healthy),
        ("cannot be split: No closing quotation", {}, "'", healthy),
        ("is not a manifest of version", {}, python, {"scope": 5}),
        ("is not a manifest of version", {}, python, 5),
        ("'path' is missing", {}, python, healthy | {"stores": [{"name": "a"}]}),
        ("none cannot be read", {}, python, healthy),
    ]:
        manifest.write_text(json.dumps(written))
        said.write_text(f"import json\ninput()\nprint(json.dumps({{'scope': {scope!r}}}), flush=True)\n")
        done = pack.scored(tmp_path, runner)
        assert wanted in done.stderr and "Traceback" not in done.stderr, done.stderr
        assert done.returncode == 1, done
    manifest.unlink()
    assert "unpack the archive again" in pack.scored(tmp_path, python).stderr


def test_rules_of_readers_for_neuroglancer(tmp_path):
    def judged(rules, version, says=None, node="array", below=()):
        about = {"zv_version": version, "bounds": [[0] * 3, [1] * 3], "chunk_shape": [1] * 3, "geometry_types": ["graph"]}
        shutil.rmtree(tmp_path / "0", ignore_errors=True)
        nodes = {"": {"attributes": {"zarr_vectors": about | (says or {})}}, "0/vertices": {"node_type": node}, **dict(below)}
        for name, one in nodes.items():
            (tmp_path / name).mkdir(parents=True, exist_ok=True)
            (tmp_path / name / "zarr.json").write_text(json.dumps(one))
        outcome, reasons = neuroglancer_rules.judged(rules, neuroglancer_rules.Nodes(tmp_path))
        return outcome, sorted(reasons)

    current, proposed = neuroglancer_rules.READERS.values()
    assert judged(current, "0.9.2") == ("opened", [])
    assert judged(current, "0.8.0")[0] == judged(current, "0.9.2", node="group")[0] == "refused"
    assert judged(current, "0.9.3", {"required_capabilities": ["additive_levels"]}) == ("opened", [])
    assert judged(current, "0.9.3", {"required_capabilities": ["dense_manifests"]})[0] == "refused"
    assert judged(current, "0.9.2", {"bounds": [[0, 0], [1, 1]]}) == ("refused", ["axes other than three"])
    assert judged(current, "0.10.0")[0] == "in part"
    dense = [("0/object_index", {"attributes": {"layout": "dense_manifests_v1"}})]
    assert judged(current, "0.9.4", below=dense) == ("in part", ["objects in a dense index cannot be selected"])
    lz4 = [("0/vertices", {"node_type": "array", "codecs": [{"name": "numcodecs.lz4"}]})]
    assert judged(current, "0.9.2", below=lz4)[0] == "refused"
    assert judged(proposed, "0.7.0", node="group") == ("opened", [])
    assert judged(proposed, "0.9.2")[0] == judged(proposed, "0.7.0", {"geometry_types": ["mesh"]}, "group")[0] == "refused"
    crossing = [("0/cross_chunk_links/0", {"node_type": "group"})]
    assert judged(proposed, "0.8.0", node="group", below=crossing)[0] == "in part"


def test_codes_of_damage_must_be_found_or_not():
    wanted = {"must": ["A"], "must_not": ["B"]}
    found = {"A C": "passed", "B A": "failed", "C": "failed"}
    assert {codes: outcomes({"codes": codes.split()}, wanted)["codes"] for codes in found} == found
    assert outcomes({"unsupported": "x"}, wanted) == {"codes": "unsupported"}
    assert outcomes({"error": "x"}, wanted) == {"codes": "failed"}


WHOLE = {"kind": "all", "shape": "links"}


def outcomes(found, wanted):
    compared = compare.compared(found, wanted)
    return {name: outcome for name, (outcome, _) in compared.items()}


def failed(found, wanted):
    return {name for name, one in outcomes(found, wanted).items() if one == compare.FAILED}

def test_the_answer_itself_passes_whole():
    for query in [*queries(sample()), {"kind": "info"}]:
        wanted = response(sample(), query)
        told = outcomes(wanted, wanted)
        assert told
        assert set(told.values()) == {compare.PASSED}, query

def test_rows_in_another_order_pass():
    wanted = response(sample(), WHOLE)
    found, order = copy.deepcopy(wanted), [3, 1, 0, 2]
    found["positions"] = [wanted["positions"][row] for row in order]
    found["object_ids"] = [wanted["object_ids"][row] for row in order]
    for scope, name in (("vertex", "a"), ("fragment", "f")):
        found[scope][name] = [wanted[scope][name][row] for row in order]
    found["links"] = [[order.index(end) for end in ends] for ends in wanted["links"]]
    assert failed(found, wanted) == set()

def test_each_wrong_value_fails_its_field_alone():
    wanted = response(sample(), WHOLE)
    wrong = {
        "object_ids": lambda found: found["object_ids"].__setitem__(1, 3),
        "vertex.a": lambda found: found["vertex"]["a"].__setitem__(2, 0),
        "fragment.f": lambda found: found["fragment"]["f"].__setitem__(0, [2, 1]),
        "link.w": lambda found: found["link"]["w"].__setitem__(0, "y"),
    }
    for name, spoil in wrong.items():
        found = copy.deepcopy(wanted)
        spoil(found)
        assert failed(found, wanted) == {name}

def test_positions_links_and_paths_are_seen():
    wanted = response(sample(), WHOLE)
    found = copy.deepcopy(wanted)
    found["positions"][0][0] += 1e-12
    assert "positions" in failed(found, wanted)
    found = copy.deepcopy(wanted)
    found["links"][0].reverse()
    assert failed(found, wanted) == {"links", "link.w"}
    found = copy.deepcopy(wanted)
    found["links"].append([0, 1])
    found["link"]["w"].append("x")
    assert "links" in failed(found, wanted)
    content = sample()
    content.shape = "paths"
    wanted = response(content, {"kind": "all", "shape": "paths"})
    for part in (0, 1, 2):
        found = copy.deepcopy(wanted)
        found["parts"][0][part] += 1
        assert "parts" in failed(found, wanted)
    # The order along a path matters.
    found = copy.deepcopy(wanted)
    found["positions"][0:2] = reversed(found["positions"][0:2])
    assert "parts" in failed(found, wanted)

def test_tables_are_by_object():
    wanted = response(sample(), {"kind": "tables"})
    found = copy.deepcopy(wanted)
    found["objects"].reverse()
    assert failed(found, wanted) == {"object.o"}
    found["object"]["o"].reverse()
    assert failed(found, wanted) == set()
    found["groups"].reverse()
    assert failed(found, wanted) == {"groups"}

def test_what_is_left_out_is_unsupported_and_errors_fail_all():
    wanted = response(sample(), WHOLE)
    found = {name: wanted[name] for name in ("positions", "links")}
    told = outcomes(found, wanted)
    assert told["positions"] == compare.PASSED
    assert told["vertex.a"] == compare.UNSUPPORTED
    assert set(outcomes({"error": "no"}, wanted).values()) == {compare.FAILED}
    told = outcomes({"unsupported": "no"}, wanted)
    assert set(told.values()) == {compare.UNSUPPORTED}
    assert set(outcomes(wanted | {"missing": ["x"]}, wanted).values()) == {compare.FAILED}

def test_broken_answers_fail():
    wanted = response(sample(), WHOLE)
    for name, value in (("links", [[0, 9]]), ("links", [[-4, 1]]), ("object_ids", [1]), ("vertex", {"a": [1]})):
        found = copy.deepcopy(wanted) | {name: value}
        assert failed(found, wanted)
    assert failed({"positions": 3}, wanted)

def test_nothing_where_nothing_is_counts_once():
    empty = response(Content("points", "xyz"), {"kind": "all", "shape": "points"})
    assert outcomes(empty, empty) == {"positions": compare.PASSED}
    found = {"positions": [[1, 2, 3]]}
    assert outcomes(found, empty) == {"positions": compare.FAILED}
