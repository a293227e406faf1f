"""Stores of `zvf serve` and static exports, shown in Neuroglancer in headless Chromium.

The viewer is that of the Python package neuroglancer. Each layer must become ready and draw: a screenshot has
many more coloured pixels than that of the viewer without layers, and neither the console nor the status line nor
the server reports an error.
"""

import json
import shutil
import threading
import time
from pathlib import Path
from urllib.parse import unquote

import flask
import flask_cors
import neuroglancer
import nibabel
import numpy as np
import pytest
from matplotlib import colors
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from werkzeug.serving import make_server

from test_precomputed import Serving

pytestmark = pytest.mark.browser
MISSING = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
CLIENT = Path(neuroglancer.__file__).parent / "static" / "client"
WAIT = 180
# Pixels of a screenshot of 1000 × 800 that a drawn layer colours at least.
COLOURED = 300
QUIET = ["favicon", "GPU stall", "GL Driver Message", "Automatic fallback to software WebGL"]


class Browser:
    def __init__(self, size=(1000, 800)):
        options = Options()
        options.page_load_strategy = "none"
        for flag in [
            "--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--disable-gpu-sandbox",
            "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--disable-dev-shm-usage",
            "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", f"--window-size={size[0]},{size[1]}",
        ]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.binary_location = shutil.which("chromium")
        self.driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))

    def open(self, link):
        """Opens a link in a new page and waits for the viewer."""
        self.driver.get("about:blank")
        # The viewer of a server that has ended cannot reach it.
        self.driver.get_log("browser")
        self.driver.get(link)
        self.wait(lambda: self.driver.execute_script("return !!window.viewer"), "viewer")

    def wait(self, is_done, what, seconds=WAIT):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if is_done():
                return
            time.sleep(0.5)
        log = [entry["message"] for entry in self.driver.get_log("browser")]
        raise AssertionError(f"{what} is not ready after {seconds} s; {self.status()} {log[-5:]}")

    def drawn(self, what):
        """Waits until all visible layers are ready."""
        self.wait(lambda: self.layers() and all(ready for _, ready, is_shown in self.layers() if is_shown), what)

    def layers(self):
        script = "return viewer.layerManager.managedLayers.map(l => [l.name, l.isReady(), l.visible])"
        return self.driver.execute_script(script)

    def status(self):
        return self.driver.execute_script(
            "return [...document.querySelectorAll('.neuroglancer-status-container li')]"
            ".map(e => e.textContent)")

    def show_only(self, name):
        """Hides all layers but one."""
        self.driver.execute_script(
            "for (const l of viewer.layerManager.managedLayers) l.setVisible(l.name === arguments[0])",
            name)

    def restore(self, state):
        self.driver.execute_script("viewer.state.restoreState(arguments[0])", state)

    def picture(self, path):
        self.driver.save_screenshot(str(path))
        return np.asarray(Image.open(path).convert("RGB")).astype(int)

    def errors(self):
        entries = self.driver.get_log("browser")
        wrong = [e["message"] for e in entries if e["level"] == "SEVERE"]
        return [text for text in wrong if not any(known in text for known in QUIET)]


def coloured(picture):
    """Counts pixels that are neither grey nor dark, below the bars at the top."""
    body = picture[60:]
    return int(((body.max(2) > 60) & (body.max(2) - body.min(2) > 25)).sum())


def hues(picture):
    """Returns the shares of twelve hues among coloured pixels, red first."""
    body = picture[60:]
    high, low = body.max(2), body.min(2)
    body = body[(high > 60) & (high - low > 25)]
    hue = colors.rgb_to_hsv(body / 255)[:, 0]
    return np.bincount((hue * 12).round().astype(int) % 12, minlength=12) / max(len(body), 1)


def check_colours(name, shares):
    """Checks the colours of layers of the demo stores: those of the axes for streamlines that run along
    them, one for each layer of cells, and that of a single surface."""
    around = lambda hue: shares[[hue - 1, hue, (hue + 1) % 12]].sum()
    if name.startswith("tracts"):
        assert all(around(hue) > 0.02 for hue in [0, 4, 8]), (name, shares)
    elif name == "cells":
        assert (shares > 0.04).sum() >= 4, (name, shares)
    elif name == "surface meshes":
        assert around(1) > 0.9, (name, shares)


def grey(picture):
    """Counts pixels of a grey that neither the background nor text has."""
    body = picture[60:]
    level = body.max(2)
    return int(((level > 30) & (level < 250) & (level - body.min(2) < 6)).sum())


def settled(browser, path, count):
    """Takes pictures until two in a row have as many pixels."""
    before, end = -1, time.monotonic() + WAIT
    while time.monotonic() < end:
        picture = browser.picture(path)
        now = count(picture)
        if now > COLOURED and abs(now - before) <= 0.01 * now:
            return picture
        before = now
        time.sleep(1)
    return picture


