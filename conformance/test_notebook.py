"""The page of `zvf.view` in JupyterLab, in headless Chromium: what it selects is read back in the next cell."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat
import numpy as np
import pytest
from selenium import webdriver
from selenium.common.exceptions import WebDriverException
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

zvf = pytest.importorskip("zvf", reason="the Python package is not built: `cargo xtask python`", exc_type=ImportError)

MISSING = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}")]

WAIT = 240
# Seconds after which a cell is run again.
AGAIN = 40
FLAGS = [
    "--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--disable-gpu-sandbox", "--enable-unsafe-swiftshader",
    "--ignore-gpu-blocklist", "--disable-dev-shm-usage", "--disable-background-networking", "--window-size=1100,900",
]
CELLS = [
    "import zvf\nlines = zvf.open('lines.zv')\nv = zvf.view(lines, port=0, height=500)\nv",
    "import json\nids = lines.query(**v.selection.query).objects\n"
    "print('READ', json.dumps([v.selection.query, v.selection.object, ids.tolist()]), 'END')",
]


def until(found, what):
    """Waits for a value that is true."""
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        try:
            if value := found():
                return value
        except (WebDriverException, OSError, IndexError):
            pass
        time.sleep(0.2)
    raise AssertionError(f"{what} is missing after {WAIT} s")


@pytest.fixture
def lab(tmp_path):
    """The address of a JupyterLab with a notebook."""
    steps = np.random.default_rng(5).normal(size=(60, 20, 3)).cumsum(axis=1)
    zvf.create(
        tmp_path / "lines.zv", kind="streamlines", positions=steps.reshape(-1, 3), part_offsets=np.arange(0, 1201, 20),
        object={"weight": np.arange(60.0)},
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(notebook, tmp_path / "view.ipynb")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--IdentityProvider.token="]
    package = Path(__file__).resolve().parents[1] / "python"
    environment = {**os.environ, "PYTHONPATH": str(package), "PYTHONWARNINGS": "ignore"}
    with open(tmp_path / "lab.log", "w") as log:
        server = subprocess.Popen([sys.executable, "-m", "jupyterlab", *words], cwd=tmp_path, env=environment, stdout=log, stderr=log)
    address = f"http://127.0.0.1:{port}"
    try:
        until(lambda: urllib.request.urlopen(f"{address}/api/status", timeout=5).status == 200, "the server of JupyterLab")
        yield address
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def driver():
    options = Options()
    for flag in FLAGS:
        options.add_argument(flag)
    options.binary_location = shutil.which("chromium")
    driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def output(driver, number, found, what):
    """Runs a cell until it has an output: JupyterLab drops keys while it is still loading."""
    pressed = -WAIT

    def found_or_pressed():
        nonlocal pressed
        if value := found():
            return value
        if time.monotonic() - pressed > AGAIN:
            cell = driver.find_elements(By.CSS_SELECTOR, ".jp-Notebook .jp-CodeCell .jp-InputArea-editor")[number]
            driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", cell)
            cell.click()
            ActionChains(driver).key_down(Keys.SHIFT).send_keys(Keys.ENTER).key_up(Keys.SHIFT).perform()
            pressed = time.monotonic()
        return None

    return until(found_or_pressed, what)[0]


def test_the_page_in_jupyterlab_tells_what_it_selects(lab, driver, tmp_path):
    driver.get(f"{lab}/lab/tree/view.ipynb?reset")
    until(lambda: driver.find_elements(By.CSS_SELECTOR, ".jp-Notebook-ExecutionIndicator[data-status=idle]"), "the kernel")
    frame = output(driver, 0, lambda: driver.find_elements(By.CSS_SELECTOR, "iframe[title=zvf]"), "the page")
    driver.switch_to.frame(frame)
    until(lambda: driver.execute_script("return window.viewer?.isIdle"), "the picture")
    assert driver.execute_script("return document.getElementById('error').hidden")
    region = {"role": "passes", "shape": "sphere", "center": [0, 0, 0], "radius": 2}
    driver.execute_script(
        "const [layer] = viewer.layers; layer.state.where = 'object.weight < 40'; layer.state.regions = [arguments[0]];"
        "viewer.actions.ask(layer)", region,
    )
    until(lambda: driver.execute_script("return viewer.isIdle && !!viewer.layers[0].query"), "the selection")
    time.sleep(1)
    driver.switch_to.default_content()
    texts = lambda: [out.text for out in driver.find_elements(By.CSS_SELECTOR, ".jp-OutputArea-output") if "END" in out.text]
    text = output(driver, 1, texts, "the output of the cell")
    query, clicked, ids = json.loads(text.split("READ")[1].split("END")[0])
    assert query == {"where": "object.weight < 40", "sphere": [[0, 0, 0], 2]} and clicked is None
    expected = zvf.open(tmp_path / "lines.zv").query(where="object.weight < 40", sphere=((0, 0, 0), 2)).objects
    assert 0 < len(ids) < 40 and ids == expected.tolist()
    if picture := os.environ.get("ZVF_NOTEBOOK_PICTURE"):
        driver.save_screenshot(picture)
