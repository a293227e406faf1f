"""Seeded geometry of about a million vertices in a cube, one function for each kind.

Only `random` and `integers` of PCG64 are used; requirements.txt pins numpy, whose versions may
change these streams.
"""

from dataclasses import dataclass, field

import numpy as np

SIDE = 1000.0
VERTICES = 1_000_000


@dataclass
class Data:
    """The content of a store, in the order in which it is passed to the reference."""

    positions: np.ndarray
    vertex: dict
    #: Row of the first vertex of each path, and the end of the last.
    offsets: np.ndarray | None = None
    #: Rows of the ends of each edge or face.
    links: np.ndarray | None = None
    #: Object of each vertex.
    owners: np.ndarray | None = None
    link: dict = field(default_factory=dict)
    object: dict = field(default_factory=dict)
    groups: dict = field(default_factory=dict)


def generator(name):
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(list(name.encode()))))


def directions(random, *shape):
    """Returns unit vectors."""
    vectors = random.random((*shape, 3)) - 0.5
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def inside(positions):
    """Reflects positions at the walls of the cube, with a small distance from them."""
    folded = np.abs(np.mod(positions + SIDE, 2 * SIDE) - SIDE)
    return np.clip(folded, 0.01, SIDE - 0.01).astype(np.float32)


def measured(random, count):
    """Returns a float attribute distributed uniformly in 0..1, so that a threshold selects a known
    share.
    """
    return random.random(count).astype(np.float32)


