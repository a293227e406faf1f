"""The page of `zvf view` in headless Chromium, with the stores of `zvf demo`, compared with the command."""

import base64
import collections
import contextlib
import functools
import http.server
import io
import json
import os
import random
import shutil
import struct
import subprocess
import threading
import time
import zipfile
import zlib
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np
import pytest
from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

HERE = Path(__file__).parent
VIEWER = HERE.parent / "viewer"
MISSING = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(MISSING), reason=f"not installed: {MISSING}")]

STORES = ["tracts", "neurons", "cells", "surface"]
SIZE = (900, 600)
WAIT = 240
# What Chromium says about drawing in software.
QUIET = ["GPU stall", "GL Driver Message", "Automatic fallback to software WebGL"]
# Mean difference of channels where something is drawn, of 255.
TOLERANCE = 8.0


class Ranges(http.server.SimpleHTTPRequestHandler):
    """A plain static server with ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        wanted = self.headers.get("Range", "")
        path = Path(self.translate_path(self.path))
        if not wanted.startswith("bytes=") or not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        first, last = wanted.removeprefix("bytes=").split("-")
        start = int(first) if first else max(len(data) - int(last), 0)
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        if start >= len(data):
            self.send_error(416)
            return
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        self.wfile.write(data[start:end])

    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site(zvf, tmp_path_factory):
    """A folder with the page and the stores of the demo, and the address that serves it."""
    folder = tmp_path_factory.mktemp("site")
    zvf("demo", folder / "demo")
    zvf("export", "viewer", folder / "index.html")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Ranges, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


class Page:
    def __init__(self, zvf, folder, address):
        self.zvf = zvf
        self.folder = folder
        self.address = address
        options = Options()
        for flag in [
            "--headless=new", "--no-sandbox", "--use-angle=swiftshader", "--disable-gpu-sandbox",
            "--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            f"--window-size={SIZE[0]},{SIZE[1]}",
        ]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        options.binary_location = shutil.which("chromium")
        self.driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))

    def open(self, name, budget=None, **state):
        """Opens a store of the demo. With a budget of 0 vertices, only the coarsest level is drawn, which takes less time."""
        state = {"theme": "dark", **state}
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get(f"{self.address}?store=demo/{name}.zv#{quote(json.dumps(state))}")
        self.run("viewer.budget = arguments[0] ?? viewer.budget", budget)
        self.settle()

    def settle(self):
        """Waits until nothing has been read or drawn for a while."""
        quiet, end = 0, time.monotonic() + WAIT
        while quiet < 3:
            assert time.monotonic() < end, f"not ready: {self.text('status')}; {self.console()}"
            quiet = quiet + 1 if self.run("return !!window.viewer && viewer.isIdle") else 0
            time.sleep(0.1)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, identifier):
        return self.run("return document.getElementById(arguments[0]).textContent", identifier)

    def counts(self):
        """The numbers of the filter line: vertices, then paths or objects."""
        return [int(part.strip().rsplit(" ", 1)[0].replace(" ", "").replace("\u00a0", "")) for part in self.text("counts").split(",")]

    def console(self):
        entries = [entry["message"] for entry in self.driver.get_log("browser")]
        return [entry for entry in entries if not any(known in entry for known in QUIET)]

    def button(self, name):
        """Presses a button by its text, wherever it is."""
        self.run(
            "[...document.querySelectorAll('button')].find(b => b.textContent === arguments[0]).click()", name
        )
        self.settle()

    def native(self, name, *options):
        """The counts of the native command."""
        return self.zvf.json("query", self.folder / "demo" / f"{name}.zv", "--count", *options)


def axe():
    """The script that judges accessibility, from npm."""
    script = VIEWER / "node_modules/axe-core/axe.min.js"
    if not script.exists():
        if not shutil.which("npm"):
            pytest.skip("not installed: npm")
        subprocess.run(["npm", "ci", "--silent"], cwd=VIEWER, check=True)
    return script


@pytest.fixture(scope="session")
def page(zvf, site):
    page = Page(zvf, *site)
    yield page
    page.driver.quit()


@pytest.mark.parametrize("name", STORES)
def test_pictures_are_as_recorded(page, name):
    page.open(name, budget=3_000_000)
    assert page.console() == []
    assert page.run("return document.getElementById('error').hidden")
    # Text depends on the fonts of the machine.
    page.run("document.querySelectorAll('main > :not(#scene), footer').forEach(e => e.style.visibility = 'hidden')")
    picture = Image.open(io.BytesIO(page.driver.get_screenshot_as_png())).convert("RGB")
    drawn = picture.resize((300, 157), Image.Resampling.BOX)
    recorded = HERE / "pictures" / f"{name}.png"
    if os.environ.get("ZVF_UPDATE_PICTURES"):
        recorded.parent.mkdir(exist_ok=True)
        drawn.save(recorded, optimize=True)
    expected = np.asarray(Image.open(recorded)).astype(int)
    background = np.median(expected, axis=(0, 1))
    is_drawn = np.abs(expected - background).max(axis=-1) > 12
    assert is_drawn.sum() > 500
    assert np.abs(np.asarray(drawn) - expected)[is_drawn].mean() < TOLERANCE


@pytest.mark.parametrize("name", ["tracts", "neurons"])
def test_a_click_finds_the_object_below_it(page, name):
    page.open(name, budget=0)
    found, enough = 0, 2
    for x, y in [(450, 250), (500, 200), (420, 300), (560, 260), (400, 180), (520, 330)]:
        ActionChains(page.driver).move_to_element_with_offset(
            page.driver.find_element(By.ID, "scene"), x - SIZE[0] // 2, y - page.run("return innerHeight") // 2
        ).click().perform()
        page.settle()
        picked = page.run("return viewer.state.layers[0].object ?? null")
        if picked is None:
            continue
        found += 1
        output = page.folder / "picked.npz"
        store = page.folder / "demo" / f"{name}.zv"
        page.zvf("query", store, "--object", picked, "--quiet", "-o", output)
        positions = np.load(output)["positions"].astype(float)
        script = """
            const canvas = document.getElementById("scene"), m = viewer.camera.matrix(canvas.clientWidth / canvas.clientHeight);
            return [[...m], viewer.origin, canvas.clientWidth, canvas.clientHeight];
        """
        matrix, origin, width, height = page.run(script)
        matrix = np.array(matrix).reshape(4, 4).T
        clip = np.c_[positions - origin, np.ones(len(positions))] @ matrix.T
        pixels = np.c_[(clip[:, 0] / clip[:, 3] / 2 + 0.5) * width, (0.5 - clip[:, 1] / clip[:, 3] / 2) * height]
        # Coarse levels may leave out vertices.
        assert np.hypot(*(pixels - [x, y]).T).min() < 25
        if found == enough:
            break
    assert found >= (enough if name == "tracts" else 0)


@pytest.mark.parametrize(
    "name, where",
    [
        ("tracts", "object.length > 160 and vertex.fa > 0.7"),
        ("tracts", "z > 20"),
        ("neurons", "vertex.radius > 1"),
        ("cells", "vertex.layer = 'L4' and vertex.expression > 1"),
        ("surface", "vertex.height > 8"),
    ],
)
def test_filters_count_as_the_command_does(page, name, where):
    page.open(name, budget=0, layers=[{"where": where}])
    native = page.native(name, "--where", where)
    counts = page.counts()
    assert counts[0] == native["vertices"]
    if len(counts) > 1:
        assert counts[1] == (native["objects"] or native["parts"])


@pytest.mark.parametrize("name", ["tracts", "neurons", "cells"])
def test_regions_count_as_the_command_does(page, name):
    page.open(name, budget=0)
    page.button("Sphere here")
    region = page.run("return viewer.state.layers[0].regions[0]")
    native = page.native(name, "--sphere=" + ",".join(map(str, [*region["center"], region["radius"]])))
    assert page.counts()[0] == native["vertices"]
    page.button("Remove")
    page.button("Box here")
    region = page.run("return viewer.state.layers[0].regions[0]")
    low = [c - s / 2 for c, s in zip(region["center"], region["size"], strict=True)]
    high = [c + s / 2 for c, s in zip(region["center"], region["size"], strict=True)]
    native = page.native(name, "--bbox=" + ",".join(map(str, low + high)))
    assert page.counts()[0] == native["vertices"]
    assert page.run("return document.getElementById('error').hidden")


def test_several_regions_select_the_paths_that_do_what_each_says(page, tmp_path):
    regions = [
        {"role": "passes", "shape": "sphere", "center": [0, 0, 20], "radius": 25},
        {"role": "passes", "shape": "box", "center": [0, -30, 20], "size": [80, 40, 60]},
        {"role": "avoids", "shape": "sphere", "center": [30, 0, 40], "radius": 12},
    ]
    store = page.folder / "demo" / "tracts.zv"

    def native(region):
        """Ids of the paths that touch a region, and of those that end in it."""
        center = np.array(region["center"], float)
        if region["shape"] == "sphere":
            option = "--sphere=" + ",".join(map(str, [*center, region["radius"]]))
        else:
            half = np.array(region["size"]) / 2
            option = "--bbox=" + ",".join(map(str, [*(center - half), *(center + half)]))
        output = tmp_path / "region.npz"
        page.zvf("query", store, option, "--quiet", "-o", output)
        found = np.load(output)
        starts = found["part_offsets"]
        ends = np.c_[starts[:-1], starts[1:] - 1]
        away = np.abs(found["positions"][ends].astype(float) - center)
        inside = np.linalg.norm(away, axis=-1) <= region["radius"] if region["shape"] == "sphere" else (away <= half).all(-1)
        ids = found["part_objects"]
        return set(ids.tolist()), set(ids[inside.any(1)].tolist())

    (first, _), (second, ending), (avoided, _) = map(native, regions)
    expected = first & second - avoided
    assert 0 < len(expected) < len(first & second)
    page.open("tracts", budget=0, layers=[{"regions": regions}])
    assert page.counts()[1] == len(expected)
    # Moved: the scene and the counts follow.
    page.run("viewer.layers[0].state.regions[1].role = 'ends in'; viewer.actions.ask(viewer.layers[0])")
    page.settle()
    expected = first & ending - avoided
    assert 0 < len(expected)
    assert page.counts()[1] == len(expected)
    drawn = page.run("return Array.from(viewer.layers[0].base.result.objects, Number)")
    assert set(drawn) <= expected
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.run(axe().read_text())
    script = "const done = arguments[0]; axe.run().then(r => done(r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)])))"
    assert page.driver.execute_async_script(script) == []


def test_the_filter_line_completes_names_and_explains_errors(page):
    page.open("tracts", budget=0)
    line = page.driver.find_element(By.ID, "where")
    line.send_keys("fa")
    options = page.driver.find_elements(By.CSS_SELECTOR, "#names li")
    assert [option.text for option in options] == ["vertex.fa"]
    line.send_keys("\ue015\n")  # arrow down, enter
    assert line.get_attribute("value") == "vertex.fa "
    line.send_keys("=> 1")
    time.sleep(1)
    page.settle()
    assert ">=" in page.text("error")
    page.driver.get_log("browser")


def test_a_link_restores_the_state(page):
    state = {
        "axes": False, "slab": {"axis": 1, "at": 0, "width": 20},
        "layers": [{"color": "vertex.fa", "map": "magma", "share": 0.5, "where": "z > 0", "groups": [1]}],
    }
    page.open("tracts", budget=0, **state)
    page.driver.get(page.run("return location.href"))
    page.driver.refresh()
    page.settle()
    kept = page.run("return viewer.state")
    assert kept["axes"] is False and kept["slab"] == state["slab"]
    assert {name: kept["layers"][0][name] for name in state["layers"][0]} == state["layers"][0]
    shared = page.run("return viewer.layers[0].shared()")
    assert 0.4 < shared / page.run("return viewer.layers[0].base.result.objects.length") < 0.6


@pytest.mark.parametrize("fragment", ["#%", "#[]", "#{}", '#{"layers":[{"share":1e999,"width":"x","region":{"center":[1]}}]}', '#{"camera":{"target":[0,0,null]}}'])
def test_fragments_that_others_wrote_do_not_break_the_page(page, fragment):
    page.driver.get("about:blank")
    page.driver.get_log("browser")
    page.driver.get(f"{page.address}?store=demo/neurons.zv{fragment}")
    page.settle()
    assert page.console() == []


def test_saved_files_hold_the_selection(page, tmp_path):
    page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    where = "object.length > 160"
    page.open("tracts", budget=0, layers=[{"where": where}])
    native = page.native("tracts", "--where", where)
    for format in ("csv", "ply", "trk"):
        page.button(f".{format}")
    end = time.monotonic() + 60
    while len(list(tmp_path.glob("tracts.*"))) < 3 or list(tmp_path.glob("*.crdownload")):
        assert time.monotonic() < end
        time.sleep(0.3)
    lines = (tmp_path / "tracts.csv").read_text().splitlines()
    assert lines[0] == "x,y,z,part,object_id,vertex.fa" and len(lines) - 1 == native["vertices"]
    trk = (tmp_path / "tracts.trk").read_bytes()
    assert struct.unpack("<i", trk[988:992])[0] == native["parts"]
    assert len(trk) == 1000 + 4 * native["parts"] + 16 * native["vertices"]
    # The native reader agrees.
    for name in ("tracts.trk", "tracts.ply"):
        output = tmp_path / f"{name}.csv"
        page.zvf("convert", tmp_path / name, output)
    ours = np.loadtxt(tmp_path / "tracts.trk.csv", delimiter=",", skiprows=1, usecols=(0, 1, 2))
    given = np.loadtxt(tmp_path / "tracts.csv", delimiter=",", skiprows=1, usecols=(0, 1, 2))
    assert np.abs(ours - given).max() < 1e-3


@pytest.mark.parametrize("theme", ["dark", "light", "no store"])
def test_axe_finds_no_violation(page, theme):
    if theme == "no store":
        page.driver.get(page.address)
    else:
        page.open("tracts", budget=0, theme=theme)
        page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.run(axe().read_text())
    script = "const done = arguments[0]; axe.run().then(r => done(r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)])))"
    assert page.driver.execute_async_script(script) == []


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_page_with_a_store_inside_opens_from_a_file(page, tmp_path, compression):
    store = page.folder / "demo" / "neurons.zv"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", compression) as archive:
        for path in sorted(store.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(store))
    made = tmp_path / "neurons.html"
    if compression == zipfile.ZIP_STORED:
        page.zvf("export", "viewer", made, "--inline", store)
    else:
        before, after = (page.folder / "index.html").read_text().split('id="store" data-name="">')
        zipped = base64.b64encode(data.getvalue()).decode()
        made.write_text(f'{before}id="store" data-name="neurons">{zipped}{after}')
    page.driver.get("about:blank")
    page.driver.get_log("browser")
    page.driver.get(made.as_uri())
    page.settle()
    assert page.console() == []
    assert page.run("return viewer.layers[0].base.vertices") > 1000
    assert page.counts()[0] == page.native("neurons")["vertices"]


def test_errors_are_sentences(page):
    page.driver.get(f"{page.address}?store=demo/none.zv")
    page.driver.find_element(By.ID, "error")
    end = time.monotonic() + WAIT
    while page.run("return document.getElementById('error').hidden") and time.monotonic() < end:
        time.sleep(0.2)
    assert "none.zv" in page.text("error")
    page.driver.get_log("browser")


class Hostile(http.server.BaseHTTPRequestHandler):
    """A server whose first folder says what is wrong with it."""

    protocol_version = "HTTP/1.1"
    site = None
    sent = collections.Counter()

    def do_GET(self):
        # Pages leave when they have read enough.
        with contextlib.suppress(OSError):
            self.answer(*self.path.lstrip("/").split("/", 1))

    def answer(self, how, rest):
        path = self.site / "demo" / "neurons.zv" / unquote(rest)
        data = path.read_bytes() if path.is_file() else None
        if how == "garbage":
            data = random.Random(rest).randbytes(4096)
        elif how == "deep":
            data = b'{"a":' * 200_000
        elif how in ("endless", "endless-cells") and (how == "endless" or "/c/" in rest):
            self.head(200 if how == "endless" else 206, [("Connection", "close"), ("Content-Range", "bytes 0-99/100")])
            while True:
                self.wfile.write(bytes(1 << 16))
                self.sent[how] += 1 << 16
        elif how == "long-cells" and "/c/" in rest and data is not None:
            data = bomb()
        if data is None:
            self.head(404, [("Content-Length", "0")])
            return
        extra = [("Content-Encoding", "gzip")] if how == "long-cells" and "/c/" in rest else []
        self.head(200, [("Content-Length", str(len(data))), *extra])
        self.wfile.write(data)

    def head(self, status, headers):
        self.send_response(status)
        for header in [("Access-Control-Allow-Origin", "*"), *headers]:
            self.send_header(*header)
        self.end_headers()

    def log_message(self, *_):
        pass


@functools.cache
def bomb():
    """A gigabyte of zeros in a megabyte of gzip."""
    packer = zlib.compressobj(9, wbits=-15)
    block = packer.compress(bytes(1 << 24)) + packer.flush(zlib.Z_FULL_FLUSH)
    return bytes.fromhex("1f8b08000000000000ff") + block * 64


@pytest.mark.parametrize("how", ["garbage", "deep", "endless", "endless-cells", "long-cells"])
def test_hostile_servers_cannot_hang_the_tab_or_exhaust_memory(page, how):
    Hostile.site = page.folder
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hostile)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        page.driver.get("about:blank")
        page.driver.get(f"{page.address}?store=http://127.0.0.1:{server.server_port}/{how}")
        end = time.monotonic() + WAIT
        while page.run("return document.getElementById('error').hidden"):
            assert time.monotonic() < end, page.text("status")
            before = time.monotonic()
            assert page.run("return 1") == 1
            assert time.monotonic() - before < 5, "the tab hangs"
            time.sleep(0.1)
        assert len(page.text("error")) > 20
        assert Hostile.sent[how] < 1 << 30
    finally:
        page.driver.get("about:blank")
        page.driver.get_log("browser")
        server.shutdown()
        server.server_close()


def test_keys_work_without_a_mouse(page):
    page.open("neurons", budget=0)
    scene = page.driver.find_element(By.ID, "scene")
    scene.send_keys("z")
    page.settle()
    assert page.run("return viewer.camera.pitch") == 90
    before = page.run("return viewer.camera.distance")
    scene.send_keys("+")
    page.settle()
    assert page.run("return viewer.camera.distance") < before
    scene.send_keys("f")
    assert page.run("return document.activeElement.id") == "where"
