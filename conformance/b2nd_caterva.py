"""Reads and writes arrays with caterva 0.7.3, under Python 3.9.

A list of arrays as JSON is on standard input; those with "chunks" are written, and all are read.
"""

import json
import sys

import caterva
import numpy as np

listed = json.load(sys.stdin)
for case in listed:
    with open(case["raw"], "rb") as raw:
        want = raw.read()
    if "chunks" in case:
        caterva.from_buffer(
            want, tuple(case["shape"]), case["itemsize"], chunks=tuple(case["chunks"]),
            blocks=tuple(case["blocks"]), urlpath=case["path"], contiguous=True,
            meta={"fixed": case["fixed"].encode()},
        )
    array = caterva.open(case["path"])
    assert list(array.shape) == case["shape"], f"{case}: {array.shape}"
    assert array.to_buffer() == want, f"{case}: other bytes"
    assert array.meta["fixed"] == case["fixed"].encode(), f"{case}: {array.meta['fixed']}"
    if case["shape"]:
        item = np.frombuffer(want, f"|V{array.itemsize}").reshape(case["shape"])
        half = tuple(slice(n // 2, n) for n in case["shape"])
        found = np.asarray(array[half]).tobytes()
        assert found == np.ascontiguousarray(item[half]).tobytes(), f"{case}: other part"
print(f"caterva {caterva.__version__}: {len(listed)} arrays")
