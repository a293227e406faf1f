"""The Python package of `zvf`, with arrays in memory."""

import numpy as np
import zvf

from worker import Peer, remove, serve

KINDS = {"graph": "graphs"}


class Package(Peer):
    name = "package-zvf"

    def version(self):
        return f"zvf {zvf.__version__} for Python"

    def before_write(self):
        self.store, data = None, self.data
        arrays = {"kind": KINDS.get(data.kind, data.kind), "positions": data.load("positions"),
                  "vertex": data.attributes("vertex")}
        if data.objects:
            offsets = data.load("offsets")
            if data.kind == "streamlines":
                arrays["part_offsets"] = offsets
            else:
                arrays["object_ids"] = np.repeat(np.arange(data.objects), np.diff(offsets))
            arrays["object"] = data.attributes("object")
        if data.kind in ("skeletons", "mesh", "graph"):
            arrays |= {"links": data.load("links"), "link": data.attributes("link")}
        self.arrays = arrays
        remove(self.path)

    def write(self):
        zvf.create(self.path, **self.arrays)
        return self.arrays["positions"]

    def open(self):
        zvf.open(self.path)

    def loaded(self):
        if self.store is None:
            self.arrays, self.store = None, zvf.open(self.path)
        return self.store

    def whole(self):
        return zvf.open(self.path).query()

    def box(self, corners):
        return self.loaded().query(bbox=corners.tolist())

    def filter(self):
        return self.loaded().query(where="intensity > 3000")

    def one(self):
        self.turn = getattr(self, "turn", 0) + 1
        return self.loaded().query(objects=int(self.data.ids[self.turn % len(self.data.ids)]))

    def hundred(self):
        return self.loaded().query(objects=self.data.ids.tolist())


serve(Package)
