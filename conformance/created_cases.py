"""Random geometry of every kind, as input of `zvf create`."""

import zlib

import numpy as np

# Settings that do not depend on the geometry.
SETTINGS = ["bin_shape", "bounds", "compression", "shard", "dtype", "out_of_bounds", "policy"]
# Arrays of the interchange that a case may lack.
ARRAYS = ["part_offsets", "part_objects", "object_ids", "objects", "links"]


class Case:
    """Geometry and how it is stored. Vertices and links have a unique `tag`.

    A column of a table is an array, or the type of random values, as `column` describes it.
    """

    def __init__(self, kind, positions, chunk_shape, random=None, **rest):
        self.kind, self.positions, self.chunk_shape, self.given = kind, positions, chunk_shape, self
        for name in [*SETTINGS, *ARRAYS, "axis_names"]:
            setattr(self, name, None)
        for name in ("vertex", "link", "object", "fragment", "groups", "group"):
            setattr(self, name, {})
        self.policy, self.foreign = (), False
        for name, value in rest.items():
            assert hasattr(self, name), name
            setattr(self, name, value)
        counts = {
            "vertex": lambda: len(positions),
            "link": lambda: len(self.links),
            "object": lambda: len(self.described()),
            "fragment": lambda: len(self.described()),
            "group": lambda: max(self.groups) + 1,
        }
        for scope, count in counts.items():
            columns = getattr(self, scope).items()
            made = {name: column(random, count(), of) if isinstance(of, str) else of for name, of in columns}
            setattr(self, scope, made)
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

    def step_links(self):
        """Returns the steps of paths that are stored as links: `None`, those between chunks, or all."""
        by_count = ("all", "between", None)
        return by_count[len(self.given.part_offsets) % 3] if self.is_paths() else None

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
        if self.step_links() is not None:
            words.append(f"--step-links={self.step_links()}")
        return words + [f"--{policy}" for policy in self.policy]


def comma(numbers):
    return ",".join(repr(float(number)) for number in numbers)


def generator(name, seed):
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


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


def column(random, count, kind):
    """Returns values of a type: `f4` or `u1*3` of NumPy, `words` of a few or `unique` ones; `words?` lacks some."""
    kind, is_missing = kind.removesuffix("?"), kind.endswith("?")
    if kind == "words":
        return words(random, count, is_missing)
    if kind == "unique":
        many = random.permutation(count).astype(str)
        if is_missing:
            many = many.astype(object)
            many[::50] = None
        return many
    kind, _, width = kind.partition("*")
    return numbers(random, count, kind, int(width) if width else None)


# Cases: functions of a generator of random numbers


def geometry(kind, positions, chunk, **rest):
    """Returns a function that makes a case. `positions` and values of `rest` may be functions of the generator."""

    def make(random):
        places = positions(random)
        shape = chunk if isinstance(chunk, tuple) else (chunk,) * places.shape[1]
        given = {name: value(random) if callable(value) else value for name, value in rest.items()}
        case = Case(kind, places, shape, random, **given)
        return case.inside() if case.out_of_bounds == "ignore" else case

    return make


def points(count, axes=3, chunk=20, low=-20, high=30, dtype="f4", wide=2, **rest):
    return geometry("points", lambda random: cloud(random, count, axes, low, high, dtype, wide), chunk, **rest)


def paths(kind, lengths, axes=3, chunk=10, dtype="f4", step=4.0, **rest):
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    places = lambda random: walks(random, lengths, axes, dtype, step)[0]
    return geometry(kind, places, chunk, part_offsets=offsets, **rest)


def lines(count, axes=3, chunk=10, dtype="f4", **rest):
    return paths("lines", [2] * count, axes, chunk, dtype, step=9.0, **rest)


def edges(random, vertices, count):
    links = random.integers(0, vertices, (count, 2))
    links[3] = [4, 4]
    links[4] = links[5]
    links[6] = links[5][::-1]
    return links


def graph(axes=3, dtype="f4", **rest):
    rest = {"links": lambda random: edges(random, 40, 60), **rest}
    return geometry("graphs", lambda random: cloud(random, 40, axes, -9, 19, dtype), 10, **rest)


