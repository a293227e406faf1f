"""Codecs beside the reference and `memcpy`: fragment indexes, on the bytes that our benchmarks wrote.

    fragments.py FOLDER

`cargo xtask bench format` runs this after the benches of zvf-format, whose estimates are in FOLDER.
"""

import json
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from zarr_vectors.encoding.fragments import decode_fragments, encode_fragments

LOOKUPS, SECONDS = 2000, 0.3
# Whether an operation is measured in index bytes per second, or else in nanoseconds per call.
OPERATIONS = {"parse": True, "rows": False, "ranked": False, "walk": True, "encode": True}
LEGEND = """
Medians. ratio: the reference's time over ours. GB/s are index bytes; memcpy copies the same bytes.
rows: any fragment without preparation; ranked: with a rank directory, which the reference always builds.
walk: every fragment in order; ours borrows a list, the reference's `indices` copies it."""


def timed(work):
    """Returns the median nanoseconds of a call, as criterion reports for ours."""
    times, end = [], time.perf_counter() + SECONDS
    while not times or time.perf_counter() < end:
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


def measure(blob, ids):
    index = decode_fragments(blob)
    fragment = lambda number: index.range(number) if index.is_range(number) else index.indices(number)
    lookups = lambda: [fragment(number) for number in ids]
    lookups()  # Fills the reference's prefix cache: it is our rank directory.
    lookup, numbers = timed(lookups) / len(ids), range(len(index))
    fragments = [fragment(number) for number in numbers]
    return {
        "parse": timed(lambda: decode_fragments(blob)), "rows": lookup, "ranked": lookup,
        "walk": timed(lambda: [fragment(number) for number in numbers]),
        "encode": timed(lambda: encode_fragments(fragments)),
    }


def shown(time, size):
    return f"{size / time:.2f} GB/s" if size else f"{time:.1f} ns"


def main():
    folder = Path(sys.argv[1])

    def ours(group, name):
        estimates = json.loads((folder / "criterion" / group / name / "new/estimates.json").read_text())
        return estimates["median"]["point_estimate"]

    print("index          | operation |         ours |    reference |    ratio | memcpy")
    print("---------------|-----------|--------------|--------------|----------|-----------")
    for path in sorted(folder.glob("*.zvfg"), key=lambda path: path.stat().st_size):
        ids = np.fromfile(path.with_suffix(".ids"), dtype="<u4")[:LOOKUPS].tolist()
        name, size, reference = path.stem, path.stat().st_size, measure(path.read_bytes(), ids)
        for operation, is_throughput in OPERATIONS.items():
            unit, own, other = size if is_throughput else 0, ours(operation, name), reference[operation]
            memcpy = shown(ours("memcpy", name), size) if is_throughput else ""
            print(f"{name:14} | {operation:9} | {shown(own, unit):>12} | {shown(other, unit):>12} "
                  f"| {other / own:>7.1f}× | {memcpy:>10}")
    print(LEGEND)


if __name__ == "__main__":
    main()
