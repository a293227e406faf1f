"""Reads and writes files of the field with zvf and with other programs, in turns, in one run.

    files.py FOLDER ZVF READ [VERTICES [FILE...]]

Inputs are made here, with the writers of the other programs, and kept in FOLDER. FILE names the ones to
measure, as `tracts.trk`; all without it. A measurement is the best of three runs, each a process of its
own, with files in the page cache; a task that takes longer than 15 s runs once. Times of Python programs
exclude its start and imports; those of zvf and of zvtools are whole processes, whose starts are the
first lines of the output. `read` is READ, the example of zvf-files that reads a file in batches, and
its elapsed time excludes the start as well. Processor time is that of all threads, in the program and
in the kernel; on a machine with other work it is the figure to compare. Memory is the peak of a
process, of Python above that of its imports.

The floor of a format is a plain sequential read of the file and the cheapest decode of its numbers
that numpy does, into an array for each field: for text the parser of pandas, for LAZ the decoder of
lazrs, without the fields. GraphML, geff and GeoParquet have none: their judges are the cheapest decoders.
"""

import importlib
import json
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time
import zipfile

RUNS = 3
LONG = 15
MEMORY = 256 << 20
# Files, and the tasks of other programs with them.
FORMATS = {
    "tracts.trk": "nibabel_eager nibabel_lazy nibabel_copy zvtools",
    "tracts.tck": "nibabel_eager nibabel_lazy nibabel_copy zvtools",
    "tracts.trx": "trx_read trx_copy",
    "cloud.las": "laspy_read laspy_copy",
    "cloud.laz": "laspy_read laspy_copy",
    "surface.ply": "trimesh_read trimesh_copy",
    "surface.obj": "trimesh_read trimesh_copy",
    "surface.stl": "trimesh_read trimesh_copy",
    "surface.gii": "nibabel_surface nibabel_surface_copy",
    "surface.pial": "nibabel_freesurfer",
    "neurons": "navis_read",
    "network.graphml": "networkx_read",
    "network.geff": "geff_read",
    "roads.geoparquet": "geopandas_read geopandas_copy",
}
# Formats that zvf only reads, and formats without a floor.
READ_ONLY = {"surface.pial", "network.graphml", "network.geff"}
WITHOUT_FLOOR = {"network.graphml", "network.geff", "roads.geoparquet"}


