"""Runs the notebook."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

nbclient: Any = pytest.importorskip("nbclient")
nbformat: Any = pytest.importorskip("nbformat")

NOTEBOOK = Path(__file__).parents[1] / "notebooks" / "tracts.ipynb"


@pytest.mark.filterwarnings("default")
def test_the_notebook_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IPYTHONDIR", str(folder / "ipython"))
    monkeypatch.setenv("MPLCONFIGDIR", str(folder / "matplotlib"))
    (place := folder / "notebook").mkdir()
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    resources = {"metadata": {"path": str(place)}}
    # A kernel takes longer than a minute to start on a machine with much other load.
    limits = {"timeout": 300, "startup_timeout": 300}
    nbclient.NotebookClient(notebook, **limits, resources=resources).execute()
    shown: dict[str, list[str]] = {}
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            for form, data in output.get("data", {}).items():
                shown.setdefault(form, []).append(data)
    text = "\n".join(shown["text/plain"])
    assert "(16000, 400)" in text
    pictures = [b64decode(picture) for picture in shown["image/png"]]
    assert len(pictures) == 2
    assert all(png[:4] == b"\x89PNG" and len(png) > 5000 for png in pictures)
    html = "\n".join(shown["text/html"])
    assert "image/png;base64" in html  # the store
    assert "vertex.fa" in html and "highest" in html  # the DataFrame and the answer of DuckDB
