"""The readers of docs/conformance.md on the corpus, and the table of their results."""

import shlex
import shutil
import sys

import pytest

import neuroglancer_rules
import pack
import run
from corpus import TESTDATA

ROOT = TESTDATA.parent
PAGE = ROOT / "docs/conformance.md"
PROTOCOL = ROOT / "conformance/protocol"
# Failures that are shown.
SHOWN = 12


def command(*words):
    return shlex.join(map(str, words))


def test_table(example, environment, tmp_path, update):
    """Every runner, and the rules of readers for Neuroglancer, compared with the documented results, or with `--update`
    written to the page.
    """
    if shutil.which("node") is None:
        pytest.skip("node is missing")
    small = ROOT / "examples/outside"
    runners = {
        "zvf": command(example("conformance")),
        "zarr-vectors 0.9.2": command(sys.executable, "-B", PROTOCOL / "runner_092.py"),
        "zarr-vectors 0.2.0": command(environment("020"), "-B", PROTOCOL / "runner_020.py"),
        "runner.py": command(sys.executable, "-B", small / "runner.py"),
        "runner.mjs": command("node", small / "runner.mjs"),
    }
    pack.unpack(tmp_path)
    stores, features, figures = run.results(runners, tmp_path)
    made = PAGE.read_text()
    for name, text in (("figures", run.table(stores, features, figures)), ("rules", neuroglancer_rules.of_pack(tmp_path))):
        before, rest = made.split(f"<!-- {name} -->")
        after = rest.split(f"<!-- end of {name} -->")[1]
        made = f"{before}<!-- {name} -->\n{text}\n<!-- end of {name} -->{after}"
    if update:
        PAGE.write_text(made)
    assert PAGE.read_text() == made, f"`cargo xtask conformance --runners` rewrites {PAGE.name}"
    for name in ("zvf", "runner.py", "runner.mjs"):
        failures = figures[name].failures
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
