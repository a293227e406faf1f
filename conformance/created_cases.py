"""Random geometry of every kind, as input of `zvf create`."""

import zlib

import numpy as np

# Functions that build the cases, by name.
CASES = {}


def case(build):
    """Registers a case by the name of the function that builds it."""
    CASES[build.__name__] = build
    return build


# Settings that do not depend on the geometry.
SETTINGS = ["bin_shape", "bounds", "compression", "shard", "dtype", "out_of_bounds", "policy"]
# Arrays of the interchange that a case may lack.
ARRAYS = ["part_offsets", "part_objects", "object_ids", "objects", "links"]


class Case:
    """Geometry and how it is stored. Vertices and links have a unique `tag`."""

    def __init__(self, kind, positions, chunk_shape, **rest):
        self.kind, self.positions, self.chunk_shape, self.given = kind, positions, chunk_shape, self
        for name in [*SETTINGS, *ARRAYS, "axis_names"]:
            setattr(self, name, None)
        for name in ("vertex", "link", "object", "fragment", "groups", "group"):
            setattr(self, name, {})
        self.policy, self.foreign = (), False
        for name, value in rest.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        tags = np.random.default_rng(len(positions)).permutation(len(positions))
        self.vertex = {"tag": tags.astype("i4"), **self.vertex}
        if self.links is not None and self.kind != "skeletons":
            self.link = {"tag": np.arange(len(self.links), dtype="u4")[::-1].copy(), **self.link}

    @property
    def axes(self):
        return self.positions.shape[1]

    def is_paths(self):
        return self.kind in ("lines", "polylines", "streamlines")

    def is_linked(self):
        return self.kind in ("graphs", "skeletons", "mesh")

    def has_step_links(self):
        """Returns whether steps between chunks are stored as links, in every other case."""
        return self.is_paths() and len(self.given.part_offsets) % 2 == 0

    def paths(self):
        """Returns the rows of each path."""
        ends = zip(self.part_offsets[:-1], self.part_offsets[1:])
        return [np.arange(start, end) for start, end in ends]

    def own(self):
        """Returns the object of each path, or of each vertex of other geometry; `None` without
        objects.
        """
        if self.is_paths():
            count = len(self.part_offsets) - 1
            return np.arange(count) if self.part_objects is None else self.part_objects
        if self.object_ids is not None:
            return self.object_ids
        if self.is_linked():
            return np.zeros(len(self.positions), np.int64)
        speaks = self.objects is not None or self.object or self.groups or self.group
        return np.arange(len(self.positions)) if speaks else None

    def ids(self):
        """Returns all objects, ascending."""
        given = [] if self.objects is None else self.objects
        return np.unique(np.concatenate([self.own(), np.asarray(given, np.int64)]).astype(np.int64))

    def described(self):
        """Returns the objects to which rows of attributes belong."""
        if self.objects is not None:
            return np.asarray(self.objects, np.int64)
        return self.own() if self.is_paths() else np.unique(self.own())

    def table(self, values):
        """Returns a row for each object in `ids`, and a mask of existing rows."""
        rows = {int(one): row for row, one in enumerate(self.described())}
        at = [rows.get(int(one)) for one in self.ids()]
        present = np.array([row is not None for row in at], bool)
        return values[[row or 0 for row in at]], present

    def group_count(self):
        """Returns the number of groups, including those without members."""
        return max([0, *(n + 1 for n in self.groups), *map(len, self.group.values())])

    def bounding(self):
        stored = self.stored()
        found = stored.min(axis=0).tolist(), stored.max(axis=0).tolist()
        if self.bounds is None:
            return found
        if self.out_of_bounds == "expand":
            lower = np.minimum(self.bounds[0], found[0])
            upper = np.maximum(self.bounds[1], found[1])
            return lower.tolist(), upper.tolist()
        return self.bounds

    def stored(self):
        """Returns the positions in the stored type."""
        return self.positions.astype(self.dtype) if self.dtype else self.positions

    def inside(self):
        """Returns the part inside the bounds, which is expected when this case is the input."""
        lower, upper = self.bounds
        keep = ((self.positions >= lower) & (self.positions <= upper)).all(axis=1)
        rest = {name: getattr(self, name) for name in SETTINGS}
        if self.is_paths():
            whole = [path for path in range(len(self.own())) if keep[self.paths()[path]].all()]
            rows = np.concatenate([self.paths()[path] for path in whole]).astype(np.int64)
            lengths = [len(self.paths()[path]) for path in whole]
            rest["part_offsets"] = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
            rest["part_objects"] = own = self.own()[whole]
        else:
            rows = np.flatnonzero(keep)
            own = None if self.own() is None else self.own()[rows]
            rest["object_ids"] = own
        if self.links is not None:
            number = np.full(len(keep), -1)
            number[rows] = np.arange(len(rows))
            whole = keep[self.links].all(axis=1)
            rest["links"] = number[self.links[whole]]
        if own is not None:
            stays = [row for row, one in enumerate(self.described()) if one in own]
            rest["objects"] = self.described()[stays]
            rest["object"] = {name: values[stays] for name, values in self.object.items()}
            rest["groups"] = {number: [one for one in members if one in own] for number, members in self.groups.items()}
        case = Case(self.kind, self.positions[rows], self.chunk_shape, given=self, **rest)
        case.vertex = {name: values[rows] for name, values in self.vertex.items()}
        if self.links is not None:
            case.link = {name: values[whole] for name, values in self.link.items()}
        return case

    def arrays(self):
        """Returns the interchange arrays."""
        if self.given is not self:
            return self.given.arrays()
        arrays = {"positions": self.positions}
        for name in ARRAYS:
            if getattr(self, name) is not None:
                arrays[name] = np.asarray(getattr(self, name))
        for scope in ("vertex", "link", "object", "fragment"):
            for name, values in getattr(self, scope).items():
                arrays[f"{scope}.{name}"] = values
        for number, members in self.groups.items():
            arrays[f"group.{number}"] = np.asarray(members, np.int64)
        for name, values in self.group.items():
            arrays[f"group_attribute.{name}"] = values
        for name, values in list(arrays.items()):
            if self.foreign:
                arrays[name] = np.asfortranarray(values.astype(values.dtype.newbyteorder(">")))
            if values.dtype == object:
                missing = np.array([value is None for value in values], bool)
                arrays[name] = np.array([value or "" for value in values])
                arrays[f"{name}.missing"] = missing
        return arrays

    def arguments(self):
        """Returns the arguments of `zvf create` except the paths."""
        words = ["--kind", self.kind, "--chunk-shape", comma(self.chunk_shape)]
        if self.bin_shape is not None:
            words += ["--bin-shape", comma(self.bin_shape)]
        if self.bounds is not None:
            words.append("--bounds=" + comma([*self.bounds[0], *self.bounds[1]]))
        for option in ("compression", "shard", "dtype", "out_of_bounds"):
            if getattr(self, option) is not None:
                words.append(f"--{option.replace('_', '-')}={getattr(self, option)}")
        if self.axis_names is not None:
            words += ["--axes", ",".join(self.axis_names), "--crs", '{"code": 4326}']
        words += ["--step-links"] * self.has_step_links()
        return words + [f"--{policy}" for policy in self.policy]


