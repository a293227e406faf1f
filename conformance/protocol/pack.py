"""The corpus as an archive that needs nothing of this repository: `cargo xtask corpus --export DIR`.

usage: pack.py FOLDER | --check

Writes zarr-vectors-corpus.tar.gz to FOLDER. With `--check` it is made twice and compared, and the runners of the
archive are scored by its own program in a copy outside the repository.
"""

import gzip
import io
import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile

import corpus
import run

HERE, ROOT = pathlib.Path(__file__).resolve().parent, corpus.TESTDATA.parent
NAME = "zarr-vectors-corpus"
SMALL = {"python": ["python3", "runner.py"], "javascript": ["node", "runner.mjs"]}
LICENSE = """The stores, answers and manifest of this archive are dedicated to the public domain under CC0 1.0 Universal:
https://creativecommons.org/publicdomain/zero/1.0/legalcode

The programs (*.py, *.mjs) are available under the MIT or the Apache-2.0 licence, as the project that made them.
"""


def lines(values):
    return "[\n" + ",\n".join(json.dumps(value, sort_keys=True) for value in values) + "\n]"


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def edit(store, edits):
    """Damages the files of a store."""
    for one in edits:
        op, file = one["op"], one["file"]
        if op == "rm":
            for name in [name for name in store if name == file or name.startswith(f"{file}/")]:
                del store[name]
        elif op == "rename":
            for name in [name for name in store if name == file or name.startswith(f"{file}/")]:
                store[one["to"] + name[len(file):]] = store.pop(name)
        elif op == "hex":
            store[file] = bytes.fromhex(one["hex"])
        else:
            node = inner = json.loads(store[file])
            *parents, last = one["path"]
            for key in parents:
                inner = inner[key]
            if op == "del":
                del inner[last]
            else:
                inner[last] = one["value"]
            store[file] = json.dumps(node, indent=2).encode()


def damaged(folder):
    """Yields the entry and the files of each damaged store."""
    recorded = json.loads((folder / "zvf-09/golden_09/invalid_cases.json").read_text())
    recorded = {case["name"]: case for case in recorded}
    for case in json.loads((corpus.TESTDATA / "corpus/damaged.json").read_text()):
        base = case.get("base")
        if base is None:
            of = recorded[case["case"]]
            base = {"archive": "zvf-09", "store": f"{of['base']}/store.zarrvectors"}
            case = case | {"name": of["name"], "edits": of["edits"]}
        top = next(path for path in (folder / base["archive"]).iterdir() if path.is_dir())
        store = files(top / base["store"])
        assert store, base
        edit(store, case["edits"])
        kept = {name: case[name] for name in ("name", "must", "must_not")}
        yield kept | {"base": f"{base['archive']}/{base['store']}", "edits": case["edits"]}, store


def readme():
    """The protocol and the results, as the guide has them."""
    page = (ROOT / "docs/conformance.md").read_text()
    protocol = page.split("\n## Runners\n")[1].split("\n## ")[0]
    results = page.split("\n## Results\n")[1]
    text = f"{(HERE / 'PACK.md').read_text()}\n## Runners\n{protocol}\n## Results\n{results}"
    # Other pages of the guide are not in the archive.
    return re.sub(r"\[([^]]+)\]\([^)]*\.md[^)]*\)", r"\1", text)


def members():
    """Returns the contents of the archive by name."""
    found = {"LICENSE.txt": LICENSE.encode(), "README.md": readme().encode()}
    for name in ("run.py", "compare.py", "neuroglancer_rules.py"):
        found[name] = (HERE / name).read_bytes()
    for name in ("runner.py", "runner.mjs"):
        found[name] = (ROOT / "examples/outside" / name).read_bytes()
    stores, broken = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        corpus.unpack(folder, [*corpus.ARCHIVES, "zvf-small"])
        for store in corpus.stores(folder):
            path, answers = f"stores/{store.name}", f"answers/{store.name}.json"
            kept = {name: store.entry[name] for name in ("name", "generation", "geometry", "features")}
            stores.append(kept | {"path": path, "answers": answers})
            found |= {f"{path}/{name}": data for name, data in files(store.path).items()}
            found[answers] = (lines(store.cases()) + "\n").encode()
        for entry, store in damaged(folder):
            path = f"damaged/{entry['name']}"
            about = {"generation": "damaged", "geometry": [], "features": [], "path": path}
            broken.append(entry | about)
            found |= {f"{path}/{name}": data for name, data in store.items()}
    features = json.loads(corpus.DESCRIPTION.read_text())["features"]
    manifest = {"format": NAME, "version": run.VERSION, "license": "CC0-1.0"}
    manifest = json.dumps(manifest, indent=1)[:-2]
    manifest += f',\n "features": {json.dumps(features)},\n "stores": {lines(stores)},\n "damaged": {lines(broken)}\n}}\n'
    return found | {"manifest.json": manifest.encode()}


def unpack(folder):
    for name, data in members().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def export(folder):
    """Writes the archive, whose bytes depend on its contents only."""
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in sorted(members().items()):
            entry = tarfile.TarInfo(f"{NAME}/{name}")
            entry.size, entry.mode = len(data), 0o644
            archive.addfile(entry, io.BytesIO(data))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{NAME}.tar.gz"
    path.write_bytes(gzip.compress(tar.getvalue(), 9, mtime=0))
    return path


def scored(pack, runner):
    """Runs the program of an archive, which needs nothing else."""
    words = [sys.executable, "run.py", "--runner", runner]
    return subprocess.run(words, cwd=pack, capture_output=True, text=True)


def check(folder):
    one, other = export(folder / "one"), export(folder / "other")
    if one.read_bytes() != other.read_bytes():
        sys.exit("two exports differ")
    with tarfile.open(one) as archive:
        archive.extractall(folder, filter="data")
    subprocess.run([sys.executable, "neuroglancer_rules.py"], cwd=folder / NAME, check=True, stdout=subprocess.DEVNULL)
    for command in SMALL.values():
        if shutil.which(command[0]) is None:
            sys.exit(f"{command[0]} is missing")
        done = scored(folder / NAME, shlex.join(command))
        said = done.stdout.splitlines()
        print(said[0] if said else done.stderr)
        if done.returncode or ", 0 wrong, 0 unsupported" not in done.stdout:
            sys.exit("\n".join(said[1:13]))


def main():
    if sys.argv[1] == "--check":
        with tempfile.TemporaryDirectory() as scratch:
            return check(pathlib.Path(scratch))
    print(export(pathlib.Path(sys.argv[1])))


if __name__ == "__main__":
    main()
