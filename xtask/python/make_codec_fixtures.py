"""Writes testdata/codec/*.json: inputs and their encoding by the reference.

usage: make_codec_fixtures.py FOLDER. testdata/README.md describes the files.
"""

import itertools
import json
import math
import pathlib
import sys

import DracoPy
import numpy as np
from numcodecs import VLenBytes
from zarr_vectors.core.arrays import links_has_perm
from zarr_vectors.core.paths import parse_offsets
from zarr_vectors.encoding.categorical import encode_categorical
from zarr_vectors.encoding.draco import draco_encode_mesh, draco_encode_point_cloud
from zarr_vectors.encoding.fragments import (
    encode_fragments,
    encode_object_manifest_blocks,
)
from zarr_vectors.encoding.ragged import encode_ragged_blob
from zarr_vectors.spatial.boundary import (
    _lehmer_encode,
    partition_records_by_offset,
)

import shapes
from seeded import Random

SEED = 20_261_120


def case(name, given, blob, **more):
    return {"name": name, "input": given, "hex": bytes(blob).hex(), **more}


# Fragment index -----------------------------------------------------------


def fragment_index():
    top = 2**63 - 1
    fixed = {
        "no_fragment": [],
        "one_empty_range": [{"range": [0, 0]}],
        "one_empty_list": [{"list": []}],
        "one_range": [{"range": [5, 7]}],
        "one_list": [{"list": [3, 1, 2]}],
        "run_becomes_range": [{"list": [4, 5, 6]}],
        "single_row_becomes_range": [{"list": [9]}],
        "repeated_row_stays_list": [{"list": [9, 9]}],
        "descending_stays_list": [{"list": [3, 2, 1]}],
        "specification_example": [{"range": [0, 4]}, {"list": [12, 7, 19]}, {"range": [20, 8]}],
        "largest_rows": [{"range": [top, 0]}, {"list": [0, top]}],
        "bitmap_63": [{"range": [row, 1]} for row in range(63)],
        "bitmap_64": [{"range": [row, 1]} for row in range(64)],
        "bitmap_65": [{"range": [row, 1]} for row in range(64)] + [{"list": [65, 64]}],
        "lists_only": [{"list": [row + 1, row]} for row in range(9)],
    }
    cases = [
        case(name, {"fragments": fragments}, encode_fragments(list(map(shapes.to_reference, fragments))))
        for name, fragments in fixed.items()
    ]
    random = Random(SEED)
    for number in range(60):
        rows = random.pick([8, 1000, 2**31, 2**62])
        fragments = [shapes.random_fragment(random, rows) for _ in range(random.below(12))]
        if number % 15 == 14:  # some longer than a bitmap word
            fragments += [shapes.random_fragment(random, rows) for _ in range(60)]
        blob = encode_fragments(list(map(shapes.to_reference, fragments)))
        cases.append(case(f"random_{number}", {"fragments": fragments}, blob))
    return "zarr_vectors.encoding.fragments.encode_fragments", cases


def fragment_index_listed():
    """Runs that the reference is told to store as lists."""
    random = Random(SEED + 7)
    cases = []
    for number in range(20):
        fragments = [shapes.random_fragment(random, 1000) for _ in range(random.below(6))]
        fragments.append({"list": list(range(number, 2 * number + 1))})
        given = list(map(shapes.to_reference, fragments))
        blob = encode_fragments(given, force_explicit=True)
        cases.append(case(f"random_{number}", {"fragments": fragments}, blob))
    return "zarr_vectors.encoding.fragments.encode_fragments(force_explicit=True)", cases


# Object manifest ----------------------------------------------------------


def manifest(blocks, dims, **options):
    return encode_object_manifest_blocks(shapes.to_blocks(blocks), dims, **options)


