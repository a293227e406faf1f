"""Queries the stores of the corpus through a runner, prints the table of right, wrong and unsupported fields, and
fails if one is wrong.

usage: run.py --runner COMMAND [--store PATTERN,…] [--query KIND,…] [--generation G,…]

The stores are those of the manifest beside this file; README.md describes runners and filters.
"""

import argparse
import fnmatch
import json
import pathlib
import selectors
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import compare

#: The version of manifests.
VERSION = 1
#: Seconds for a response; stores are small.
PATIENCE = 60


class Store:
    """A store of the pack, healthy or damaged."""

    def __init__(self, pack, entry):
        self.entry, self.name, self.path = entry, entry["name"], pack / entry["path"]
        self.answers = pack / entry["answers"] if "answers" in entry else None

    def cases(self):
        """Returns level, query, response, and whether parts of the level are unreadable."""
        if self.answers is None:
            wanted = {name: self.entry[name] for name in ("must", "must_not")}
            return [(0, {"kind": "validate"}, wanted, False)]
        return read(self.answers)


class Runner:
    """A process that serves requests, restarted when it dies."""

    def __init__(self, command):
        try:
            self.command = shlex.split(command)
        except ValueError as error:
            sys.exit(f"the command of the runner, {command!r}, cannot be split: {error}")
        if not self.command:
            sys.exit("the command of the runner is empty; name a program")
        self.process = None

    def start(self):
        try:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        except OSError as error:
            sys.exit(f"the runner {self.command[0]!r} does not start: {error.strerror}; name a program, with its path "
                     "unless it is in PATH")

    def send(self, request):
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
            line = self.line()
            response = json.loads(line)
            if not isinstance(response, dict):
                raise ValueError(f"{line[:80]!r} is not an object")
            return response
        except (OSError, ValueError) as broken:
            self.close()
            return {"error": f"the runner broke: {broken}"}

    def line(self):
        """Reads a complete line, because a read may end inside it."""
        line, stdout = b"", self.process.stdout
        with selectors.DefaultSelector() as ready:
            ready.register(stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not ready.select(PATIENCE):
                    raise ValueError(f"no response in {PATIENCE} s")
                more = stdout.read1()
                if not more:
                    raise ValueError("it ended")
                line += more
        return line

    def close(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


class Figures:
    """Counts of passed, failed and unsupported parts of responses, by row of the table."""

    KINDS = (compare.PASSED, compare.FAILED, compare.UNSUPPORTED)

    def __init__(self):
        self.rows = {}
        self.failures = []

    def count(self, store, query, field, outcome):
        for row in rows_of(store, query, field):
            counts = self.rows.setdefault(row, dict.fromkeys(self.KINDS, 0))
            counts[outcome] += 1

    def cell(self, row):
        counts = self.rows.get(row)
        return " / ".join(str(counts[kind]) for kind in self.KINDS) if counts else ""

    def total(self, kind):
        return self.rows.get(("all", "all"), {}).get(kind, 0)


#: What rows of the table are called by field of the response.
FIELDS = {
    "axes": "axes",
    "levels": "levels",
    "objects": "ids of objects",
    "groups": "groups",
    "positions": "positions",
    "object_ids": "objects of vertices",
    "parts": "paths",
    "links": "links",
    "vertex": "vertex attributes",
    "fragment": "fragment attributes",
    "link": "link attributes",
    "object": "object attributes",
    "group": "group attributes",
    "codes": "codes of damage",
}


def rows_of(store, query, field):
    yield ("all", "all")
    yield ("generation", store.entry["generation"])
    for kind in store.entry["geometry"][:1]:
        yield ("geometry", kind)
    yield ("query", "chunked_by" if "chunked_by" in query else query["kind"])
    yield ("part of the result", FIELDS[field.partition(".")[0]])
    for feature in store.entry["features"]:
        yield ("feature of the store", feature)
    if store.name.startswith("zvf-examples/"):
        yield ("example", store.name.partition("/")[2])


class Filter:
    """What is asked: properties of stores, kinds of queries, and parts of responses; none stands for all."""

    def __init__(self, **given):
        self.given = {name: values for name, values in given.items() if values}

    def has(self, name, values):
        return name not in self.given or any(value in self.given[name] for value in values)

    def stores(self, stores):
        names, without = self.given.get("store", "*"), self.given.get("without", [])
        return [
            store for store in stores
            if any(fnmatch.fnmatchcase(store.name, name) for name in names)
            and self.has("generation", [store.entry["generation"]])
            and self.has("geometry", store.entry["geometry"])
            and not set(without) & set(store.entry["features"])
        ]

    def parts(self, outcomes):
        return {field: outcome for field, outcome in outcomes.items() if self.has("part", [field.partition(".")[0]])}

    def __str__(self):
        return "; ".join(f"{name} {', '.join(values)}" for name, values in self.given.items()) or "the whole corpus"


#: Lists of a scope.
SCOPE = ["store", "generation", "geometry", "query", "part", "without"]


def declared(response):
    """Returns the scope that a runner declares; the whole corpus unless the response has one."""
    scope = response.get("scope", {})
    lists = scope.items() if isinstance(scope, dict) else [(None, None)]
    for name, values in lists:
        if name not in SCOPE or not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            sys.exit(f"the runner declares the scope {json.dumps(scope)}; a scope is an object with lists of words "
                     f"under some of {', '.join(SCOPE)}")
    return Filter(**scope)


#: Kinds that are asked without a selection or scope; codes of damage are asked by name only.
KINDS = ["info", "tables", "all", "bbox", "objects", "groups", "linked"]


def run(command, stores, selection):
    """Asks what the selection and the scope that the runner declares have in common."""
    figures, runner = Figures(), Runner(command)
    scope = declared(runner.send({"query": {"kind": "scope"}}))
    given = [one.given["query"] for one in (selection, scope) if "query" in one.given] or [KINDS]
    for store in scope.stores(stores):
        for level, query, wanted, is_incomplete in store.cases():
            if not all(query["kind"] in kinds for kinds in given):
                continue
            response = runner.send({"store": str(store.path), "level": level, "query": query})
            outcomes = compare.compared(response, wanted, is_incomplete)
            for field, (outcome, why) in scope.parts(outcomes).items():
                figures.count(store, query, field, outcome)
                if outcome != compare.PASSED:
                    where = f"{store.name} level {level} {json.dumps(query)}: {field}"
                    figures.failures.append(f"{outcome} {where}: {why}")
    runner.close()
    return figures, f"{selection}; declared {scope}" if scope.given else str(selection)


def ordered(stores, features, rows):
    """Returns rows in the order of the description."""
    known = {
        "all": ["all"],
        "generation": ["0.6", "0.7", "0.8.0", "0.8.1", "0.8-padded", "0.9", "drafts", "0.10"],
        "geometry": ["points", "lines", "polylines", "streamlines", "graphs", "skeletons", "meshes"],
        "query": ["info", "tables", "all", "bbox", "objects", "groups", "chunked_by", "linked", "validate"],
        "part of the result": FIELDS.values(),
        "feature of the store": features,
        "example": [store.name.partition("/")[2] for store in stores if store.name.startswith("zvf-examples/")],
    }
    return [(of, one) for of, names in known.items() for one in names if (of, one) in rows]


def table(stores, features, figures):
    """Returns a row for each property of stores and queries, and a cell for each runner."""
    lines = [f"| | | {' | '.join(figures)} |", f"|---|---|{'---|' * len(figures)}"]
    for row in ordered(stores, features, {row for one in figures.values() for row in one.rows}):
        lines.append(f"| {' | '.join([*row, *(one.cell(row) for one in figures.values())])} |")
    return "\n".join(lines)


def read(path):
    """Returns the JSON of a file of the pack."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"{path.name} cannot be read: {error}; unpack the archive again")


def listed(pack):
    """Returns the stores of a pack and their features, by its manifest."""
    manifest = read(pack / "manifest.json")
    if not isinstance(manifest, dict) or manifest.get("version") != VERSION:
        sys.exit(f"manifest.json is not a manifest of version {VERSION}, which this program reads")
    try:
        return [Store(pack, entry) for entry in manifest["stores"] + manifest["damaged"]], manifest["features"]
    except KeyError as name:
        sys.exit(f"manifest.json: {name} is missing; unpack the archive again")


def results(runners, pack, selection=Filter()):
    """Runs the commands of runners, by name; returns the stores, the features, and the figures of each runner."""
    every, features = listed(pack)
    stores = selection.stores(every)
    with ThreadPoolExecutor() as pool:
        found = dict(zip(runners, pool.map(lambda command: run(command, stores, selection), runners.values())))
    for name, (one, asked) in found.items():
        passed, failed, unsupported = map(one.total, Figures.KINDS)
        if not passed + failed + unsupported:
            sys.exit(f"no query of the corpus matches: {asked}")
        print(f"conformance: {name}: {passed} of {passed + failed + unsupported} asked ({asked}): "
              f"{passed} right, {failed} wrong, {unsupported} unsupported")
    return stores, features, {name: one for name, (one, _) in found.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runner", required=True, metavar="COMMAND")
    for name in ("store", "query", "generation"):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=[], metavar="NAME,…")
    options = vars(parser.parse_args())
    runner, pack = {"runner": options.pop("runner")}, pathlib.Path(__file__).resolve().parent
    stores, features, figures = results(runner, pack, Filter(**options))
    print(*figures["runner"].failures, table(stores, features, figures), sep="\n")
    return figures["runner"].total(compare.FAILED) > 0


if __name__ == "__main__":
    sys.exit(main())
