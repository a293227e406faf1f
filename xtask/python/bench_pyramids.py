"""What levels take: `zvf pyramid` and the reference's `build_pyramid`, on the same stores.

usage: bench_pyramids.py FOLDER ZVF [VERTICES...]

`zvf create` makes the store, and each of the two gets a copy. Both make two levels, with
cells two and four times as large as bins, links to the coarser level, and all objects; each
in a process of its own.
"""

import json
import shutil
import sys
import time
from pathlib import Path

import numpy as np

from bench_writes import KINDS, inputs, run, size_of

# Extents of bins relative to the store's chunks: as many along each axis.
BINS = 8
FACTORS = [2, 2]
# The reference is given up after so many seconds.
PATIENCE = 900


def theirs(store):
    """Makes levels with the reference; prints the seconds it took."""
    from zarr_vectors.multiresolution.coarsen import build_pyramid

    before = time.perf_counter()
    build_pyramid(store, factors=[(factor, 1) for factor in FACTORS], cross_level_storage="implicit")
    print(json.dumps({"seconds": time.perf_counter() - before}))


def measure(folder, zvf, kind, size):
    source = folder / f"{kind}-{size}.npz"
    if not source.exists():
        # What starts the others must stay small, as memory it ever had counts as theirs.
        made = run([sys.executable, __file__, "--make", kind, str(size), str(source)])
        if made["code"]:
            raise SystemExit(f"no input: {made['error']}")
    ours, other = folder / "ours.zv", folder / "theirs.zv"
    for path in (ours, other):
        shutil.rmtree(path, ignore_errors=True)
    words = [zvf, "create", str(ours), "--kind", kind, "--from", str(source), "--json"]
    made = run(words)
    if made["code"]:
        raise SystemExit(f"zvf create failed: {made['error']}")
    report = json.loads(made["output"])
    shape = report.get("chosen", report).get("chunk_shape") or report["chunk_shape"]
    shutil.rmtree(ours)
    bins = [extent / BINS for extent in shape]
    text = [",".join(map(str, extents)) for extents in (shape, bins)]
    made = run([*words, "--chunk-shape", text[0], "--bin-shape", text[1]])
    if made["code"]:
        raise SystemExit(f"zvf create failed: {made['error']}")
    shutil.copytree(ours, other)
    before = size_of(ours)[0]
    options = ["--method", "bins", "--factors", ",".join(map(str, FACTORS)), "--chunk-scale", "1"]
    made = run([zvf, "pyramid", str(ours), *options, "--json", "--quiet"])
    if made["code"]:
        raise SystemExit(f"zvf pyramid failed: {made['error']}")
    levels = json.loads(made["output"])["levels"]
    record = {
        "kind": kind,
        "vertices": report["vertices"],
        "levels": [level["vertices"] for level in levels],
        "ours": {"seconds": made["seconds"], "peak": made["peak"]},
    }
    record["ours"]["bytes"] = size_of(ours)[0] - before
    made = run(["timeout", str(PATIENCE), sys.executable, __file__, "--theirs", str(other)])
    record["theirs"] = {"peak": made["peak"], "error": made["error"] or (made["code"] and "too long")}
    if not made["code"]:
        record["theirs"]["seconds"] = json.loads(made["output"].splitlines()[-1])["seconds"]
        record["theirs"]["bytes"] = size_of(other)[0] - before
    return record


def table(records):
    lines = [
        "| kind | vertices | of levels | time, s: ours / theirs | ratio | peak, MB | written, MB |",
        "|---|---|---|---|---|---|---|",
    ]
    mega = 1e6
    for record in records:
        ours, other = record["ours"], record["theirs"]
        failed = "seconds" not in other
        seconds = "failed" if failed else f"{other['seconds']:.2f}"
        ratio = "" if failed else f"{other['seconds'] / ours['seconds']:.1f}x"
        size = "-" if failed else f"{other['bytes'] / mega:.1f}"
        peak = "-" if failed else f"{other['peak'] / mega:.0f}"
        levels = ", ".join(f"{count:,}" for count in record["levels"])
        lines.append(
            f"| {record['kind']} | {record['vertices']:,} | {levels} | {ours['seconds']:.2f} / {seconds} "
            f"| {ratio} | {ours['peak'] / mega:.0f} / {peak} | {ours['bytes'] / mega:.1f} / {size} |"
        )
    return "\n".join(lines)


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
    for size in map(int, sys.argv[3:] or ["1000000"]):
        for kind in KINDS:
            print(f"levels of {size} vertices of {kind}", file=sys.stderr)
            records.append(measure(folder, zvf, kind, size))
            (folder / "pyramids.json").write_text(json.dumps(records, indent=1))
    print(table(records))


if __name__ == "__main__":
    main()