def object_manifest():
    fixed = {
        "no_block": (3, []),
        "one_fragment": (3, [{"chunk": [0, 0, 0], "fragments": {"one": 0}}]),
        "one_range": (3, [{"chunk": [1, 2, 3], "fragments": {"range": [4, 5]}}]),
        "one_list": (3, [{"chunk": [1, 2, 3], "fragments": {"list": [7, 3]}}]),
        "empty_list": (2, [{"chunk": [0, 1], "fragments": {"list": []}}]),
        "run_becomes_range": (2, [{"chunk": [0, 1], "fragments": {"list": [4, 5, 6]}}]),
        "negative_chunk": (3, [{"chunk": [-1, 0, -(2**63)], "fragments": {"one": 2**63 - 1}}]),
        "one_dimension": (1, [{"chunk": [9], "fragments": {"one": 1}}]),
        "same_chunk_twice": (1, [{"chunk": [9], "fragments": {"one": 1}}] * 2),
    }
    cases = [
        case(name, {"dims": dims, "blocks": blocks}, manifest(blocks, dims))
        for name, (dims, blocks) in fixed.items()
    ]
    random = Random(SEED + 1)
    for number in range(50):
        dims = random.between(1, 4)
        blocks = [
            {
                "chunk": [random.between(-3, 40) for _ in range(dims)],
                "fragments": shapes.random_reference(random, 1000),
            }
            for _ in range(random.below(7))
        ]
        blob = manifest(blocks, dims)
        cases.append(case(f"random_{number}", {"dims": dims, "blocks": blocks}, blob))
    return "zarr_vectors.encoding.fragments.encode_object_manifest_blocks", cases


def object_manifest_listed():
    """Runs that the reference is told to store as lists."""
    random = Random(SEED + 8)
    cases = []
    for number in range(20):
        references = [shapes.random_reference(random, 1000) for _ in range(random.below(4))]
        references.append({"list": list(range(number, 2 * number + 1))})
        blocks = [{"chunk": [random.below(9), 0], "fragments": one} for one in references]
        blob = manifest(blocks, 2, force_explicit=True)
        cases.append(case(f"random_{number}", {"dims": 2, "blocks": blocks}, blob))
    source = "zarr_vectors.encoding.fragments.encode_object_manifest_blocks(force_explicit=True)"
    return source, cases


# Ragged blob --------------------------------------------------------------


def ragged(groups, dtype, columns):
    arrays = [np.array(group, dtype=dtype).reshape(-1, columns) for group in groups]
    return encode_ragged_blob(arrays, np.dtype(dtype))


def ragged_blob():
    fixed = {
        "no_group": ("int64", 2, []),
        "one_empty_group": ("int64", 2, [[]]),
        "empty_groups_around": ("int64", 2, [[], [[1, 2]], []]),
        "narrow_rows": ("uint8", 3, [[[1, 2, 3]], [[4, 5, 6], [7, 8, 9]]]),
        "one_column": ("int32", 1, [[[-1], [2]], [[3]]]),
    }
    cases = [
        case(name, {"dtype": dtype, "columns": columns, "groups": groups}, ragged(groups, dtype, columns))
        for name, (dtype, columns, groups) in fixed.items()
    ]
    random = Random(SEED + 2)
    for number in range(40):
        dtype = random.pick(["int64", "int64", "uint32", "uint16"])
        columns = random.between(1, 5)
        groups = [
            [random.numbers(columns, 50_000) for _ in range(random.below(5))]
            for _ in range(random.below(5))
        ]
        blob = ragged(groups, dtype, columns)
        given = {"dtype": dtype, "columns": columns, "groups": groups}
        cases.append(case(f"random_{number}", given, blob))
    return "zarr_vectors.encoding.ragged.encode_ragged_blob", cases


# Link placement -----------------------------------------------------------


def placed(given):
    """Returns where the reference stores one record, one entry per copy."""
    record = [(tuple(end["chunk"]), end["vertex"]) for end in given["record"]]
    dims = len(given["scale_source"])
    cross_level = given["delta"] != 0
    buckets = partition_records_by_offset(
        [record],
        len(record),
        dims,
        scale_src=given["scale_source"],
        scale_trg=given["scale_target"],
        directed=given["directed"],
        store=given["store"],
        cross_level=cross_level,
    )
    copies = []
    for (segment, source), entries in buckets.items():
        offsets = parse_offsets(segment, sid_ndim=dims, link_width=len(record))
        perm_column = links_has_perm(
            offsets, delta=given["delta"], directed=given["directed"], store=given["store"]
        )
        for vertices, perm, _ in entries:
            copies.append(
                {
                    "segment": segment,
                    "source": list(source),
                    "vertices": vertices,
                    "perm": perm,
                    "perm_column": perm_column,
                }
            )
    return copies


