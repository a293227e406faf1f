"""Points in LAZ with laspy. There is no index: boxes and filters read the whole file."""

import laspy
import numpy as np

from worker import Peer, inside, serve


class Laz(Peer):
    name, package, ending = "laz", "laspy", ".laz"

    def write(self):
        header = laspy.LasHeader(point_format=6, version="1.4")
        header.scales, header.offsets = np.full(3, 1 / 256), np.zeros(3)
        made = laspy.LasData(header)
        made.x, made.y, made.z = (self.places[:, axis] for axis in range(3))
        made.intensity = self.values["intensity"].astype(np.uint16)
        made.classification = self.values["label"].astype(np.uint8)
        made.write(self.path, laz_backend=laspy.LazBackend.LazrsParallel)
        return self.places

    def open(self):
        with laspy.open(self.path) as file:
            file.header.point_count

    def whole(self):
        read = laspy.read(self.path, laz_backend=laspy.LazBackend.LazrsParallel)
        self.others = np.array(read.intensity), np.array(read.classification)
        return np.column_stack([read.x, read.y, read.z]).astype(np.float32)

    def box(self, corners):
        places = self.whole()
        return places[inside(places, corners)]

    def filter(self):
        places = self.whole()
        return places[self.others[0] > 3000]


serve(Laz)
