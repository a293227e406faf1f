"""Raw `.npy` files: the limit for uncompressed data. There is no index: boxes and filters test
every vertex.
"""

import os

import numpy as np

from worker import Peer, inside, paths_inside, remove, serve


class Npy(Peer):
    name = "npy"

    def __init__(self, data, folder):
        super().__init__(data, folder)
        self.mapped = None

    def version(self):
        return f"numpy {np.__version__}"

    def before_write(self):
        self.mapped = None
        self.columns = {name: self.data.load(name) for name in self.data.names()}

    def write(self):
        remove(self.path)
        os.makedirs(self.path)
        for name, column in self.columns.items():
            np.save(f"{self.path}/{name}.npy", column)
        return self.columns["positions"]

    def whole(self):
        self.columns = None
        return {name: np.load(f"{self.path}/{name}.npy") for name in self.data.names()}

    def count(self, done):
        if isinstance(done, dict):
            return len(done["positions"])
        return super().count(done)

    def maps(self):
        if self.mapped is None:
            self.mapped = {name: np.load(f"{self.path}/{name}.npy", mmap_mode="r") for name in self.data.names()}
        return self.mapped

    def of_vertices(self):
        return [column for name, column in self.maps().items() if name.startswith("vertex_")]

    def ranges(self, ids):
        """Copies rows of objects: positions and attributes, and for skeletons their links."""
        maps = self.maps()
        offsets = maps["offsets"]
        places, columns = [], []
        for number in ids:
            start, end = offsets[number], offsets[number + 1]
            places.append(np.array(maps["positions"][start:end]))
            columns.extend(np.array(column[start:end]) for column in self.of_vertices())
            if "links" in maps:
                # Each node of a tree except its root has one link, in order.
                columns.append(np.array(maps["links"][start - number:end - number - 1]) - start)
        return np.concatenate(places), columns

    def box(self, corners):
        maps = self.maps()
        if self.data.kind == "streamlines":
            paths = paths_inside(maps["positions"], maps["offsets"], corners)
            return self.ranges(paths)[0] if len(paths) else paths
        held = inside(maps["positions"], corners)
        result = np.asarray(maps["positions"][held])
        self.others = [np.asarray(column[held]) for column in self.of_vertices()]
        if "links" in maps:
            links = maps["links"]
            self.others.append(links[held[links].all(axis=1)])
        return result

    def filter(self):
        maps = self.maps()
        held = maps["vertex_intensity"] > 3000
        self.others = [column[held] for column in self.of_vertices()]
        return maps["positions"][held]

    def one(self):
        self.turn = getattr(self, "turn", 0) + 1
        return self.ranges([self.data.ids[self.turn % len(self.data.ids)]])[0]

    def hundred(self):
        return self.ranges(self.data.ids)[0]


serve(Npy)
