"""Queries the stores of the corpus through runners, and compares the responses.

usage: run.py FOLDER --runner [NAME=]COMMAND … [--store PATTERN] [--query KIND] [--generation G]

The stores are extracted to FOLDER. `docs/conformance.md` describes runners and filters. With
`--strict NAME`, a field that is wrong or unsupported is an error; with `--correct NAME`, only a
wrong one is. `--right NAME=N` requires at least N right fields. `--write` puts the figures of the
given runners into the table of the file, `--check` compares them with it. `--show NAME` prints all
failures of a runner.
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
BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"
#: Seconds for a response; stores are small.
PATIENCE = 60
SHOWN = 12


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


def named(runner):
    """Returns the name and the command of a runner; a command may itself contain an equals sign."""
    name, equals, command = runner.partition("=")
    is_name = equals and name and not set(name) & set("/'\"") and " -" not in f" {name}"
    return (name, command) if is_name else ("runner", runner)


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


def listed(text):
    return text.split(",")


def ordered(stores, rows):
    """Returns rows in the order of the description."""
    description = json.loads(corpus.DESCRIPTION.read_text())
    known = [("all", "all")]
    known += [("generation", one) for one in ("0.6", "0.7", "0.8.0", "0.8.1", "0.9")]
    kinds = ("points", "lines", "polylines", "streamlines", "graphs", "skeletons", "meshes")
    known += [("geometry", one) for one in kinds]
    kinds = ("info", "tables", "all", "bbox", "objects", "groups", "chunked_by", "linked")
    known += [("query", one) for one in kinds]
    known += [("part of the result", one) for one in FIELDS.values()]
    known += [("feature of the store", one) for one in description["features"]]
    examples = [store for store in stores if store.entry["archive"] == "zvf-examples.tar.gz"]
    known += [("example", store.name.partition("/")[2]) for store in examples]
    return [row for row in known if row in rows]


def table(text):
    """Returns the table in a document: for each row a cell for each implementation."""
    found, names = {}, []
    for line in text.splitlines():
        if not line.startswith("|") or line.startswith("|--"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not names:
            names = cells[2:]
        else:
            found[tuple(cells[:2])] = dict(zip(names, cells[2:]))
    return names, found


def rendered(names, rows, cells):
    lines = ["| | | " + " | ".join(names) + " |", "|---|---|" + "---|" * len(names)]
    for row in rows:
        line = [*row, *(cells.get(row, {}).get(name, "") for name in names)]
        lines.append("| " + " | ".join(line) + " |")
    return "\n".join(lines)


def keep(options, stores, figures):
    """Writes or checks the new columns; returns whether they match."""
    file = options.write or options.check
    before, rest = file.read_text().split(BEGIN)
    old, after = rest.split(END)
    names, cells = table(old)
    names += [name for name in figures if name not in names]
    rows = {row for one in figures.values() for row in one.rows}
    for row in rows:
        of_row = cells.setdefault(row, {})
        of_row |= {name: one.cell(row) for name, one in figures.items()}
    new = f"\n{rendered(names, ordered(stores, rows), cells)}\n"
    if options.write:
        file.write_text(before + BEGIN + new + END + after)
        return True
    if new == old:
        return True
    for one, other in zip(old.splitlines(), new.splitlines()):
        if one != other:
            print(f"{file.name} says {one}\nfound             {other}")
    print(f"{file.name} is not what was found: `cargo xtask conformance --runners` rewrites it")
    return False


def main(words=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--runner", action="append", required=True, metavar="[NAME=]COMMAND")
    parser.add_argument("--strict", action="append", default=[], metavar="NAME")
    parser.add_argument("--correct", action="append", default=[], metavar="NAME")
    parser.add_argument("--right", action="append", default=[], metavar="NAME=N")
    parser.add_argument("--store", type=listed, default=[], metavar="PATTERN,…")
    parser.add_argument("--query", type=listed, default=[], metavar="KIND,…")
    parser.add_argument("--generation", type=listed, default=[], metavar="GENERATION,…")
    parser.add_argument("--show", action="append", default=[], metavar="NAME")
    parser.add_argument("--write", type=pathlib.Path)
    parser.add_argument("--check", type=pathlib.Path)
    options = parser.parse_args(words)
    selection = Filter(options.store, options.query, options.generation)
    if any(selection.given.values()) and (options.write or options.check):
        parser.error("the table of a document has the results of the whole corpus")
    corpus.unpack(options.folder)
    stores, figures, is_bad = selection.stores(corpus.stores(options.folder)), {}, False
    cases = [(store, found) for store in stores if (found := selection.cases(store))]
    if not cases:
        parser.error(f"no query of the corpus matches: {selection}")
    names, commands = zip(*map(named, options.runner))
    right = dict(one.rsplit("=", 1) for one in options.right)
    with ThreadPoolExecutor() as pool:
        figures |= zip(names, pool.map(lambda command: run(command, cases), commands))
    for name, found in figures.items():
        passed, failed, unsupported = map(found.total, Figures.KINDS)
        print(
            f"conformance: {name}: {passed + failed} of {passed + failed + unsupported} fields "
            f"returned in {len(cases)} stores ({selection}): {passed} right, {failed} wrong, "
            f"{unsupported} unsupported"
        )
        if passed < int(right.get(name, 0)):
            print(f"{name}: at least {right[name]} fields must be right")
            is_bad = True
        if name in options.correct and failed:
            print(f"{name}: {failed} fields are wrong")
            is_bad = True
        strict = name in options.strict and bool(found.failures)
        is_bad |= strict
        if name in options.show or strict:
            shown = found.failures if name in options.show else found.failures[:SHOWN]
            print("\n".join(shown))
    if not (options.write or options.check):
        cells = {}
        for name, one in figures.items():
            for row in one.rows:
                cells.setdefault(row, {})[name] = one.cell(row)
        print(rendered(list(figures), ordered(stores, cells), cells))
    else:
        is_bad |= not keep(options, stores, figures)
    return is_bad


if __name__ == "__main__":
    sys.exit(main())