def comma(numbers):
    return ",".join(repr(float(number)) for number in numbers)


def generator(name, seed):
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def built(name, seed):
    return CASES[name](generator(name, seed))


# Parts of cases


def cloud(random, count, axes, low=-20, high=30, dtype="f4", wide=2):
    """Returns points on multiples of one eighth, so that some lie on faces; the axes after `wide`
    are short.
    """
    points = np.round(random.uniform(low, high, (count, axes)) * 8) / 8
    points[:, wide:] = np.round(random.uniform(1, 7, (count, max(axes - wide, 0))) * 8) / 8
    return points.astype(dtype)


def walk(random, count, axes, step=4.0, dtype="f4"):
    steps = random.uniform(-step, step, (count, axes))
    steps[:1] = random.uniform(-12, 12, axes)
    path = np.cumsum(steps, axis=0)
    path[:, 2:] = np.clip(np.abs(path[:, 2:]), 0, 7)
    return (np.round(path * 8) / 8).astype(dtype)


def walks(random, lengths, axes, dtype="f4", step=4.0):
    """Returns paths, one after the other, and the first vertex of each."""
    paths = [walk(random, length, axes, step, dtype).reshape(-1, axes) for length in lengths]
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return np.concatenate(paths), offsets


def tree(random, count, branches=30, preorder=False):
    """Returns links (child, parent) of one tree, with its root at any vertex."""
    parents = [0]
    for vertex in range(1, count):
        jumps = random.integers(100) < branches
        parents.append(int(random.integers(vertex)) if jumps else vertex - 1)
    links = np.array([[v, parents[v]] for v in range(1, count)], np.int64).reshape(-1, 2)
    if preorder:
        return ordered(links, count)
    names = random.permutation(count)
    return names[random.permutation(links)] if count > 1 else links


