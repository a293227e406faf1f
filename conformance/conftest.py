"""Options, programs and environments of the suite. README.md describes how to run it."""

import collections
import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from program import Failure, Files, Zvf

ROOT = Path(__file__).resolve().parents[1]
NODE = ROOT / "conformance/node"
LINES = pytest.StashKey()


def pytest_addoption(parser):
    group = parser.getgroup("conformance")
    group.addoption("--zvf", type=Path, help="the command to test; built with cargo unless given")
    group.addoption("--seed", type=int, help="repeats a run of random cases")
    group.addoption("--cases", type=int, help="the number of random cases")
    group.addoption("--sample", action="store_true", help="a part of the cases, as CI runs them")
    group.addoption("--kills", type=int, default=1, help="workers of clusters killed in each phase")
    group.addoption("--scale", type=int, default=1, help="multiplies the random cases of the tests of servers")
    group.addoption("--update", action="store_true", help="rewrites files of the repository instead of comparing them")


def pytest_configure(config):
    config.stash[LINES] = []
    if config.getoption("--seed") is None:
        config.option.seed = int.from_bytes(os.urandom(6))


def pytest_report_header(config):
    return f"seed {config.getoption('--seed')}; repeat a run with --seed"


def pytest_terminal_summary(terminalreporter, config):
    for line in config.stash[LINES]:
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def tell(pytestconfig):
    """Adds a line to the table that is printed at the end."""
    return lambda line: pytestconfig.stash[LINES].append(f"conformance: {line}")


@pytest.fixture(scope="module")
def report(tell, request):
    """Counts what a module compares, and adds its `REPORT` to the table; other counts are those of exceptions."""
    counts = collections.Counter()
    yield counts
    for what in sorted(name for name in counts if " " in name):
        tell(f"{counts[what]} {what}")
    tell(request.module.REPORT.format_map(counts))


def pytest_collection_modifyitems(config, items):
    """Leaves long tests out of a sample."""
    if config.getoption("--sample"):
        items[:] = [item for item in items if "nightly" not in item.keywords]


def pytest_generate_tests(metafunc):
    if "number" in metafunc.fixturenames:
        metafunc.parametrize("number", range(metafunc.config.getoption("--cases") or metafunc.module.CASES))


@pytest.fixture(scope="session")
def seed(pytestconfig):
    return pytestconfig.getoption("--seed")


@pytest.fixture(scope="session")
def sample(pytestconfig):
    return pytestconfig.getoption("--sample")


@pytest.fixture(scope="session")
def update(pytestconfig):
    return pytestconfig.getoption("--update")


def built(*targets):
    """Builds a program of the workspace, with the features of CI, and returns its path."""
    line = ["cargo", "xtask", "built", *targets]
    done = subprocess.run(line, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, f"{' '.join(line)} failed"
    return Path(done.stdout.splitlines()[-1])


@pytest.fixture(scope="session")
def zvf(pytestconfig):
    """The command."""
    given = pytestconfig.getoption("--zvf") or os.environ.get("ZVF")
    return Zvf(Path(given).resolve() if given else built("--bin", "zvf"))


@pytest.fixture(scope="session")
def example():
    """Builds an example of a crate, unless ZVF_EXAMPLES names the folder of built ones."""
    folder = os.environ.get("ZVF_EXAMPLES")
    return lambda name: Path(folder) / name if folder else built("--example", name)


@pytest.fixture(scope="session")
def equal(tell):
    """Notes a file that is equal after a way through a store."""
    names = []
    yield names.append
    tell(f"{len(names)} files equal")


@pytest.fixture
def files(zvf, tmp_path, equal):
    return Files(zvf, tmp_path, equal)


@pytest.fixture(scope="session")
def module():
    """The extension module of a debug build, beside the Python package: `cargo xtask python` builds it."""
    pytest.importorskip("zvf", reason="the Python package is not built: `cargo xtask python`", exc_type=ImportError)


@pytest.fixture(scope="session")
def environment(tmp_path_factory):
    """Returns the Python with the packages of another list, in a virtual environment beside the cargo target folder."""
    return environment_of


def environment_of(list_, base=sys.executable):
    requirements = Path(__file__).parent / f"requirements-{list_}.txt"
    text = requirements.read_bytes()
    folder = Path(os.environ.get("ZVF_ENVIRONMENTS") or ROOT / "target/xtask")
    venv = folder / f"venv-{hashlib.sha256(text).hexdigest()[:8]}"
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (venv / "complete").exists():
        subprocess.run([base, "-m", "venv", "--clear", venv], check=True)
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]
        subprocess.run([*pip, requirements], check=True)
        (venv / "complete").write_bytes(text)
    return python


@pytest.fixture(scope="session")
def modules():
    """The npm packages that `node` locks, installed into a folder beside the cargo target folder."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node or npm (Node.js 18 or newer) is missing")
    lock = (NODE / "package-lock.json").read_bytes()
    folder = Path(os.environ.get("ZVF_ENVIRONMENTS") or ROOT / "target/xtask")
    folder /= f"node-{hashlib.sha256(lock).hexdigest()[:8]}"
    if not (folder / "complete").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(NODE / name, folder)
        npm = "npm ci --ignore-scripts --no-audit --no-fund --loglevel=error --prefix"
        subprocess.run([*npm.split(), folder], check=True)
        (folder / "complete").write_bytes(lock)
    return folder / "node_modules"


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """Shows a difference without the trace of the suite."""
    if call.excinfo is not None and call.excinfo.errisinstance(Failure):
        call.excinfo.value.__traceback__ = None
    outcome = yield
    report = outcome.get_result()
    if report.failed and call.excinfo is not None and call.excinfo.errisinstance(Failure):
        report.longrepr = f"DIFFERENT {item.name}: {call.excinfo.value}"


def pytest_sessionfinish(session, exitstatus):
    """Tells xtask what was skipped."""
    results = os.environ.get("ZVF_RESULTS")
    if results:
        stats = session.config.pluginmanager.get_plugin("terminalreporter").stats
        skipped = [str(one.longrepr[2]).removeprefix("Skipped: ") for one in stats.get("skipped", [])]
        Path(results).write_text(json.dumps({"passed": len(stats.get("passed", [])), "skipped": skipped}))
