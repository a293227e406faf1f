"""Time, memory and errors of `zvf serve` and `zvf export precomputed` on large stores.

    serve.py ZVF BENCH FOLDER [KIND]... [--quick]
"""

import argparse
import http.client
import itertools
import json
import math
import random
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

SETS = {"points": 10_000_000, "streamlines": 10_000_000, "skeletons": 1_000_000, "graph": 1_000_000, "mesh": 1_000_000}
CLIENTS = 64
# Processes of the clients: threads of one process would wait for each other.
PROCESSES = 4
# Requests of each level, or of all objects, and attempts to find them.
WANTED, TRIES = 100, 4000
HEAD = """\
| vertices | layer | until the link, s | 1 client: p50, p95, ms | 64 clients: requests/s, p95, ms | memory, MB | export, s |
|---|---|---|---|---|---|---|"""


class Server:
    """A running `zvf serve`."""

    def __init__(self, zvf, store):
        start = time.monotonic()
        command = [zvf, "serve", "--port", "0", "--json", "--quiet", store]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        said = json.loads(self.process.stdout.readline())
        self.started = time.monotonic() - start
        self.host, self.state = urlsplit(said["address"]).netloc, said["state"]
        self.connection = http.client.HTTPConnection(self.host, timeout=120)

    def get(self, path):
        self.connection.request("GET", path)
        response = self.connection.getresponse()
        return response.status, response.read()

    def json(self, path):
        status, body = self.get(path)
        assert status == 200, f"{path}: {status}"
        return json.loads(body)

    def layers(self):
        sources = [layer["source"] for layer in self.state["layers"]]
        sources = itertools.chain(*(one if isinstance(one, list) else [one] for one in sources))
        urls = (one["url"] if isinstance(one, dict) else one for one in sources)
        paths = (url.split("http://", 1)[1].split("/", 1)[1] for url in urls)
        return list(dict.fromkeys("/" + path.split("|")[0].rstrip("/") for path in paths))

    def requests(self, layer):
        """Returns paths that exist: cells of each level of the spatial index, or objects."""
        info, chance, found = self.json(f"{layer}/info"), random.Random(1), []
        for level in info.get("spatial") or []:
            shape, before = level["grid_shape"], len(found)
            for _ in range(min(TRIES, 4 * math.prod(shape))):
                cell = "_".join(str(chance.randrange(extent)) for extent in shape)
                self.add(found, f"{layer}/{level['key']}/{cell}")
                if len(found) - before >= WANTED:
                    break
        if "spatial" in info:
            return found
        ids = self.ids(info, layer)
        ends = {"neuroglancer_legacy_mesh": [":0:0"], "neuroglancer_multilod_draco": [".index", ""]}
        for _ in range(min(WANTED, len(ids))):
            one = chance.choice(ids)
            for end in ends.get(info["@type"], [""]):
                self.add(found, f"{layer}/{one}{end}")
        return found

    def add(self, found, path):
        if path not in found and self.get(path)[0] == 200:
            found.append(path)

    def ids(self, info, layer):
        """Returns the ids in the properties of segments, or else the segments in the state of the viewer."""
        if folder := info.get("segment_properties"):
            return self.json(f"{layer}/{folder}/info")["inline"]["ids"]
        layers = self.json("/state.json")["layers"]
        return next(one["segments"] for one in layers if str(one["source"]).endswith(layer))

    def memory(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        assert self.process.wait() == 0, "the server did not end well"


def client(host, paths, first, clients, end):
    """Repeats requests over one connection, and returns their times and the number of failures. Clients begin at
    different places and take strides that differ."""
    connection = http.client.HTTPConnection(host, timeout=120)
    at, stride, times, failed = first * len(paths) // clients, 2 * first + 1, [], 0
    while time.time() < end:
        begun = time.perf_counter()
        try:
            connection.request("GET", paths[at % len(paths)])
            response = connection.getresponse()
            response.read()
            if response.status == 200:
                times.append(time.perf_counter() - begun)
            else:
                failed += 1
        except OSError:
            failed += 1
            connection.close()
        at += stride
    return times, failed


def group(host, paths, numbers, clients, end):
    """Runs some of the clients, a thread each."""
    with ThreadPoolExecutor(len(numbers)) as pool:
        return list(pool.map(lambda number: client(host, paths, number, clients, end), numbers))


def load(server, paths, clients, seconds):
    """Returns percentiles in ms, requests per second and errors. Every path was served before."""
    end, groups = time.time() + seconds, min(PROCESSES, clients)
    with ProcessPoolExecutor(groups) as pool:
        jobs = [pool.submit(group, server.host, paths, range(at, clients, groups), clients, end) for at in range(groups)]
        done = list(itertools.chain(*(job.result() for job in jobs)))
    times = sorted(itertools.chain(*(times for times, _ in done)))
    assert times, "no request succeeded"
    p50, p95 = (times[(len(times) - 1) * share // 100] * 1e3 for share in (50, 95))
    return p50, p95, len(times) / seconds, sum(failed for _, failed in done)


def made(bench, folder, kind, vertices):
    """Returns a store of a kind, which is created unless it exists."""
    folder = folder / str(vertices)
    folder.mkdir(parents=True, exist_ok=True)
    if not list(folder.glob(f"{kind}-*")):
        command = [bench, "serve", kind, str(vertices), "plain", folder]
        done = subprocess.run(command, input="write\n", stdout=subprocess.PIPE, text=True, check=True)
        assert "error" not in json.loads(done.stdout), done.stdout
    return next(folder.glob(f"{kind}-*"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("zvf")
    parser.add_argument("bench")
    parser.add_argument("folder", type=Path)
    parser.add_argument("kinds", nargs="*", choices=[*SETS, []], default=[])
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rows, failures = [], 0
    for kind in options.kinds or SETS:
        vertices = SETS[kind] // (20 if options.quick else 1)
        store, out = made(options.bench, options.folder, kind, vertices), options.folder / "exported"
        shutil.rmtree(out, ignore_errors=True)
        begun = time.monotonic()
        subprocess.run([options.zvf, "export", "precomputed", "--quiet", "--sharded", store, out], check=True)
        export = time.monotonic() - begun
        shutil.rmtree(out)
        server = Server(options.zvf, store)
        for layer in server.layers():
            print(f"{kind}, {layer}", flush=True)
            paths = server.requests(layer)
            p50, p95, _, alone = load(server, paths, 1, 5)
            _, many, rate, together = load(server, paths, CLIENTS, 5 if options.quick else 60)
            failures += alone + together
            rows.append(f"| {vertices} {kind} | {layer} | {server.started:.1f} | {p50:.1f}, {p95:.1f} | {rate:.0f}, "
                        f"{many:.0f} | {server.memory() // 1_000_000} | {export:.1f} |")
        server.stop()
    print("\n".join(["", HEAD, *rows]))
    sys.exit(f"{failures} requests failed" if failures else 0)


if __name__ == "__main__":
    main()