def ordered(links, count):
    """Returns the same tree with vertices numbered in depth-first order."""
    children = {vertex: [] for vertex in range(count)}
    for child, parent in links.tolist():
        children[parent].append(child)
    rank, open_ = {}, [0]
    while open_:
        vertex = open_.pop()
        rank[vertex] = len(rank)
        open_ += reversed(children[vertex])
    links = sorted([rank[child], rank[parent]] for child, parent in links.tolist())
    return np.array(links, np.int64).reshape(-1, 2)


def grid(columns, rows, step=3.0, dtype="f4"):
    """Returns a height field, as triangles and as quads."""
    at = [(x, y) for y in range(rows) for x in range(columns)]
    points = np.array([[x * step - 6, y * step - 6, (x * 7 + y * 3) % 5] for x, y in at], dtype)
    quads = []
    for y in range(rows - 1):
        for x in range(columns - 1):
            a = y * columns + x
            quads.append([a, a + 1, a + columns + 1, a + columns])
    triangles = [face for a, b, c, d in quads for face in ([a, b, c], [a, c, d])]
    return points, np.array(triangles, np.int64), np.array(quads, np.int64)


def words(random, count, missing=False):
    some = np.array(["axon", "dendrite", "soma", "glia", "é", "海"], object)
    picked = some[random.integers(0, len(some), count)]
    if missing:
        picked[random.integers(0, 4, count) == 0] = None
        picked[:2] = [None, "soma"]
        return picked
    return picked.astype(str)


def numbers(random, count, dtype, columns=None):
    shape = count if columns is None else (count, columns)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return random.integers(0, 2, shape).astype(bool)
    if dtype.kind == "c":
        return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
    if dtype.kind == "f":
        return random.normal(size=shape).astype(dtype)
    # Without the extremes, which stand for absent rows in tables.
    limits = np.iinfo(dtype)
    return random.integers(limits.min + 1, limits.max - 1, shape, dtype=dtype, endpoint=True)


SPARSE = np.array([900, 5, 17, 5_000_000_000, 3, -7])

# Points
CASES |= {
    "points_plain": lambda random: Case("points", cloud(random, 60, 3), (20, 20, 20)),
    "points_2d_bins": lambda random: Case("points", cloud(random, 70, 2), (32, 16), bin_shape=(8, 8)),
    "points_4d_bins": lambda random: Case(
        "points", cloud(random, 50, 4, 0, 20), (10, 10, 10, 5), bin_shape=(5, 10, 5, 5)
    ),
    "points_1d": lambda random: Case("points", cloud(random, 30, 1), (10,)),
    "points_5d": lambda random: Case("points", cloud(random, 30, 5), (10,) * 5),
}


@case
def points_float64(random):
    points = cloud(random, 50, 3, dtype="f8") + 1 / 3
    return Case("points", points, (10, 10, 10), vertex={"v": numbers(random, 50, "f8")})


@case
def points_inexact_bins(random):
    """Bin sizes that no float represents, and points on and near faces of bins."""
    points = random.integers(-30, 30, (120, 2)) * 0.1
    points[60:] = np.nextafter(points[60:], random.choice([-9, 9], (60, 2)))
    return Case("points", points, (0.3, 0.6), bin_shape=(0.1, 0.2))


@case
def points_inexact_chunks(random):
    points = (random.integers(-30, 30, (90, 3)) * 0.1).astype("f4")
    return Case("points", points, (0.7, 0.3, 1.1))


@case
def points_as_float32(random):
    points = random.uniform(-50, 50, (40, 3))
    return Case("points", points, (25, 25, 25), dtype="float32")


CASES |= {
    "points_int16": lambda random: Case("points", random.integers(-40, 40, (40, 3)).astype("i2"), (16, 16, 16)),
    "points_float16": lambda random: Case("points", cloud(random, 40, 3, dtype="f2"), (16, 16, 16)),
    "points_wide_keys": lambda random: Case("points", cloud(random, 60, 2, -130, 130, wide=1), (10, 10)),
}


@case
def points_wide_bounds(random):
    bounds = [-60.0, -40.5, -20.0], [70.0, 60.0, 40.0]
    points = (random.integers(-2, 3, (40, 3)) * 10).astype("f4")
    return Case("points", points, (10, 10, 10), bounds=bounds)


