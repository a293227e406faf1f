"""The tests of zarr-vectors against zvf.compat, whose results are in docs/compat.md.

The tests come from the source distribution on PyPI. `compat_plugin` puts zvf.compat in the place of the package.
"""

from __future__ import annotations

import collections
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/compat.md"
RELEASE = "0.9.2"
BEGIN, END = "<!-- begin table -->", "<!-- end table -->"

# Tests of behaviour that run unchanged, and tests that need helpers of the package. The others test
# pure functions, the internals of the package, or its edits.
FILES = """
api_facade polylines lines_parametric schema_declarations graphs api_consistency
api_level_attributes meshes perf_writes

api_objects_grid attr_chunking points ome_node metadata_ownership api_groups_metadata
multiscale_links per_level_chunk_shape codec_config metadata_stamps fragments_tile api_maintenance
per_object_pyramid object_id_space single_array_layout vacuum headers skeletons
rechunk_by_attribute sharded_skeletons_and_ngff_scale fragment_owner_index object_index_layout
""".split()
FOLDERS = ["integration"]

# Tests that fail, and the reasons.
KNOWN = {
    "test_api_consistency.py::TestUnsupportedTermsSaySo::"
    "test_selecting_objects_on_a_mesh_explains_itself":
        "The engine selects objects of meshes; the test expects an error.",
    "test_api_consistency.py::TestUnsupportedTermsSaySo::"
    "test_it_does_not_silently_return_the_whole_level":
        "The same; the result has the selected object only.",
    "test_api_consistency.py::TestUnsupportedTermsSaySo::test_groups_too":
        "The engine selects groups of meshes; the test expects an error.",
    "test_api_facade.py::TestDeferredCapabilities::test_iter_cells_says_it_is_not_available_yet":
        "`Query.iter_cells` reads the chunks; the test expects an error.",
    "test_api_facade.py::TestFormatGate::test_rejects_and_explains":
        "The message names `zvf.migrate`; the test expects that a store must be written anew.",
    "test_codec_config.py::test_write_points_default_is_uncompressed":
        "The engine adds a checksum to every cell, so damage is found; the test expects none.",
    "test_fragments_tile.py::test_a_stale_claim_is_caught_by_the_first_chunk_probe":
        "The level declares `fragments_tile` falsely, and the engine trusts the declaration.",
}

def tests_of(scratch: Path, python: Path) -> Path:
    """Returns the unpacked source distribution."""
    unpacked = scratch / f"zarr_vectors-{RELEASE}"
    if not unpacked.exists():
        pip = [python, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        wanted = ["--no-deps", "--no-binary", ":all:", f"zarr-vectors=={RELEASE}"]
        subprocess.run([*pip, *wanted, "--dest", str(scratch)], check=True)
        with tarfile.open(scratch / f"zarr_vectors-{RELEASE}.tar.gz") as archive:
            archive.extractall(scratch, filter="data")
    return unpacked


def run(scratch: Path, python: Path) -> dict[str, tuple[str, list[str]]]:
    unpacked = tests_of(scratch, python)
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
    tests = [f"tests/test_{name}.py" for name in FILES] + [f"tests/{name}" for name in FOLDERS]
    options = ["-q", "-p", "compat_plugin", "-p", "no:cacheprovider", "-c", os.devnull]
    options += ["--rootdir", ".", "-W", "ignore", "--tb=short", "--show-capture=no"]
    options += ["--basetemp", str(scratch / "stores")]
    subprocess.run(
        [python, "-m", "pytest", *options, *tests], cwd=unpacked, env=environment
    )
    return json.loads(results.read_text())


def table(results: dict[str, tuple[str, list[str]]]) -> str:
    columns = ["engine", "engine and package", "no geometry", "skipped", "failed"]
    rows: dict[str, collections.Counter[str]] = {}
    for test, (outcome, calls) in results.items():
        if outcome != "passed":
            column = outcome
        elif "package" in calls:
            column = "engine and package"
        else:
            column = "engine" if "engine" in calls else "no geometry"
        rows.setdefault(test.split("::")[0].removeprefix("tests/"), collections.Counter())[
            column
        ] += 1
    lines = [f"| file | tests | {' | '.join(columns)} |", f"|---|{'---:|' * (len(columns) + 1)}"]
    total: collections.Counter[str] = collections.Counter()
    for file, row in sorted(rows.items()):
        total += row
        cells = [str(row[column] or "") for column in columns]
        lines.append(f"| `{file}` | {row.total()} | {' | '.join(cells)} |")
    cells = [str(total[column]) for column in columns]
    lines.append(f"| **all** | {total.total()} | {' | '.join(cells)} |")
    lines += ["", "The tests that fail:", "", "| test | reason |", "|---|---|"]
    lines += [f"| `{test}` | {reason} |" for test, reason in KNOWN.items()]
    return "\n".join(lines)


@pytest.fixture
def scratch():
    folder = Path(os.environ.get("ZVF_ENVIRONMENTS") or ROOT / "target/xtask") / "compat"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_of_zarr_vectors(scratch, environment, module, update, tell) -> None:
    results = run(scratch, environment("compat"))
    good = ("passed", "skipped")
    failed = {test for test, (outcome, _) in results.items() if outcome not in good}
    known = {f"tests/{test}" for test in KNOWN}
    assert failed == known, "tests that fail now, or pass now, and are not listed so"
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    made = f"{before}{BEGIN}\n{table(results)}\n{END}{rest.split(END)[1]}"
    if update:
        PAGE.write_text(made)
    assert PAGE.read_text() == made, f"{PAGE} has another table; run cargo xtask python --compat --write"
    tell(f"{len(results)} tests of zarr-vectors {RELEASE}, {len(failed)} fail as stated")
