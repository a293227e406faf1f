"""Skeletons and meshes in Neuroglancer's precomputed format, with cloud-volume: skeletons in shards with a spatial
index, meshes as fragments."""

import contextlib
import io
import json
import os

import numpy as np
from cloudfiles import CloudFiles
from cloudvolume import Bbox, CloudVolume, Mesh, Skeleton
from cloudvolume.datasource.precomputed.sharding import synthesize_shard_files

from worker import Peer, serve

# Size of a cell of the spatial index.
CELL = 125


class Precomputed(Peer):
    name, package = "precomputed", "cloud-volume"

    def __init__(self, data, folder):
        super().__init__(data, folder)
        self.address = "file://" + os.path.abspath(self.path)

    def write(self):
        is_mesh = self.data.kind == "mesh"
        side = int(self.data.side)
        info = CloudVolume.create_new_info(
            1, "segmentation", "uint64", "raw", (1, 1, 1), (0, 0, 0), (side,) * 3, chunk_size=(64, 64, 64),
            mesh="mesh" if is_mesh else None, skeletons=None if is_mesh else "skeletons")
        volume = CloudVolume(self.address, info=info, progress=False)
        volume.commit_info()
        if is_mesh:
            made = Mesh(self.places, self.links.astype(np.uint32), normals=None, segid=1)
            volume.mesh.put([made], skip_delete=True)
            return self.places
        volume.skeleton.meta.info["vertex_attributes"] = [{"id": "radius", "data_type": "float32", "num_components": 1}]
        volume.skeleton.to_sharded(num_labels=self.data.objects)
        volume.skeleton.meta.info["spatial_index"] = {"resolution": [1, 1, 1], "chunk_size": [CELL] * 3}
        volume.skeleton.meta.commit_info()
        volume.commit_info()
        volume = CloudVolume(self.address, progress=False)
        skeletons = {made.id: made.to_precomputed() for made in self.skeletons()}
        files = CloudFiles(volume.skeleton.meta.layerpath)
        files.puts(synthesize_shard_files(volume.skeleton.reader.spec, skeletons).items(), compress=False)
        files.puts(self.cells(), compress="gzip", content_type="application/json")
        return self.places

    def skeletons(self):
        radius = self.values["radius"]
        for number, (start, end) in enumerate(zip(self.offsets[:-1], self.offsets[1:])):
            edges = self.links[start - number:end - number - 1] - start
            yield Skeleton(self.places[start:end], edges.astype(np.uint32), radii=radius[start:end], segid=number + 1)

    def cells(self):
        """Returns for each cell the skeletons in it and their boxes."""
        starts = self.offsets[:-1]
        low, high = np.minimum.reduceat(self.places, starts), np.maximum.reduceat(self.places, starts)
        owners = np.repeat(np.arange(self.data.objects), np.diff(self.offsets))
        count = int(np.ceil(self.data.side / CELL))
        cell = np.minimum((self.places // CELL).astype(np.int64), count - 1)
        number = (cell[:, 0] * count + cell[:, 1]) * count + cell[:, 2]
        held = {}
        for pair in np.unique(number * (1 << 32) + owners).tolist():
            owner = pair & 0xFFFFFFFF
            held.setdefault(pair >> 32, {})[str(owner + 1)] = [*low[owner].tolist(), *high[owner].tolist()]
        for number in range(count ** 3):
            corner = np.array([number // count // count, number // count % count, number % count]) * CELL
            box = Bbox(corner, np.minimum(corner + CELL, int(self.data.side)))
            yield box.to_filename() + ".spatial", json.dumps(held.get(number, {})).encode()

    def opened(self):
        volume = CloudVolume(self.address, progress=False)
        return volume.mesh if self.data.kind == "mesh" else volume.skeleton

    def count(self, done):
        if isinstance(done, np.ndarray):
            return len(done)
        done = done.values() if isinstance(done, dict) else done if isinstance(done, (list, tuple)) else [done]
        return sum(len(each.vertices) for each in done if each is not None)

    def get(self, ids):
        with contextlib.redirect_stderr(io.StringIO()):
            return self.loaded().get(ids)

    def open(self):
        CloudVolume(self.address, progress=False)
        return []

    def whole(self):
        return self.get(list(range(1, self.data.objects + 1)))

    def objects(self, ids):
        return self.get([id + 1 for id in ids])

    def box(self, corners):
        """Returns all skeletons of the cells that a box touches, and their vertices in the box."""
        if self.data.kind == "mesh":
            raise NotImplementedError("meshes have no spatial index")
        low, high = corners
        box = Bbox(np.floor(low).astype(int), np.ceil(high).astype(int))
        near = self.get(list(self.loaded().spatial_index.query(box)))
        return [each.crop(Bbox(low, high)) for each in near]


serve(Precomputed)
