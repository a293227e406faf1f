# The Python of docs/cli.md, one section for each command. `cargo xtask python` runs it from top to
# bottom in a folder with the samples of the guide.

# --- zvf info
import zvf

tracts = zvf.open("tracts.zv")
print(tracts)
print(tracts.info().levels, tracts.attributes())

# --- zvf links
old = zvf.open("old.zv")
print(old.link_info(), old.stored_links()[0].rows)

# --- zvf query
near = tracts.query(bbox=((0, 0, 0), (10, 10, 10)), mode="clip", where="vertex.fa > 0.3")
print(near.positions, near.part_offsets, near.vertex["fa"])
tracts.save("near.csv", bbox=((0, 0, 0), (10, 10, 10)))
two = tracts.query(objects=[17, 4], select=["fa", "object.length"])
five = tracts.nearest((1, 2, 3), 5)
print(tracts.count(budget=1000))
print(tracts.explain(sphere=((0, 8, 10), 5)))

# --- zvf validate
report = zvf.validate("tracts.zv")
print(report.ok, report.findings)
zvf.repair("tracts.zv")
zvf.seal("tracts.zv")

# --- zvf create
import pandas

units = [(axis, "micrometer") for axis in "xyz"]
zvf.create("cells.zv", kind="points", source=pandas.read_csv("cells.csv"), axes=units)
nodes, edges = pandas.read_csv("nodes.csv"), pandas.read_csv("edges.csv")
zvf.create("wires.zv", kind="graphs", source=nodes, links=edges, chunk_shape=(50, 50, 50), sharding="auto")
zvf.create("fibres.zv", source="tracts.trk", compression="zstd")
zvf.create("neurons.zv", source="neurons")
zvf.create("two.zv", kind="streamlines", source=two)
zvf.create("again.zv", kind="streamlines", source="near.csv")

# --- zvf convert
zvf.convert("tracts.trk", "tracts.tck")
zvf.convert("neurons", "neurons.glb")
zvf.convert("cloud.csv", "cloud.laz", kind="points", strict=True)

# --- zvf task
plan = zvf.plan_create("large.zv", "tracts.trk", tasks=2)
for task in range(plan.tasks):
    plan.run(task)
print(plan.missing(), plan.commit())

# --- zvf append
more = pandas.read_csv("more.csv")
tracts.append(
    positions=more[["x", "y", "z"]], vertex=more[["fa"]], part_offsets=range(0, len(more) + 1, 30),
    out_of_bounds="expand",
)

# --- zvf edit
seven = tracts.query(objects=7)
tracts.replace(
    positions=seven.positions + 0.5, part_offsets=seven.part_offsets,
    part_objects=seven.part_objects, vertex=seven.vertex,
)
cloud = zvf.open("cloud.zv")
found = cloud.query(row_ids=True)
cloud.write_attributes(
    vertex={"height": found.positions[:, 2]}, row_ids=found.row_ids, transaction=found.transaction
)

# --- zvf delete
print(tracts.query(where="object.length < 5", select=[]).objects)
tracts.delete(objects=[3, 4])
tracts.delete(bbox=((0, 0, 0), (9, 9, 9)), mode="within")
cloud.delete_vertices(where="class = 7")
noise = cloud.query(where="class = 18", row_ids=True)
cloud.delete_vertices(noise.row_ids, noise.transaction)

# --- zvf compact
tracts.compact()

# --- zvf migrate
zvf.migrate("old.zv", "new.zv")
zvf.migrate("new.zv", "older.zv", profile="0.8")

# --- zvf pyramid
tracts.pyramid(levels=2, method="bins", rules={"fa": "max"})
tracts.pyramid(refresh=True)

# --- zvf sample
tracts.sample("md.nii", into="md")
tracts.sample("volume.npy", into="t1", outside="edge")
tracts.sample("volume.npy", into="mean_t1", reduce="mean")

# --- zvf render
picture = tracts.render(color="fa", view="sagittal")
picture.save("fa.png")

# --- zvf export precomputed
tracts.export_precomputed("tracts.precomputed")
tracts.export_precomputed("lines.precomputed", sharded=True, layers=["annotations"])

# --- zvf view
with zvf.view("tracts.zv", port=0) as page:
    print(page.link)

# --- zvf serve
with zvf.serve("tracts.zv", "md.nii", port=0) as server:
    print(server.link, server.notes)

# --- zvf tet
zvf.dense.convert("volume.npy", "volume.tet", checksums=True)
volume = zvf.dense.open("volume.tet")
print(volume.shape, volume.dtype, volume.chunks, volume[0:2, 0:2, 0:2])
print(zvf.dense.verify("volume.tet"))
print(zvf.dense.query("volume.tet", {"dataset": "volume", "filter": {"gt": 0}, "mean": []}))
zvf.dense.convert("volume.tet", "copy.b2nd")

# --- zvf b2nd
zvf.dense.save("volume.b2nd", volume, chunks=(16, 16, 16))
box = zvf.dense.open("volume.b2nd")[0:2, 0:2, 0:2]
print(zvf.dense.verify("volume.b2nd"))
