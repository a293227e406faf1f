"""Reads arrays with caterva 0.7.3, under Python 3.9: a list of them as JSON, on standard input."""

import json
import sys

import caterva
import numpy as np

listed = json.load(sys.stdin)
for case in listed:
    array = caterva.open(case["path"])
    assert list(array.shape) == case["shape"], f"{case}: {array.shape}"
    with open(case["raw"], "rb") as raw:
        want = raw.read()
    assert array.to_buffer() == want, f"{case}: other bytes"
    if case["shape"]:
        item = np.frombuffer(want, f"|V{array.itemsize}").reshape(case["shape"])
        half = tuple(slice(n // 2, n) for n in case["shape"])
        found = np.asarray(array[half]).tobytes()
        assert found == np.ascontiguousarray(item[half]).tobytes(), f"{case}: other part"
print(f"caterva {caterva.__version__}: {len(listed)} arrays of ours")
