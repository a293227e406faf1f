"""The page of `zvf view` in headless Chromium, with the stores of `zvf demo`, compared with the command."""

import base64
import collections
import contextlib
import functools
import gzip
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

import nibabel
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

    def drop(self, *files):
        """Drops files on the scene."""
        data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.driver.execute_cdp_cmd("Input.dispatchDragEvent", {"type": kind, "x": 400, "y": 300, "data": data})

    def wait(self, script, what):
        """Waits until a script returns what is true."""
        end = time.monotonic() + WAIT
        while not (found := self.run(script)):
            assert time.monotonic() < end, f"{what}: {self.text('status')}; {self.console()}"
            time.sleep(0.1)
        return found

    def pixels(self):
        """The scene without its controls."""
        self.run("document.querySelectorAll('main > :not(#scene), footer').forEach(e => e.style.visibility = 'hidden')")
        return np.asarray(Image.open(io.BytesIO(self.driver.get_screenshot_as_png())).convert("RGB")).astype(int)

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


# Maps voxels (i, j, k) to positions in mm: j runs along -x, i along y, and k is oblique.
AFFINE = np.array([[0, -3, 0.4, 40], [2, 0, 0.3, -30], [0, 0.5, 4, -20.0], [0, 0, 0, 1]])


def volume(form, folder):
    """Writes a volume of random values around a bright block, and returns its path."""
    values = np.random.default_rng(7).integers(20, 90, (30, 24, 16)).astype(float)
    values[8:20, 6:15, 4:11] = 200
    affine, image, ending = AFFINE.copy(), nibabel.Nifti1Image, ".nii"
    if form == "qform":
        turn = np.array([[0.8, -0.6, 0], [0.6, 0.8, 0], [0, 0, -1.0]])
        affine[:3, :3] = turn * [2, 3, 4]
    if form == "NIfTI-2, big-endian, packed":
        image, ending = nibabel.Nifti2Image, ".nii.gz"
    made = image(values.astype("f4" if form == "sform" else "i2"), affine)
    if image is nibabel.Nifti2Image:
        made = image(values.astype(">f8"), affine, made.header.as_byteswapped(">"))
        made.header.set_data_dtype(">f8")
    made.header.set_xyzt_units("mm")
    if form == "qform":
        made.set_sform(None, 0)
        made.set_qform(affine, 1)
        made.header.set_slope_inter(0.5, 10)
    if form == "voxel sizes":
        made = image(values.astype("i2"), None)
        made.header["pixdim"][1:4] = 2, 3, 4
        affine = np.diag([2, 3, 4, 1.0])
    path = folder / f"scan{ending}"
    nibabel.save(made, path)
    # nibabel would centre a volume without an affine.
    return path, np.asanyarray(nibabel.load(path).dataobj).astype(float), affine


@pytest.mark.parametrize("form", ["sform", "qform", "voxel sizes", "NIfTI-2, big-endian, packed"])
def test_slices_of_a_volume_lie_where_its_header_says(page, form, tmp_path):
    path, values, affine = volume(form, tmp_path)
    page.driver.get("about:blank")
    page.driver.get_log("browser")
    page.driver.get(f"{page.address}#{quote(json.dumps({'theme': 'dark', 'axes': False, 'camera': None}))}")
    page.drop(path)
    page.wait("return !!viewer.volume", "the volume")
    voxels = np.random.default_rng(3).uniform(-2, np.array(values.shape) + 1, (300, 3))
    places = voxels @ affine[:3, :3].T + affine[:3, 3]
    found = page.run("return arguments[0].map(at => viewer.volume.value(at) ?? null)", places.tolist())
    expected = 0
    for voxel, value in zip(np.rint(voxels).astype(int), found, strict=True):
        if (voxel >= 0).all() and (voxel < values.shape).all():
            assert value == pytest.approx(values[tuple(voxel)])
            expected += 1
        else:
            assert value is None
    assert 100 < expected < 300
    # Each slice by itself, seen from where its axis points: what is drawn at the centres of voxels.
    for axis, look in enumerate([(0, 0), (90, 0), (270, 90)]):
        centre = affine[:3, :3] @ [13, 10, 7] + affine[:3, 3]
        page.run(
            "const {state} = viewer.volume; state.at = arguments[0]; state.window = [0, 250];"
            "state.shown = [0, 1, 2].map(k => k === arguments[1]); viewer.turn(...arguments[2])",
            centre.tolist(), axis, look,
        )
        page.settle()
        picture = page.pixels()
        script = """
            const canvas = document.getElementById("scene"), m = viewer.camera.matrix(canvas.clientWidth / canvas.clientHeight);
            return [[...m], viewer.origin, canvas.clientWidth, canvas.clientHeight];
        """
        matrix, origin, width, height = page.run(script)
        # Positions in the plane, and the values there.
        spread = np.random.default_rng(axis).uniform(-50, 50, (900, 3))
        spread[:, axis] = 0
        places = centre + spread
        voxels = (places - affine[:3, 3]) @ np.linalg.inv(affine[:3, :3]).T
        clip = np.c_[places - origin, np.ones(900)] @ np.array(matrix).reshape(4, 4)
        pixels = np.c_[(clip[:, 0] / clip[:, 3] / 2 + 0.5) * width, (0.5 - clip[:, 1] / clip[:, 3] / 2) * height].astype(int)
        seen = {"block": 0, "outside": 0}
        for (x, y), voxel in zip(pixels, voxels, strict=True):
            if not (0 <= x < width and 0 <= y < height):
                continue
            shade = picture[y, x]
            if ((voxel > [9, 7, 5]) & (voxel < [18, 13, 9])).all():
                bright = values[13, 10, 7] / 250 * 255
                assert np.abs(shade - bright).max() < 6, (axis, voxel, shade)
                seen["block"] += 1
            elif (voxel < -1).any() or (voxel > np.array(values.shape)).any():
                assert shade.max() < 30, (axis, voxel, shade)
                seen["outside"] += 1
        assert min(seen.values()) > 5, (axis, seen)
    assert page.console() == []


