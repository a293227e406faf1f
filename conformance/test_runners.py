"""The readers of docs/conformance.md on the corpus, and the table of their results."""

import shlex
import sys

import pytest

import run
from corpus import TESTDATA

ROOT = TESTDATA.parent
PAGE = ROOT / "docs/conformance.md"
# A runner in Python without packages, and the number of fields of the corpus that it returns.
SMALL = (ROOT / "examples/outside/runner.py", 497)
# Failures that are shown.
SHOWN = 12


BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def command(*words):
    return shlex.join(map(str, words))


def test_table(example, environment, tmp_path, update):
    """Every runner, compared with the documented results, or with `--update` written to the page."""
    runners = {
        "zvf": command(example("conformance")),
        "zarr-vectors 0.9.2": command(sys.executable, "-B", run.HERE / "runner_092.py"),
        "zarr-vectors 0.2.0": command(environment("020"), "-B", run.HERE / "runner_020.py"),
    }
    stores, figures = run.results(runners, tmp_path)
    before, rest = PAGE.read_text().split(BEGIN)
    made = f"{before}{BEGIN}\n{run.table(stores, figures)}\n{END}{rest.split(END)[1]}"
    if update:
        PAGE.write_text(made)
    assert PAGE.read_text() == made, f"`cargo xtask conformance --runners` rewrites {PAGE.name}"
    failures = figures["zvf"].failures
    assert not failures, "\n".join(failures[:SHOWN])


def test_small_runner(tmp_path):
    """The runner of `examples/outside` supports some of the queries."""
    file, right = SMALL
    _, figures = run.results({"small": command(sys.executable, "-B", file)}, tmp_path)
    passed, failed, _ = map(figures["small"].total, run.Figures.KINDS)
    assert passed >= right and not failed, figures["small"].failures[:SHOWN]


@pytest.fixture(autouse=True)
def lines(capsys, tell):
    """Adds what a run prints to the table."""
    yield
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("conformance: "):
            tell(line.removeprefix("conformance: "))
