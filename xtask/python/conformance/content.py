"""What a level holds, and what queries of it must answer, found by looking at all of it."""

import statistics


class Content:
    """A level. Positions and values are as in answers; rows are numbers of vertices."""

    def __init__(self, shape, axes, levels=(0,)):
        self.shape = shape
        self.axes = list(axes)
        self.levels = list(levels)
        self.positions = []
        #: The objects of each vertex; `None` when the level has no objects.
        self.owners = None
        #: Id and vertices of each object, in order; those without vertices too.
        self.objects = None
        self.links = []
        self.vertex = {}
        self.fragment = {}
        self.link = {}
        self.object = {}
        #: Members of each group.
        self.groups = None
        self.group = {}
        #: Names of attributes of vertices that no reader can tell, as `vertex.NAME`.
        self.untold = set()

    def own(self, objects):
        """These are the objects: id and vertices of each."""
        self.objects = [(id, list(rows)) for id, rows in objects]
        self.owners = [[] for _ in self.positions]
        for id, rows in self.objects:
            for row in rows:
                if id not in self.owners[row]:
                    self.owners[row].append(id)

    def inside(self, lower, upper):
        """Which vertices are in a box, its border included."""
        return [
            all(low <= x <= high for low, x, high in zip(lower, position, upper))
            for position in self.positions
        ]


def queries(content):
    """The queries that are asked of a level."""
    asked = []
    shape = {"shape": content.shape}
    if content.objects is not None or content.groups is not None:
        asked.append({"kind": "tables"})
    asked.append({"kind": "all", **shape})
    if content.positions:
        columns = list(zip(*content.positions))
        half = [float(statistics.median_low(column)) for column in columns]
        low = [float(min(column)) for column in columns]
        asked.append({"kind": "bbox", **shape, "lower": low, "upper": half})
        # Of half of the axes the upper part: other vertices.
        high = [float(max(column)) for column in columns]
        pick = [axis % 2 == 0 for axis in range(len(low))]
        lower = [h if up else l for l, h, up in zip(low, half, pick)]
        upper = [h if up else m for m, h, up in zip(half, high, pick)]
        asked.append({"kind": "bbox", **shape, "lower": lower, "upper": upper})
        asked.append({"kind": "bbox", **shape, "lower": low, "upper": high})
    told = [id for id, rows in content.objects or [] if rows]
    if told:
        ids = sorted({0, len(told) // 2, len(told) - 1}, reverse=True)
        asked.append({"kind": "objects", **shape, "ids": [told[at] for at in ids]})
    for group, members in enumerate(content.groups or []):
        if members and all(id in told for id in members):
            asked.append({"kind": "groups", **shape, "ids": [group]})
            break
    return asked


def expected(content, query):
    """The answer, by field, as `compare.canonical` spells it; `None` is not to be compared."""
    kind = query["kind"]
    if kind == "info":
        return {"axes": content.axes, "levels": content.levels}
    if kind == "tables":
        return tables(content)
    return {
        "points": points,
        "paths": paths,
        "links": links,
    }[query["shape"]](content, query)


def tables(content):
    fields = {}
    if content.objects is not None:
        ids = [id for id, _ in content.objects]
        fields["objects"] = sorted(ids)
        for name, values in content.object.items():
            fields[f"object.{name}"] = multiset(zip(ids, map(frozen, values)))
    if content.groups is not None:
        fields["groups"] = [sorted(members) for members in content.groups]
        for name, values in content.group.items():
            fields[f"group.{name}"] = [frozen(value) for value in values]
    return fields


def selected(content, query):
    """The objects that are asked for, and their vertices."""
    ids = query["ids"]
    if query["kind"] == "groups":
        ids = sorted({id for group in ids for id in content.groups[group]})
    of = dict(content.objects)
    return [(id, of[id]) for id in ids]


def attributes(content, rows):
    """Each value beside its position."""
    fields = {"positions": multiset(frozen(content.positions[row]) for row in rows)}
    for scope in ("vertex", "fragment"):
        for name, values in getattr(content, scope).items():
            if f"{scope}.{name}" not in content.untold:
                pairs = ((frozen(content.positions[row]), frozen(values[row])) for row in rows)
                fields[f"{scope}.{name}"] = multiset(pairs)
    return fields


def owner(owners):
    return None if not owners else owners[0] if len(owners) == 1 else "several"


def points(content, query):
    if query["kind"] in ("objects", "groups"):
        pairs = [(row, id) for id, rows in selected(content, query) for row in rows]
    else:
        rows = range(len(content.positions))
        if query["kind"] == "bbox":
            keep = content.inside(query["lower"], query["upper"])
            rows = [row for row in rows if keep[row]]
        pairs = [(row, content.owners and owner(content.owners[row])) for row in rows]
    fields = attributes(content, [row for row, _ in pairs])
    if content.objects is not None:
        found = ((frozen(content.positions[row]), id) for row, id in pairs)
        fields["object_ids"] = multiset(found)
    return fields


def paths(content, query):
    """Whole paths: in a box those whose vertices are all in it."""
    if query["kind"] in ("objects", "groups"):
        found = selected(content, query)
    else:
        found = content.objects or []
        if query["kind"] == "bbox":
            keep = content.inside(query["lower"], query["upper"])
            found = [(id, rows) for id, rows in found if all(keep[row] for row in rows)]
    found = [(id, rows) for id, rows in found if rows]
    fields = attributes(content, [row for _, rows in found for row in rows])
    of = lambda rows: tuple(frozen(content.positions[row]) for row in rows)  # noqa: E731
    fields["parts"] = multiset((id, of(rows)) for id, rows in found)
    return fields


def links(content, query):
    """Vertices, and links with all ends among them."""
    keep = [True] * len(content.positions)
    if query["kind"] == "bbox":
        keep = content.inside(query["lower"], query["upper"])
    elif query["kind"] in ("objects", "groups"):
        among = {row for _, rows in selected(content, query) for row in rows}
        keep = [row in among for row in range(len(content.positions))]
    rows = [row for row, kept in enumerate(keep) if kept]
    fields = attributes(content, rows)
    if content.objects is not None:
        owners = [content.owners[row] for row in rows]
        if query["kind"] in ("all", "bbox") or all(len(one) == 1 for one in owners):
            pairs = ((frozen(content.positions[row]), owner(content.owners[row])) for row in rows)
            fields["object_ids"] = multiset(pairs)
    found = [at for at, ends in enumerate(content.links) if all(keep[end] for end in ends)]
    of = lambda ends: tuple(frozen(content.positions[end]) for end in ends)  # noqa: E731
    fields["links"] = multiset(of(content.links[at]) for at in found)
    for name, values in content.link.items():
        pairs = ((of(content.links[at]), frozen(values[at])) for at in found)
        fields[f"link.{name}"] = multiset(pairs)
    return fields


def frozen(value):
    """A value that can be compared and hashed: lists are tuples."""
    if isinstance(value, (list, tuple)):
        return tuple(map(frozen, value))
    if isinstance(value, dict):
        return tuple(sorted((key, frozen(item)) for key, item in value.items()))
    return value


def multiset(values):
    """How often each comes."""
    counts = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    return counts