def clouds_of(count, members):
    """Returns groups of this many consecutive objects."""
    return {first // members: list(range(first, first + members)) for first in range(0, count, members)}


def points():
    random = generator("points")
    positions = (random.random((VERTICES, 3)) * SIDE).astype(np.float32)
    label = random.integers(0, 16, VERTICES).astype(np.int32)
    return Data(positions, {"intensity": measured(random, VERTICES), "label": label})


def points_with_objects():
    """2,000 clouds of 500 points."""
    random = generator("points-objects")
    objects = 2000
    owners = np.repeat(np.arange(objects), VERTICES // objects)
    centres = random.random((objects, 3)) * SIDE
    spread = (random.random((VERTICES, 3, 4)).sum(axis=2) - 2) * 30
    return Data(
        inside(centres[owners] + spread),
        {"intensity": measured(random, VERTICES)},
        owners=owners,
        object={"weight": measured(random, objects)},
        groups=clouds_of(objects, 20),
    )


def streamlines():
    """8,000 paths in bundles of 20, each a random walk that keeps its direction."""
    random = generator("streamlines")
    paths, bundle, longest = 8000, 20, 175
    bundles = np.repeat(np.arange(paths // bundle), bundle)
    start = (random.random((paths // bundle, 3)) * SIDE)[bundles]
    start += (random.random((paths, 3)) - 0.5) * 30
    heading = directions(random, paths // bundle)[bundles]
    steps = np.empty((paths, longest, 3))
    for step in range(longest):
        heading = heading + directions(random, paths) * 0.15
        heading /= np.linalg.norm(heading, axis=1, keepdims=True)
        steps[:, step] = heading * 4
    walks = start[:, None, :] + np.cumsum(steps, axis=1)
    lengths = random.integers(75, longest + 1, paths)
    kept = np.arange(longest)[None, :] < lengths[:, None]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return Data(
        inside(walks[kept]),
        {"fa": measured(random, int(offsets[-1]))},
        offsets=offsets,
        object={"length": (lengths * 4).astype(np.float32), "score": measured(random, paths)},
        groups=clouds_of(paths, bundle),
    )


def lines():
    """500,000 segments of up to 10."""
    random = generator("lines")
    count = VERTICES // 2
    start = random.random((count, 3)) * SIDE
    end = start + directions(random, count) * (1 + 9 * random.random((count, 1)))
    return Data(
        inside(np.stack([start, end], axis=1).reshape(-1, 3)),
        {"radius": measured(random, VERTICES)},
        offsets=np.arange(0, VERTICES + 1, 2),
        object={"weight": measured(random, count)},
    )


def graph():
    """A jittered lattice, nodes in random order, with half of its edges."""
    random = generator("graph")
    across = round(VERTICES ** (1 / 3))
    index = np.arange(across**3).reshape(across, across, across)
    lattice = np.stack(np.unravel_index(index.ravel(), index.shape), axis=1)
    positions = (lattice + 0.1 + 0.8 * random.random((across**3, 3))) * (SIDE / across)
    pairs = [
        np.stack([index[:-1].ravel(), index[1:].ravel()], axis=1),
        np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], axis=1),
        np.stack([index[:, :, :-1].ravel(), index[:, :, 1:].ravel()], axis=1),
    ]
    links = np.concatenate(pairs)
    links = links[random.random(len(links)) < 0.5]
    order = np.argsort(random.random(across**3))
    row = np.empty_like(order)
    row[order] = np.arange(len(order))
    return Data(
        inside(positions[order]),
        {"diameter": measured(random, across**3)},
        links=row[links],
        link={"flow": measured(random, len(links))},
    )


def skeletons():
    """500 trees of 2,000 nodes; one node in 50 branches off an earlier one."""
    random = generator("skeletons")
    trees, nodes = 500, VERTICES // 500
    place = np.empty((trees, nodes, 3))
    heading = np.empty((trees, nodes, 3))
    parent = np.empty((trees, nodes), dtype=np.int64)
    place[:, 0] = 100 + random.random((trees, 3)) * (SIDE - 200)
    heading[:, 0] = directions(random, trees)
    every = np.arange(trees)
    for node in range(1, nodes):
        branches = random.random(trees) < 0.02
        earlier = (random.random(trees) * node).astype(np.int64)
        above = np.where(branches, earlier, node - 1)
        turn = heading[every, above] + directions(random, trees) * np.where(branches, 1.0, 0.2)[:, None]
        turn /= np.linalg.norm(turn, axis=1, keepdims=True)
        place[:, node] = place[every, above] + turn
        heading[:, node], parent[:, node] = turn, above
    first = np.arange(trees)[:, None] * nodes
    child = np.arange(1, nodes)[None, :] + first
    return Data(
        inside(place.reshape(-1, 3)),
        {"radius": measured(random, trees * nodes)},
        links=np.stack([child, parent[:, 1:] + first], axis=-1).reshape(-1, 2),
        owners=np.repeat(every, nodes),
        object={"weight": measured(random, trees)},
    )


def mesh():
    """200 uneven tubes, closed to rings, of 5,000 vertices and 10,000 triangles."""
    random = generator("mesh")
    objects, around, along = 200, 100, 50
    centres = 150 + random.random((objects, 1, 1, 3)) * (SIDE - 300)
    u = np.arange(around) * (2 * np.pi / around)
    v = np.arange(along) * (2 * np.pi / along)
    big = 60 + 60 * random.random((objects, 1, 1))
    small = 15 + 5 * random.random((objects, around, along))
    ring = big + small * np.cos(v)[None, None, :]
    torus = np.stack(
        [ring * np.cos(u)[None, :, None], ring * np.sin(u)[None, :, None], small * np.sin(v)[None, None, :]], axis=-1
    )
    index = np.arange(around * along).reshape(around, along)
    here, right = index, np.roll(index, -1, axis=0)
    above, across = np.roll(index, -1, axis=1), np.roll(np.roll(index, -1, axis=0), -1, axis=1)
    faces = np.stack([np.stack([here, right, across], -1), np.stack([here, across, above], -1)], -2)
    first = np.arange(objects)[:, None, None] * (around * along)
    return Data(
        inside((centres + torus).reshape(-1, 3)),
        {"thickness": measured(random, objects * around * along)},
        links=(faces.reshape(1, -1, 3) + first).reshape(-1, 3),
        owners=np.repeat(np.arange(objects), around * along),
        object={"weight": measured(random, objects)},
    )