def skeleton(trees, axes=3, dtype="f4", objects=None, preorder=False, **rest):
    """Trees with these numbers of vertices, one after the other."""
    first = np.cumsum([0, *trees])
    rest["links"] = lambda random: np.concatenate(
        [tree(random, count, preorder=preorder) + start for count, start in zip(trees, first)]
    )
    if objects is not None:
        rest["object_ids"] = np.repeat(objects, trees)
    places = lambda random: walks(random, trees, axes, dtype, step=3.0)[0]
    return geometry("skeletons", places, 8.0, vertex={"radius": "f4"}, **rest)


def mesh(quads=False, axes=3, **rest):
    """A height field of 30 vertices."""
    places, triangles, squares = grid(6, 5)
    faces = squares if quads else triangles
    # Some reversed, some rotated.
    faces = np.concatenate([faces, faces[:3, ::-1], np.roll(faces[3:6], 1, axis=1)])
    rest = {"links": lambda random: faces[random.permutation(len(faces))], **rest}
    return geometry("mesh", lambda random: np.ascontiguousarray(places[:, :axes]), 7.0, **rest)


def compressed(compression, **rest):
    return points(60, compression=compression, vertex={"v": "f4", "rgb": "u1*3"}, **rest)


def inexact(random):
    """Points on and near faces of bins whose sizes no float represents."""
    places = random.integers(-30, 30, (120, 2)) * 0.1
    places[60:] = np.nextafter(places[60:], random.choice([-9, 9], (60, 2)))
    return places


def few_values(random):
    """Columns of numbers, with values that are easily lost."""
    columns = {kind: numbers(random, 40, kind) for kind in [*NUMBERS, "c8", "c16"]}
    columns["f8"][:4] = [np.nan, -np.inf, -0.0, 5e-324]
    return columns | {"flag": "bool", "row2": "u1*2", "row3": "f4*3", "row4": "i8*4"}


def word_counts(random):
    """As many words as their smallest codes allow, and one more."""
    columns = {}
    for count, is_missing in ((255, False), (256, False), (127, True), (128, True)):
        found = random.permutation(np.arange(600) % count).astype(str).astype(object)
        if is_missing:
            found[np.flatnonzero(found == "3")[:2]] = None
        columns[f"of{count}"] = found if is_missing else found.astype(str)
    columns["none"] = np.full(600, None, object)
    columns["planes"] = np.array(["\U0001f9e0", "\uffee", "z", "Z"])[random.integers(0, 4, 600)]
    return columns


def taken_fills():
    """Values equal to the usual fill values."""
    table = {kind: np.array([np.nan, 1.5, -0.0], kind) for kind in NUMBERS if kind.startswith("f")}
    for kind in (kind for kind in NUMBERS if not kind.startswith("f")):
        limits = np.iinfo(kind)
        table[kind] = np.array([limits.min, limits.max, 7], kind)
    return table | {"pair": np.array([[np.nan, np.nan], [np.nan, 1], [2, 3]])}


def some_outside(random):
    """Paths of which the first two are inside of the bounds."""
    places = walks(random, OUTSIDE, 3)[0]
    places[:5] = 1
    return places


def all_sparse(count):
    """Ids of objects in no order, each at least once."""
    return lambda random: np.concatenate([SPARSE, random.choice(SPARSE, count - len(SPARSE))])


def two_meshes(random):
    return np.concatenate([grid(5, 4, dtype="f8")[0], grid(5, 4, dtype="f8")[0] + 1.5])


NUMBERS = "f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8".split()
EVERY_KIND = {kind: kind for kind in NUMBERS}
SPARSE = np.array([900, 5, 17, 5_000_000_000, 3, -7])
LENGTHS = [3, 6, 0, 9, 1, 12, 15, 2]
# Lengths of paths, of which some leave the bounds.
OUTSIDE = [3, 0, 4, 5, 2, 3, 2, 1, 3, 4, 1]
# Text longer than a one-byte length.
LONG = np.array(["a" * 63, "b" * 64, "é" * 100, "d"])
LINE_IDS = np.array([12, -8, 20, 0, -24, 16, 4, -16, 8, -4, -20, -12]) * 1_000_003 + 11
IGNORE = {"out_of_bounds": "ignore"}
GRAPH_INSIDE = {"bounds": ([-5.0, -9.0, 0.0], [15.0, 19.0, 6.5]), "object": {"q": np.array([7.5])}, **IGNORE}
NO_EDGES = np.zeros((0, 2), np.int64)
TRIANGLES = grid(5, 4)[1]

