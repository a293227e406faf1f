"""Draws pictures of docs/pictures with `zvf render`: the demo of README.md, the plot of docs/render.md, and four
levels of a store of each kind for docs/pyramids.md.

usage: draw.py ZVF FOLDER OUT [NAME ...]

ZVF is our program: it writes its demo in FOLDER, and draws to OUT. NAMEs select pictures; the default is all.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from PIL import Image

LEVELS = 3
# Colours of a picture, and its maximum bytes, so that a page loads quickly.
COLOURS, MOST = 256, 300_000
# Levels of a store: its kind, its name in the demo, the options of `zvf pyramid` and those of `zvf render`.
PICTURES = {
    "points": ("points", "cells", "--method bins --cell 60,60,60 --factors 2,2,2", "--color layer --view 20,20"),
    "streamlines-bins": ("streamlines", "tracts", "--method bins --cell 4,4,4 --factors 2,2,2", "--view 66,18"),
    "streamlines-simplify": ("streamlines", "tracts", "--method simplify --tolerance 1 --factors 3,3,3", "--view 66,18"),
    "skeletons": ("skeletons", "neurons", "--method simplify --tolerance 4 --factors 3,3,3", "--view coronal"),
    "graph": ("graphs", None, "--method bins --medoid --cell 6,6,6 --factors 2,2,2", "--view axial --color #0072b2"),
    "mesh": ("mesh", "surface", "--method collapse --factors 3,3,3", "--color #56b4e9 --view 35,30"),
}


def network():
    """Returns the streets of a town: a grid of moved crossings, of which some streets are missing."""
    random, side = np.random.default_rng(4), 40
    place = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), -1).reshape(-1, 2)
    place = (place + random.uniform(-0.4, 0.4, place.shape)) * 5
    at = np.arange(side**2).reshape(side, side)
    streets = [np.stack(ends, -1).reshape(-1, 2) for ends in ((at[:-1], at[1:]), (at[:, :-1], at[:, 1:]))]
    links = np.concatenate(streets)
    positions = np.column_stack([place, np.zeros(len(place))]).astype("f4")
    return {"positions": positions, "links": links[random.random(len(links)) < 0.8]}


class Pictures:
    def __init__(self, zvf, folder, out):
        self.zvf, self.folder, self.out = zvf, folder, out
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def run(self, *words):
        return subprocess.run([self.zvf, *map(str, words)], check=True, capture_output=True, text=True).stdout

    def save(self, picture, name):
        path = self.out / f"{name}.png"
        picture.quantize(COLOURS, kmeans=4, dither=Image.Dither.NONE).save(path, optimize=True)
        size = path.stat().st_size
        print(f"{path.name}: {size:,} bytes")
        if size > MOST:
            sys.exit(f"{path} has more than {MOST:,} bytes")

    def sheet(self, name, commands, size, columns):
        """Draws pictures side by side; each command writes `picture.png`."""
        width, height = size
        sheet = Image.new("RGB", (columns * width, len(commands) // columns * height))
        small = self.folder / "small.png"
        for at, words in enumerate(commands):
            words = [small if word == "picture.png" else word for word in words]
            self.run(*words, "--size", f"{width}x{height}")
            with Image.open(small) as part:
                sheet.paste(part, (at % columns * width, at // columns * height))
        self.save(sheet, name)

    def demo(self):
        demo = json.loads(self.run("demo", self.folder / "demo", "--json", "--quiet"))
        self.sheet("demo", demo["draws"], (560, 420), 2)
        self.run("info", self.folder / "demo/tracts.zv", "--plot", self.folder / "plot.png")
        with Image.open(self.folder / "plot.png") as plot:
            self.save(plot.convert("RGB").reduce(2), "plot")

    def levels(self, name):
        kind, of, pyramid, look = PICTURES[name]
        arrays, store = self.folder / f"{of or name}.npz", self.folder / f"{name}.zv"
        if of is None:
            np.savez(arrays, **network())
        elif not arrays.exists():
            self.run("demo", self.folder / "small", "--small", "--quiet", "--overwrite")
            self.run("query", self.folder / f"small/{of}.zv", "-o", arrays, "--quiet")
        self.run("create", store, "--kind", kind, "--from", arrays, "--quiet")
        self.run("pyramid", store, "--levels", LEVELS, *pyramid.split(), "--quiet")
        look = ["--background", "light", *look.split(), "-o", "picture.png", "--quiet"]
        commands = [
            ["render", store, "--level", level, "--title", f"Level {level}", *look] for level in range(LEVELS + 1)
        ]
        self.sheet(f"levels-{name}", commands, (400, 340), len(commands))


def main(zvf, folder, out, *names):
    pictures = Pictures(zvf, Path(folder), Path(out))
    for name in names or ("demo", *PICTURES):
        if name == "demo":
            pictures.demo()
        else:
            pictures.levels(name)


if __name__ == "__main__":
    main(*sys.argv[1:])
