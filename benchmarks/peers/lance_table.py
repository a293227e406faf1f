"""Points in Lance: rows along a z-order curve, zone maps on coordinates."""

import lance
import pyarrow as pa

from worker import Peer, remove, serve, z_order


class Lance(Peer):
    name = "lance"

    def version(self):
        return f"pylance {lance.__version__}"

    def before_write(self):
        self.table = None
        self.places = self.data.load("positions")
        self.values = self.data.attributes("vertex")

    def write(self):
        remove(self.path)
        order = z_order(self.places, self.data.side)
        places = self.places[order]
        columns = {axis: places[:, number] for number, axis in enumerate("xyz")}
        columns |= {name: values[order] for name, values in self.values.items()}
        written = lance.write_dataset(pa.table(columns), self.path)
        for axis in "xyz":
            written.create_scalar_index(axis, index_type="ZONEMAP")
        return self.places

    def loaded(self):
        if self.table is None:
            self.places = self.values = None
            self.table = lance.dataset(self.path)
        return self.table

    def open(self):
        lance.dataset(self.path).count_rows()

    def whole(self):
        return lance.dataset(self.path).to_table()

    def box(self, corners):
        sides = zip("xyz", *corners.tolist())
        return self.loaded().to_table(filter=" and ".join(f"{axis} >= {low} and {axis} <= {high}" for axis, low, high in sides))

    def filter(self):
        return self.loaded().to_table(filter="intensity > 3000")


serve(Lance)
