"""Blosc2 arrays in both directions: written and changed here, read there.

The example `b2nd` of zvf-dense serves requests as JSON lines. In each case

* ours writes an array; python-blosc2 reads it as a whole and in part, then changes it (elements, shape, a
  metalayer), and ours reads the result;
* python-blosc2 writes an array; ours reads it as a whole and in part, with steps, then changes it, and
  python-blosc2 reads the result.

NumPy arrays hold the expected content. caterva 0.7.3, under Python 3.9, also reads and writes arrays.
"""

import json
import os
import pathlib
import shutil
import subprocess

import blosc2
import numpy as np
import pytest

from program import Failure
from seeded import Random

CASES = 150
REPORT = f"b2nd: {{arrays}} arrays both ways with python-blosc2 {blosc2.__version__}"
DTYPES = ["<f4", "<f8", "|u1", "<i2", ">i4", "|S5", "|b1", "<U3", "<U2", "<M8[ns]"]
RECORD = np.dtype([("a", "<i4"), ("b", "<f8"), ("c", "S3")])
CODECS = {"lz4": blosc2.Codec.LZ4, "zlib": blosc2.Codec.ZLIB, "zstd": blosc2.Codec.ZSTD}
FILTERS = [[], ["shuffle"], ["bitshuffle"], ["shuffle", "bytedelta"], ["delta"], ["delta", "shuffle"]]
NUMBERS = {
    "shuffle": blosc2.Filter.SHUFFLE,
    "bitshuffle": blosc2.Filter.BITSHUFFLE,
    "bytedelta": blosc2.Filter.BYTEDELTA,
    "delta": blosc2.Filter.DELTA,
}
# Each is one value of MessagePack.
LAYER, LATER = "A", "B"
# Values of attributes, including text and lists beyond the limits of MessagePack's short forms.
ATTRIBUTES = [
    None, True, 0, 127, 128, 65536, 2**63, -1, -33, -(2**40), 1.5, 1e300, "", "é" * 20, "x" * 300, "y" * 70000,
    [], [1, [2, "three"]], list(range(20)), {}, {"a": {"b": [None, False]}}, {str(n): n for n in range(20)},
]


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        response = self.process.stdout.readline().strip()
        assert response.startswith("ok"), f"{request}: {response}"
        return [float(word) for word in response.split()[1:]]


def values(random, shape, dtype):
    count = int(np.prod(shape, dtype=np.int64))
    kind = random.below(4)
    raw = np.arange(count * dtype.itemsize, dtype=np.int64)
    if kind == 0:
        raw = raw * 0
    elif kind == 1:
        raw = raw // max(dtype.itemsize, 1) % 50
    elif kind == 2:
        raw = (raw * 2654435761) >> 9
    else:
        raw = raw % dtype.itemsize
    data = (raw & 0xFF).astype(np.uint8)
    if dtype.kind == "b":
        data &= 1
    if dtype.kind == "U":
        # Valid characters.
        data = (raw & 0x3F).astype(np.uint8)
        data.reshape(-1, 4)[:, 1:] = 0
    return np.frombuffer(data.tobytes(), dtype=dtype).reshape(shape).copy()


def same(found, want, what):
    found, want = np.ascontiguousarray(found), np.ascontiguousarray(want)
    assert found.shape == want.shape, f"{what}: {found.shape} for {want.shape}"
    assert found.tobytes() == want.tobytes(), f"{what}: other bytes"


def part(random, shape):
    spans = [sorted([random.between(0, n), random.between(0, n)]) for n in shape]
    return [a for a, _ in spans], [b for _, b in spans]


def box(start, stop, step=None):
    step = step or [1] * len(start)
    return tuple(slice(*ends) for ends in zip(start, stop, step))


