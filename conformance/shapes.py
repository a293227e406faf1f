"""Converts fragments and block references between JSON and the reference's form."""

import numpy as np


def random_fragment(random, rows):
    """Returns a range, a list in any order, an ascending run given as a list, or nothing."""
    kind = random.below(10)
    if kind < 4:
        return {"range": [random.below(rows), random.below(50)]}
    if kind < 5:
        start = random.below(rows)
        return {"list": list(range(start, start + random.between(1, 6)))}
    if kind < 6:
        return random.pick([{"range": [random.below(rows), 0]}, {"list": []}])
    return {"list": random.numbers(random.between(1, 8), rows)}


def random_reference(random, fragments):
    """Returns the fragments that a manifest's block names, one fragment in half of the cases."""
    if random.chance(50):
        return {"one": random.below(fragments)}
    return random_fragment(random, fragments)


def to_reference(fragment):
    if "one" in fragment:
        return fragment["one"]
    if "range" in fragment:
        return tuple(fragment["range"])
    return np.array(fragment["list"], dtype=np.int64)


def from_reference(reference):
    """Converts the result of `range`, `indices` or a manifest decoder."""
    if isinstance(reference, tuple):
        return {"range": [int(number) for number in reference]}
    if isinstance(reference, (int, np.integer)):
        return {"one": int(reference)}
    return {"list": [int(number) for number in reference]}


def to_blocks(blocks):
    """Converts a manifest's blocks to the reference's form."""
    return [(tuple(block["chunk"]), to_reference(block["fragments"])) for block in blocks]


def from_blocks(blocks):
    return [{"chunk": list(chunk), "fragments": from_reference(one)} for chunk, one in blocks]


def fragments_of(index):
    """Returns all fragments of the reference's decoded index."""
    return [from_reference(index.range(f) if index.is_range(f) else index.indices(f)) for f in range(len(index))]


def extent_of(fragments):
    """Returns one more than the highest row that a fragment names."""
    ends = [sum(one["range"]) for one in fragments if "range" in one and one["range"][1]]
    lists = [row + 1 for one in fragments for row in one.get("list", [])]
    return max(ends + lists, default=0)
