"""The command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import zvf


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = {"PYTHONPATH": str(Path(zvf.__file__).parents[1]), "PYTHONWARNINGS": "ignore"}
    return subprocess.run(
        [sys.executable, "-m", "zvf", *arguments],
        capture_output=True, text=True, env={**os.environ, **path}, check=False,
    )  # fmt: skip


def test_the_command_runs() -> None:
    done = run("query", "tracts.zv", "--object", "3", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["vertices"] == 3
    assert "zvf" in run("--version").stdout


def test_exit_codes() -> None:
    missing = run("info", "absent.zv")
    assert missing.returncode == 2 and "absent.zv" in missing.stderr
    assert run("inform").returncode == 2
    cell = next(
        file
        for file in Path("tracts.zv/0/vertices").rglob("*")
        if file.is_file() and file.name != "zarr.json"
    )
    cell.write_bytes(b"")
    assert run("validate", "tracts.zv").returncode == 1


def test_workers_run_the_module() -> None:
    """They ran `__main__.py`, which is not a program."""
    done = run("pyramid", "tracts.zv", "--levels", "1", "--workers", "2", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert len(zvf.open("tracts.zv").query(level=1)) > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only glibc needs other settings")
def test_a_bound_on_memory_works_in_a_virtual_environment(folder: Path) -> None:
    """The process starts again, and then used the Python that the environment was made from."""
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    imported = [Path(module.__file__ or "").parents[1] for module in (zvf, np)]
    (packages / "zvf.pth").write_text("".join(f"{path}\n" for path in imported))
    # As pip writes it.
    script = environment / "bin/zvf"
    script.write_text(
        f"#!{environment}/bin/python\n"
        "import sys\nfrom zvf.__main__ import main\nsys.exit(main())\n"
    )
    script.chmod(0o755)
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONHOME") and not name.startswith("MALLOC_")
    }
    query = ["query", "tracts.zv", "--memory", "1GiB", "--json"]
    module = ["-m", "zvf"]
    for start in ([str(environment / "bin/python"), *module], ["venv/bin/python", *module], [str(script)]):
        done = subprocess.run(
            [*start, *query], capture_output=True, text=True, check=False,
            env={**clean, "PYTHONWARNINGS": "ignore"},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, ""), start
        assert json.loads(done.stdout)["vertices"] == 5


@pytest.mark.skipif(os.name != "posix", reason="other systems have no such signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_leaves_no_temporary_file(
    folder: Path, number: signal.Signals, code: int
) -> None:
    positions = np.random.default_rng(1).random((400_000, 3))
    zvf.create("cloud.zv", kind="points", positions=positions)
    path = {"PYTHONPATH": str(Path(zvf.__file__).parents[1]), "PYTHONWARNINGS": "ignore"}
    # The query may end before the signal.
    for _ in range(10):
        child = subprocess.Popen(
            [sys.executable, "-m", "zvf", "query", "cloud.zv", "-o", "cloud.csv", "--quiet"],
            stderr=subprocess.PIPE, text=True, env={**os.environ, **path},
        )  # fmt: skip
        while child.poll() is None and not list(folder.glob(".zvf-*")):
            time.sleep(0.001)
        child.send_signal(number)
        _, said = child.communicate(timeout=60)
        assert list(folder.glob(".zvf-*")) == [], child.returncode
        if child.returncode != 0:
            break
    assert child.returncode == code
    assert f"interrupted by {number.name}" in said