def put_together(array, dtype):
    """Assembles the array from whole chunks, which omit no block."""
    rank = len(array.shape)
    grid = [-(-n // c) for n, c in zip(array.shape, array.chunks)]
    inner = [-(-c // b) for c, b in zip(array.chunks, array.blocks)]
    whole = np.zeros([n * c for n, c in zip(grid, array.chunks)], dtype)
    turned = [axis for pair in zip(range(rank), range(rank, 2 * rank)) for axis in pair]
    for number, at in enumerate(np.ndindex(*grid)):
        chunk = np.frombuffer(array.schunk.decompress_chunk(number), dtype)
        chunk = chunk.reshape(inner + list(array.blocks)).transpose(turned)
        chunk = chunk.reshape([n * b for n, b in zip(inner, array.blocks)])
        place = tuple(slice(k * c, k * c + c) for k, c in zip(at, array.chunks))
        whole[place] = chunk[(*(slice(0, c) for c in array.chunks), ...)]
    return whole[(*(slice(0, n) for n in array.shape), ...)]


class Case:
    def __init__(self, ours, folder, random):
        self.ours, self.folder, self.random = ours, folder, random
        rank = random.between(0, 4)
        self.shape = [random.between(1 if random.chance(95) else 0, 20) for _ in range(rank)]
        self.chunks = [random.between(1, max(n, 1) + 3) for n in self.shape]
        self.blocks = [random.between(1, n) for n in self.chunks]
        self.dtype = RECORD if random.chance(10) else np.dtype(random.pick(DTYPES))
        self.text = str(self.dtype.descr) if self.dtype.names else self.dtype.str
        self.codec, self.level = random.pick(list(CODECS)), random.pick([0, 1, 5, 9])
        self.filters = random.pick(FILTERS)
        self.split = random.pick(["always", "never", "auto"])
        self.sparse = random.chance(30)
        self.attributes = {f"a{n}": random.pick(ATTRIBUTES) for n in range(random.below(4))}
        self.data = values(random, self.shape, self.dtype)
        self.raw = folder / "values.bin"
        self.path = folder / "array.b2nd"

    def clean(self):
        if self.path.is_dir():
            shutil.rmtree(self.path)
        self.path.unlink(missing_ok=True)

    def put(self, data):
        self.raw.write_bytes(np.ascontiguousarray(data).tobytes())
        return str(self.raw)

    def write(self, form="b2nd", path=None):
        self.ours.run(
            do="write", path=str(path or self.path), raw=self.put(self.data), shape=self.shape,
            chunks=self.chunks, blocks=self.blocks, dtype=self.text, codec=self.codec,
            level=self.level, filters=self.filters, split=self.split, form=form,
            sparse=self.sparse and form == "b2nd", layer=LAYER, attributes=self.attributes,
        )

    def read(self, **selection):
        self.ours.run(do="read", path=str(self.path), raw=str(self.raw), **selection)
        return self.raw.read_bytes()

    def check_ours(self, what):
        assert self.read() == self.data.tobytes(), f"{what}: whole"
        for _ in range(3 if self.shape else 0):
            start, stop = part(self.random, self.data.shape)
            step = [self.random.between(1, 4) for _ in start]
            want = np.ascontiguousarray(self.data[box(start, stop, step)])
            found = self.read(start=start, stop=stop, step=step)
            assert found == want.tobytes(), f"{what}: {start} {stop} {step}"

    def check_theirs(self, array, what):
        if "delta" in self.filters:
            # Reads that omit blocks return wrong data (c-blosc2 issue 701).
            same(put_together(array, self.dtype), self.data, what)
            return
        same(array[()] if not self.shape else array[:], self.data, what)
        for _ in range(3):
            start, stop = part(self.random, self.data.shape)
            if start and all(a < b for a, b in zip(start, stop)):
                same(array[box(start, stop)], self.data[box(start, stop)], f"{what} {start} {stop}")

    def grown(self):
        """Returns another shape, and the data that both shapes contain."""
        shape = [max(n + self.random.between(-3, 6), 1) for n in self.data.shape]
        data = np.zeros(shape, self.dtype)
        common = tuple(slice(0, min(pair)) for pair in zip(shape, self.data.shape))
        data[common] = self.data[common]
        return shape, data

    def run(self):
        can_change = self.shape and 0 not in self.shape
        # OURS changes the array, then python-blosc2.
        self.clean()
        self.write()
        array = blosc2.open(str(self.path), mode="a")
        assert (array.shape, array.chunks, array.blocks) == tuple(
            tuple(n) for n in [self.shape, self.chunks, self.blocks]
        ), "geometry"
        assert array.dtype == self.dtype, f"{array.dtype} for {self.dtype}"
        assert array.schunk.meta["fixed"] == ord(LAYER), "metalayer"
        assert array.schunk.vlmeta["variable"] == ord(LAYER), "vlmetalayer"
        for name, value in self.attributes.items():
            assert array.schunk.vlmeta[name] == value, f"attribute {name}: {value}"
        self.check_theirs(array, "written by ours")
        if can_change and "delta" not in self.filters:
            start, stop = part(self.random, self.shape)
            new = values(self.random, [b - a for a, b in zip(start, stop)], self.dtype)
            if new.size:
                array[box(start, stop)] = new
                self.data[box(start, stop)] = new
            array.schunk.vlmeta["variable"] = ord(LATER)
            self.check_ours("changed by theirs")
        del array
        # python-blosc2 changes the array, then OURS.
        self.clean()
        filters = [NUMBERS[name] for name in self.filters]
        cparams = {
            "codec": CODECS[self.codec], "clevel": self.level, "filters": filters,
            "filters_meta": [0] * len(filters), "nthreads": 1,
        }
        blosc2.asarray(
            self.data, chunks=self.chunks, blocks=self.blocks, cparams=cparams,
            urlpath=str(self.path), contiguous=not self.sparse, mode="w",
        )
        array = blosc2.open(str(self.path), mode="a")
        for name, value in self.attributes.items():
            array.schunk.vlmeta[name] = value
        del array
        self.ours.run(do="attributes", path=str(self.path), attributes=self.attributes)
        self.check_ours("written by theirs")
        if can_change:
            shape, self.data = self.grown()
            self.ours.run(do="edit", path=str(self.path), shape=shape)
            start, stop = part(self.random, shape)
            new = values(self.random, [b - a for a, b in zip(start, stop)], self.dtype)
            self.data[box(start, stop)] = new
            raw = self.put(new)
            self.ours.run(do="edit", path=str(self.path), start=start, stop=stop, raw=raw, layer=LATER)
            array = blosc2.open(str(self.path), mode="a")
            self.check_theirs(array, "changed by ours")
            assert array.schunk.vlmeta["variable"] == ord(LATER), "vlmetalayer"
            if "delta" not in self.filters:
                # Change it once more: what OURS left must not interfere.
                array[tuple([0] * len(shape))] = self.data.flat[-1]
                self.data[tuple([0] * len(shape))] = self.data.flat[-1]
                shape = [n + self.random.between(0, 5) for n in shape]
                array.resize(tuple(shape))
                # When python-blosc2 grows an array, elements hidden by an earlier shrink reappear,
                # so its result is the expected one.
                data = np.ascontiguousarray(array[:])
                old = tuple(slice(0, n) for n in self.data.shape)
                same(data[old], self.data, "resized by theirs")
                self.data = data
                self.check_ours("changed by both")


@pytest.fixture(scope="module")
def ours(example):
    blosc2.set_nthreads(1)
    return Ours(example("b2nd"))


def test_both_ways(number, ours, seed, tmp_path, report):
    case = Case(ours, tmp_path, Random(seed ^ number << 40))
    try:
        case.run()
    except AssertionError as error:
        known = {name: value for name, value in vars(case).items() if name != "data"}
        raise Failure(f"{error}: {known}") from None
    report["arrays"] += 1


def python39():
    """Returns a Python 3.9; a shim of pyenv fails for a version that is not selected."""
    root = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    for program in ["python3.9", *root.glob("versions/3.9.*/bin/python")]:
        if shutil.which(program) and not subprocess.run([program, "--version"], capture_output=True).returncode:
            return program
    return pytest.skip("caterva 0.7.3, because python3.9 is missing")


def test_caterva(ours, seed, tmp_path, environment, tell, pytestconfig):
    """Arrays in the form of Caterva: of ours, which python-blosc2 reads from memory, and of caterva. Both are
    changed by ours and read by caterva."""
    python = environment("caterva", python39())

    def caterva(listed):
        line = [python, "-B", pathlib.Path(__file__).with_name("b2nd_caterva.py")]
        done = subprocess.run(line, input=json.dumps(listed), stdout=subprocess.PIPE, text=True, check=True)
        tell(done.stdout.strip())

    cases, random = [], Random(seed)
    for number in range(max((pytestconfig.getoption("--cases") or CASES) // 4, 1)):
        case = Case(ours, tmp_path, random)
        if 0 in case.shape or "delta" in case.filters or "bytedelta" in case.filters:
            continue
        case.raw, case.path = tmp_path / f"{number}.bin", tmp_path / f"{number}.cat"
        cases.append(case)
    # caterva does not create arrays without axes.
    theirs = [case for case in cases[1::2] if case.shape]
    made = [case for case in cases if case not in theirs]
    for case in made:
        case.write("caterva", case.path)
        array = blosc2.ndarray_from_cframe(case.path.read_bytes(), copy=True)
        assert (array.shape, array.chunks) == (tuple(case.shape), tuple(case.chunks)), "geometry"
        # python-blosc2 reads the items as text and strips their trailing zeros.
        found = array[()] if not case.shape else array[:]
        want = np.frombuffer(case.data.tobytes(), f"|S{case.dtype.itemsize}").reshape(case.shape)
        same(found, want, "caterva")
    tell(f"b2nd: {len(made)} arrays of Caterva")

    def listed(case, layer):
        return {"path": str(case.path), "raw": case.put(case.data), "shape": list(case.data.shape), "fixed": layer}

    for case in theirs:
        case.put(case.data)
    written = [
        {**listed(case, LAYER), "chunks": case.chunks, "blocks": case.blocks, "itemsize": case.dtype.itemsize}
        for case in theirs
    ]
    caterva([listed(case, LAYER) for case in made] + written)
    for case in cases:
        raw, case.raw = case.raw, tmp_path / "part.bin"
        case.check_ours("caterva")
        shape = case.shape
        if case.shape:
            shape, case.data = case.grown()
            case.ours.run(do="edit", path=str(case.path), shape=shape)
        start, stop = part(case.random, shape)
        new = values(case.random, [b - a for a, b in zip(start, stop)], case.dtype)
        case.data[box(start, stop)] = new
        case.ours.run(do="edit", path=str(case.path), start=start, stop=stop, raw=case.put(new), layer=LATER, fixed=LATER)
        case.check_ours("caterva, changed")
        case.raw = raw
    caterva([listed(case, LATER) for case in cases])