def test_slices_lie_among_tracts_and_a_link_restores_them(page):
    depth = np.sqrt((np.stack(np.meshgrid(*[np.linspace(-1, 1, 72)] * 3, indexing="ij")) ** 2).sum(0))
    head = np.clip(1.02 - depth, 0, 0.1) * 900 + 70 * (depth < 0.93) * (1 - depth)
    half, middle = np.array([75, 95, 80]), np.array([0, -10, 6])
    scan = nibabel.Nifti1Image(head.astype("u1"), np.vstack([np.column_stack([np.diag(half * 2 / 71), middle - half]), [0, 0, 0, 1]]))
    nibabel.save(scan, page.folder / "head.nii.gz")
    page.driver.get("about:blank")
    page.driver.get_log("browser")
    state = {"theme": "dark", "volume": {"at": [0, -10, 0], "window": [5, 150], "shown": [True, False, True]}}
    page.driver.get(f"{page.address}?store=demo/tracts.zv&volume=head.nii.gz#{quote(json.dumps(state))}")
    page.run("viewer.budget = 0")
    page.wait("return !!window.viewer?.volume", "the volume")
    page.settle()
    assert page.text("legend").endswith("head5150")
    kept = page.run("return viewer.state.volume")
    assert kept == {"isVisible": True, **state["volume"]}
    page.run("document.querySelectorAll('details').forEach(d => d.open = true)")
    page.run(axe().read_text())
    script = "const done = arguments[0]; axe.run().then(r => done(r.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)])))"
    assert page.driver.execute_async_script(script) == []
    picture = page.pixels()
    spread = picture.max(-1) - picture.min(-1)
    assert ((spread < 6) & (picture.max(-1) > 40)).sum() > 5000 and (spread > 60).sum() > 2000
    assert page.console() == []


def hostile_volumes():
    good = bytearray(nibabel.Nifti1Image(np.ones((4, 5, 6), "u1"), np.eye(4)).to_bytes())

    def changed(at, kind, *values):
        return bytes(good[:at] + struct.pack("<" + kind, *values) + good[at + struct.calcsize(kind):])

    return {
        "empty": b"", "short": bytes(good[:200]), "cut": bytes(good[:-1]), "random": random.Random(4).randbytes(3000),
        "packed garbage": b"\x1f\x8b" + random.Random(5).randbytes(3000), "cut gzip": gzip.compress(bytes(good))[:60],
        "no mark": changed(344, "4s", b"abcd"), "a pair": changed(344, "4s", b"ni1\0"), "axes": changed(40, "h", 9),
        "negative": changed(42, "h", -4), "no voxels": changed(44, "h", 0), "huge": changed(42, "hhh", 32767, 32767, 32767),
        "large": changed(42, "hhh", 400, 400, 400), "colours": changed(70, "h", 128), "offset": changed(108, "f", 0.0),
        "no offset": changed(108, "f", float("nan")), "far": changed(108, "f", 1e30), "flat": changed(280, "4f", 0, 0, 0, 0),
        "no map": changed(280, "4f", float("nan"), 0, 0, 0),
    }


@pytest.mark.parametrize("how", hostile_volumes())
def test_damaged_volumes_are_refused_in_a_sentence(page, how, tmp_path):
    path = tmp_path / "scan.nii"
    path.write_bytes(hostile_volumes()[how])
    if page.driver.current_url.split("#")[0] != page.address:
        page.driver.get(page.address)
    page.run("document.getElementById('error').hidden = true")
    page.drop(path)
    page.wait("return !document.getElementById('error').hidden", "the error")
    assert "scan.nii" in page.text("error").lower() and len(page.text("error")) > 30
    assert page.run("return !viewer.volume")


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