def check(browser, link, folder, prefix):
    """Draws each layer of a link alone and returns the pixels that each colours."""
    browser.open(link)
    browser.drawn("the layers")
    counts = {}
    for name in [name for name, *_ in browser.layers()]:
        if name.endswith(" segments"):
            continue
        browser.show_only(name)
        browser.drawn(name)
        picture = settled(browser, folder / f"{prefix}-{name.replace(' ', '-')}.png", coloured)
        counts[name] = coloured(picture)
        assert counts[name] > COLOURED, f"{prefix}: {name} draws {counts[name]} pixels"
        check_colours(name, hues(picture))
    wrong = [text for text in browser.status() if "rror" in text or "Cannot" in text]
    assert not wrong, (prefix, wrong)
    errors = browser.errors()
    assert not errors, (prefix, errors)
    return counts


# Maps voxels (i, j, k) of a scan to positions in mm: j runs along -x, i along y.
AFFINE = np.array([[0, -3, 0, 10], [2, 0, 0, -20], [0, 0, 1.5, 30.0]])
# The bright voxels of the scan along each axis.
BLOCK = [(10, 14), (5, 9), (7, 10)]


def scan_voxels():
    voxels = np.zeros((40, 30, 20), "u1")
    voxels[tuple(slice(*ends) for ends in BLOCK)] = 250
    return voxels


def write_scan(path):
    """Writes a NIfTI-1 volume of bytes with an sform and a bright block."""
    scan = nibabel.Nifti1Image(scan_voxels(), np.vstack([AFFINE, [0, 0, 0, 1]]))
    scan.header.set_xyzt_units("mm")
    nibabel.save(scan, path)


def centre(browser, state, voxel, path):
    """Returns the brightness of a cross-section where the affine puts the centre of a voxel."""
    position = AFFINE[:, :3] @ voxel + AFFINE[:, 3]
    browser.restore(state | {"layout": "xy", "crossSectionScale": 0.02, "position": position.tolist(),
                             "showScaleBar": False})
    time.sleep(1)
    browser.drawn("the cross-section")
    x, y, width, height = browser.driver.execute_script(
        "const r = document.querySelector('.neuroglancer-rendered-data-panel').getBoundingClientRect();"
        "return [r.x, r.y, r.width, r.height]")
    picture = browser.picture(path)
    x, y = int(x + width / 2), int(y + height / 2)
    return picture[y - 2:y + 3, x - 2:x + 3].mean()


def check_scan(browser, state, folder):
    """Looks at the voxels on both sides of each face of the bright block."""
    middle = [(start + end - 1) / 2 for start, end in BLOCK]
    for axis, (start, end) in enumerate(BLOCK):
        for at, is_bright in [(start - 1, False), (start, True), (end - 1, True), (end, False)]:
            voxel = np.array([*middle[:axis], at, *middle[axis + 1:]])
            found = centre(browser, state, voxel, folder / "scan.png")
            assert (found > 128) == is_bright, f"voxel {voxel}: {found}"


def write_graph(zvf, folder):
    """Creates a graph of a ring with spokes, whose edges have weights."""
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles), 0 * angles], 1) * 40
    at = np.arange(60)
    edges = np.concatenate([np.stack([at, (at + 1) % 60], 1), np.stack([at, np.full(60, 60)], 1)])
    arrays = {"positions": np.concatenate([ring, [[0, 0, 10]]]).astype("<f4"), "links": edges,
              "link.weight": np.arange(120).astype("<f4"), "vertex.depth": np.arange(61).astype("<f4")}
    return zvf.create(folder / "ring.zv", arrays, "--kind", "graphs")


def check_attributes(browser, served, folder):
    """Switches the shaders of the layers of a graph to an attribute, which changes the colours."""
    for layer in served["state"]["layers"]:
        browser.open(served["neuroglancer"])
        browser.wait(lambda: browser.layers(), "the layers")
        browser.show_only(layer["name"])
        browser.drawn(layer["name"])
        before = hues(settled(browser, folder / "ring-before.png", coloured))
        rendering = layer.get("skeletonRendering", layer)
        rendering["shaderControls"] = {"by_attribute": True}
        state = served["state"] | {"layers": [layer | {"visible": True}]}
        browser.restore(state)
        time.sleep(1)
        browser.drawn(layer["name"])
        path = folder / f"{layer['name'].replace(' ', '-')}-by-attribute.png"
        after = hues(settled(browser, path, coloured))
        # The colour map passes from blue by green to red.
        assert all(after[[hue - 1, hue, (hue + 1) % 12]].sum() > 0.05 for hue in [0, 4, 8]), (layer["name"], after)
        assert np.abs(before - after).sum() > 0.2, (layer["name"], before, after)
    errors = browser.errors()
    assert not errors, errors


def file_server(folder, requested):
    """A server of files for other origins, which notes the files of which parts are requested."""
    app = flask.Flask(__name__, static_folder=folder, static_url_path="")
    flask_cors.CORS(app)

    @app.before_request
    def note():
        if flask.request.range:
            requested.append(flask.request.path)

    return make_server("127.0.0.1", 0, app, threaded=True)