@case
def points_left_out(random):
    bounds = [-5.0, -5.0, 0.0], [10.0, 10.0, 10.0]
    points = cloud(random, 80, 3)
    case = Case("points", points, (10, 10, 10), bounds=bounds, out_of_bounds="ignore")
    case.vertex["v"] = numbers(random, 80, "i8")
    return case.inside()


@case
def points_objects_left_out(random):
    """Out-of-bounds points: some of most objects, and all of one."""
    points, ids = cloud(random, 60, 2, 0, 30), np.arange(60) % 5
    points[ids == 3] = 50
    rest = {"bounds": ([0.0, 0.0], [15.0, 30.0]), "out_of_bounds": "ignore", "object_ids": ids * 7}
    rest |= {"object": {"q": numbers(random, 5, "i4")}, "groups": {0: [0, 21, 28], 1: [21]}}
    return Case("points", points, (10, 10), **rest).inside()


CASES |= {
    # Groups with values but without members.
    "points_group_values": lambda random: Case(
        "points", cloud(random, 20, 2), (20, 20), group={"g": numbers(random, 3, "f4")}
    )
}


@case
def points_grown_bounds(random):
    bounds = [-1.0, -1.0], [1.0, 1.0]
    points = cloud(random, 40, 2)
    return Case("points", points, (10, 10), bounds=bounds, out_of_bounds="expand")


CASES |= {"points_one": lambda random: Case("points", cloud(random, 1, 3), (10, 10, 10))}


@case
def points_attributes(random):
    kinds = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 c8 c16".split()
    vertex = {kind: numbers(random, 40, kind) for kind in kinds}
    vertex["flag"] = numbers(random, 40, bool)
    for columns, kind in enumerate(["u1", "f4", "i8"], 2):
        vertex[f"row{columns}"] = numbers(random, 40, kind, columns)
    vertex["f8"][:4] = [np.nan, -np.inf, -0.0, 5e-324]
    return Case("points", cloud(random, 40, 3, 0, 50), (25, 25, 25), vertex=vertex)


@case
def points_words(random):
    points = cloud(random, 400, 2)
    vertex = {"kind": words(random, 400), "many": random.permutation(400).astype(str)}
    return Case("points", points, (25, 25), vertex=vertex)


@case
def points_words_missing(random):
    points = cloud(random, 300, 2)
    many = random.permutation(300).astype(str).astype(object)
    many[::50] = None
    vertex = {"kind": words(random, 300, missing=True), "many": many}
    return Case("points", points, (25, 25), vertex=vertex)


@case
def points_objects(random):
    ids = random.choice(SPARSE, 60)
    vertex = {"k": numbers(random, 60, "i4")}
    return Case("points", cloud(random, 60, 3), (20, 20, 20), object_ids=ids, vertex=vertex)


@case
def points_objects_tables(random):
    points, ids = cloud(random, 60, 3), np.arange(60) % 6
    table = {kind: numbers(random, 6, kind) for kind in "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8".split()}
    table["dir"] = numbers(random, 6, "f4", 3)
    table["name"] = words(random, 6)
    groups = {0: [0, 1, 2], 1: [5], 3: [3, 1]}
    group = {"weight": numbers(random, 4, "f8"), "rgb": numbers(random, 4, "u1", 3)}
    group["name"] = words(random, 4)
    rest = {"object": table, "groups": groups, "group": group}
    return Case("points", points, (25, 25, 25), object_ids=ids, **rest)


@case
def points_objects_holes(random):
    """Objects without attributes, and one without points."""
    ids = random.permutation(np.repeat([4, 40, 400, 7], 10))
    table = {kind: numbers(random, 3, kind) for kind in ("f4", "f8", "i2", "u2", "i8")}
    table["rgb"] = numbers(random, 3, "u1", 3)
    table["name"] = words(random, 3)
    rest = {"objects": np.array([400, 6, 4]), "object": table, "groups": {1: [6, 400]}}
    return Case("points", cloud(random, 40, 3), (20, 20, 20), object_ids=ids, **rest)


@case
def points_objects_flags(random):
    """Booleans, which have no spare value for absent rows."""
    ids = np.arange(20) % 4
    table = {"flag": np.array([True, False, True])}
    rest = {"objects": np.array([0, 2, 3]), "object": table}
    return Case("points", cloud(random, 20, 2), (20, 20), object_ids=ids, **rest)


@case
def points_implied_objects(random):
    table = {"id": numbers(random, 12, "i8")}
    return Case("points", cloud(random, 12, 3), (25, 25, 25), object=table)


