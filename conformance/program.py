"""The command `zvf`, and differences that it shows."""

import contextlib
import json
import pathlib
import subprocess

import numpy as np

# Differences that are shown of each test.
SHOWN = 5


class Failure(AssertionError):
    """Something is not as it has to be."""


def require(what, condition):
    if not condition:
        raise Failure(what)


@contextlib.contextmanager
def differences():
    """Collects differences, and fails with the first of them."""
    found = []
    yield found.append
    if found:
        raise Failure("\n  ".join([f"{len(found)} differences", *found[:SHOWN]]))


class Zvf:
    """Runs the command."""

    def __init__(self, path):
        self.path = path

    def run(self, *words):
        """Returns a finished command."""
        return subprocess.run([self.path, *map(str, words)], capture_output=True, text=True)

    def __call__(self, *words):
        """Returns the output of a command that has to succeed."""
        done = self.run(*words)
        require(f"zvf {' '.join(map(str, words))}: {done.stdout[-500:]}{done.stderr}", done.returncode == 0)
        return done.stdout

    def json(self, *words):
        return json.loads(self(*words, "--json"))

    def create(self, store, arrays, *words):
        """Creates a store of interchange arrays."""
        source = pathlib.Path(f"{store}.in.npz")
        np.savez(source, **arrays)
        self("create", store, "--from", source, "--quiet", *words)
        return store

    def query(self, store, *words):
        """Returns the arrays of a query."""
        target = pathlib.Path(f"{store}.out.npz")
        self("query", store, "-o", target, "--quiet", *words)
        with np.load(target) as read:
            return dict(read)

    def codes(self, store, *severities):
        """Returns the codes of findings of `zvf validate`."""
        printed = json.loads(self.run("validate", store, "--json").stdout)
        return {one["code"] for one in printed["findings"] if one["severity"] in severities}


def read_lines(program, requests):
    """Sends requests as lines of JSON at once, and returns the responses; a file as input cannot deadlock."""
    import tempfile

    with tempfile.TemporaryFile("w+") as stdin:
        stdin.writelines(json.dumps(request) + "\n" for request in requests)
        stdin.seek(0)
        done = subprocess.run([program], stdin=stdin, stdout=subprocess.PIPE, text=True, check=True)
    responses = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(responses) == len(requests), "a response is missing"
    return responses


class Files:
    """Turns files of other programs into stores and back, in a folder."""

    def __init__(self, zvf, folder, equal):
        self.zvf, self.folder, self.equal = zvf, folder, equal

    def store(self, source, *words):
        """Returns a store of a file."""
        store = self.folder / f"{source.name}.zv"
        self.zvf("create", store, "--from", source, *words, "--quiet")
        return store

    def back(self, store, name):
        """Returns the file that a store becomes."""
        self.zvf("query", store, "-o", self.folder / name, "--quiet")
        return self.folder / name

    def refused(self, source, *reasons):
        """Checks that no store is made of a file, and why."""
        done = self.zvf.run("create", self.folder / "refused.zv", "--from", source, "--quiet")
        named = any(reason in done.stderr for reason in reasons)
        require(f"{source}: {done.stderr}", done.returncode != 0 and named)
        self.equal(f"{source.name}, refused")
