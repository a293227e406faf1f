"""Draws the picture of README.md: the four of `zvf demo`, and the plot of docs/render.md.

usage: draw_demo.py ZVF FOLDER OUT

ZVF is our program: it writes the demo in FOLDER and draws its pictures at the size in which they
are shown. Their colours are reduced to 256, so that the page loads quickly.
"""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

# Width and height of one picture in pixels, with two side by side; and the maximum bytes.
SIZE = (560, 420)
MOST = 300_000


def run(zvf, *arguments):
    return subprocess.run([zvf, *map(str, arguments)], check=True, capture_output=True).stdout


def save(picture, path):
    picture.quantize(256, kmeans=4, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MOST:
        sys.exit(f"{path} has {path.stat().st_size} bytes, more than {MOST}")


def main():
    zvf, folder, out = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    shutil.rmtree(folder, ignore_errors=True)
    demo = json.loads(run(zvf, "demo", folder, "--json", "--quiet"))
    width, height = SIZE
    sheet = Image.new("RGB", (2 * width, 2 * height))
    for at, command in enumerate(demo["draws"]):
        words = [str(folder / "small.png") if word == "picture.png" else word for word in command]
        run(zvf, *words, "--size", f"{width}x{height}")
        with Image.open(folder / "small.png") as small:
            sheet.paste(small, (at % 2 * width, at // 2 * height))
    save(sheet, out / "demo.png")
    run(zvf, "info", folder / "tracts.zv", "--plot", folder / "plot.png")
    with Image.open(folder / "plot.png") as plot:
        save(plot.convert("RGB").reduce(2), out / "plot.png")


if __name__ == "__main__":
    main()
