"""Runs the Python of the guide."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from doctest import DocTestParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import zvf

pandas: Any = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
nibabel: Any = pytest.importorskip("nibabel")

ROOT = Path(__file__).parents[2]


def table(first: int, end: int, key: str) -> Any:
    """Return paths of 30 points, as the samples of the guide have them."""
    steps = np.tile(np.linspace(0, 1, 30), end - first)
    ids = np.repeat(np.arange(first, end), 30)
    turn = 0.26 * ids
    return pandas.DataFrame({
        "x": 28 * steps - 4, "y": 8 + 6 * np.sin(3 * steps + turn),
        "z": 10 + 8 * np.cos(2 * steps + turn),
        "fa": 0.2 + 1.2 * steps * (1 - steps) + 0.01 * ids, key: ids,
    })  # fmt: skip


def field_files() -> None:
    """Write a tractogram and a neuron."""
    line = np.linspace((-5, 0, 0), (15, 8, 8), 20, dtype=np.float32)
    values = {"fa": [np.linspace(0, 1, 20, dtype=np.float32)[:, None]] * 3}
    paths = [line + at for at in range(3)]
    tractogram = nibabel.streamlines.Tractogram(
        paths, data_per_point=values, affine_to_rasmm=np.eye(4)
    )
    nibabel.streamlines.save(tractogram, "tracts.trk")
    Path("neurons").mkdir()
    Path("neurons/17.swc").write_text("1 1 0 0 0 4 -1\n2 3 5 0 0 1 1\n3 3 9 3 0 1 2\n")


def more_samples() -> None:
    """Write stores, points, a graph and volumes."""
    tracts = table(0, 24, "object_id")
    zvf.create(
        "tracts.zv", kind="streamlines", source=tracts, overwrite=True, chunk_shape=(8, 8, 8),
        bounds=((-16, -16, -16), (32, 32, 32)), groups={0: range(12), 1: range(12, 24)},
        objects=range(24), object={"length": 3.0 + 1.5 * np.arange(24)},
    )  # fmt: skip
    random = np.random.default_rng(6)
    axes = ["x", "y", "z"]
    cells = pandas.DataFrame(100 * random.random((500, 3)), columns=axes)
    cells.assign(radius=1.5, kind="glia").to_csv("cells.csv", index=False)
    nodes = 30 * np.stack(np.meshgrid(*[range(4)] * 3, indexing="ij"), -1).reshape(-1, 3)
    pandas.DataFrame(nodes, columns=axes).to_csv("nodes.csv", index=False)
    edges = {"links[0]": range(63), "links[1]": range(1, 64)}
    pandas.DataFrame(edges).to_csv("edges.csv", index=False)
    classes = np.resize([2, 2, 7, 2, 18], 200)
    cloud = pandas.DataFrame(np.round(20 * random.random((200, 3)), 2), columns=axes)
    cloud.assign(**{"class": classes}).to_csv("cloud.csv", index=False)
    zvf.create("cloud.zv", kind="points", source=cloud.assign(**{"class": classes}))
    volume = random.random((32, 32, 32)).astype(np.float32)
    np.save("volume.npy", volume)
    affine = np.diag([2.0, 2.0, 2.0, 1.0])
    affine[:3, 3] = -20
    nibabel.save(nibabel.Nifti1Image(volume, affine), "md.nii")


@pytest.fixture
def samples(folder: Path) -> None:
    table(0, 24, "object_id").to_csv("tracts.csv", index=False)
    table(24, 27, "part").to_csv("more.csv", index=False)
    bundles = ["cingulum"] * 6 + ["arcuate"] * 18
    objects = {"object_id": range(24), "length": 3.0 + 1.5 * np.arange(24), "bundle": bundles}
    pandas.DataFrame(objects).to_csv("tracts.objects.csv", index=False)
    field_files()
    with tarfile.open(ROOT / "testdata/zvf-07.tar.gz") as archive:
        archive.extractall("archive", filter="data")
    next(Path("archive").rglob("graph.zv")).rename("old.zv")


def run(page: Path) -> tuple[dict[str, Any], int]:
    """Run the Python of a page. Return its names and the number of its blocks."""
    text = page.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        # Empty lines make errors refer to lines of the page.
        exec(compile("\n" * line + block[1], str(page), "exec"), names)
    return names, len(blocks)


def write_demo() -> None:
    path = {"PYTHONPATH": str(ROOT / "python"), "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "zvf", "demo", "--small", "--quiet"]
    subprocess.run(command, env={**os.environ, **path}, check=True, capture_output=True)


def test_the_readme_runs() -> None:
    write_demo()
    names, blocks = run(ROOT / "README.md")
    assert blocks == 1 and min(names["found"].vertex["fa"]) > 0.3
    assert zvf.open("again.zv").count().vertices > 0 and Path("fa.png").exists()


def test_the_quick_start_runs() -> None:
    write_demo()
    page = ROOT / "docs" / "start.md"
    names, blocks = run(page)
    # Every block of commands but the installation and the demo has one beside it.
    assert blocks == len(re.findall("^```sh", page.read_text("utf-8"), re.MULTILINE)) - 2
    assert len(names["found"].objects) == 3 and len(names["near"].positions) > 0
    stores = ("bundle", "neurons", "layer", "surface")
    assert all(Path(f"{name}.png").stat().st_size > 500 for name in stores)
    assert min(names["near"].object["length"]) > 100
    fibres = names["fibres"]
    objects = fibres.query(select=[]).objects.tolist()
    assert objects == [*range(3), *range(5, 24), 30, 31]
    assert fibres.levels == [0, 1]
    assert zvf.open("older.zv").generation.startswith("0.8")
    assert zvf.open("new.zv").generation == "0.9"


@pytest.mark.usefixtures("samples")
def test_the_python_of_every_command_runs() -> None:
    more_samples()
    names, blocks = run(ROOT / "docs" / "cli.md")
    assert blocks >= 17
    assert sorted(zvf.open("two.zv").query().objects.tolist()) == [4, 17]
    assert zvf.open("again.zv").count().vertices == len(pandas.read_csv("near.csv"))
    assert "tracts" in str(names["server"].state)
    assert names["report"].ok and len(names["near"]) > 0
    assert names["noise"].vertex["class"].tolist() == [18] * 40
    cloud, tracts = names["cloud"], zvf.open("tracts.zv")
    assert set(cloud.query().vertex["class"].tolist()) == {2}
    np.testing.assert_array_equal(cloud.query().vertex["height"], cloud.query().positions[:, 2])
    assert {3, 4}.isdisjoint(tracts.query().objects.tolist()) and 26 in tracts.query().objects
    assert tracts.levels == [0, 1, 2]
    assert {"md", "t1"} <= set(tracts.query().vertex) and "mean_t1" in tracts.query().object
    assert Path("lines.precomputed/annotations/info").exists()
    assert Path("cloud.laz").exists() and Path("neurons.glb").exists()
    np.testing.assert_array_equal(names["box"], np.load("volume.npy")[:2, :2, :2])
    # The levels were built before the sampling.
    assert {finding.code for finding in zvf.validate("tracts.zv").findings} == {"ZV-L4-059"}


@pytest.mark.usefixtures("samples")
def test_the_examples_of_coming_from_python_run() -> None:
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    examples = DocTestParser().get_examples(
        "\n".join(block for block in re.findall(r"^```text\n(.*?)^```$", page, re.M | re.S))
    )
    positions = np.random.default_rng(1).random((50, 3))
    names: dict[str, Any] = {"positions": positions, "fa": positions[:, 0]}
    for example in examples:
        exec(compile(example.source, "docs/python.md", "exec"), names)
    assert len(examples) >= 7 and len(zvf.open("out.zv").query()) == 50
