"""The reference's codecs over random values, one class per codec.

A class generates `random` values, `encode`s them, and `decode`s bytes to the form in which
crates/zvf-format/examples/differential serves the same request.
"""

import math

import numpy as np
from numcodecs import VLenBytes
from zarr_vectors.core.arrays import _link_cell_rows, _pack_link_rows, links_has_perm
from zarr_vectors.core.paths import is_intra, links_path, parse_delta, parse_offsets
from zarr_vectors.encoding.categorical import decode_categorical, encode_categorical
from zarr_vectors.encoding.fragments import (
    decode_fragments, decode_object_manifest_blocks, encode_fragments, encode_object_manifest_blocks
)
from zarr_vectors.encoding.ragged import decode_ragged_blob, encode_ragged_blob
from zarr_vectors.spatial.boundary import (anchor_chunk, apply_perm_inverse, partition_records_by_offset)

import shapes


class Codec:
    def written(self, given, _random):
        """Like `encode`, but also in forms that the reference writes only on request."""
        return self.encode(given)

    def extra(self, _given):
        """Returns what a decoder needs besides the bytes."""
        return {}


class FragmentIndex(Codec):
    name = "fragment_index"

    def random(self, random):
        rows = random.pick([4, 1000, 2**40, 2**62])
        count = random.pick([0, 1, 3, 10, 70, 140])
        kinds = [shapes.random_fragment(random, rows) for _ in range(random.below(count + 1))]
        if random.chance(20):
            kinds = [fragment for fragment in kinds if "range" in fragment]
        return {"fragments": kinds}

    def encode(self, given, **options):
        return encode_fragments(list(map(shapes.to_reference, given["fragments"])), **options)

    def written(self, given, random):
        return self.encode(given, force_explicit=random.chance(20))

    def decode(self, blob, _given):
        index = decode_fragments(blob)
        fragments = shapes.fragments_of(index)
        # The reference counts the start of an empty range; for us an empty range names no row.
        empty = [one for one in fragments if "range" in one and one["range"][1] == 0]
        extent = shapes.extent_of(fragments) if empty else index.vertex_extent
        again = shapes.fragments_of(decode_fragments(self.encode({"fragments": fragments})))
        return {"fragments": fragments, "extent": extent, "canonical": again == fragments}


class ObjectManifest(Codec):
    name = "object_manifest"

    def random(self, random):
        dims = random.pick([0, 1, 2, 3, 3, 4, 7])
        span = random.pick([1, 1000, 2**62])
        fragments = random.pick([4, 1000, 2**32 - 100])
        blocks = [
            {
                "chunk": [random.between(-span, span) for _ in range(dims)],
                "fragments": shapes.random_reference(random, fragments),
            }
            for _ in range(random.below(random.pick([1, 3, 12])))
        ]
        return {"dims": dims, "blocks": blocks}

    def encode(self, given, **options):
        return encode_object_manifest_blocks(shapes.to_blocks(given["blocks"]), given["dims"], **options)

    def written(self, given, random):
        return self.encode(given, force_explicit=random.chance(20))

    def decode(self, blob, given):
        blocks = shapes.from_blocks(decode_object_manifest_blocks(blob, given["dims"]))
        canonical = self.encode({**given, "blocks": blocks}) == blob
        return {"blocks": blocks, "canonical": canonical}

    def extra(self, given):
        return {"dims": given["dims"]}


class RaggedLinks(Codec):
    name = "ragged_links"

    def random(self, random):
        width = random.between(1, 8)
        permuted = random.chance(50)
        codes = math.factorial(width) if permuted else 1
        rows = random.pick([10, 2**31, 2**63])
        groups = [
            [{"code": random.below(codes), "stored": random.numbers(width, rows)} for _ in range(random.below(4))]
            for _ in range(random.below(6))
        ]
        return {"width": width, "permuted": permuted, "groups": groups}

    def encode(self, given):
        def row(one):
            return [one["code"]] * given["permuted"] + one["stored"]

        columns = given["width"] + given["permuted"]
        groups = [np.array(list(map(row, group)), np.int64) for group in given["groups"]]
        return encode_ragged_blob([group.reshape(-1, columns) for group in groups], np.dtype(np.int64))

    def decode(self, blob, given):
        width, permuted = given["width"], given["permuted"]

        def row(numbers):
            code = numbers.pop(0) if permuted else 0
            return {"code": code, "stored": numbers, "input": apply_perm_inverse(numbers, code, width)}

        columns = width + permuted
        groups = decode_ragged_blob(blob, np.dtype(np.int64), ncols=columns)
        groups = [group.reshape(-1, columns).tolist() for group in groups]
        return {"groups": [list(map(row, group)) for group in groups]}

    def extra(self, given):
        return {"width": given["width"], "permuted": given["permuted"]}


