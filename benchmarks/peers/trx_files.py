"""TRX with trx-python. The file is mapped; every result is copied, as with the other peers."""

import zipfile

import numpy as np
import trx.trx_file_memmap as trx
from nibabel.streamlines import ArraySequence

from worker import Peer, paths_inside, serve


def sequence(values, offsets):
    made = ArraySequence()
    made._data, made._offsets, made._lengths = values, offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    return made


class Trx(Peer):
    name, package, ending = "trx", "trx-python", ".trx"

    def before_write(self):
        if self.store is not None:
            self.store.close()
        super().before_write()
        made = trx.TrxFile(nb_vertices=self.data.vertices, nb_streamlines=self.data.objects)
        made.streamlines = sequence(self.places, self.offsets)
        made.data_per_vertex = {"fa": sequence(self.values["fa"][:, None], self.offsets)}
        made.data_per_streamline = {name: values[:, None] for name, values in self.of_objects.items()}
        made.header["VOXEL_TO_RASMM"] = np.eye(4)
        made.header["DIMENSIONS"] = np.array([180, 180, 180], dtype=np.uint16)
        self.made = made

    def write(self):
        trx.save(self.made, self.path, compression_standard=zipfile.ZIP_STORED)
        return self.places

    def open(self):
        trx.load(self.path).close()

    def whole(self):
        file = trx.load(self.path)
        result = np.array(file.streamlines._data)
        self.others = [np.array(file.streamlines._offsets), np.array(file.data_per_vertex["fa"]._data)]
        self.others.extend(np.array(values) for values in file.data_per_streamline.values())
        file.close()
        return result

    def opened(self):
        file = trx.load(self.path)
        self.ends = np.append(file.streamlines._offsets, self.data.vertices)
        return file

    def objects(self, ids):
        file = self.loaded()
        places, values = file.streamlines._data, file.data_per_vertex["fa"]._data
        ends = [(self.ends[number], self.ends[number + 1]) for number in ids]
        self.others = [np.array(values[start:end]) for start, end in ends]
        copied = [np.array(places[start:end]) for start, end in ends]
        return np.concatenate(copied) if copied else copied

    def box(self, corners):
        places = self.loaded().streamlines._data
        return self.objects(paths_inside(places, self.ends, corners))


serve(Trx)