@case
def points_fragment_values(random):
    ids = random.choice(SPARSE, 50)
    ids[: len(SPARSE)] = SPARSE
    fragment = {"d": numbers(random, 6, "f4"), "rgb": numbers(random, 6, "u1", 3)}
    rest = {"object_ids": ids, "objects": np.sort(SPARSE), "fragment": fragment}
    return Case("points", cloud(random, 50, 3), (20, 20, 20), **rest)


@case
def points_foreign_arrays(random):
    """Arrays in the other byte order and in column-major order."""
    vertex = {"v": numbers(random, 40, "i2", 3), "w": numbers(random, 40, "f8")}
    rest = {"vertex": vertex, "object_ids": random.integers(0, 5, 40), "foreign": True}
    return Case("points", cloud(random, 40, 3), (20, 20, 20), **rest)


@case
def points_named_axes(random):
    axes = ["y:micrometer", "x:micrometer", "t:second:time"]
    return Case("points", cloud(random, 30, 3), (20, 20, 20), axis_names=axes)


@case
def points_word_counts(random):
    """As many words as their smallest codes allow, and one more."""
    vertex = {}
    for words, missing in ((255, False), (256, False), (127, True), (128, True)):
        column = random.permutation(np.arange(600) % words).astype(str).astype(object)
        if missing:
            column[np.flatnonzero(column == "3")[:2]] = None
        vertex[f"of{words}"] = column if missing else column.astype(str)
    vertex["none"] = np.full(600, None, object)
    vertex["planes"] = np.array(["\U0001f9e0", "\uffee", "z", "Z"])[random.integers(0, 4, 600)]
    return Case("points", cloud(random, 600, 2), (40, 40), vertex=vertex)


@case
def points_taken_fills(random):
    """Objects without values, next to values equal to the usual fill value."""
    table = {}
    for kind in "f2 f4 f8".split():
        table[kind] = np.array([np.nan, 1.5, -0.0], kind)
    for kind in "i1 i2 i4 i8 u1 u2 u4 u8".split():
        limits = np.iinfo(kind)
        table[kind] = np.array([limits.min, limits.max, 7], kind)
    table["pair"] = np.array([[np.nan, np.nan], [np.nan, 1], [2, 3]])
    rest = {"objects": np.array([2, 0, 3]), "object": table}
    ids = np.arange(20) % 4
    return Case("points", cloud(random, 20, 2), (20, 20), object_ids=ids, **rest)


@case
def points_long_words(random):
    """Text longer than a one-byte length."""
    text = np.array(["a" * 63, "b" * 64, "é" * 100, "d"])
    rest = {"object": {"text": text}, "groups": {0: []}, "group": {"text": text[1:3]}}
    ids = np.arange(20) % 4
    points = cloud(random, 20, 2)
    return Case("points", points, (20, 20), object_ids=ids, compression="blosc", **rest)


@case
def points_many_objects(random):
    """More rows than one chunk of manifests and one of attributes hold."""
    count = 66_000
    table = {"v": numbers(random, count, "i2"), "rgb": numbers(random, count, "u1", 3)}
    points = cloud(random, count, 2)
    return Case("points", points, (40, 40), object=table, compression="zstd")


def compressed(random, compression, **rest):
    vertex = {"v": numbers(random, 60, "f4"), "rgb": numbers(random, 60, "u1", 3)}
    points = cloud(random, 60, 3)
    return Case("points", points, (20, 20, 20), compression=compression, vertex=vertex, **rest)


CASES |= {
    "points_zstd": lambda random: compressed(random, "zstd"),
    # LZ4 and zstd, by the type of each array.
    "points_auto": lambda random: compressed(random, "auto", object_ids=np.arange(60) % 4),
}


@case
def streamlines_auto_shard(random):
    points, offsets = walks(random, [9] * 8, 3, "f8", step=4.0)
    rest = {"vertex": {"t": numbers(random, 72, "f8")}, "compression": "auto", "shard": "auto"}
    return Case("streamlines", points, (15, 15, 15), part_offsets=offsets, **rest)


CASES |= {
    "points_zstd_level": lambda random: compressed(random, "zstd:9", object_ids=np.arange(60) % 4),
    "points_blosc": lambda random: compressed(random, "blosc", object={"v": numbers(random, 60, "f8")}),
    "points_gzip": lambda random: compressed(random, "gzip:5", bin_shape=(10, 10, 10)),
    "points_zstd_most": lambda random: compressed(random, "zstd:22", groups={0: [1, 2]}),
    "points_gzip_none": lambda random: compressed(random, "gzip:0"),
}