def random_placement(random):
    dims = random.between(1, 3)
    width = random.between(1, 4)
    delta = random.pick([0, 0, 0, 1, -1])
    ones = [1] * dims
    scaled = [random.pick([1, 2, 4]) for _ in range(dims)]
    # A narrow range, so that ends often share a chunk.
    span = random.pick([0, 1, 3])
    record = [
        {
            "chunk": [random.between(-span, span) for _ in range(dims)],
            "vertex": random.below(random.pick([2, 1000])),
        }
        for _ in range(width)
    ]
    return {
        "delta": delta,
        "directed": random.chance(30),
        "store": "duplicate" if random.chance(30) else "canonical",
        "scale_source": ones if delta >= 0 else scaled,
        "scale_target": scaled if delta > 0 else ones,
        "record": record,
    }


def link_placement():
    random = Random(SEED + 3)
    cases = []
    for number in range(200):
        given = random_placement(random)
        cases.append({"name": f"random_{number}", "input": given, "copies": placed(given)})
    return "zarr_vectors.spatial.boundary.partition_records_by_offset", cases


def permutation():
    cases = []
    for width in range(1, 5):
        for order in itertools.permutations(range(width)):
            name = "".join(map(str, order))
            cases.append({"name": name, "input": list(order), "code": _lehmer_encode(order)})
    return "zarr_vectors.spatial.boundary._lehmer_encode", cases


# Vlen frame ---------------------------------------------------------------


def vlen_frame():
    random = Random(SEED + 4)
    lists = {
        "no_cell": [],
        "one_empty_cell": [b""],
        "one_cell": [b"zvf"],
        "empty_cells_around": [b"", b"\x00\xff", b""],
    }
    for number in range(40):
        lists[f"random_{number}"] = [
            bytes(random.numbers(random.pick([0, 1, 3, 8, 40]), 256)) for _ in range(random.below(9))
        ]
    cases = []
    for name, cells in lists.items():
        array = np.empty(len(cells), dtype=object)
        array[:] = cells
        given = {"cells": [cell.hex() for cell in cells]}
        cases.append(case(name, given, VLenBytes().encode(array)))
    return "numcodecs.VLenBytes.encode", cases


# Dictionary codes ---------------------------------------------------------


def dictionary():
    random = Random(SEED + 5)
    words = ["axon", "dendrite", "soma", "Axon", "", "ärmel", "神経", "zz"]
    lists = {
        "one_value": (["soma"], None),
        "sorted_by_code_point": (["b", "a", "B", "ä"], None),
        "missing": (["b", None, "a"], -1),
        "no_missing_but_a_fill": (["b", "a"], -1),
        "only_missing": ([None, None], -1),
        "numbers": ([30, 10, 20, 10], None),
        "256_values": ([f"{number:03}" for number in range(256)], None),
        "128_values_and_a_fill": ([f"{number:03}" for number in range(128)], -1),
    }
    for number in range(30):
        fill = random.pick([None, -1])
        pool = words + ([None] if fill is not None else [])
        values = [random.pick(pool) for _ in range(random.between(1, 20))]
        lists[f"random_{number}"] = (values, fill)
    cases = []
    for name, (values, fill) in lists.items():
        array = np.array(values, dtype=object) if None in values else np.array(values)
        codes, metadata = encode_categorical(array, fill_value=fill)
        given = {"values": values, "fill": fill}
        cases.append(
            case(name, given, codes.tobytes(), dtype=str(codes.dtype), categories=metadata["categories"])
        )
    return "zarr_vectors.encoding.categorical.encode_categorical", cases


# Numeric rows -------------------------------------------------------------

INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
COMPLEX = ["c8", "c16"]


def number_as_json(value):
    """Exact: returns a float as the double that it equals, or its name if JSON cannot represent it.
    """
    if isinstance(value, complex):
        return [number_as_json(value.real), number_as_json(value.imag)]
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def integers_of(random, dtype):
    limits = np.iinfo(dtype)
    span = int(limits.max) - int(limits.min)
    edges = [int(limits.min), int(limits.max), 0]
    return edges + [int(limits.min) + random.bits() % (span + 1) for _ in range(9)]


def floats_of(random, dtype):
    limits = np.finfo(dtype)
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan]
    edges += [float(limits.max), float(limits.tiny), float(limits.smallest_subnormal)]
    return edges + [(random.below(2**20) - 2**19) / 2**9 for _ in range(4)]


