"""TRX with trx-python. The file is mapped; every result is copied, as with the other peers."""

import os
import zipfile
from importlib import metadata

import numpy as np
import trx.trx_file_memmap as trx
from nibabel.streamlines import ArraySequence

from worker import Peer, paths_inside, remove, serve


def sequence(values, offsets):
    made = ArraySequence()
    made._data, made._offsets, made._lengths = values, offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int64)
    return made


class Trx(Peer):
    name = "trx"

    def __init__(self, data, folder):
        super().__init__(data, folder)
        self.path += ".trx"
        self.file = None
        self.turn = 0

    def version(self):
        return f"trx-python {metadata.version('trx-python')}"

    def before_write(self):
        offsets = self.data.load("offsets")
        made = trx.TrxFile(nb_vertices=self.data.vertices, nb_streamlines=self.data.objects)
        made.streamlines = sequence(self.data.load("positions"), offsets)
        made.data_per_vertex = {"fa": sequence(self.data.load("vertex_fa")[:, None], offsets)}
        objects = self.data.attributes("object")
        made.data_per_streamline = {name: values[:, None] for name, values in objects.items()}
        made.header["VOXEL_TO_RASMM"] = np.eye(4)
        made.header["DIMENSIONS"] = np.array([180, 180, 180], dtype=np.uint16)
        self.made = made
        if self.file is not None:
            self.file.close()
            self.file = None
        remove(self.path)

    def write(self):
        trx.save(self.made, self.path, compression_standard=zipfile.ZIP_STORED)
        return self.made.streamlines._data

    def open(self):
        trx.load(self.path).close()

    def whole(self):
        self.made = None
        file = trx.load(self.path)
        result = np.array(file.streamlines._data)
        self.others = [np.array(file.streamlines._offsets), np.array(file.data_per_vertex["fa"]._data)]
        self.others.extend(np.array(values) for values in file.data_per_streamline.values())
        file.close()
        return result

    def loaded(self):
        if self.file is None:
            self.file = trx.load(self.path)
            self.offsets = np.append(self.file.streamlines._offsets, self.data.vertices)
        return self.file

    def rows(self, numbers):
        file = self.loaded()
        places, values = file.streamlines._data, file.data_per_vertex["fa"]._data
        ends = [(self.offsets[number], self.offsets[number + 1]) for number in numbers]
        self.others = [np.array(values[start:end]) for start, end in ends]
        copied = [np.array(places[start:end]) for start, end in ends]
        return np.concatenate(copied) if copied else copied

    def box(self, corners):
        return self.rows(paths_inside(self.loaded().streamlines._data, self.offsets, corners))

    def one(self):
        self.turn += 1
        return self.rows([self.data.ids[self.turn % len(self.data.ids)]])

    def hundred(self):
        return self.rows(self.data.ids)


serve(Trx)