@case
def points_sharded(random):
    case = compressed(random, None, shard="2,2,2", bin_shape=(5, 5, 10))
    case.chunk_shape = (10, 10, 10)
    return case


@case
def points_sharded_zstd(random):
    case = compressed(random, "zstd", shard="4,2,1", object_ids=np.arange(60) % 4)
    case.chunk_shape = (10, 10, 10)
    return case


CASES |= {"points_sharded_blosc": lambda random: compressed(random, "blosc", shard="auto")}


# Paths


@case
def lines_mixed(random):
    points, offsets = walks(random, [2] * 30, 3, step=9.0)
    vertex = {"v": numbers(random, 60, "f4")}
    return Case("lines", points, (10, 10, 10), part_offsets=offsets, vertex=vertex)


@case
def lines_2d(random):
    points, offsets = walks(random, [2] * 20, 2, "f8", step=9.0)
    rest = {"vertex": {"uv": numbers(random, 40, "f4", 2)}, "compression": "zstd"}
    rest["object"] = {"w": numbers(random, 20, "i2")}
    return Case("lines", points, (11, 7), part_offsets=offsets, **rest)


@case
def lines_4d_sharded(random):
    points, offsets = walks(random, [2] * 15, 4, step=9.0)
    rest = {"shard": "2,2,1,1", "compression": "blosc"}
    return Case("lines", points, (10, 10, 10, 10), part_offsets=offsets, **rest)


@case
def lines_objects(random):
    points, offsets = walks(random, [2] * 12, 3, step=9.0)
    ids = random.permutation(np.arange(-24, 24, 4)) * 1_000_003 + 11
    rest = {"part_objects": ids, "object": {"w": numbers(random, 12, "f8", 2)}}
    rest["groups"] = {0: ids[:3], 2: ids[5:7]}
    return Case("lines", points, (10, 10, 10), part_offsets=offsets, **rest)


@case
def lines_left_out(random):
    points, offsets = walks(random, [2] * 30, 2, step=9.0)
    rest = {"bounds": ([-8.0, -20.0], [20.0, 12.0]), "out_of_bounds": "ignore"}
    rest["object"] = {"w": numbers(random, 30, "f4")}
    return Case("lines", points, (6, 6), part_offsets=offsets, **rest).inside()


LENGTHS = [3, 6, 0, 9, 1, 12, 15, 2]


@case
def streamlines(random):
    points, offsets = walks(random, LENGTHS, 3)
    rest = {"vertex": {"r": numbers(random, len(points), "f4")}, "compression": "zstd"}
    rest["object"] = {"len": np.diff(offsets).astype("i4"), "q": numbers(random, 8, "f8")}
    rest["groups"] = {0: [0, 1, 2], 1: [5, 7], 2: []}
    rest["group"] = {"g": np.array([1.5, 2.5, 3.5])}
    return Case("streamlines", points, (10, 10, 10), part_offsets=offsets, **rest)


@case
def polylines_2d(random):
    points, offsets = walks(random, LENGTHS, 2)
    rest = {"bin_shape": (4, 4)}
    return Case("polylines", points, (8, 8), part_offsets=offsets, **rest)


@case
def polylines_reentrant(random):
    """Paths that return to a chunk, and jump over several."""
    points = random.choice([1.0, 2.0, 11.0, 12.0, 45.0, -35.0], (60, 3))
    offsets = np.array([0, 20, 40, 60])
    rest = {"vertex": {"uv": numbers(random, 60, "f4", 2)}}
    return Case("polylines", points, (10, 10, 10), part_offsets=offsets, **rest)


@case
def polylines_objects(random):
    """Ids in no order, objects without attributes, and one without a path."""
    points, offsets = walks(random, [4, 5, 6, 7, 0], 3)
    ids = np.array([70, 3, 5_000_000_000, -9, 41])
    rest = {"part_objects": ids, "objects": np.array([-9, 1, 70]), "groups": {3: [1, 70, 41]}}
    rest["object"] = {"f": numbers(random, 3, "f4"), "i": numbers(random, 3, "i4", 2)}
    rest["group"] = {"w": numbers(random, 4, "u4")}
    return Case("polylines", points, (10, 10, 10), part_offsets=offsets, **rest)


