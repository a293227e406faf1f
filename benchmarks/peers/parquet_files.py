"""Parquet written by pyarrow, queried through DuckDB: points and graphs along a z-order curve, zstd."""

import os

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from worker import Peer, serve, z_order

OPTIONS = {"compression": "zstd", "use_dictionary": False, "write_page_index": True, "row_group_size": 65536}


class Parquet(Peer):
    name = "parquet"

    def __init__(self, data, folder):
        super().__init__(data, folder)
        self.base = duckdb.connect()
        self.base.execute(f"PRAGMA threads={os.cpu_count()}")
        self.nodes, self.edges = f"{self.path}/nodes.parquet", f"{self.path}/edges.parquet"

    def version(self):
        return f"pyarrow {pa.__version__}, duckdb {duckdb.__version__}"

    def write(self):
        os.makedirs(self.path)
        order = z_order(self.places, self.data.side)
        places = self.places[order]
        columns = {axis: places[:, number] for number, axis in enumerate("xyz")}
        columns |= {name: values[order] for name, values in self.values.items()}
        if self.data.kind != "graph":
            pq.write_table(pa.table(columns), self.nodes, **OPTIONS)
            return order
        columns["id"] = np.arange(len(order))
        pq.write_table(pa.table(columns), self.nodes, **OPTIONS)
        rows = np.empty(len(order), np.int64)
        rows[order] = np.arange(len(order))
        links = rows[self.links]
        sort = np.argsort(links[:, 0], kind="stable")
        links = links[sort]
        edges = {"source": links[:, 0], "target": links[:, 1]}
        # Both ends, so that a box finds the edges inside without a join.
        for end, name in enumerate("ab"):
            ends = places[links[:, end]]
            edges |= {f"{axis}{name}": ends[:, number] for number, axis in enumerate("xyz")}
        edges |= {name: values[sort] for name, values in self.of_links.items()}
        pq.write_table(pa.table(edges), self.edges, **OPTIONS)
        return order

    def count(self, done):
        return len(done[0]) if isinstance(done, tuple) else super().count(done)

    def open(self):
        pq.ParquetFile(self.nodes).metadata.num_rows

    def whole(self):
        return pq.read_table(self.nodes), pq.read_table(self.edges) if os.path.exists(self.edges) else None

    def query(self, where, table):
        return self.base.execute(f"select * from '{table}' where {where}").to_arrow_table()

    def box(self, corners):
        sides = list(zip("xyz", *corners.tolist()))
        nodes = self.query(" and ".join(f"{axis} between {low} and {high}" for axis, low, high in sides), self.nodes)
        if self.data.kind != "graph":
            return nodes
        ends = [f"{axis}{end} between {low} and {high}" for axis, low, high in sides for end in "ab"]
        return nodes, self.query(" and ".join(ends), self.edges)

    def filter(self):
        return self.query("intensity > 3000", self.nodes)


serve(Parquet)
