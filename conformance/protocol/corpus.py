"""The healthy stores in `testdata/`, with their descriptions and queries."""

import json
import pathlib
import tarfile

import content
import recorded

TESTDATA = pathlib.Path(__file__).resolve().parents[2] / "testdata"
ARCHIVES = ["zvf-06", "zvf-07", "zvf-08", "zvf-padded", "zvf-09", "zvf-examples", "zvf-drafts", "zvf-10"]
DESCRIPTION = TESTDATA / "corpus" / "stores.json"
DRAFTS = DESCRIPTION.with_name("drafts.json")


class Store:
    """A store of the corpus, unpacked below `folder`."""

    def __init__(self, folder, entry):
        self.entry = entry
        self.name = entry["name"]
        self.path = folder / entry["archive"].removesuffix(".tar.gz") / entry["path"]
        self.expected = json.loads(expectation(self.path).read_text())
        if entry["archive"] == "zvf-drafts.tar.gz":
            self.expected = json.loads(DRAFTS.read_text())[self.path.name]

    def contents(self):
        return {} if "queries" in self.expected else recorded.contents(self.expected)

    def cases(self):
        """Yields level, query, response, and whether parts of the level are unreadable."""
        for case in self.expected.get("queries", []):
            yield case["level"], case["query"], case["answer"], False
        if "queries" in self.expected:
            return
        contents = self.contents()
        for number, level in contents.items():
            queries = content.queries(level)
            if number == min(contents):
                queries.insert(0, {"kind": "info"})
            for query in queries:
                yield number, query, content.response(level, query), level.incomplete
        for number, query, response in recorded.reads(self.expected, contents):
            yield number, query, response, False


def expectation(store):
    """Returns the file next to a store that describes its content."""
    if store.suffix == ".zv":
        return store.with_suffix(".expected.json")
    return store.with_name("expected.json")


def unpack(folder, archives=ARCHIVES):
    for name in archives:
        with tarfile.open(TESTDATA / f"{name}.tar.gz") as archive:
            archive.extractall(folder / name, filter="data")


def stores(folder):
    description = json.loads(DESCRIPTION.read_text())
    return [Store(folder, entry) for entry in description["stores"]]