@case
def polylines_left_out(random):
    points, offsets = walks(random, [3, 0, 4, 5, 2, 3, 2, 1, 3, 4, 1], 3)
    points[:5] = 1
    rest = {"bounds": ([-9.0, -9.0, 0.0], [12.0, 10.0, 7.0]), "out_of_bounds": "ignore"}
    rest |= {"object": {"w": numbers(random, 11, "f4")}, "groups": {1: [0, 3, 5, 7]}}
    return Case("polylines", points, (6, 6, 6), part_offsets=offsets, **rest).inside()


@case
def polylines_sharded(random):
    points, offsets = walks(random, LENGTHS, 3)
    return Case("streamlines", points, (10, 10, 10), part_offsets=offsets, shard="2,2,2")


@case
def polylines_4d(random):
    points, offsets = walks(random, [6, 7, 8], 4, "f8")
    rest = {"compression": "gzip"}
    return Case("polylines", points, (10, 10, 10, 10), part_offsets=offsets, **rest)


@case
def polylines_columns(random):
    """Text and multi-channel rows, of vertices and of fragments."""
    points, offsets = walks(random, [4, 1, 8, 11], 3)
    count = len(points)
    vertex = {"kind": words(random, count, missing=True), "rgb": numbers(random, count, "u1", 3)}
    rest = {"vertex": vertex, "fragment": {"d": numbers(random, 4, "f8")}}
    return Case("polylines", points, (10, 10, 10), part_offsets=offsets, **rest)


# Linked geometry


def edges(random, vertices, count):
    links = random.integers(0, vertices, (count, 2))
    links[3] = [4, 4]
    links[4] = links[5]
    links[6] = links[5][::-1]
    return links


def graph(random, axes=3, count=40, **rest):
    dtype = rest.pop("dtype", "f4")
    chunk = rest.pop("chunk_shape", (10,) * axes)
    points = cloud(random, count, axes, -9, 19, dtype)
    rest.setdefault("links", edges(random, count, 60))
    return Case("graphs", points, chunk, **rest)


@case
def graph_3d(random):
    link = {"w": numbers(random, 60, "f4"), "col": numbers(random, 60, "u1", 3)}
    vertex = {"v": numbers(random, 40, "i4"), "n": numbers(random, 40, "f4", 3)}
    rest = {"compression": "zstd", "object": {"q": np.array([7.5])}}
    return graph(random, link=link, vertex=vertex, **rest)


@case
def graph_sharded(random):
    link = {"w": numbers(random, 60, "f8")}
    return graph(random, link=link, compression="zstd", shard="2,2,2")


CASES |= {"graph_2d_objects": lambda random: graph(random, 2, object_ids=np.arange(40) % 3)}


@case
def graph_4d_objects(random):
    ids = random.choice(SPARSE, 40)
    ids[: len(SPARSE)] = SPARSE
    rest = {"object_ids": ids, "object": {"q": numbers(random, 6, "i2")}, "dtype": "f8"}
    return graph(random, 4, groups={0: [5, 900]}, group={"g": np.array([1, 2])}, **rest)


@case
def graph_holes(random):
    ids = random.choice([1, 8, 9], 40)
    table = {"q": numbers(random, 2, "f8")}
    return graph(random, object_ids=ids, objects=np.array([8, 2]), object=table)


CASES |= {"graph_without_edges": lambda random: graph(random, links=np.zeros((0, 2), np.int64))}


@case
def graph_words(random):
    vertex = {"kind": words(random, 40)}
    return graph(random, vertex=vertex, link={"kind": words(random, 60)})


CASES |= {
    "graph_directed": lambda random: graph(random, policy=["directed"], link={"w": numbers(random, 60, "f4")}),
    "graph_duplicate": lambda random: graph(random, policy=["duplicate"], link={"w": numbers(random, 60, "f4", 2)}),
    "graph_directed_duplicate": lambda random: graph(random, policy=["directed", "duplicate"], shard="2,2,2"),
}


@case
def graph_left_out(random):
    rest = {"bounds": ([-5.0, -9.0, 0.0], [15.0, 19.0, 6.5]), "out_of_bounds": "ignore"}
    rest |= {"link": {"w": numbers(random, 60, "f4")}, "object": {"q": np.array([7.5])}}
    return graph(random, **rest).inside()


@case
def graph_without_edges_left_out(random):
    rest = {"bounds": ([-5.0, -9.0, 0.0], [15.0, 19.0, 6.5]), "out_of_bounds": "ignore"}
    rest |= {"links": np.zeros((0, 2), np.int64), "object": {"q": np.array([7.5])}}
    return graph(random, **rest).inside()


