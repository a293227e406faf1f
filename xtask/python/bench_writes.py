"""Writes stores of every kind with zvf and with the reference, and measures both.

    bench_writes.py FOLDER ZVF [SIZE ...]

Inputs are created here and kept in FOLDER as npz. Each write runs in a process of its own, ours and
theirs in turns. Time excludes the start of the process and, where it can be separated, reading the
input; memory is the peak of the process.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

KINDS = ["points", "streamlines", "graphs", "mesh", "skeletons", "lines"]


def inputs(kind, size):
    """Returns arrays as `zvf create --from` reads them, about `size` vertices."""
    rng = np.random.default_rng(size)
    if kind == "points":
        centres = rng.uniform(0, 4000, (2000, 3))
        own = centres[rng.integers(0, 2000, size * 7 // 10)]
        near = own + rng.normal(0, 20, own.shape)
        far = rng.uniform(0, 4000, (size - len(near), 3))
        positions = np.concatenate([near, far]).astype("f4")
        rng.shuffle(positions)
        intensity = rng.integers(0, 4000, size).astype("u2")
        return {"positions": positions, "vertex.intensity": intensity}
    if kind == "streamlines":
        count = size // 100
        start = rng.uniform(20, 160, (count, 1, 3))
        turn = rng.normal(0, 0.25, (count, 1, 3))
        steps = turn + rng.normal(0, 0.3, (count, 100, 3))
        positions = (start + np.cumsum(steps, 1)).reshape(-1, 3).astype("f4")
        return {
            "positions": positions,
            "part_offsets": np.arange(count + 1, dtype="i8") * 100,
            "part_objects": np.arange(count, dtype="i8"),
            "vertex.fa": rng.random(len(positions)).astype("f4"),
            "object.length": rng.random(count).astype("f4"),
        }
    if kind == "lines":
        count = size // 2
        start = rng.uniform(0, 400, (count, 1, 3))
        ends = np.concatenate([start, start + rng.normal(0, 1, (count, 1, 3))], 1)
        return {
            "positions": ends.reshape(-1, 3).astype("f4"),
            "part_offsets": np.arange(count + 1, dtype="i8") * 2,
            "part_objects": np.arange(count, dtype="i8"),
        }
    if kind == "skeletons":
        length = 2000
        count = max(1, size // length)
        start = rng.uniform(0, 400, (count, 1, 3))
        steps = rng.normal(0, 0.5, (count, length, 3))
        positions = (start + np.cumsum(steps, 1)).reshape(-1, 3).astype("f4")
        child = np.arange(count * length).reshape(count, length)[:, 1:]
        links = np.stack([child, child - 1], -1).reshape(-1, 2)
        return {
            "positions": positions,
            "object_ids": np.repeat(np.arange(count, dtype="i8"), length),
            "links": links.astype("i8"),
        }
    if kind == "graphs":
        side = max(2, round(size ** (1 / 3)))
        grid = np.stack(np.meshgrid(*[np.arange(side)] * 3, indexing="ij"), -1).reshape(-1, 3)
        positions = (grid + rng.random(grid.shape)).astype("f4")
        number = np.arange(side**3).reshape(side, side, side)
        first = np.stack([number[:-1].ravel(), number[1:].ravel()], 1)
        second = np.stack([number[:, :-1].ravel()[::2], number[:, 1:].ravel()[::2]], 1)
        return {"positions": positions, "links": np.concatenate([first, second]).astype("i8")}
    side = max(2, int(size**0.5))
    plane = np.stack(np.meshgrid(*[np.arange(side)] * 2, indexing="ij"), -1).reshape(-1, 2)
    height = np.sin(plane[:, :1] / 50) * 40
    number = np.arange(side * side).reshape(side, side)
    a, b, c, d = (
        number[:-1, :-1].ravel(),
        number[1:, :-1].ravel(),
        number[1:, 1:].ravel(),
        number[:-1, 1:].ravel(),
    )
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    positions = np.concatenate([plane, height], 1).astype("f4")
    return {"positions": positions, "links": faces.astype("i8")}


def theirs(kind, source, out, shape):
    """Writes with the reference; prints the seconds."""
    from zarr_vectors.types.graphs import write_graph
    from zarr_vectors.types.lines import write_lines
    from zarr_vectors.types.meshes import write_mesh
    from zarr_vectors.types.points import write_points
    from zarr_vectors.types.polylines import write_polylines

    data = dict(np.load(source))
    positions = data["positions"]
    shape = tuple(shape)
    before = time.perf_counter()
    if kind == "points":
        write_points(out, positions, chunk_shape=shape,
                     vertex_attributes={"intensity": data["vertex.intensity"]})
    elif kind == "streamlines":
        ends = data["part_offsets"][1:-1]
        write_polylines(out, np.split(positions, ends), chunk_shape=shape,
                        vertex_attributes={"fa": np.split(data["vertex.fa"], ends)},
                        object_attributes={"length": data["object.length"]})
    elif kind == "lines":
        write_lines(out, positions.reshape(-1, 2, 3), chunk_shape=shape)
    elif kind == "graphs":
        write_graph(out, positions, data["links"], chunk_shape=shape)
    elif kind == "skeletons":
        write_graph(out, positions, data["links"], chunk_shape=shape, kind="skeleton",
                    object_ids=data["object_ids"])
    else:
        write_mesh(out, positions, data["links"], chunk_shape=shape)
    print(json.dumps({"seconds": time.perf_counter() - before}))


def run(command):
    """Returns seconds, peak bytes, the output, and whether the process succeeded."""
    before = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    output, errors = process.stdout.read(), process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - before
    text = errors.decode(errors="replace").strip().splitlines()
    return {
        "seconds": seconds,
        "peak": usage.ru_maxrss * 1024,
        "output": output,
        "error": text[-1] if process.returncode and text else None,
        "code": process.returncode,
    }


def size_of(folder):
    files = [path for path in Path(folder).rglob("*") if path.is_file()]
    return sum(path.stat().st_size for path in files), len(files)


def measure(folder, zvf, kind, size):
    source = folder / f"{kind}-{size}.npz"
    if not source.exists():
        # A separate process, because the peak memory of this one counts towards the processes that
        # it starts.
        made = run([sys.executable, __file__, "--make", kind, str(size), str(source)])
        if made["code"]:
            raise SystemExit(f"no input: {made['error']}")
    ours, reference = folder / "ours.zv", folder / "theirs.zv"
    for path in (ours, reference):
        shutil.rmtree(path, ignore_errors=True)
    made = run([zvf, "create", str(ours), "--kind", kind, "--from", str(source), "--json"])
    if made["code"]:
        raise SystemExit(f"zvf create failed: {made['error']}")
    report = json.loads(made["output"])
    shape = report.get("chosen", report).get("chunk_shape") or report["chunk_shape"]
    record = {
        "kind": kind,
        "vertices": report["vertices"],
        "chunk_shape": shape,
        "ours": {"seconds": made["seconds"], "peak": made["peak"]},
    }
    record["ours"]["bytes"], record["ours"]["files"] = size_of(ours)
    words = [json.dumps(shape)]
    other = run([sys.executable, __file__, "--theirs", kind, str(source), str(reference), *words])
    record["theirs"] = {"peak": other["peak"], "error": other["error"]}
    if not other["code"]:
        record["theirs"]["seconds"] = json.loads(other["output"])["seconds"]
        record["theirs"]["bytes"], record["theirs"]["files"] = size_of(reference)
    return record


def table(records):
    lines = [
        "| kind | vertices | time, s: ours / theirs | ratio | peak, MB | size, MB | files |",
        "|---|---|---|---|---|---|---|",
    ]
    mega = 1e6
    for record in records:
        ours, other = record["ours"], record["theirs"]
        if other.get("error"):
            pair = (f"{ours['seconds']:.2f} / failed", "", f"{ours['peak'] / mega:.0f} / -",
                    f"{ours['bytes'] / mega:.1f} / -", f"{ours['files']} / -")
        else:
            pair = (
                f"{ours['seconds']:.2f} / {other['seconds']:.2f}",
                f"{other['seconds'] / ours['seconds']:.1f}x",
                f"{ours['peak'] / mega:.0f} / {other['peak'] / mega:.0f}",
                f"{ours['bytes'] / mega:.1f} / {other['bytes'] / mega:.1f}",
                f"{ours['files']} / {other['files']}",
            )
        lines.append(f"| {record['kind']} | {record['vertices']:,} | " + " | ".join(pair) + " |")
    return "\n".join(lines)


def main():
    if sys.argv[1] == "--make":
        kind, size, source = sys.argv[2:]
        np.savez(source, **inputs(kind, int(size)))
        return
    if sys.argv[1] == "--theirs":
        kind, source, out, shape = sys.argv[2:]
        theirs(kind, source, out, json.loads(shape))
        return
    folder, zvf = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    sizes = [int(size) for size in sys.argv[3:]] or [1_000_000, 10_000_000]
    records = []
    for size in sizes:
        for kind in KINDS:
            print(f"writing {size} vertices of {kind}", file=sys.stderr)
            records.append(measure(folder, zvf, kind, size))
    (folder / "writes.json").write_text(json.dumps(records, indent=1))
    print(table(records))


if __name__ == "__main__":
    main()
