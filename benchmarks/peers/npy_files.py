"""Raw `.npy` files: the limit for uncompressed data. There is no index: boxes and filters test every vertex."""

import os

import numpy as np

from worker import Peer, inside, paths_inside, serve


class Npy(Peer):
    name, package = "npy", "numpy"

    def before_write(self):
        super().before_write()
        self.made = {name: self.data.load(name) for name in self.data.names()}

    def write(self):
        os.makedirs(self.path)
        for name, column in self.made.items():
            np.save(f"{self.path}/{name}.npy", column)
        return self.places

    def read(self, **options):
        return {name: np.load(f"{self.path}/{name}.npy", **options) for name in self.data.names()}

    def whole(self):
        return self.read()

    def opened(self):
        return self.read(mmap_mode="r")

    def count(self, done):
        return super().count(done["positions"] if isinstance(done, dict) else done)

    def of_vertices(self):
        return [column for name, column in self.loaded().items() if name.startswith("vertex_")]

    def objects(self, ids):
        """Copies rows of objects: positions and attributes, and for skeletons their links."""
        maps = self.loaded()
        offsets, places, self.others = maps["offsets"], [], []
        for number in ids:
            start, end = offsets[number], offsets[number + 1]
            places.append(np.array(maps["positions"][start:end]))
            self.others.extend(np.array(column[start:end]) for column in self.of_vertices())
            if "links" in maps:
                # Each node of a tree except its root has one link, in order.
                self.others.append(np.array(maps["links"][start - number:end - number - 1]) - start)
        return np.concatenate(places)

    def box(self, corners):
        maps = self.loaded()
        if self.data.kind == "streamlines":
            paths = paths_inside(maps["positions"], maps["offsets"], corners)
            return self.objects(paths) if len(paths) else paths
        held = inside(maps["positions"], corners)
        result = np.asarray(maps["positions"][held])
        self.others = [np.asarray(column[held]) for column in self.of_vertices()]
        if "links" in maps:
            links = maps["links"]
            self.others.append(links[held[links].all(axis=1)])
        return result

    def filter(self):
        maps = self.loaded()
        held = maps["vertex_intensity"] > 3000
        self.others = [column[held] for column in self.of_vertices()]
        return maps["positions"][held]


serve(Npy)
