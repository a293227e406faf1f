"""Times the reference's fragment index on the bytes that our benchmarks wrote.

usage: bench_fragments.py FOLDER; prints nanoseconds as JSON.
"""

import json
import pathlib
import statistics
import sys
import time

import numpy as np
from zarr_vectors.encoding.fragments import decode_fragments, encode_fragments

LOOKUPS = 2000
SECONDS = 0.3


def timed(work):
    """Returns the median nanoseconds of a call, as criterion reports for ours."""
    times = []
    end = time.perf_counter() + SECONDS
    while not times or time.perf_counter() < end:
        start = time.perf_counter_ns()
        work()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times)


def fragment(index, number):
    return index.range(number) if index.is_range(number) else index.indices(number)


def measure(blob, ids):
    index = decode_fragments(blob)
    count = len(index)

    def walk():
        for number in range(count):
            fragment(index, number)

    def lookups():
        for number in ids:
            fragment(index, number)

    lookups()  # fills the reference's prefix cache: it is our rank directory
    lookup = timed(lookups) / len(ids)
    fragments = [fragment(index, number) for number in range(count)]
    return {
        "bytes": len(blob),
        "fragments": count,
        "parse": timed(lambda: decode_fragments(blob)),
        "rows": lookup,
        "ranked": lookup,
        "walk": timed(walk),
        "encode": timed(lambda: encode_fragments(fragments)),
    }


def main():
    results = {}
    folder = pathlib.Path(sys.argv[1])
    for path in sorted(folder.glob("*.zvfg"), key=lambda path: path.stat().st_size):
        ids = np.fromfile(path.with_suffix(".ids"), dtype="<u4")[:LOOKUPS].tolist()
        results[path.stem] = measure(path.read_bytes(), ids)
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
