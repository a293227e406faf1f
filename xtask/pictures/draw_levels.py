"""Draws the levels of a small store of each kind, one picture per kind, for docs/pyramids.md.

usage: draw_levels.py ZVF FOLDER OUT [NAME ...]

ZVF is our program: it writes the stores in FOLDER, builds their levels and reads each one back; the
result is drawn to OUT. NAMEs select pictures; the default is all.
"""

import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib

matplotlib.use("Agg")

import numpy as np  # noqa: E402
from matplotlib import pyplot  # noqa: E402
from matplotlib.collections import LineCollection, PolyCollection  # noqa: E402
from PIL import Image  # noqa: E402

import level_samples  # noqa: E402

LEVELS = 3
# Width of a picture in pixels, and its maximum bytes.
WIDTH = 1200
MOST = 200_000
DPI = 100
# The colours of Okabe and Ito, distinguishable by colour-blind readers.
BLUE, ORANGE, GREEN, PURPLE, SKY = "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9"
RED, GREY = "#d55e00", "#8a8a8a"


class Picture(NamedTuple):
    """The stored geometry, the options of its levels, and the view."""

    kind: str
    sample: object
    # Options of `zvf pyramid`.
    pyramid: str
    draw: object
    # Degrees around the vertical, then above the horizon.
    view: tuple


def points(axes, seen, data, level):
    """Draws points in the colours of their class, farthest first."""
    order = np.argsort(-seen[:, 2], kind="stable")
    colours = np.array([ORANGE, GREEN, RED, BLUE])[data["vertex.class"][order]]
    # The next level has about a quarter of the points, and each represents four times as many.
    axes.scatter(*seen[order, :2].T, s=(2, 5, 16, 50)[level], c=colours, linewidths=0)


def paths(axes, seen, data, level):
    """Draws lines in the colours of their bundle."""
    bundle = dict(zip(data["objects"].tolist(), data["object.bundle"].tolist(), strict=True))
    parts = np.split(seen[:, :2], data["part_offsets"][1:-1])
    owners = data["part_objects"].tolist()
    colours = [(BLUE, ORANGE, GREEN, PURPLE)[bundle[owner]] for owner in owners]
    axes.add_collection(LineCollection(parts, colors=colours, linewidths=0.6, alpha=0.8))


def trees(axes, seen, data, level):
    """Draws links in the colours of their object, and roots as dots."""
    links, owner = data["links"], data["object_ids"]
    colours = np.array([BLUE, RED, GREEN])
    lines = LineCollection(seen[links, :2], colors=colours[owner[links[:, 0]]], linewidths=1.0)
    axes.add_collection(lines)
    roots = np.setdiff1d(np.arange(len(seen)), links[:, 0])
    axes.scatter(*seen[roots, :2].T, s=40, c=colours[owner[roots]], zorder=2)


def nodes(axes, seen, data, level):
    """Draws links and their ends."""
    axes.add_collection(LineCollection(seen[data["links"], :2], colors=GREY, linewidths=0.7))
    axes.scatter(*seen[:, :2].T, s=(0.9, 2.5, 6, 14)[level], c=BLUE, linewidths=0, zorder=2)


def faces(axes, seen, data, level):
    """Draws lit triangles that face the viewer, farthest first."""
    corners = seen[data["links"]]
    # The third axis of the view points away from the viewer. This mirrors the scene and reverses
    # faces.
    normal = np.cross(corners[:, 2] - corners[:, 0], corners[:, 1] - corners[:, 0])
    normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-12)[:, None]
    is_front = normal[:, 2] < 0
    order = np.flatnonzero(is_front)
    order = order[np.argsort(-corners[order, :, 2].mean(1), kind="stable")]
    light = np.array([-0.45, 0.6, -0.66])
    shade = 0.35 + 0.65 * np.clip(normal[order] @ light, 0, 1)
    rgb = np.array(matplotlib.colors.to_rgb(SKY)) * 0.35 + 0.65
    colours = np.clip(shade[:, None] * rgb, 0, 1)
    # Edges in the colour of their face close the seams; on coarse levels they are darker and
    # visible.
    edges = colours if level == 0 else colours * 0.72
    axes.add_collection(
        PolyCollection(corners[order, :, :2], facecolors=colours, edgecolors=edges, linewidths=0.3)
    )


