"""Runs the tests of zarr-vectors against zvf.compat, and compares the results with docs/compat.md.

Usage: compat_tests.py SCRATCH PAGE [--write]

The tests come from the source distribution on PyPI. This file is also the plugin of pytest that
puts zvf.compat in the place of the package.
"""

from __future__ import annotations

import collections
import json
import logging
import os
import subprocess
import sys
import tarfile
from pathlib import Path

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

NOW: collections.Counter[str] = collections.Counter()
RESULTS: dict[str, tuple[str, list[str]]] = {}


class _Calls(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        NOW[record.msg.split()[0]] += 1


def pytest_configure() -> None:
    import zvf.compat

    zvf.compat.install()
    log = logging.getLogger("zvf.compat")
    log.setLevel(logging.DEBUG)
    log.addHandler(_Calls())


def pytest_runtest_setup() -> None:
    NOW.clear()


def pytest_runtest_logreport(report) -> None:
    if report.when == "call" or report.outcome != "passed":
        RESULTS[report.nodeid] = (report.outcome, sorted(NOW))


def pytest_sessionfinish() -> None:
    Path(os.environ["COMPAT_RESULTS"]).write_text(json.dumps(RESULTS))


def tests_of(scratch: Path) -> Path:
    """Returns the unpacked source distribution."""
    unpacked = scratch / f"zarr_vectors-{RELEASE}"
    if not unpacked.exists():
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        wanted = ["--no-deps", "--no-binary", ":all:", f"zarr-vectors=={RELEASE}"]
        subprocess.run([*pip, *wanted, "--dest", str(scratch)], check=True)
        with tarfile.open(scratch / f"zarr_vectors-{RELEASE}.tar.gz") as archive:
            archive.extractall(scratch, filter="data")
    return unpacked


def run(scratch: Path) -> dict[str, tuple[str, list[str]]]:
    unpacked = tests_of(scratch)
    results = scratch / "results.json"
    results.unlink(missing_ok=True)
    here = Path(__file__).resolve()
    paths = [str(here.parent), str(here.parents[2] / "python")]
    environment = os.environ | {
        "COMPAT_RESULTS": str(results),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": os.pathsep.join(paths),
        # The package beside the tests must not hide the installed one.
        "PYTHONSAFEPATH": "1",
    }
    tests = [f"tests/test_{name}.py" for name in FILES] + [f"tests/{name}" for name in FOLDERS]
    options = ["-q", "-p", Path(__file__).stem, "-p", "no:cacheprovider", "-c", os.devnull]
    options += ["--rootdir", ".", "-W", "ignore", "--tb=short", "--show-capture=no"]
    options += ["--basetemp", str(scratch / "stores")]
    subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests], cwd=unpacked, env=environment
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


def main() -> None:
    scratch, page = Path(sys.argv[1]), Path(sys.argv[2])
    scratch.mkdir(parents=True, exist_ok=True)
    results = run(scratch)
    good = ("passed", "skipped")
    failed = {test for test, (outcome, _) in results.items() if outcome not in good}
    known = {f"tests/{test}" for test in KNOWN}
    for test in sorted(failed - known):
        print(f"fails: {test}")
    for test in sorted(known - failed):
        print(f"passes, or did not run: {test}; remove it from KNOWN")
    if failed != known:
        sys.exit("the tests of zarr-vectors have other results than expected")
    text = page.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    made = f"{before}{BEGIN}\n{table(results)}\n{END}{after}"
    if "--write" in sys.argv:
        page.write_text(made)
    elif made != text:
        sys.exit(f"{page} has another table; run cargo xtask python --compat --write")
    print(f"{len(results)} tests of zarr-vectors {RELEASE}, {len(failed)} fail as stated")


if __name__ == "__main__":
    main()