@case
def skeleton_left_out(random):
    """Out-of-bounds vertices, whose children become trees of their own."""
    case = skeleton(random, [30, 20], objects=[3, 1])
    case.bounds, case.out_of_bounds = ([-15.0, -9.0, 0.0], [15.0, 9.0, 7.5]), "ignore"
    return case.inside()


def skeleton(random, trees, axes=3, objects=None, **rest):
    """Returns trees with these numbers of vertices, one after the other."""
    dtype, preorder = rest.pop("dtype", "f4"), rest.pop("preorder", False)
    points, offsets = walks(random, trees, axes, dtype, step=3.0)
    links = [tree(random, count, preorder=preorder) + start for count, start in zip(trees, offsets)]
    if objects is not None:
        rest["object_ids"] = np.repeat(objects, trees)
    vertex = {"radius": numbers(random, len(points), "f4")}
    chunk = (8.0,) * axes
    return Case("skeletons", points, chunk, links=np.concatenate(links), vertex=vertex, **rest)


CASES |= {
    "skeleton_one": lambda random: skeleton(random, [40]),
    "skeleton_2d": lambda random: skeleton(random, [25], 2, compression="gzip"),
    "skeleton_ordered_objects": lambda random: skeleton(random, [9, 1, 14, 20], objects=[0, 1, 2, 3], preorder=True),
}


@case
def skeleton_objects(random):
    rest = {"object": {"q": numbers(random, 4, "f4")}, "dtype": "f8", "compression": "zstd"}
    return skeleton(random, [9, 1, 14, 20], objects=[70, 5_000_000_000, 3, 9], **rest)


CASES |= {
    # Several trees in one object.
    "skeleton_forest": lambda random: skeleton(random, [9, 1, 14, 20], objects=[4, 2, 4, 4]),
    "skeleton_sharded": lambda random: skeleton(random, [60], shard="2,2,2", compression="blosc"),
}


def mesh(random, columns=6, rows=5, quads=False, dtype="f4", **rest):
    points, triangles, squares = grid(columns, rows, dtype=dtype)
    faces = squares if quads else triangles
    # Some reversed, some rotated.
    faces = np.concatenate([faces, faces[:3, ::-1], np.roll(faces[3:6], 1, axis=1)])
    rest.setdefault("links", faces[random.permutation(len(faces))])
    axes = rest.pop("axes", 3)
    return Case("mesh", np.ascontiguousarray(points[:, :axes]), (7.0,) * axes, **rest)


@case
def mesh_triangles(random):
    vertex = {"n": numbers(random, 30, "f4", 3), "s": numbers(random, 30, "u2")}
    return mesh(random, vertex=vertex, object={"area": np.array([12.5])}, compression="zstd")


CASES |= {"mesh_quads": lambda random: mesh(random, quads=True), "mesh_2d": lambda random: mesh(random, axes=2)}


@case
def mesh_objects(random):
    points, triangles, _ = grid(5, 4, dtype="f8")
    both = np.concatenate([points, points + 1.5])
    faces = np.concatenate([triangles, triangles + len(points)])
    ids = np.repeat([4, 2], len(points))
    rest = {"object_ids": ids, "object": {"q": numbers(random, 2, "i8")}, "groups": {0: [4]}}
    return Case("mesh", both, (8, 8, 8), bin_shape=(4, 4, 4), links=faces, **rest)


CASES |= {
    "mesh_sharded": lambda random: mesh(
        random, shard="2,2,1", compression="zstd", vertex={"v": numbers(random, 30, "f8")}
    ),
    "mesh_without_faces": lambda random: mesh(random, links=np.zeros((0, 3), np.int64)),
}


@case
def mesh_values(random):
    count = len(mesh(random).links)
    link = {"area": numbers(random, count, "f4"), "n": numbers(random, count, "f4", 3)}
    return mesh(random, link=link)


CASES |= {
    "mesh_directed": lambda random: mesh(random, policy=["directed"]),
    "mesh_duplicate": lambda random: mesh(random, policy=["duplicate"], quads=True),
}


@case
def mesh_pentagons(random):
    links = np.array([random.permutation(30)[:5] for _ in range(20)])
    return mesh(random, links=links)


@case
def mesh_octagons(random):
    links = np.array([random.permutation(30)[:8] for _ in range(12)])
    return mesh(random, links=links, compression="blosc")