PICTURES = {
    "points": Picture(
        "points", level_samples.terrain,
        "--method bins --cell 6,6,6 --factors 2,2,2", points, (25, 38),
    ),
    "streamlines-bins": Picture(
        "streamlines", level_samples.tracts,
        "--method bins --cell 4,4,4 --factors 2,2,2", paths, (20, 15),
    ),
    "streamlines-simplify": Picture(
        "streamlines", level_samples.tracts,
        "--method simplify --tolerance 1 --factors 3,3,3", paths, (20, 15),
    ),
    "skeletons": Picture(
        "skeletons", level_samples.neurons,
        "--method simplify --tolerance 0.5 --factors 3,3,3", trees, (0, 90),
    ),
    "graph": Picture(
        "graphs", level_samples.network,
        "--method bins --medoid --cell 6,6,6 --factors 2,2,2", nodes, (0, 90),
    ),
    "mesh": Picture(
        "mesh", level_samples.brain,
        "--method collapse --factors 5,5,5", faces, (35, 30),
    ),
}


def main(ours, folder, out, names):
    """Draws the pictures of these names."""
    for name in names or PICTURES:
        levels = levels_of(ours, folder / name, PICTURES[name])
        image = drawn(PICTURES[name], levels)
        if len(image) > MOST:
            sys.exit(f"levels-{name}.png has {len(image)} bytes, more than {MOST}")
        (out / f"levels-{name}.png").write_bytes(image)
        counts = ", ".join(f"{vertices:,}" for _, vertices, _ in levels)
        print(f"levels-{name}.png: {len(image):,} bytes; vertices of its levels: {counts}")


def levels_of(ours, folder, picture):
    """Returns the arrays, number of stored vertices and bytes of each level."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sample, store = folder / "sample.npz", folder / "store"
    arrays = picture.sample()
    np.savez(sample, **arrays)
    output_of(ours, "create", "--kind", picture.kind, "--from", sample, store)
    options = ["--levels", str(LEVELS), *picture.pyramid.split()]
    report = json.loads(output_of(ours, "pyramid", store, *options, "--json"))
    # Objects of coarse levels share vertices; a query returns a shared vertex once per object.
    stored = {0: len(arrays["positions"])}
    stored |= {level["level"]: level["vertices"] for level in report["levels"]}
    levels = []
    for level in range(LEVELS + 1):
        rows = folder / f"level{level}.npz"
        output_of(ours, "query", store, "--level", str(level), "-o", rows)
        files = (store / str(level)).rglob("*")
        size = sum(file.stat().st_size for file in files if file.is_file())
        with np.load(rows) as data:
            levels.append((dict(data), stored[level], size))
    return levels


def output_of(ours, *words):
    """Returns the output of our program."""
    command = [ours, *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def drawn(picture, levels):
    """Returns one panel per level, side by side in the same view, as PNG."""
    finest = projected(levels[0][0]["positions"], picture.view)[:, :2]
    low, high = finest.min(0), finest.max(0)
    middle, half = (low + high) / 2, (high - low) / 2 * 1.05
    side = WIDTH / DPI / len(levels)
    title = 0.45
    height = side * half[1] / half[0]
    figure = pyplot.figure(figsize=(WIDTH / DPI, height + title), dpi=DPI, facecolor="white")
    for level, (data, vertices, size) in enumerate(levels):
        share = 1 / len(levels)
        axes = figure.add_axes((level * share, 0, share, height / (height + title)))
        axes.set_axis_off()
        axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
        axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
        picture.draw(axes, projected(data["positions"], picture.view), data, level)
        axes.set_title(
            f"level {level}\n{vertices:,} vertices, {size / 1000:,.0f} kB",
            fontsize=11, y=1.0, pad=4, color="black",
        )
    raw = io.BytesIO()
    figure.savefig(raw, format="png", dpi=DPI)
    pyplot.close(figure)
    # A palette suffices for these few colours, and the file contains no metadata of the drawing
    # programs.
    few = Image.open(raw).convert("RGB").quantize(128, dither=Image.Dither.NONE)
    packed = io.BytesIO()
    few.save(packed, format="PNG", optimize=True)
    return packed.getvalue()


def projected(positions, view):
    """Projects to right, up, and away from the viewer; the third axis of the data is up."""
    around, above = np.radians(view)
    x, y, z = positions.astype("f8").T
    right = np.cos(around) * x + np.sin(around) * y
    back = np.cos(around) * y - np.sin(around) * x
    up = np.sin(above) * back + np.cos(above) * z
    away = np.cos(above) * back - np.sin(above) * z
    return np.column_stack([right, up, away])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
