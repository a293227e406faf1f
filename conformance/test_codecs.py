"""Our codecs beside the reference's on random cases, in both directions.

The example `differential` of zvf-format serves requests. For each codec:

* what the reference encodes, in any form it supports, we decode to the same values;
* our encoding has the same bytes as the reference's, and it decodes them to the same values as we do;
* damaged bytes that we accept, the reference reads in the same way. It may accept more than we do.
"""

import pytest

from codecs_of_reference import CODECS
from program import differences, read_lines
from seeded import Random

# Characters of one value in a report.
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


def read(codec, blob, given):
    """Returns what the reference decodes, or its error."""
    try:
        return {"output": codec.decode(blob, given)}
    except Exception as error:  # noqa: BLE001
        return repr(error)


@pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)
def test_codec(codec, example, seed, pytestconfig, tell):
    program, cases, random = example("differential"), pytestconfig.getoption("--cases") or 2000, Random(seed)
    with differences() as differ:

        def same(what, given, ours, theirs):
            if ours != theirs:
                values = (f"{name}: {str(one)[:LONGEST]}" for name, one in zip(("given", "ours", "theirs"), (given, ours, theirs)))
                differ(f"{codec.name}: {what}\n    " + "\n    ".join(values))

        def decoded(what, pairs, is_damaged=False):
            requests = [{"codec": codec.name, "op": "decode", "hex": blob.hex(), "with": codec.extra(given)}
                        for given, blob in pairs]
            responses = read_lines(program, requests)
            accepted = [one for one in zip(pairs, responses) if not is_damaged or "error" not in one[1]]
            for (given, blob), response in accepted:
                same(what, blob.hex(), response, read(codec, blob, given))
            return len(accepted)

        givens = [codec.random(random) for _ in range(cases)]
        decoded("their bytes, decoded", [(given, codec.written(given, random)) for given in givens])
        givens = [codec.random(random) for _ in range(cases)]
        blobs = [codec.encode(given) for given in givens]
        requests = [{"codec": codec.name, "op": "encode", "input": given} for given in givens]
        responses = read_lines(program, requests)
        for given, blob, response in zip(givens, blobs, responses):
            same("encoded", given, response, {"hex": blob.hex()})
        ours = [(given, bytes.fromhex(one["hex"])) for given, one in zip(givens, responses) if "hex" in one]
        decoded("our bytes, decoded", ours)
        accepted = decoded("damaged", [(given, damaged(random, blob)) for given, blob in zip(givens, blobs)], True)
    tell(f"{codec.name}: {cases} reference blobs decoded, {cases} of ours encoded and decoded by the reference, "
         f"{cases} damaged of which {accepted} are still valid")
