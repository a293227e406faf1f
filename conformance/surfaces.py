"""Small geometry that several tests write, and the edges of triangles."""

import numpy as np
import trimesh


def grid(side):
    """Returns vertices of a square with `side` vertices at each edge, and its triangles."""
    vertices = [[3 * x + 0.5, 3 * y + 0.5, 1 + (x * y) % 3] for x in range(side) for y in range(side)]
    corner = lambda x, y: x * side + y
    squares = [(x, y) for x in range(side - 1) for y in range(side - 1)]
    faces = [[corner(x, y), corner(x, y + 1), corner(x + 1, y)] for x, y in squares]
    return np.array(vertices, np.float32), np.array(faces)


def paths():
    steps = np.arange(8, dtype=np.float32)
    return [np.stack([1 + 4 * steps, 2 + steps, np.full(8, 3.0 * at + 1)], axis=1) for at in range(5)]


def rows(positions):
    """Returns positions in an order of their own."""
    return sorted(map(tuple, np.asarray(positions, np.float32).tolist()))


def edge_counts(faces):
    """Returns how often each edge of triangles occurs, in either direction."""
    edges = np.sort(trimesh.geometry.faces_to_edges(faces), 1)
    return np.unique(edges, axis=0, return_counts=True)[1]
