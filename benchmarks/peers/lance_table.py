"""Points in Lance: rows along a z-order curve, zone maps on coordinates."""

import lance
import pyarrow as pa

from worker import Peer, serve, z_order


class Lance(Peer):
    name, package = "lance", "pylance"

    def write(self):
        order = z_order(self.places, self.data.side)
        places = self.places[order]
        columns = {axis: places[:, number] for number, axis in enumerate("xyz")}
        columns |= {name: values[order] for name, values in self.values.items()}
        written = lance.write_dataset(pa.table(columns), self.path)
        for axis in "xyz":
            written.create_scalar_index(axis, index_type="ZONEMAP")
        return self.places

    def opened(self):
        return lance.dataset(self.path)

    def open(self):
        self.opened().count_rows()

    def whole(self):
        return self.opened().to_table()

    def box(self, corners):
        sides = zip("xyz", *corners.tolist())
        return self.loaded().to_table(filter=" and ".join(f"{axis} >= {low} and {axis} <= {high}" for axis, low, high in sides))

    def filter(self):
        return self.loaded().to_table(filter="intensity > 3000")


serve(Lance)