CASES = {
    "points_plain": points(60),
    "points_2d_bins": points(70, 2, (32, 16), bin_shape=(8, 8)),
    "points_4d_bins": points(50, 4, (10, 10, 10, 5), 0, 20, bin_shape=(5, 10, 5, 5)),
    "points_1d": points(30, 1, 10),
    "points_5d": points(30, 5, 10),
    "points_float64": geometry(
        "points", lambda random: cloud(random, 50, 3, dtype="f8") + 1 / 3, 10, vertex={"v": "f8"}
    ),
    "points_inexact_bins": geometry("points", inexact, (0.3, 0.6), bin_shape=(0.1, 0.2)),
    "points_inexact_chunks": geometry(
        "points", lambda random: (random.integers(-30, 30, (90, 3)) * 0.1).astype("f4"), (0.7, 0.3, 1.1)
    ),
    "points_as_float32": geometry("points", lambda random: random.uniform(-50, 50, (40, 3)), 25, dtype="float32"),
    "points_int16": geometry("points", lambda random: random.integers(-40, 40, (40, 3)).astype("i2"), 16),
    "points_float16": points(40, 3, 16, dtype="f2"),
    "points_wide_keys": points(60, 2, 10, -130, 130, wide=1),
    "points_wide_bounds": geometry(
        "points", lambda random: (random.integers(-2, 3, (40, 3)) * 10).astype("f4"), 10,
        bounds=([-60.0, -40.5, -20.0], [70.0, 60.0, 40.0]),
    ),
    "points_left_out": points(80, 3, 10, bounds=([-5.0, -5.0, 0.0], [10.0, 10.0, 10.0]), vertex={"v": "i8"}, **IGNORE),
    # Some points of most objects are out of bounds, and all of one.
    "points_objects_left_out": geometry(
        "points", lambda random: np.where(np.arange(60)[:, None] % 5 == 3, np.float32(50), cloud(random, 60, 2, 0, 30)),
        10, bounds=([0.0, 0.0], [15.0, 30.0]), object_ids=np.arange(60) % 5 * 7, object={"q": "i4"},
        groups={0: [0, 21, 28], 1: [21]}, **IGNORE,
    ),
    # Groups with values but without members.
    "points_group_values": points(20, 2, group=lambda random: {"g": numbers(random, 3, "f4")}),
    "points_grown_bounds": points(40, 2, 10, bounds=([-1.0, -1.0], [1.0, 1.0]), out_of_bounds="expand"),
    "points_one": points(1, 3, 10),
    "points_attributes": points(40, 3, 25, 0, 50, vertex=few_values),
    "points_words": points(400, 2, 25, vertex={"kind": "words", "many": "unique"}),
    "points_words_missing": points(300, 2, 25, vertex={"kind": "words?", "many": "unique?"}),
    "points_objects": points(60, object_ids=lambda random: random.choice(SPARSE, 60), vertex={"k": "i4"}),
    "points_objects_tables": points(
        60, 3, 25, object_ids=np.arange(60) % 6, object={**EVERY_KIND, "dir": "f4*3", "name": "words"},
        groups={0: [0, 1, 2], 1: [5], 3: [3, 1]}, group={"weight": "f8", "rgb": "u1*3", "name": "words"},
    ),
    # Objects without attributes, and one without points.
    "points_objects_holes": points(
        40, object_ids=lambda random: random.permutation(np.repeat([4, 40, 400, 7], 10)), objects=np.array([400, 6, 4]),
        object={"f4": "f4", "f8": "f8", "i2": "i2", "u2": "u2", "i8": "i8", "rgb": "u1*3", "name": "words"},
        groups={1: [6, 400]},
    ),
    # Booleans have no spare value for absent rows.
    "points_objects_flags": points(
        20, 2, object_ids=np.arange(20) % 4, objects=np.array([0, 2, 3]), object={"flag": np.array([True, False, True])}
    ),
    "points_implied_objects": points(12, 3, 25, object={"id": "i8"}),
    "points_fragment_values": points(
        50, object_ids=all_sparse(50), objects=np.sort(SPARSE), fragment={"d": "f4", "rgb": "u1*3"}
    ),
    # Arrays in the other byte order and in column-major order.
    "points_foreign_arrays": points(
        40, vertex={"v": "i2*3", "w": "f8"}, object_ids=lambda random: random.integers(0, 5, 40), foreign=True
    ),
    "points_named_axes": points(30, axis_names=["y:micrometer", "x:micrometer", "t:second:time"]),
    "points_word_counts": points(600, 2, 40, vertex=word_counts),
    # Objects without values, next to values equal to the usual fill value.
    "points_taken_fills": points(
        20, 2, object_ids=np.arange(20) % 4, objects=np.array([2, 0, 3]), object=taken_fills()
    ),
    "points_long_words": points(
        20, 2, object_ids=np.arange(20) % 4, object={"text": LONG}, groups={0: []}, group={"text": LONG[1:3]},
        compression="blosc",
    ),
    # More rows than one chunk of manifests and one of attributes hold.
    "points_many_objects": points(66_000, 2, 40, object={"v": "i2", "rgb": "u1*3"}, compression="zstd"),
    "points_zstd": compressed("zstd"),
    # LZ4 and zstd, by the type of each array.
    "points_auto": compressed("auto", object_ids=np.arange(60) % 4),
    "points_zstd_level": compressed("zstd:9", object_ids=np.arange(60) % 4),
    "points_blosc": compressed("blosc", object={"v": "f8"}),
    "points_gzip": compressed("gzip:5", bin_shape=(10, 10, 10)),
    "points_zstd_most": compressed("zstd:22", groups={0: [1, 2]}),
    "points_gzip_none": compressed("gzip:0"),
    "points_sharded": compressed(None, chunk=10, shard="2,2,2", bin_shape=(5, 5, 10)),
    "points_sharded_zstd": compressed("zstd", chunk=10, shard="4,2,1", object_ids=np.arange(60) % 4),
    "points_sharded_blosc": compressed("blosc", shard="auto"),
    "lines_mixed": lines(30, vertex={"v": "f4"}),
    "lines_2d": lines(20, 2, (11, 7), "f8", vertex={"uv": "f4*2"}, compression="zstd", object={"w": "i2"}),
    "lines_4d_sharded": lines(15, 4, shard="2,2,1,1", compression="blosc"),
    "lines_objects": lines(12, part_objects=LINE_IDS, object={"w": "f8*2"}, groups={0: LINE_IDS[:3], 2: LINE_IDS[5:7]}),
    "lines_left_out": lines(30, 2, 6, bounds=([-8.0, -20.0], [20.0, 12.0]), object={"w": "f4"}, **IGNORE),
    "streamlines": paths(
        "streamlines", LENGTHS, vertex={"r": "f4"}, object={"len": np.array(LENGTHS, "i4"), "q": "f8"},
        groups={0: [0, 1, 2], 1: [5, 7], 2: []}, group={"g": np.array([1.5, 2.5, 3.5])}, compression="zstd",
    ),
    "streamlines_auto_shard": paths(
        "streamlines", [9] * 8, 3, 15, "f8", vertex={"t": "f8"}, compression="auto", shard="auto"
    ),
    "polylines_2d": paths("polylines", LENGTHS, 2, 8, bin_shape=(4, 4)),
    # Paths that return to a chunk, and jump over several.
    "polylines_reentrant": geometry(
        "polylines", lambda random: random.choice([1.0, 2.0, 11.0, 12.0, 45.0, -35.0], (60, 3)), 10,
        part_offsets=np.array([0, 20, 40, 60]), vertex={"uv": "f4*2"},
    ),
    # Ids in no order, objects without attributes, and one without a path.
    "polylines_objects": paths(
        "polylines", [4, 5, 6, 7, 0], part_objects=np.array([70, 3, 5_000_000_000, -9, 41]),
        objects=np.array([-9, 1, 70]), object={"f": "f4", "i": "i4*2"}, groups={3: [1, 70, 41]}, group={"w": "u4"},
    ),
    "polylines_left_out": geometry(
        "polylines", some_outside, 6, part_offsets=np.cumsum([0, *OUTSIDE]), object={"w": "f4"},
        bounds=([-9.0, -9.0, 0.0], [12.0, 10.0, 7.0]), groups={1: [0, 3, 5, 7]}, **IGNORE,
    ),
    "polylines_sharded": paths("streamlines", LENGTHS, shard="2,2,2"),
    "polylines_4d": paths("polylines", [6, 7, 8], 4, dtype="f8", compression="gzip"),
    # Text and multi-channel rows, of vertices and of fragments.
    "polylines_columns": paths(
        "polylines", [4, 1, 8, 11], vertex={"kind": "words?", "rgb": "u1*3"}, fragment={"d": "f8"}
    ),
    "graph_3d": graph(
        link={"w": "f4", "col": "u1*3"}, vertex={"v": "i4", "n": "f4*3"}, compression="zstd",
        object={"q": np.array([7.5])},
    ),
    "graph_sharded": graph(link={"w": "f8"}, compression="zstd", shard="2,2,2"),
    "graph_2d_objects": graph(2, object_ids=np.arange(40) % 3),
    "graph_4d_objects": graph(
        4, "f8", object_ids=all_sparse(40), object={"q": "i2"}, groups={0: [5, 900]}, group={"g": np.array([1, 2])}
    ),
    "graph_holes": graph(
        object_ids=lambda random: random.choice([1, 8, 9], 40), objects=np.array([8, 2]), object={"q": "f8"}
    ),
    "graph_without_edges": graph(links=NO_EDGES),
    "graph_words": graph(vertex={"kind": "words"}, link={"kind": "words"}),
    "graph_directed": graph(policy=["directed"], link={"w": "f4"}),
    "graph_duplicate": graph(policy=["duplicate"], link={"w": "f4*2"}),
    "graph_directed_duplicate": graph(policy=["directed", "duplicate"], shard="2,2,2"),
    "graph_left_out": graph(link={"w": "f4"}, **GRAPH_INSIDE),
    "graph_without_edges_left_out": graph(links=NO_EDGES, **GRAPH_INSIDE),
    # Children of vertices out of bounds become trees of their own.
    "skeleton_left_out": skeleton([30, 20], objects=[3, 1], bounds=([-15.0, -9.0, 0.0], [15.0, 9.0, 7.5]), **IGNORE),
    "skeleton_one": skeleton([40]),
    "skeleton_2d": skeleton([25], 2, compression="gzip"),
    "skeleton_ordered_objects": skeleton([9, 1, 14, 20], objects=[0, 1, 2, 3], preorder=True),
    "skeleton_objects": skeleton(
        [9, 1, 14, 20], 3, "f8", objects=[70, 5_000_000_000, 3, 9], object={"q": "f4"}, compression="zstd"
    ),
    # Several trees in one object.
    "skeleton_forest": skeleton([9, 1, 14, 20], objects=[4, 2, 4, 4]),
    "skeleton_sharded": skeleton([60], shard="2,2,2", compression="blosc"),
    "mesh_triangles": mesh(vertex={"n": "f4*3", "s": "u2"}, object={"area": np.array([12.5])}, compression="zstd"),
    "mesh_quads": mesh(quads=True),
    "mesh_2d": mesh(axes=2),
    "mesh_objects": geometry(
        "mesh", two_meshes, 8, bin_shape=(4, 4, 4), links=np.concatenate([TRIANGLES, TRIANGLES + 20]),
        object_ids=np.repeat([4, 2], 20), object={"q": "i8"}, groups={0: [4]},
    ),
    "mesh_sharded": mesh(shard="2,2,1", compression="zstd", vertex={"v": "f8"}),
    "mesh_without_faces": mesh(links=np.zeros((0, 3), np.int64)),
    "mesh_values": mesh(link={"area": "f4", "n": "f4*3"}),
    "mesh_directed": mesh(policy=["directed"]),
    "mesh_duplicate": mesh(policy=["duplicate"], quads=True),
    "mesh_pentagons": mesh(links=lambda random: np.array([random.permutation(30)[:5] for _ in range(20)])),
    "mesh_octagons": mesh(
        links=lambda random: np.array([random.permutation(30)[:8] for _ in range(12)]), compression="blosc"
    ),
}


def built(name, seed):
    return CASES[name](generator(name, seed))
