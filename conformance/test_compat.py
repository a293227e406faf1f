"""The tests of zarr-vectors against zvf.compat, whose results are in docs/compat.md.

The tests come from the source distribution on PyPI. `compat_plugin` puts zvf.compat in the place of the package.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pandas
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/compat.md"
RELEASE = "0.9.2"
BEGIN, END = "<!-- begin table -->", "<!-- end table -->"

# Rows of the tables of the page: files of tests, and tests that fail, with the reasons.
FILE = re.compile(r"^\| `([\w/]+\.py)` \|", re.MULTILINE)
KNOWN = re.compile(r"^\| `([\w/]+\.py::[^`]+)` \|", re.MULTILINE)


def unpacked_tests(scratch: Path, python: Path) -> Path:
    """Returns the unpacked source distribution."""
    unpacked = scratch / f"zarr_vectors-{RELEASE}"
    if not unpacked.exists():
        pip = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        wanted = ["--no-deps", "--no-binary", ":all:", f"zarr-vectors=={RELEASE}"]
        subprocess.run([*pip, *wanted, "--dest", str(scratch)], check=True)
        with tarfile.open(scratch / f"zarr_vectors-{RELEASE}.tar.gz") as archive:
            archive.extractall(scratch, filter="data")
    return unpacked


def run(scratch: Path, python: Path, files: list[str]) -> dict[str, tuple[str, list[str]]]:
    unpacked = unpacked_tests(scratch, python)
    results = scratch / "results.json"
    results.unlink(missing_ok=True)
    paths = [str(Path(__file__).resolve().parent), str(ROOT / "python")]
    environment = os.environ | {
        "COMPAT_RESULTS": str(results),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(paths),
        # The package beside the tests must not hide the installed one.
        "PYTHONSAFEPATH": "1",
    }
    tests = [f"tests/{name}" for name in files]
    options = ["-q", "-p", "compat_plugin", "-p", "no:cacheprovider", "-c", os.devnull]
    options += ["--rootdir", ".", "-W", "ignore", "--tb=short", "--show-capture=no"]
    options += ["--basetemp", str(scratch / "stores")]
    subprocess.run([python, "-m", "pytest", *options, *tests], cwd=unpacked, env=environment)
    return json.loads(results.read_text())


def column(outcome: str, calls: list[str]) -> str:
    if outcome != "passed":
        return outcome
    return "engine and package" if "package" in calls else "engine" if "engine" in calls else "no geometry"


def table(results: dict[str, tuple[str, list[str]]]) -> str:
    columns = ["tests", "engine", "engine and package", "no geometry", "skipped", "failed"]
    files = [f"`{test.split('::')[0].removeprefix('tests/')}`" for test in results]
    counts = pandas.crosstab(files, [column(*result) for result in results.values()])
    counts.loc["**all**"] = counts.sum()
    counts["tests"] = counts.sum(axis=1)
    lines = [f"| file | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for file, row in counts.reindex(columns=columns, fill_value=0).iterrows():
        cells = (str(count) if count or file == "**all**" else "" for count in row)
        lines.append(f"| {file} | {' | '.join(cells)} |")
    return "\n".join(lines)


@pytest.fixture
def scratch():
    folder = Path(os.environ.get("ZVF_ENVIRONMENTS") or ROOT / "target/xtask") / "compat"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_of_zarr_vectors(scratch, environment, module, update, tell) -> None:
    text = PAGE.read_text()
    results = run(scratch, environment("compat"), FILE.findall(text))
    good = ("passed", "skipped")
    failed = {test for test, (outcome, _) in results.items() if outcome not in good}
    known = {f"tests/{test}" for test in KNOWN.findall(text)}
    assert failed == known, "tests that fail now, or pass now, and are not listed so"
    before, rest = text.split(BEGIN)
    made = f"{before}{BEGIN}\n{table(results)}\n{END}{rest.split(END)[1]}"
    if update:
        PAGE.write_text(made)
    assert PAGE.read_text() == made, f"{PAGE} has another table; run cargo xtask python --compat --write"
    tell(f"{len(results)} tests of zarr-vectors {RELEASE}, {len(failed)} fail as stated")
