"""The content of a level, and the correct responses to queries by exhaustive search."""

import statistics


class Content:
    """A level. Positions and values are as in responses; rows are numbers of vertices."""

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
        #: The attribute that chunks the level, and its value for each vertex.
        self.chunked_by = None
        #: By how many levels on: the level there, and rows of this one and that one that are linked.
        self.linked = {}
        #: Names of attributes of vertices that no reader can tell, as `vertex.NAME`.
        self.untold = set()
        #: Whether a fragment lists its rows.
        self.has_explicit = False
        #: Whether something of it cannot be read, as what it speaks of is not there.
        self.incomplete = False
        #: Whether vertices are where their chunks say.
        self.placed = True

    def own(self, objects):
        """Sets the objects: id and vertices of each."""
        self.objects = [(id, list(rows)) for id, rows in objects]
        self.owners = [[] for _ in self.positions]
        for id, rows in self.objects:
            for row in rows:
                if id not in self.owners[row]:
                    self.owners[row].append(id)

    def inside(self, lower, upper):
        """Selects the vertices in a box, including its border."""
        return [all(low <= x <= high for low, x, high in zip(lower, position, upper)) for position in self.positions]


def queries(content):
    """Returns the queries of a level."""
    listed = []
    shape = {"shape": content.shape}
    if content.objects is not None or content.groups is not None:
        listed.append({"kind": "tables"})
    listed.append({"kind": "all", **shape})
    if content.chunked_by is not None:
        name, values = content.chunked_by
        for value in sorted(set(values)):
            listed.append({"kind": "all", **shape, "chunked_by": {name: value}})
    if content.positions and content.placed:
        columns = list(zip(*content.positions))
        half = [float(statistics.median_low(column)) for column in columns]
        low = [float(min(column)) for column in columns]
        listed.append({"kind": "bbox", **shape, "lower": low, "upper": half})
        # The upper part along half of the axes, which has other vertices.
        high = [float(max(column)) for column in columns]
        pick = [axis % 2 == 0 for axis in range(len(low))]
        lower = [h if up else l for l, h, up in zip(low, half, pick)]
        upper = [h if up else m for m, h, up in zip(half, high, pick)]
        listed.append({"kind": "bbox", **shape, "lower": lower, "upper": upper})
        listed.append({"kind": "bbox", **shape, "lower": low, "upper": high})
        for levels in sorted(content.linked):
            for upper in (half, high):
                listed.append({"kind": "linked", "levels": levels, "lower": low, "upper": upper})
    told = [id for id, rows in content.objects or [] if rows]
    if told:
        ids = sorted({0, len(told) // 2, len(told) - 1}, reverse=True)
        listed.append({"kind": "objects", **shape, "ids": [told[at] for at in ids]})
    for group, members in enumerate(content.groups or []):
        if members and all(id in told for id in members):
            listed.append({"kind": "groups", **shape, "ids": [group]})
            break
    return listed


def response(content, query):
    """Returns the correct response of a runner."""
    kind = query["kind"]
    if kind == "info":
        return {"axes": content.axes, "levels": content.levels}
    if kind == "tables":
        return tables(content)
    if kind == "linked":
        return linked(content, query)
    return {"points": points, "paths": paths, "links": links}[query["shape"]](content, query)


def tables(content):
    found = {}
    if content.objects is not None:
        found["objects"] = [id for id, _ in content.objects]
        found["object"] = content.object
    if content.groups is not None:
        found["groups"] = content.groups
        found["group"] = content.group
    return found


def linked(content, query):
    """Returns the vertices of another level linked to those in a box, each once."""
    keep = content.inside(query["lower"], query["upper"])
    other, pairs = content.linked[query["levels"]]
    rows = sorted({there for here, there in pairs if keep[here]})
    return {"positions": [other.positions[row] for row in rows]}


def selected(content, query):
    """Returns the selected objects and their vertices."""
    ids = query["ids"]
    if query["kind"] == "groups":
        ids = sorted({id for group in ids for id in content.groups[group]})
    of = dict(content.objects)
    return [(id, of[id]) for id in ids]


def vertices(content, rows):
    found = {"positions": [content.positions[row] for row in rows]}
    for scope in ("vertex", "fragment"):
        columns = getattr(content, scope).items()
        columns = [pair for pair in columns if f"{scope}.{pair[0]}" not in content.untold]
        found[scope] = {name: [values[row] for row in rows] for name, values in columns}
    return found


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
        for value in query.get("chunked_by", {}).values():
            rows = [row for row in rows if content.chunked_by[1][row] == value]
        pairs = [(row, content.owners and owner(content.owners[row])) for row in rows]
    found = vertices(content, [row for row, _ in pairs])
    if content.objects is not None:
        found["object_ids"] = [id for _, id in pairs]
    return found


def paths(content, query):
    """Returns whole paths; with a box, those with all vertices in it."""
    if query["kind"] in ("objects", "groups"):
        owned = selected(content, query)
    else:
        owned = content.objects or []
        if query["kind"] == "bbox":
            keep = content.inside(query["lower"], query["upper"])
            owned = [(id, rows) for id, rows in owned if all(keep[row] for row in rows)]
    owned = [(id, rows) for id, rows in owned if rows]
    found = vertices(content, [row for _, rows in owned for row in rows])
    found["parts"], first = [], 0
    for id, rows in owned:
        found["parts"].append([id, first, first + len(rows)])
        first += len(rows)
    return found


def links(content, query):
    """Returns vertices, and links whose ends are all among them."""
    keep = [True] * len(content.positions)
    if query["kind"] == "bbox":
        keep = content.inside(query["lower"], query["upper"])
    elif query["kind"] in ("objects", "groups"):
        among = {row for _, rows in selected(content, query) for row in rows}
        keep = [row in among for row in range(len(content.positions))]
    rows = [row for row, kept in enumerate(keep) if kept]
    found = vertices(content, rows)
    if content.objects is not None:
        owners = [content.owners[row] for row in rows]
        # In queries by object, a shared vertex is reported with the requested object or with any.
        if query["kind"] in ("all", "bbox") or all(len(one) == 1 for one in owners):
            found["object_ids"] = [owner(one) for one in owners]
    place = {row: at for at, row in enumerate(rows)}
    among = [at for at, ends in enumerate(content.links) if all(keep[end] for end in ends)]
    found["links"] = [[place[end] for end in content.links[at]] for at in among]
    found["link"] = {name: [values[at] for at in among] for name, values in content.link.items()}
    return found
