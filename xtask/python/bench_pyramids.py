"""Measures building levels: `zvf pyramid` and the reference's `build_pyramid` on the same stores.

usage: bench_pyramids.py FOLDER ZVF [VERTICES...]

`zvf create` makes the store, and each program gets a copy. Both build two levels, with cells two
and four times as large as bins, links to the coarser level, and all objects. Each runs in a process
of its own, in turns; the shortest of several turns counts. Prints rows of a Markdown table as they
complete, and the features that the levels of the reference lack.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from bench_writes import KINDS, inputs, run, size_of

# Size of bins relative to the store's chunks: number of bins along each axis.
BINS = 8
FACTORS = [2, 2]
# Time limit of the reference in seconds; stores expected to exceed it are not started.
PATIENCE = 150
# Number of turns, and the longest time of the reference in seconds that allows another turn.
TURNS, SHORT = 3, 10


def theirs(store):
    """Builds levels with the reference; prints the seconds."""
    from zarr_vectors.multiresolution.coarsen import build_pyramid

    before = time.perf_counter()
    build_pyramid(store, factors=[(factor, 1) for factor in FACTORS], cross_level_storage="implicit")
    print(json.dumps({"seconds": time.perf_counter() - before}))


def put_aside(path):
    """Moves a folder aside, to be deleted at the end: after many deletions, ext4 creates files
    slowly for minutes.
    """
    if path.exists():
        done = path.parent / "done"
        done.mkdir(exist_ok=True)
        path.rename(done / str(len(list(done.iterdir()))))


def link(source, target):
    """Copies metadata, which is overwritten, and hard-links the cells of existing levels, which are
    not.
    """
    if source.endswith("zarr.json"):
        return shutil.copy2(source, target)
    return os.link(source, target)


def measure(folder, zvf, kind, size, before):
    """Measures both in turns; `before` is their time on a smaller store."""
    source = folder / f"{kind}-{size}.npz"
    if not source.exists():
        # A separate process, because the peak memory of this one counts towards the processes that
        # it starts.
        made = run([sys.executable, __file__, "--make", kind, str(size), str(source)])
        if made["code"]:
            raise SystemExit(f"no input: {made['error']}")
    store, copy = folder / "store.zv", folder / "copy.zv"
    put_aside(store)
    words = [zvf, "create", str(store), "--kind", kind, "--from", str(source), "--json", "--quiet"]
    made = run(words)
    if made["code"]:
        raise SystemExit(f"zvf create failed: {made['error']}")
    report = json.loads(made["output"])
    shape = report.get("chosen", report).get("chunk_shape") or report["chunk_shape"]
    put_aside(store)
    bins = [extent / BINS for extent in shape]
    text = [",".join(map(str, extents)) for extents in (shape, bins)]
    made = run([*words, "--chunk-shape", text[0], "--bin-shape", text[1]])
    if made["code"]:
        raise SystemExit(f"zvf create failed: {made['error']}")
    bytes_before = size_of(store)[0]
    record = {"kind": kind, "vertices": report["vertices"], "raw": source.stat().st_size}

    def one(side, words, seconds_of):
        put_aside(copy)
        shutil.copytree(store, copy, copy_function=link)
        made = run([*words, str(copy), *options[side]])
        known = record.setdefault(side, {})
        if made["code"]:
            known["error"] = made["error"] or "failed"
            return False
        known["peak"] = max(known.get("peak", 0), made["peak"])
        known["seconds"] = min(known.get("seconds", float("inf")), seconds_of(made))
        known["bytes"] = size_of(copy)[0] - bytes_before
        known["levels"], known["parts"] = described(copy)
        return True

    factors = ",".join(map(str, FACTORS))
    options = {
        "ours": ["--method", "bins", "--factors", factors, "--chunk-scale", "1", "--json", "--quiet"],
        "theirs": [],
    }
    is_long = before and before["theirs"].get("seconds", 0) * size / before["vertices"] > PATIENCE
    reference = ["timeout", str(PATIENCE), sys.executable, __file__, "--theirs"]
    if is_long:
        record["theirs"] = {"error": f"more than {PATIENCE} s, going by the smaller store"}
    for _ in range(TURNS):
        if not one("ours", [zvf, "pyramid"], lambda made: made["seconds"]):
            raise SystemExit(f"zvf pyramid failed: {record['ours']['error']}")
        if "error" not in record.get("theirs", {}) and record.get("theirs", {}).get("seconds", 0) < SHORT:
            one("theirs", reference, lambda made: json.loads(made["output"].splitlines()[-1])["seconds"])
    for path in (store, copy):
        put_aside(path)
    return record


def described(store):
    """Returns the vertices of the levels, and the features of the first level."""
    counts = []
    for level in range(1, len(FACTORS) + 1):
        node = json.loads((store / str(level) / "zarr.json").read_text())
        counts.append(node["attributes"]["zarr_vectors_level"]["vertex_count"])
    first = store / "1"
    parts = {path.name for path in first.iterdir() if path.is_dir()}
    # The folder of links contains those within the level and those to other levels.
    if not (first / "links" / "0").is_dir():
        parts.discard("links")
    return counts, sorted(parts - {"cross_chunk_links"})


HEAD = """\
| kind | vertices | raw, MB | of levels: ours / theirs | time, s: ours / theirs | ratio | peak, MB | written, MB | theirs lacks |
|---|---|---|---|---|---|---|---|---|"""


def row(record):
    mega = 1e6
    ours, other = record["ours"], record["theirs"]
    is_there = "seconds" in other
    levels = [", ".join(f"{count:,}" for count in side["levels"]) for side in (ours, other) if "levels" in side]
    seconds = f"{other['seconds']:.2f}" if is_there else "-"
    ratio = f"{other['seconds'] / ours['seconds']:.1f}x" if is_there else other["error"]
    size = f"{other['bytes'] / mega:.1f}" if is_there else "-"
    peak = f"{other['peak'] / mega:.0f}" if is_there else "-"
    lacks = ", ".join(sorted(set(ours["parts"]) - set(other["parts"]))) if is_there else ""
    return (
        f"| {record['kind']} | {record['vertices']:,} | {record['raw'] / mega:.0f} | {' / '.join(levels)} "
        f"| {ours['seconds']:.2f} / {seconds} | {ratio} | {ours['peak'] / mega:.0f} / {peak} "
        f"| {ours['bytes'] / mega:.1f} / {size} | {lacks} |"
    )


def main():
    if sys.argv[1] == "--make":
        kind, size, source = sys.argv[2:]
        np.savez(source, **inputs(kind, int(size)))
        return
    if sys.argv[1] == "--theirs":
        theirs(sys.argv[2])
        return
    folder, zvf = Path(sys.argv[1]), sys.argv[2]
    folder.mkdir(parents=True, exist_ok=True)
    records = []
    for size in sorted(map(int, sys.argv[3:] or ["1000000"])):
        for kind in KINDS:
            print(f"levels of {size} vertices of {kind}", file=sys.stderr)
            same = [record for record in records if record["kind"] == kind]
            records.append(measure(folder, zvf, kind, size, same[-1] if same else None))
            print(row(records[-1]), file=sys.stderr)
            (folder / "pyramids.json").write_text(json.dumps(records, indent=1))
    shutil.rmtree(folder / "done", ignore_errors=True)
    print("\n".join([HEAD, *map(row, records)]))


if __name__ == "__main__":
    main()
