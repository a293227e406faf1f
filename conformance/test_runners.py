"""The readers of docs/conformance.md on the corpus, and the table of their results."""

import shlex
import sys

import pytest

import pack
import run
from corpus import TESTDATA

ROOT = TESTDATA.parent
PAGE = ROOT / "docs/conformance.md"
PROTOCOL = ROOT / "conformance/protocol"
# Failures that are shown.
SHOWN = 12


BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def command(*words):
    return shlex.join(map(str, words))


def test_table(example, environment, tmp_path, update):
    """Every runner, compared with the documented results, or with `--update` written to the page."""
    runners = {
        "zvf": command(example("conformance")),
        "zarr-vectors 0.9.2": command(sys.executable, "-B", PROTOCOL / "runner_092.py"),
        "zarr-vectors 0.2.0": command(environment("020"), "-B", PROTOCOL / "runner_020.py"),
    }
    pack.unpack(tmp_path)
    stores, features, figures = run.results(runners, tmp_path)
    before, rest = PAGE.read_text().split(BEGIN)
    made = f"{before}{BEGIN}\n{run.table(stores, features, figures)}\n{END}{rest.split(END)[1]}"
    if update:
        PAGE.write_text(made)
    assert PAGE.read_text() == made, f"`cargo xtask conformance --runners` rewrites {PAGE.name}"
    failures = figures["zvf"].failures
    assert not failures, "\n".join(failures[:SHOWN])


def test_damage(zvf, tmp_path):
    """`zvf validate` as a runner finds the codes of every damaged store."""
    pack.unpack(tmp_path)
    runner = command(sys.executable, "-B", PROTOCOL / "runner_validate.py", zvf.path)
    _, _, figures = run.results({"zvf validate": runner}, tmp_path)
    assert not figures["zvf validate"].failures, figures["zvf validate"].failures[:SHOWN]


@pytest.fixture(autouse=True)
def lines(capsys, tell):
    """Adds what a run prints to the table."""
    yield
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("conformance: "):
            tell(line.removeprefix("conformance: "))
