"""Small plausible geometry of each kind, as `zvf create --from` reads it.

All randomness comes from a seed, so the same numbers are generated every time.
"""

import numpy as np
from matplotlib.tri import Triangulation


def terrain():
    """A laser scan of a valley: ground, trees, houses and a river, as `vertex.class`."""
    rng = np.random.default_rng(1)
    place = rng.uniform(0, 400, (26000, 2))

    def river(y):
        return 190 + 60 * np.sin(y / 70) + 15 * np.sin(y / 23)

    def ground(at):
        x, y = at.T
        from_river = x - river(y)
        hills = 14 * np.sin(x / 45 + 1) * np.cos(y / 60) + 6 * np.sin((x + y) / 21)
        return (hills + 20) * (1 - np.exp(-((from_river / 70) ** 2))) + 0.25 * abs(from_river)

    height = ground(place)
    kind = np.zeros(len(place), "u1")
    is_wet = abs(place[:, 0] - river(place[:, 1])) < 13
    kind[is_wet], height[is_wet] = 3, 0
    for centre in rng.uniform(20, 380, (130, 2)):
        if abs(centre[0] - river(centre[1])) < 30:
            continue
        away = np.hypot(*(place - centre).T)
        is_tree = (away < 9) & (kind == 0)
        kind[is_tree] = 1
        height[is_tree] += 18 * np.sqrt(1 - (away[is_tree] / 9) ** 2)
    for x, y in [(70, 90), (75, 140), (110, 105), (310, 250), (330, 300), (290, 310), (345, 210)]:
        is_house = (abs(place - (x, y)) < (13, 19)).all(1)
        kind[is_house] = 2
        roof = ground(np.array([[x, y]]))[0] + 20
        height[is_house] = roof + 8 - 8 * abs(place[is_house, 0] - x) / 13
    positions = np.column_stack([place, height + rng.normal(0, 0.3, len(place))])
    return {"positions": positions.astype("f4"), "vertex.class": kind}


def tracts():
    """Bundles of fibres that fan out at their ends; `object.bundle` identifies the bundle."""
    rng = np.random.default_rng(2)
    courses = np.array(
        [
            [[20, 30, 40], [40, 80, 70], [90, 100, 80], [140, 80, 70], [160, 30, 40]],
            [[60, 5, 10], [80, 25, 40], [88, 50, 60], [80, 80, 90], [45, 120, 100]],
            [[120, 5, 10], [100, 25, 40], [92, 50, 60], [100, 80, 90], [135, 120, 100]],
            [[15, 75, 20], [50, 62, 35], [90, 58, 40], [130, 62, 35], [165, 75, 20]],
        ],
        "f8",
    )
    at = np.linspace(0, 1, 120)
    # Bernstein polynomials: each course is a Bezier curve.
    weights = np.stack([c * at**k * (1 - at) ** (4 - k) for k, c in enumerate([1, 4, 6, 4, 1])], 1)
    lines, bundle = [], []
    for number, course in enumerate(courses):
        for _ in range(45):
            spread = np.array([11, 5, 3, 5, 11])[:, None]
            moved = course + rng.normal(0, 1, (5, 3)) * spread
            moved[2] = course[2] + (moved[0] - course[0]) * 0.2 + rng.normal(0, 2, 3)
            wobble = np.sin(at[:, None] * rng.uniform(8, 20, 3) + rng.uniform(0, 6, 3)) * 0.7
            lines.append(weights @ moved + wobble)
            bundle.append(number)
    count = len(lines)
    return {
        "positions": np.concatenate(lines).astype("f4"),
        "part_offsets": np.arange(count + 1, dtype="i8") * len(at),
        "part_objects": np.arange(count, dtype="i8"),
        "object.bundle": np.array(bundle, "u1"),
    }


