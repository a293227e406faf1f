"""Queries the stores of the corpus through a runner, prints the table of right, wrong and unsupported fields, and
fails if one is wrong.

usage: run.py FOLDER --runner COMMAND [--store PATTERN,…] [--query KIND,…] [--generation G,…]

The stores are extracted to FOLDER. `docs/conformance.md` describes runners and filters.
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
import corpus

HERE = pathlib.Path(__file__).resolve().parent
#: Seconds for a response; stores are small.
PATIENCE = 60


class Runner:
    """A process that serves requests, restarted when it dies."""

    def __init__(self, command):
        self.command = shlex.split(command)
        self.process = None

    def send(self, request):
        if self.process is None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe)
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
    if store.entry["archive"] == "zvf-examples.tar.gz":
        yield ("example", store.name.partition("/")[2])


def run(command, cases):
    figures, runner = Figures(), Runner(command)
    for store, queries in cases:
        for level, query, wanted, is_incomplete in queries:
            response = runner.send({"store": str(store.path), "level": level, "query": query})
            for field, (outcome, why) in compare.compared(response, wanted, is_incomplete).items():
                figures.count(store, query, field, outcome)
                if outcome != compare.PASSED:
                    where = f"{store.name} level {level} {json.dumps(query)}: {field}"
                    figures.failures.append(f"{outcome} {where}: {why}")
    runner.close()
    return figures


class Filter:
    """The stores and queries to run; an empty list stands for all."""

    def __init__(self, stores=(), queries=(), generations=()):
        self.given = {"store": stores, "query": queries, "generation": generations}

    def stores(self, stores):
        names, generations = self.given["store"], self.given["generation"]
        return [
            store for store in stores
            if (not names or any(fnmatch.fnmatchcase(store.name, name) for name in names))
            and (not generations or store.entry["generation"] in generations)
        ]

    def cases(self, store):
        kinds = self.given["query"]
        return [case for case in store.cases() if not kinds or case[1]["kind"] in kinds]

    def __str__(self):
        given = (f"{name} {', '.join(values)}" for name, values in self.given.items() if values)
        return "; ".join(given) or "the whole corpus"


def ordered(stores, rows):
    """Returns rows in the order of the description."""
    examples = [store for store in stores if store.entry["archive"] == "zvf-examples.tar.gz"]
    known = {
        "all": ["all"],
        "generation": ["0.6", "0.7", "0.8.0", "0.8.1", "0.9"],
        "geometry": ["points", "lines", "polylines", "streamlines", "graphs", "skeletons", "meshes"],
        "query": ["info", "tables", "all", "bbox", "objects", "groups", "chunked_by", "linked"],
        "part of the result": FIELDS.values(),
        "feature of the store": json.loads(corpus.DESCRIPTION.read_text())["features"],
        "example": [store.name.partition("/")[2] for store in examples],
    }
    return [(of, one) for of, names in known.items() for one in names if (of, one) in rows]


def table(stores, figures):
    """Returns a row for each property of stores and queries, and a cell for each runner."""
    lines = [f"| | | {' | '.join(figures)} |", f"|---|---|{'---|' * len(figures)}"]
    for row in ordered(stores, {row for one in figures.values() for row in one.rows}):
        lines.append(f"| {' | '.join([*row, *(one.cell(row) for one in figures.values())])} |")
    return "\n".join(lines)


def results(runners, folder, selection=Filter()):
    """Runs the commands of runners, by name; returns the stores, and the figures of each runner."""
    corpus.unpack(folder)
    stores = selection.stores(corpus.stores(folder))
    cases = [(store, found) for store in stores if (found := selection.cases(store))]
    if not cases:
        sys.exit(f"no query of the corpus matches: {selection}")
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda command: run(command, cases), runners.values())
        figures = dict(zip(runners, found))
    for name, one in figures.items():
        passed, failed, unsupported = map(one.total, Figures.KINDS)
        print(f"conformance: {name}: {passed + failed} of {passed + failed + unsupported} fields returned in "
              f"{len(cases)} stores ({selection}): {passed} right, {failed} wrong, {unsupported} unsupported")
    return stores, figures


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runner", required=True, metavar="COMMAND")
    for name in ("store", "query", "generation"):
        parser.add_argument(f"--{name}", type=lambda text: text.split(","), default=[], metavar="NAME,…")
    options = parser.parse_args()
    selection = Filter(options.store, options.query, options.generation)
    stores, figures = results({"runner": options.runner}, options.folder, selection)
    print("\n".join(figures["runner"].failures), table(stores, figures), sep="\n")
    return figures["runner"].total(compare.FAILED) > 0


if __name__ == "__main__":
    sys.exit(main())
