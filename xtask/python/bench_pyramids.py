"""What levels take: `zvf pyramid` and the reference's `build_pyramid`, on the same stores.

usage: bench_pyramids.py FOLDER ZVF [VERTICES...]

`zvf create` makes the store, and each of the two gets a copy. Both make two levels, with
cells two and four times as large as bins, links to the coarser level, and all objects; each
in a process of its own, in turns. Of several turns the shortest counts. Rows of a Markdown table are
printed as they are done, and what the levels of the reference do not have.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from bench_writes import KINDS, inputs, run, size_of

# Extents of bins relative to the store's chunks: as many along each axis.
BINS = 8
FACTORS = [2, 2]
# The reference is given up after so many seconds, and does not begin what would take as long.
PATIENCE = 150
# Turns, and how long one of the reference may take for there to be another.
TURNS, SHORT = 3, 10


def theirs(store):
    """Makes levels with the reference; prints the seconds it took."""
    from zarr_vectors.multiresolution.coarsen import build_pyramid

    before = time.perf_counter()
    build_pyramid(store, factors=[(factor, 1) for factor in FACTORS], cross_level_storage="implicit")
    print(json.dumps({"seconds": time.perf_counter() - before}))


def put_aside(path):
    """Out of the way, to be deleted in the end: where many files were deleted, ext4 is slow to make new ones for minutes."""
    if path.exists():
        done = path.parent / "done"
        done.mkdir(exist_ok=True)
        path.rename(done / str(len(list(done.iterdir()))))


def link(source, target):
    """Metadata is copied, as it is written over; cells of a level that is there are not."""
    if source.endswith("zarr.json"):
        return shutil.copy2(source, target)
    return os.link(source, target)


def measure(folder, zvf, kind, size, before):
    """Both in turns; `before` is what they took of a smaller store."""
    source = folder / f"{kind}-{size}.npz"
    if not source.exists():
        # What starts the others must stay small, as memory it ever had counts as theirs.
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
    """Vertices of the levels, and what the first of them has."""
    counts = []
    for level in range(1, len(FACTORS) + 1):
        node = json.loads((store / str(level) / "zarr.json").read_text())
        counts.append(node["attributes"]["zarr_vectors_level"]["vertex_count"])
    first = store / "1"
    parts = {path.name for path in first.iterdir() if path.is_dir()}
    # Below the folder of links are those within the level and those to others.
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
