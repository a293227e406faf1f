"""Compares our codecs with the reference's on random cases, in both directions.

usage: differential.py PROGRAM [--cases N] [--seed N]

PROGRAM serves requests as crates/zvf-format/examples/differential describes. For each codec, with
N cases in each direction:

* what the reference encodes, in any form it supports, we decode to the same values;
* our encoding has the same bytes as the reference's, and it decodes them to the same values as we
  do;
* damaged bytes that we accept, the reference reads in the same way. It may accept more than we do.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile

from reference import CODECS
from seeded import Random

# Maximum characters of one value in a report.
LONGEST = 2000


def damaged(random, blob):
    blob = bytearray(blob)
    kind = random.below(4) if blob else 1
    if kind == 0:
        del blob[random.below(len(blob) + 1) :]
    elif kind == 1:
        blob += bytes(random.numbers(random.between(1, 9), 256))
    elif kind == 2:
        blob[random.below(len(blob))] ^= 1 << random.below(8)
    else:
        # In the header and the first part, which contain the counts.
        blob[random.below(min(len(blob), 32))] = random.pick([0, 1, 2, 0x7F, 0x80, 0xFF])
    return bytes(blob)


def send(program, requests):
    """Sends all requests at once; using a file as input cannot deadlock."""
    with tempfile.TemporaryFile("w+") as stdin:
        for request in requests:
            stdin.write(json.dumps(request) + "\n")
        stdin.seek(0)
        done = subprocess.run([program], stdin=stdin, stdout=subprocess.PIPE, text=True, check=True)
    responses = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(responses) == len(requests), "a response is missing"
    return responses


class Comparison:
    """Counters, and the first few differences in full."""

    def __init__(self):
        self.differences = 0

    def same(self, what, given, ours, theirs):
        if ours == theirs:
            return
        self.differences += 1
        if self.differences <= 3:
            print(f"DIFFERENT {what}")
            for name, value in {"given": given, "ours": ours, "theirs": theirs}.items():
                print(f"  {name + ':':8}{str(value)[:LONGEST]}")


def decode_request(codec, blob, given):
    return {"codec": codec.name, "op": "decode", "hex": blob.hex(), "with": codec.extra(given)}


def read(codec, blob, given):
    """Returns what the reference decodes, or its error."""
    try:
        return {"output": codec.decode(blob, given)}
    except Exception as error:
        return repr(error)


def run(codec, program, random, cases, comparison):
    givens = [codec.random(random) for _ in range(cases)]
    blobs = [codec.written(given, random) for given in givens]

    requests = [decode_request(codec, blob, given) for given, blob in zip(givens, blobs)]
    for given, blob, response in zip(givens, blobs, send(program, requests)):
        theirs = read(codec, blob, given)
        comparison.same(f"{codec.name}: their bytes, decoded", blob.hex(), response, theirs)

    givens = [codec.random(random) for _ in range(cases)]
    blobs = [codec.encode(given) for given in givens]
    requests = [{"codec": codec.name, "op": "encode", "input": given} for given in givens]
    responses = send(program, requests)
    for given, blob, response in zip(givens, blobs, responses):
        theirs = {"hex": blob.hex()}
        comparison.same(f"{codec.name}: encoded", given, response, theirs)
    pairs = [(given, bytes.fromhex(response["hex"])) for given, response in zip(givens, responses) if "hex" in response]
    requests = [decode_request(codec, blob, given) for given, blob in pairs]
    for (given, blob), response in zip(pairs, send(program, requests)):
        theirs = read(codec, blob, given)
        comparison.same(f"{codec.name}: our bytes, decoded", blob.hex(), response, theirs)

    broken = [(given, damaged(random, blob)) for given, blob in zip(givens, blobs)]
    requests = [decode_request(codec, blob, given) for given, blob in broken]
    accepted = 0
    for (given, blob), response in zip(broken, send(program, requests)):
        if "error" in response:
            continue
        accepted += 1
        theirs = read(codec, blob, given)
        comparison.same(f"{codec.name}: damaged", blob.hex(), response, theirs)
    print(
        f"conformance: {codec.name}: {cases} reference blobs decoded, {cases} of ours encoded and "
        f"decoded by the reference, {cases} damaged of which {accepted} are still valid"
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(6)))
    options = parser.parse_args()
    print(f"seed {options.seed}: repeat with `cargo xtask conformance --seed {options.seed}`")
    comparison = Comparison()
    for codec in CODECS:
        run(codec, options.program, Random(options.seed), options.cases, comparison)
    if comparison.differences:
        print(f"{comparison.differences} differences")
    sys.exit(bool(comparison.differences))


if __name__ == "__main__":
    main()
