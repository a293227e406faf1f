"""The command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

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
