"""The Python package of `zvf`, with arrays in memory."""

import numpy as np
import zvf

from worker import Peer, serve

KINDS = {"graph": "graphs"}


class Package(Peer):
    name = "package-zvf"

    def version(self):
        return f"zvf {zvf.__version__} for Python"

    def before_write(self):
        super().before_write()
        data = self.data
        arrays = {"kind": KINDS.get(data.kind, data.kind), "positions": self.places, "vertex": self.values}
        if data.objects:
            if data.kind == "streamlines":
                arrays["part_offsets"] = self.offsets
            else:
                arrays["object_ids"] = np.repeat(np.arange(data.objects), np.diff(self.offsets))
            arrays["object"] = self.of_objects
        if self.links is not None:
            arrays |= {"links": self.links, "link": self.of_links}
        self.made = arrays

    def write(self):
        zvf.create(self.path, **self.made)
        return self.places

    def open(self):
        zvf.open(self.path)

    def opened(self):
        return zvf.open(self.path)

    def whole(self):
        return zvf.open(self.path).query()

    def box(self, corners):
        return self.loaded().query(bbox=corners.tolist())

    def filter(self):
        return self.loaded().query(where="intensity > 3000")

    def objects(self, ids):
        return self.loaded().query(objects=ids)


serve(Package)