def neurons():
    """Trees that grow from three bodies and branch."""
    rng = np.random.default_rng(3)
    positions, links, owners = [], [], []

    def grow(at, heading, parent, owner, steps, depth):
        for _ in range(steps):
            heading = heading + rng.normal(0, 0.16, 3)
            heading /= np.linalg.norm(heading)
            at = at + heading
            positions.append(at)
            owners.append(owner)
            links.append((len(positions) - 1, parent))
            parent = len(positions) - 1
        if depth == 0:
            return
        side = np.cross(heading, rng.normal(0, 1, 3))
        side /= np.linalg.norm(side)
        for sign in (1, -1):
            turned = heading + sign * rng.uniform(0.35, 0.8) * side
            grow(at, turned, parent, owner, int(rng.integers(14, 34)), depth - 1)

    for owner, body in enumerate([(0, 0, 0), (95, 20, 10), (45, 90, -5)]):
        body = np.array(body, "f8")
        positions.append(body)
        owners.append(owner)
        root = len(positions) - 1
        for turn in np.arange(5) * 2 * np.pi / 5 + owner:
            heading = np.array([np.cos(turn), np.sin(turn), rng.normal(0, 0.3)])
            grow(body, heading, root, owner, int(rng.integers(8, 16)), 3)
        # The axon is long and branches late.
        grow(body, np.array([0.3, -1.0, 0.1]), root, owner, 60, 2)
    return {
        "positions": np.array(positions).astype("f4"),
        "object_ids": np.array(owners, "i8"),
        "links": np.array(links, "i8"),
    }


def network():
    """Streets of a few towns and of the countryside between them, on a plane."""
    rng = np.random.default_rng(4)
    towns = [
        ((90, 110), 26, 1500),
        ((260, 70), 22, 900),
        ((210, 220), 30, 1300),
        ((60, 260), 16, 500),
    ]
    crowds = [rng.normal(centre, size, (count, 2)) for centre, size, count in towns]
    place = np.concatenate([*crowds, rng.uniform((0, 0), (330, 320), (450, 2))])
    edges = Triangulation(*place.T).edges
    first, second = place[edges[:, 0]], place[edges[:, 1]]
    middle, reach = (first + second) / 2, np.hypot(*(first - second).T) / 2
    # The Gabriel graph: no other node is nearer to the midpoint of an edge than its ends.
    nearest = np.concatenate(
        [
            np.hypot(*np.moveaxis(part[:, None] - place, -1, 0)).min(1)
            for part in np.array_split(middle, 40)
        ]
    )
    is_way = (nearest >= reach * (1 - 1e-9)) & (reach < 14)
    edges = edges[is_way]
    height = 0.0 * place[:, :1]
    return {
        "positions": np.concatenate([place, height], 1).astype("f4"),
        "links": edges.astype("i8"),
    }


def brain():
    """A closed folded surface: an icosphere indented along winding lines."""
    golden = (1 + 5**0.5) / 2
    corners = [(a, b * golden, 0) for a in (-1, 1) for b in (-1, 1)]
    points = np.array([np.roll(corner, turn) for turn in range(3) for corner in corners], "f8")
    gaps = np.linalg.norm(points[:, None] - points, axis=-1)
    near = abs(gaps - 2) < 1e-6
    faces = [
        (a, b, c)
        for a in range(12)
        for b in range(a + 1, 12)
        for c in range(b + 1, 12)
        if near[a, b] and near[b, c] and near[a, c]
    ]
    faces = np.array(faces)
    first, second, third = np.moveaxis(points[faces], 1, 0)
    is_inward = (np.cross(second - first, third - first) * first).sum(1) < 0
    faces[is_inward] = faces[is_inward][:, ::-1]
    for _ in range(6):
        sides = np.sort(faces[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), 1)
        edges, which = np.unique(sides, axis=0, return_inverse=True)
        ab, bc, ca = which.reshape(-1, 3).T + len(points)
        points = np.concatenate([points, points[edges].mean(1)])
        a, b, c = faces.T
        faces = np.stack([a, ab, ca, ab, b, bc, ca, bc, c, ab, bc, ca], 1).reshape(-1, 3)
    points /= np.linalg.norm(points, axis=1)[:, None]

    rng = np.random.default_rng(5)
    waves = rng.normal(0, 1, (14, 3))
    waves *= (10 / np.linalg.norm(waves, axis=1))[:, None]
    field = np.sin(points @ waves.T + rng.uniform(0, 6, 14)).sum(1)
    # The zero set of the field is the bottom of a furrow.
    furrow = np.exp(-((field / 1.1) ** 2))
    cleft = np.exp(-((points[:, 0] / 0.07) ** 2)) * (points[:, 2] > -0.3)
    radius = 1 - 0.13 * furrow * (1 - cleft) - 0.22 * cleft
    # Away from the origin, where chunks of every level meet and their borders would constrain
    # vertices.
    positions = points * radius[:, None] * (62, 80, 58) + 90
    return {"positions": positions.astype("f4"), "links": faces.astype("i8")}