@pytest.fixture(scope="module")
def browser():
    if MISSING:
        pytest.skip(f"{' and '.join(MISSING)} is missing: install the Debian packages chromium and chromium-driver")
    browser = Browser()
    yield browser
    browser.driver.quit()


@pytest.fixture(scope="module")
def stores(zvf, tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "demo"
    zvf("demo", folder, "--small", "--quiet")
    return sorted(folder.glob("*.zv"))


def seen(browser, served, what):
    browser.open(served["neuroglancer"])
    browser.drawn(what)


def report(tell, counts):
    tell(f"viewer: coloured pixels: {', '.join(f'{name} {count}' for name, count in counts.items())}")


def test_served(browser, zvf, stores, tmp_path, tell):
    with Serving(zvf, stores, "--client", CLIENT) as served:
        report(tell, check(browser, served["neuroglancer"], tmp_path, "served"))
        seen(browser, served, "all stores at first sight")
        picture = settled(browser, tmp_path / "served.png", coloured)
        assert coloured(picture) > 4 * COLOURED, coloured(picture)
        browser.restore(served["state"] | {"layers": [], "layout": "3d"})
        time.sleep(3)
        empty = coloured(browser.picture(tmp_path / "empty.png"))
        assert empty < COLOURED, empty


def test_volume(browser, zvf, tmp_path):
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 48)] * 3, indexing="ij"))
    np.save(tmp_path / "scan.npy", (np.exp(-3 * (grid**2).sum(0)) * 250).astype("u1"))
    with Serving(zvf, [tmp_path / "scan.npy"], "--client", CLIENT) as served:
        seen(browser, served, "volume")
        picture = settled(browser, tmp_path / "volume.png", grey)
        assert grey(picture) > 100 * COLOURED, grey(picture)


@pytest.mark.parametrize("form", ["nifti", "npy"])
def test_scan(form, browser, zvf, tmp_path):
    """The header of a NIfTI volume or `--affine` places the voxels of a block."""
    if form == "nifti":
        write_scan(tmp_path / "scan.nii")
        words = [tmp_path / "scan.nii"]
    else:
        np.save(tmp_path / "block.npy", scan_voxels())
        np.savetxt(tmp_path / "block.txt", np.vstack([AFFINE, [0, 0, 0, 1]]))
        words = [tmp_path / "block.npy", "--affine", tmp_path / "block.txt"]
    with Serving(zvf, words, "--client", CLIENT) as served:
        seen(browser, served, form)
        check_scan(browser, served["state"], tmp_path)


def test_tracts_on_a_scan(browser, zvf, stores, tmp_path):
    """Streamlines on a scan of an ellipsoid around them."""
    depth = np.sqrt((np.stack(np.meshgrid(*[np.linspace(-1, 1, 72)] * 3, indexing="ij")) ** 2).sum(0))
    voxels = np.clip(1.02 - depth, 0, 0.1) * 900 + 70 * (depth < 0.93) * (1 - depth)
    np.save(tmp_path / "head.npy", voxels.astype("u1"))
    half, middle = np.array([75, 95, 80]), np.array([0, -10, 6])
    np.savetxt(tmp_path / "head.txt", np.column_stack([np.diag(half * 2 / 71), middle - half]))
    tracts = next(store for store in stores if store.stem == "tracts")
    words = [tracts, tmp_path / "head.npy", "--affine", tmp_path / "head.txt"]
    with Serving(zvf, words, "--client", CLIENT) as served:
        assert served["state"]["layout"] == "xy-3d", served["state"]["layout"]
        seen(browser, served, "tracts on a scan")
        picture = settled(browser, tmp_path / "scanned.png", coloured)
        assert grey(picture) > 10 * COLOURED and coloured(picture) > COLOURED


def test_graph(browser, zvf, tmp_path, tell):
    with Serving(zvf, [write_graph(zvf, tmp_path)], "--client", CLIENT) as served:
        report(tell, check(browser, served["neuroglancer"], tmp_path, "served"))
        check_attributes(browser, served, tmp_path)


def test_exported(browser, zvf, stores, tmp_path, tell):
    """A static export from a plain file server, in the viewer of another server."""
    ranges = []
    server = file_server(tmp_path, ranges)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    with Serving(zvf, stores[:1], "--client", CLIENT) as served:
        viewer = served["neuroglancer"].split("#!")[0]
        for store in stores:
            words = ["export", "precomputed", store, tmp_path / store.stem, "--url", f"{url}/{store.stem}"]
            state = json.loads(unquote(zvf.json(*words)["neuroglancer"].split("#!")[1]))
            (tmp_path / f"{store.stem}.json").write_text(json.dumps(state))
            link = f"{viewer}#!{url}/{store.stem}.json"
            report(tell, {f"exported {name}": n for name, n in check(browser, link, tmp_path, "exported").items()})
    server.shutdown()
    assert any("/meshes/" in path for path in ranges), "no fragment was requested"
