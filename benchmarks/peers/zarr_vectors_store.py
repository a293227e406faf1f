"""The reference, zarr-vectors 0.9.2; with `--compat`, `zvf.compat` in its place."""

import shutil
import sys
import warnings

if "--compat" in sys.argv:
    import zvf.compat

    zvf.compat.install()

import numpy as np
import zarr_vectors
from zarr_vectors import building

from worker import Peer, remove, serve

warnings.filterwarnings("ignore")

KINDS = {"streamlines": "polyline", "points": "point_cloud", "skeletons": "skeleton", "mesh": "mesh", "graph": "graph"}


class ZarrVectors(Peer):
    name = "zvf.compat" if "--compat" in sys.argv else "zarr-vectors"

    def __init__(self, data, folder):
        super().__init__(data, folder)
        self.path += ".zarrvectors"
        self.store = None
        self.turn = 0

    def version(self):
        return f"{self.name} {zarr_vectors.__version__}"

    def cells(self):
        """Follows its documentation: 10 000 to 100 000 vertices in an occupied chunk."""
        if self.data.kind == "mesh":
            return 5
        return 4 if self.data.vertices < 3_000_000 else 8 if self.data.kind != "streamlines" else 6

    def before_write(self):
        self.store = None
        self.places = self.data.load("positions")
        self.values = self.data.attributes("vertex")
        if self.data.objects:
            self.offsets = self.data.load("offsets")
            self.of_objects = self.data.attributes("object")
        if self.data.kind in ("skeletons", "mesh", "graph"):
            self.links = self.data.load("links")
        if self.data.kind == "streamlines":
            self.paths = self.split(self.places)
            self.values = {name: self.split(values) for name, values in self.values.items()}
        remove(self.path)

    def split(self, values):
        return [values[start:end] for start, end in zip(self.offsets[:-1], self.offsets[1:])]

    def write(self):
        bounds = (0.0,) * 3, (float(self.data.side),) * 3
        schema = zarr_vectors.Schema(
            bounds=bounds, kind=KINDS[self.data.kind], expected=zarr_vectors.SizeHints(n_vertices=self.data.vertices),
            layout=zarr_vectors.Layout(cells=self.cells(), pack="auto"))
        made = zarr_vectors.create(self.path, schema=schema)
        if self.data.kind == "points":
            made.add_points(self.places, attributes=self.values)
        elif self.data.kind == "streamlines":
            made.add_polylines(self.paths, attributes=self.values, object_attributes=self.of_objects, streamlines=True)
        elif self.data.kind == "graph":
            made.add_graph(self.places, self.links, attributes=self.values, edge_attributes=self.data.attributes("link"))
        else:
            ids = np.repeat(np.arange(self.data.objects), np.diff(self.offsets))
            if self.data.kind == "mesh":
                made.add_mesh(self.places, self.links, attributes=self.values, object_ids=ids)
            else:
                made.add_graph(self.places, self.links, attributes=self.values, object_ids=ids,
                               object_attributes=self.of_objects, tree=True)
        return self.places

    def count(self, done):
        if done is None or isinstance(done, np.ndarray):
            return 0 if done is None else len(done)
        return int(done.vertex_count)

    def open(self):
        zarr_vectors.open(self.path).level(0).vertex_count

    def loaded(self):
        if self.store is None:
            self.places = self.values = self.links = self.paths = None
            self.store = zarr_vectors.open(self.path)
        return self.store

    def whole(self):
        return zarr_vectors.open(self.path).read()

    def box(self, corners):
        low, high = corners
        return self.loaded().select(bbox=(low, high)).read()

    def filter(self):
        read = zarr_vectors.open(self.path).read()
        held = read.attributes["intensity"] > 3000
        self.others = [read.attributes[name][held] for name in read.attributes.names()]
        return read.positions[held]

    def vertices_of(self, number):
        level = building.get_resolution_level(building.open_store(self.path, mode="r"), 0)
        return np.concatenate(building.read_object_vertices(level, int(number), ndim=3))

    def one(self):
        self.turn += 1
        number = self.data.ids[self.turn % len(self.data.ids)]
        if self.data.kind == "streamlines":
            return self.loaded().level(0).objects[int(number)]
        # It cannot read the links of a single object.
        return self.vertices_of(number)

    def hundred(self):
        if self.data.kind == "streamlines":
            return self.loaded().level(0).objects[[int(number) for number in self.data.ids]]
        return np.concatenate([self.vertices_of(number) for number in self.data.ids])

    def validate(self):
        from zarr_vectors.validate import validate

        validate(self.path, level=3)
        return None

    def before_pyramid(self):
        # Use a copy, because building over existing levels is another operation.
        self.copy = self.path + ".levels"
        remove(self.copy)
        shutil.copytree(self.path, self.copy)

    def pyramid(self):
        opened = zarr_vectors.open(self.copy, mode="r+")
        opened.build_pyramid(factors=[(2.0, 1.0), (2.0, 1.0)], chunk_scale_factors=[2, 2])
        return None


serve(ZarrVectors)
