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


def command(*words):
    return shlex.join(map(str, words))


def test_table(example, environment, tmp_path, update):
    """Every runner, compared with the documented results, or with `--update` written to the page."""
    runners = {
        "zvf": command(example("conformance")),
        "zarr-vectors 0.9.2": command(sys.executable, "-B", run.HERE / "runner_092.py"),
        "zarr-vectors 0.2.0": command(environment("020"), "-B", run.HERE / "runner_020.py"),
    }
    words = [f"--runner={name}={line}" for name, line in runners.items()]
    assert not run.main([str(tmp_path), *words, "--strict=zvf", "--write" if update else "--check", str(PAGE)])


def test_small_runner(tmp_path):
    """The runner of `examples/outside` supports some of the queries."""
    file, right = SMALL
    runner = command(sys.executable, "-B", file)
    assert not run.main([str(tmp_path), f"--runner=small={runner}", "--correct=small", f"--right=small={right}"])


@pytest.fixture(autouse=True)
def lines(capsys, tell):
    """Adds what a run prints to the table."""
    yield
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("conformance: "):
            tell(line.removeprefix("conformance: "))