def make(folder, vertices):
    """Writes the inputs that do not exist. Runs in a process of its own, whose memory no other has."""
    folder, vertices = pathlib.Path(folder), int(vertices)
    import laspy
    import nibabel
    import numpy as np
    import trimesh
    from nibabel.streamlines import Tractogram

    random = np.random.default_rng(23)
    count = vertices // 20
    trk, tck = folder / "tracts.trk", folder / "tracts.tck"
    if not trk.exists():
        start = random.uniform(20, 160, (count, 1, 3))
        steps = random.normal(0, 0.25, (count, 1, 3)) + random.normal(0, 0.3, (count, 20, 3))
        lines = (start + np.cumsum(steps, 1)).astype("f4")
        tractogram = Tractogram(list(lines), affine_to_rasmm=np.eye(4))
        nibabel.streamlines.save(tractogram, str(trk))
        nibabel.streamlines.save(tractogram, str(tck))
    las = folder / "cloud.las"
    if not las.exists():
        header = laspy.LasHeader(version="1.4", point_format=7)
        header.scales, header.offsets = [0.001] * 3, [500000.0, 5900000.0, 0.0]
        points = laspy.LasData(header)
        many = vertices // 2
        centres = random.integers(0, 2_000_000, (2000, 3))
        at = centres[np.sort(random.integers(0, 2000, many))] + random.normal(0, 9000, (many, 3)).astype("i8")
        points.X, points.Y, points.Z = at.T.astype("i4")
        points.intensity = random.integers(0, 4000, many)
        points.gps_time = np.sort(random.random(many) * 1e5)
        points.classification = random.integers(0, 20, many)
        for colour in ("red", "green", "blue"):
            points[colour] = random.integers(0, 65536, many)
        points.write(las)
        points.write(folder / "cloud.laz")
    mesh = folder / "surface.obj"
    if not mesh.exists():
        side = int((vertices // 20) ** 0.5)
        plane = np.stack(np.meshgrid(*[np.arange(side)] * 2, indexing="ij"), -1).reshape(-1, 2)
        height = np.sin(plane[:, :1] / 50) * 40 + random.random((side * side, 1))
        number = np.arange(side * side).reshape(side, side)
        corners = [number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]]
        quads = np.stack(corners, -1).reshape(-1, 4)
        faces = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
        surface = trimesh.Trimesh(np.hstack([plane, height]), faces, process=False)
        for ending in ("obj", "ply", "stl"):
            surface.export(folder / f"surface.{ending}")
        arrays = nibabel.gifti.GiftiDataArray
        points = arrays(surface.vertices.astype("f4"), intent="NIFTI_INTENT_POINTSET")
        triangles = arrays(surface.faces.astype("i4"), intent="NIFTI_INTENT_TRIANGLE")
        nibabel.save(nibabel.gifti.GiftiImage(darrays=[points, triangles]), folder / "surface.gii")
    neurons = folder / "neurons"
    if not neurons.exists():
        part = folder / "neurons.part"
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        for neuron in range(max(10, vertices // 4000)):
            places = np.cumsum(random.normal(0, 1, (1000, 3)), 0) + random.uniform(0, 1000, 3)
            rows = (f"{row + 1} 0 {x:.4f} {y:.4f} {z:.4f} 0.5 {row or -1}" for row, (x, y, z) in enumerate(places))
            (part / f"{neuron}.swc").write_text("\n".join(rows) + "\n")
        part.rename(neurons)
    packed = folder / "tracts.trx"
    if not packed.exists():
        from trx import trx_file_memmap

        tractogram = nibabel.streamlines.load(trk).tractogram
        trx_file_memmap.save(trx_file_memmap.TrxFile.from_tractogram(tractogram, str(trk)), str(packed))
    cortex = folder / "surface.pial"
    if not cortex.exists():
        points, triangles = (array.data for array in nibabel.load(folder / "surface.gii").darrays)
        nibabel.freesurfer.write_geometry(cortex, points, triangles)
    network = folder / "network.graphml"
    if not network.exists():
        import geff
        import networkx

        many = max(100, vertices // 100)
        places = random.uniform(0, 1000, (many, 3))
        graph = networkx.Graph()
        graph.add_nodes_from((node, dict(zip("xyz", map(float, place)))) for node, place in enumerate(places))
        ends = random.integers(0, many, (many * 2, 2))
        graph.add_edges_from((int(one), int(two), {"weight": 0.5}) for one, two in ends if one != two)
        networkx.write_graphml(graph, network)
        remove(folder / "network.geff")
        geff.write(graph, folder / "network.geff", axis_names=list("zyx"), axis_types=["space"] * 3)
    roads = folder / "roads.geoparquet"
    if not roads.exists():
        import geopandas
        import shapely

        many = max(10, vertices // 1000)
        places = random.uniform(0, 1e5, (many, 1, 2)) + np.cumsum(random.normal(0, 5, (many, 100, 2)), 1)
        lines = shapely.linestrings(places)
        frame = {"lanes": random.integers(1, 5, many), "speed": random.uniform(20, 130, many)}
        geopandas.GeoDataFrame(frame, geometry=lines, crs="EPSG:25832").to_parquet(roads)


# Tasks of other programs, as expressions over the path, the output and the module, which is named first.
TASKS = {
    "nibabel_eager": "nibabel.streamlines.load(path).streamlines.get_data()",
    "nibabel_lazy": "sum(len(line) for line in nibabel.streamlines.load(path, lazy_load=True).streamlines)",
    "nibabel_copy": "nibabel.streamlines.save(nibabel.streamlines.load(path).tractogram, str(out))",
    "nibabel_surface": "[array.data for array in nibabel.load(path).darrays]",
    "nibabel_surface_copy": "nibabel.save(nibabel.load(path), out)",
    "nibabel_freesurfer": "nibabel.freesurfer.read_geometry(path)",
    "laspy_read": "dimensions(laspy.read(path))",
    "laspy_copy": "laspy.read(path).write(out)",
    "trimesh_read": "trimesh.load(path, process=False)",
    "trimesh_copy": "trimesh.load(path, process=False).export(out)",
    "navis_read": "navis.read_swc(path, parallel=False, progress=False)",
    "trx_read": "[np.array(one) for one in sequence(trx.trx_file_memmap.load(str(path)).streamlines)]",
    "trx_copy": "trx.trx_file_memmap.save(trx.trx_file_memmap.load(str(path)), str(out))",
    "networkx_read": "networkx.read_graphml(path)",
    "geff_read": "geff.read(path)",
    "geopandas_read": "geopandas.read_parquet(path)",
    "geopandas_copy": "geopandas.read_parquet(path).to_parquet(out)",
    "floor": "floor(path)",
}


def sequence(lines):
    return lines._data, lines._offsets


def dimensions(points):
    """Returns the values that a store has: world coordinates and every dimension."""
    return points.xyz, [np.array(points[name]) for name in points.point_format.dimension_names]


def floor(path):
    """Reads a file and decodes its numbers in the cheapest way, into an array for each field."""
    if path.is_dir():
        return [pandas.read_csv(file, sep=" ", header=None, engine="c") for file in path.iterdir()]
    match path.suffix:
        case ".obj":
            return pandas.read_csv(path, sep=" ", header=None, names=list("abcd"), dtype=str, engine="c")
        case ".laz":
            return laspy.read(path).points.array
        case ".gii":
            return [array.data for array in nibabel.load(path).darrays]
        case ".trx":
            with zipfile.ZipFile(path) as archive:
                return [np.frombuffer(archive.read(name), "u1").copy() for name in archive.namelist()]
    data = path.read_bytes()
    match path.suffix:
        case ".pial":
            numbers = [np.frombuffer(data, dtype, offset=len(data) % 4) for dtype in (">i4", ">f4")]
            return [column.astype(column.dtype.newbyteorder("=")) for column in numbers]
        case ".las":
            with laspy.open(path) as file:
                header = file.header
            points = np.frombuffer(data, header.point_format.dtype(), header.point_count, header.offset_to_point_data)
            columns = [np.ascontiguousarray(points[name]) for name in points.dtype.names]
            places = np.stack([points[name] * scale for name, scale in zip("XYZ", header.scales)], 1)
            return places + header.offsets, columns
        case ".ply":
            end = data.index(b"end_header\n") + 11
            counts = [int(line.split()[2]) for line in data[:end].split(b"\n") if line.startswith(b"element")]
            places = np.frombuffer(data, "f4", counts[0] * 3, end).copy()
            faces = np.frombuffer(data, [("count", "u1"), ("corners", "i4", 3)], counts[1], end + places.nbytes)
            return places, faces["corners"].astype("i8")
    return np.frombuffer(data, "f4", offset=len(data) % 4).copy()


def theirs(task, path, out):
    """Runs a task of another program in this process, and prints its time and memory."""
    path, out, name = pathlib.Path(path), pathlib.Path(out), task.split("_")[0]
    modules = {"floor": ["pandas", "laspy", "nibabel"], "trx": ["trx.trx_file_memmap"]}.get(name, [name])
    for module in ["numpy", *modules]:
        globals()[module.split(".")[0]] = importlib.import_module(module.split(".")[0])
        importlib.import_module(module)
    globals()["np"] = globals()["numpy"]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start, busy = time.perf_counter(), time.process_time()
    kept = eval(TASKS[task], globals(), {"path": path, "out": out})
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    del kept
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"seconds": seconds, "processor": busy, "peak": (peak - before) << 10}))


def process(words):
    """Runs a process, and returns its time in seconds, its processor time and the peak of its memory, or instead the
    figures that it prints."""
    start = time.perf_counter()
    child = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = child.stdout.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    if status:
        raise RuntimeError(f"{words}: {text}")
    said = next((json.loads(line) for line in reversed(text.splitlines()) if line.startswith("{")), {})
    found = {"seconds": seconds, "processor": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss << 10}
    return {figure: said.get(figure, value) for figure, value in found.items()}


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def in_turns(tasks):
    """Runs tasks in turns, and returns the least figures of each."""
    best = {}
    for _ in range(RUNS):
        for name, (words, out) in tasks.items():
            if name in best and best[name]["seconds"] > LONG:
                continue
            remove(out)
            found = process(words)
            least = best.setdefault(name, found)
            best[name] = {figure: min(found[figure], least[figure]) for figure in found}
    return best


def main(folder, zvf, read, vertices, names):
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, __file__, "make", folder, str(vertices)], check=True)
    zvtools = pathlib.Path(sys.executable).with_name("zvtools")
    start = min(process([zvf, "--version"])["seconds"] for _ in range(9))
    print(f"start of zvf: {start * 1000:.1f} ms")
    if zvtools.exists():
        print(f"start of zvtools: {process([zvtools, '--version'])['seconds']:.2f} s")
    print()
    report = folder / "files.json"
    results = json.loads(report.read_text())["results"] if names and report.exists() else {}
    for name in names or FORMATS:
        tasks, source = FORMATS[name].split(), folder / name
        ending = source.suffix or ".swc"
        store, back, copy = folder / "ours.zv", folder / f"back{ending}", folder / f"copy{ending}"
        their_copy, their_store, none = folder / f"theirs{ending}", folder / "theirs.zv", folder / "none"
        other = lambda task: [sys.executable, __file__, "theirs", task, source, their_copy]
        runs = {
            "read": ([read, source], none),
            "create": ([zvf, "create", store, "--from", source, "--memory", MEMORY, "--quiet"], store),
            "query": ([zvf, "query", store, "-o", back, "--quiet"], back),
            "convert": ([zvf, "convert", source, copy, "--quiet"], copy),
            "floor": (other("floor"), none),
            **{task: (other(task), their_copy) for task in tasks},
        }
        words = [zvtools, "convert", source, their_store, "--chunk-shape", "32,32,32", "--overwrite"]
        runs |= {"zvtools": (words, their_store)} if "zvtools" in tasks else {}
        left_out = {"query": name in READ_ONLY, "convert": name in READ_ONLY, "floor": name in WITHOUT_FLOOR,
                    "zvtools": not zvtools.exists()}
        found = results[name] = in_turns({task: run for task, run in runs.items() if not left_out.get(task)})
        size = sum(file.stat().st_size for file in source.iterdir()) if source.is_dir() else source.stat().st_size
        print(f"{name}, {size >> 20} MiB, load {os.getloadavg()[0]:.1f}")
        for task, one in found.items():
            print(f"  {task:14} {one['seconds']:9.3f} s {one['processor']:9.3f} s of processors {one['peak'] >> 20:7} MiB")
        for task in (task for task in [*tasks, "floor"] if task in found):
            ours = "create" if task == "zvtools" else "convert" if task.endswith("copy") else "read"
            elapsed, busy = (found[task][of] / found[ours][of] for of in ("seconds", "processor"))
            print(f"  {ours} against {task}: {elapsed:.2f}x elapsed, {busy:.2f}x of processors")
        for leftover in (store, back, copy, their_copy, their_store):
            remove(leftover)
        report.write_text(json.dumps({"start": start, "results": results}, indent=1))


if sys.argv[1] == "theirs":
    theirs(*sys.argv[2:])
elif sys.argv[1] == "make":
    make(*sys.argv[2:])
else:
    vertices = int(sys.argv[4]) if len(sys.argv) > 4 else 20_000_000
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:4], vertices, sys.argv[5:])