def numeric_rows():
    random = Random(SEED + 6)
    cases = []
    for name in ["bool", *INTEGERS, *FLOATS, *COMPLEX]:
        for order in "<>" if name not in ("bool", "i1", "u1") else "|":
            dtype = np.dtype("bool" if name == "bool" else order + name)
            if name == "bool":
                flat = [random.chance(50) for _ in range(12)]
            elif name in INTEGERS:
                flat = integers_of(random, dtype)
            elif name in FLOATS:
                flat = floats_of(random, dtype)
            else:
                part = np.dtype("f4" if name == "c8" else "f8")
                real, imaginary = floats_of(random, part), floats_of(random, part)[::-1]
                flat = [complex(*pair) for pair in zip(real, imaginary)]
            for columns in (1, 3):
                rows = np.array(flat, dtype=dtype).reshape(-1, columns)
                values = [[number_as_json(value) for value in row] for row in rows.tolist()]
                spelled = {"<": "little", ">": "big", "|": None}[order]
                given = {"dtype": dtype.name, "order": spelled, "columns": columns, "rows": values}
                title = "_".join([dtype.name, *([spelled] if spelled else []), str(columns)])
                cases.append(case(title, given, rows.tobytes()))
    return "numpy.ndarray.tobytes", cases


# Draco --------------------------------------------------------------------


def draco():
    """Streams as zarr-vectors stores them, others of DracoPy, and what DracoPy decodes from each."""
    random = Random(SEED)
    side = 5
    at = lambda x, y: x * side + y
    squares = [(x, y) for x in range(side - 1) for y in range(side - 1)]
    faces = [[at(x, y), at(x, y + 1), at(x + 1, y)] for x, y in squares]
    faces += [[at(x, y + 1), at(x + 1, y + 1), at(x + 1, y)] for x, y in squares]
    faces = np.array(faces, dtype="<u4")
    mesh = np.array([[x, y, random.below(8) / 8] for x in range(side) for y in range(side)], dtype="<f4")
    isolated = np.vstack([mesh, [[9, 9, 9]]]).astype("<f4")
    points = np.array([[random.below(1000) / 64 for _ in range(3)] for _ in range(40)], dtype="<f4")
    ordered = {"quantization_bits": 11, "preserve_order": True}
    streams = {
        "mesh_of_11_bits": (mesh, faces, draco_encode_mesh(mesh, faces)),
        "mesh_of_14_bits": (mesh, faces, draco_encode_mesh(mesh, faces, quantization_bits=14)),
        "mesh_with_a_vertex_without_triangles": (isolated, faces, draco_encode_mesh(isolated, faces)),
        "mesh_in_order": (isolated, faces, DracoPy.encode(isolated, faces, **ordered)),
        "points": (points, None, draco_encode_point_cloud(points)),
        "points_in_order": (points, None, DracoPy.encode(points, **ordered)),
        "points_without_quantization": (
            points,
            None,
            DracoPy.encode(points, quantization_bits=0, preserve_order=True),
        ),
        "one_point": (points[:1], None, draco_encode_point_cloud(points[:1])),
    }
    cases = []
    for name, (positions, triangles, blob) in streams.items():
        decoded = DracoPy.decode(blob)
        listed = lambda faces: [] if faces is None else np.asarray(faces).tolist()
        given = {"positions": positions.tobytes().hex(), "triangles": listed(triangles)}
        found = {
            "positions": np.asarray(decoded.points, dtype="<f4").tobytes().hex(),
            "triangles": listed(decoded.faces if triangles is not None else None),
        }
        cases.append(case(name, given, blob, decoded=found))
    return "zarr_vectors.encoding.draco, DracoPy.encode and DracoPy.decode", cases


# Files --------------------------------------------------------------------

CODECS = [
    fragment_index,
    fragment_index_listed,
    object_manifest,
    object_manifest_listed,
    ragged_blob,
    link_placement,
    permutation,
    vlen_frame,
    dictionary,
    numeric_rows,
    draco,
]


def write(folder, codec):
    source, cases = codec()
    dump = lambda value: json.dumps(value, ensure_ascii=True, allow_nan=False)
    lines = ",\n".join(dump(one) for one in cases)
    head = f'{{\n"codec": {dump(codec.__name__)},\n"source": {dump(source)},\n"cases": [\n'
    path = pathlib.Path(folder) / f"{codec.__name__}.json"
    path.write_text(head + lines + "\n]\n}\n", encoding="ascii", newline="\n")


def main():
    for codec in CODECS:
        write(sys.argv[1], codec)


if __name__ == "__main__":
    main()
