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
    name, ending = "zvf.compat" if "--compat" in sys.argv else "zarr-vectors", ".zarrvectors"

    def version(self):
        return f"{self.name} {zarr_vectors.__version__}"

    def cells(self):
        """Follows its documentation: 10 000 to 100 000 vertices in an occupied chunk."""
        if self.data.kind == "mesh":
            return 5
        return 4 if self.data.vertices < 3_000_000 else 8 if self.data.kind != "streamlines" else 6

    def before_write(self):
        super().before_write()
        if self.data.kind == "streamlines":
            self.made = self.split(self.places)
            self.values = {name: self.split(values) for name, values in self.values.items()}

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
            made.add_polylines(self.made, attributes=self.values, object_attributes=self.of_objects, streamlines=True)
        elif self.data.kind == "graph":
            made.add_graph(self.places, self.links, attributes=self.values, edge_attributes=self.of_links)
        else:
            ids = np.repeat(np.arange(self.data.objects), np.diff(self.offsets))
            if self.data.kind == "mesh":
                made.add_mesh(self.places, self.links, attributes=self.values, object_ids=ids)
            else:
                made.add_graph(self.places, self.links, attributes=self.values, object_ids=ids,
                               object_attributes=self.of_objects, tree=True)
        return self.places

    def count(self, done):
        return int(done.vertex_count) if hasattr(done, "vertex_count") else super().count(done)

    def open(self):
        zarr_vectors.open(self.path).level(0).vertex_count

    def opened(self):
        return zarr_vectors.open(self.path)

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

    def objects(self, ids):
        if self.data.kind == "streamlines":
            return self.loaded().level(0).objects[ids[0] if len(ids) == 1 else ids]
        # It cannot read the links of a single object.
        return np.concatenate([self.vertices_of(number) for number in ids])

    def validate(self):
        from zarr_vectors.validate import validate

        validate(self.path, level=3)

    def before_pyramid(self):
        # Use a copy, because building over existing levels is another operation.
        self.copy = self.path + ".levels"
        remove(self.copy)
        shutil.copytree(self.path, self.copy)

    def pyramid(self):
        opened = zarr_vectors.open(self.copy, mode="r+")
        opened.build_pyramid(factors=[(2.0, 1.0), (2.0, 1.0)], chunk_scale_factors=[2, 2])


serve(ZarrVectors)