class LinkCells(Codec):
    """Placement, permutation codes, paths and both forms of rows."""

    name = "link_cells"

    def random(self, random):
        dims = random.between(1, 4)
        width = random.pick([1, 2, 2, 3, 3, 4, 5, 8])
        delta = random.pick([0, 0, 0, 1, -1, 2])
        ones = [1] * dims
        scaled = [random.pick([1, 2, 3, 8]) for _ in range(dims)]
        # A narrow range, so that ends often share a chunk, and records a cell.
        span = random.pick([0, 1, 1, 3, 2**40])
        rows = random.pick([2, 1000, 2**63])
        end = lambda: {"chunk": [random.between(-span, span) for _ in range(dims)], "vertex": random.below(rows)}
        return {
            "delta": delta,
            "width": width,
            "directed": random.chance(30),
            "store": "duplicate" if random.chance(30) else "canonical",
            "scale_source": ones if delta >= 0 else scaled,
            "scale_target": scaled if delta > 0 else ones,
            "records": [[end() for _ in range(width)] for _ in range(random.below(8))],
        }

    def encode(self, given):
        cells = {}
        int64 = np.dtype(np.int64)
        for _, source, offsets, has_perm, entries in placements(given, given["records"], given["width"]):
            rows = _pack_link_rows(entries, has_perm=has_perm, link_width=given["width"], dtype=int64)
            flat = given["delta"] == 0 and is_intra(offsets)
            path = f"{links_path(given['delta'], offsets)}/{'.'.join(map(str, source))}"
            cells[path.encode()] = rows.tobytes() if flat else encode_ragged_blob([rows], int64)
        return frame([part for path in sorted(cells) for part in (path, cells[path])])

    def decode(self, blob, given):
        width, dims, delta = given["width"], len(given["scale_source"]), given["delta"]
        parts = unframe(blob)
        records = []
        for path, cell in zip(parts[::2], parts[1::2], strict=True):
            family, level, segment, source = path.decode().split("/")
            assert (family, parse_delta(level)) == ("links", delta)
            offsets = parse_offsets(segment, sid_ndim=dims, link_width=width)
            source = tuple(map(int, source.split(".")))
            anchor = anchor_chunk(source, given["scale_source"], given["scale_target"])
            # The source level has no anchor.
            chunks = [source] + [tuple(map(sum, zip(anchor, offset))) for offset in offsets]
            has_perm = is_permuted(offsets, given)
            flat = delta == 0 and is_intra(offsets)
            for row in _link_cell_rows(cell, ncols=width + has_perm, flat=flat).tolist():
                code = row.pop(0) if has_perm else 0
                ends = apply_perm_inverse(list(zip(chunks, row)), code, width)
                records.append([{"chunk": list(chunk), "vertex": vertex} for chunk, vertex in ends])
        return {"records": records}

    def extra(self, given):
        return {key: value for key, value in given.items() if key != "records"}


def is_permuted(offsets, given):
    return links_has_perm(offsets, **{key: given[key] for key in ("delta", "directed", "store")})


def placements(given, records, width):
    """Yields where the reference stores links: segment, chunk, offsets of the ends, whether rows have a permutation
    code, and the rows."""
    dims = len(given["scale_source"])
    records = [[(tuple(end["chunk"]), end["vertex"]) for end in record] for record in records]
    buckets = partition_records_by_offset(
        records, width, dims, scale_src=given["scale_source"], scale_trg=given["scale_target"],
        directed=given["directed"], store=given["store"], cross_level=given["delta"] != 0)
    for (segment, source), rows in buckets.items():
        offsets = parse_offsets(segment, sid_ndim=dims, link_width=width)
        yield segment, source, offsets, is_permuted(offsets, given), rows


class VlenFrame(Codec):
    name = "vlen_frame"

    def random(self, random):
        longest = random.pick([1, 4, 40, 300])
        count = random.below(random.pick([1, 2, 9, 40]))
        cells = [bytes(random.numbers(random.below(longest), 256)) for _ in range(count)]
        return {"cells": [cell.hex() for cell in cells]}

    def encode(self, given):
        return frame(list(map(bytes.fromhex, given["cells"])))

    def decode(self, blob, _given):
        return {"cells": [cell.hex() for cell in unframe(blob)]}


class Dictionary(Codec):
    name = "dictionary"

    def random(self, random):
        words = random.pick([["axon", "dendrite", "soma", "Axon", "", "ärmel", "神経", "zz", "𝔸", "\ufffd"], None])
        # Around the limits of the one-byte types.
        count = random.pick([0, 1, 5, 20, 127, 128, 255, 256, 300])
        if words:
            values = [random.pick(words) for _ in range(min(count, 20))]
        elif random.chance(50):
            values = random.shuffled(f"{number:03}" for number in range(count))
        else:
            values = random.shuffled(random.pick([range(count), range(-count, 0)]))
        fill = random.pick([None, -1])
        if fill is not None:
            values += [None] * random.below(3)
            values = random.shuffled(values)
        given = {"values": values, "fill": fill}
        codes, metadata = self.reference(given)
        return {**given, "dtype": str(codes.dtype), "categories": metadata["categories"]}

    def reference(self, given):
        values = given["values"]
        array = np.array(values, dtype=object) if None in values else np.array(values)
        return encode_categorical(array, fill_value=given["fill"])

    def encode(self, given):
        return self.reference(given)[0].tobytes()

    def decode(self, blob, given):
        codes = np.frombuffer(blob, dtype=given["dtype"])
        values = decode_categorical(codes, given["categories"], fill_value=given["fill"])
        return {"values": values.tolist()}

    def extra(self, given):
        return {key: given[key] for key in ("dtype", "categories", "fill")}


def frame(cells):
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return bytes(VLenBytes().encode(array))


def unframe(blob):
    return list(map(bytes, VLenBytes().decode(blob)))


CODECS = [FragmentIndex(), ObjectManifest(), RaggedLinks(), LinkCells(), VlenFrame(), Dictionary()]
