//! Sample files, built from the descriptions of their formats.

use std::io::Write;

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};
use zvf_model::random::SplitMix64;

/// Random numbers of some distributions.
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    /// A coordinate with all bits of a float32.
    pub(crate) fn coordinate(&mut self) -> f32 {
        let bits = u32::try_from(self.below(1 << 23)).unwrap();
        f32::from_bits(0x4200_0000 | bits)
    }

    pub(crate) fn lengths(&mut self, count: u64) -> Vec<u64> {
        (0..count).map(|_| 1 + self.below(9)).collect()
    }
}

fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

/// A TRK file with an oblique matrix, flipped axes, scalars and properties.
pub(crate) fn trk(random: &mut Random, is_big_endian: bool) -> Vec<u8> {
    let word = |value: [u8; 4]| {
        if is_big_endian {
            [value[3], value[2], value[1], value[0]]
        } else {
            value
        }
    };
    let half = |value: [u8; 2]| {
        if is_big_endian {
            [value[1], value[0]]
        } else {
            value
        }
    };
    let lengths = random.lengths(40);
    let mut bytes = vec![0; 1000];
    put(&mut bytes, 0, b"TRACK\0");
    for axis in 0..3 {
        put(&mut bytes, 6 + 2 * axis, &half(90_i16.to_le_bytes()));
        put(&mut bytes, 12 + 4 * axis, &word(1.5_f32.to_le_bytes()));
    }
    put(&mut bytes, 36, &half(4_i16.to_le_bytes()));
    put(&mut bytes, 38, b"mean fa");
    put(&mut bytes, 58, b"colors\x003");
    put(&mut bytes, 238, &half(1_i16.to_le_bytes()));
    put(&mut bytes, 240, b"length");
    let matrix = [
        [-1.4_f32, 0.3, 0.1, 90.0],
        [0.25, 1.45, -0.2, -126.0],
        [0.1, 0.2, 1.48, -72.0],
        [0.0, 0.0, 0.0, 1.0],
    ];
    for (at, value) in matrix.into_iter().flatten().enumerate() {
        put(&mut bytes, 440 + 4 * at, &word(value.to_le_bytes()));
    }
    put(&mut bytes, 700, b"reserved bytes stay");
    put(&mut bytes, 948, b"RAS");
    put(&mut bytes, 988, &word(40_i32.to_le_bytes()));
    put(&mut bytes, 992, &word(2_i32.to_le_bytes()));
    put(&mut bytes, 996, &word(1000_i32.to_le_bytes()));
    for length in lengths {
        bytes.extend(word(i32::try_from(length).unwrap().to_le_bytes()));
        for _ in 0..=length * 7 {
            bytes.extend(word(random.coordinate().to_le_bytes()));
        }
    }
    bytes
}

/// A TCK file, and a TSF file of the same streamlines.
pub(crate) fn tck(random: &mut Random, datatype: &str) -> [Vec<u8>; 2] {
    let lengths = random.lengths(40);
    let header = |first: &str| {
        let lines = format!(
            "{first}\ntimestamp: 1.5\ndatatype: {datatype}\ncommand_history: a: b\n  goes on\ncount: 0000000040\n"
        );
        let offset = lines.len() + "file: . 999\nEND\n".len() + 3;
        format!("{lines}file: . {offset:3}\nEND\n\0\0\0").into_bytes()
    };
    let mut files = [header("mrtrix tracks"), header("mrtrix track scalars")];
    let mut put = |file: usize, value: f32| {
        let mut bytes = if datatype.starts_with("Float64") {
            f64::from(value).to_le_bytes().to_vec()
        } else {
            value.to_le_bytes().to_vec()
        };
        if datatype.ends_with("BE") {
            bytes.reverse();
        }
        files[file].extend(bytes);
    };
    for length in lengths {
        for _ in 0..length {
            (0..3).for_each(|_| put(0, random.coordinate()));
            put(1, random.coordinate());
        }
        (0..3).for_each(|_| put(0, f32::NAN));
        put(1, f32::NAN);
    }
    (0..3).for_each(|_| put(0, f32::INFINITY));
    files
}

/// Members of a TRX file with attributes of every kind and overlapping groups.
pub(crate) fn trx_members(random: &mut Random) -> Vec<(&'static str, Vec<u8>)> {
    let lengths = random.lengths(40);
    let mut offsets = vec![0_u64];
    for length in &lengths {
        offsets.push(offsets.last().unwrap() + length);
    }
    let vertices = *offsets.last().unwrap();
    let header = format!(
        r#"{{"VOXEL_TO_RASMM":[[2.0,0.0,0.0,-1.5],[0.0,2.0,0.0,0.1],[0.0,0.0,2.5,0.0],[0.0,0.0,0.0,1.0]],"DIMENSIONS":[10,11,12],"NB_STREAMLINES":40,"NB_VERTICES":{vertices},"extra":{{"a":0.1}}}}"#
    );
    let mut floats = |count: u64| -> Vec<u8> {
        (0..count)
            .flat_map(|_| random.coordinate().to_le_bytes())
            .collect()
    };
    let numbers = |numbers: &[u32]| numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
    vec![
        ("header.json", header.into_bytes()),
        ("positions.3.float32", floats(vertices * 3)),
        (
            "offsets.uint64",
            offsets.iter().flat_map(|it| it.to_le_bytes()).collect(),
        ),
        ("dpv/mean fa.float32", floats(vertices)),
        (
            "dpv/colors.3.uint8",
            (0..vertices * 3)
                .map(|it| u8::try_from(it % 256).unwrap())
                .collect(),
        ),
        ("dps/length.2.float32", floats(80)),
        ("dps/flag.bit", (0..40).map(|it| it % 2).collect()),
        ("groups/AF_L.uint32", numbers(&[0, 2, 39])),
        ("groups/CST.uint32", numbers(&[4, 3, 2])),
        ("dpg/CST/mean.float32", 1.5_f32.to_le_bytes().to_vec()),
        ("dpg/AF_L/volume.uint32", numbers(&[15])),
    ]
}

/// A TRX file as a zip file.
pub(crate) fn trx(members: &[(&str, Vec<u8>)], method: CompressionMethod) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(method);
    for (name, bytes) in members {
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// An SWC file with a comment in the middle, a parent after its child, and two roots.
pub(crate) fn swc() -> String {
    "# SWC of a test\n#  ids do not ascend\n3 1 0.5 -1.25 1000.123 2.5 -1\n1 2 1 2 3 0.1 7\n\n\
     # a comment in the middle\n7 3 1.5 2.25 3.125 0.2 3\n12 0 9 9 9 1 -1\n# the end\n"
        .to_owned()
}

/// A variable length record of a LAS file.
fn las_record(user: &str, id: u16, data: &[u8], is_extended: bool) -> Vec<u8> {
    let head = if is_extended { 60 } else { 54 };
    let mut bytes = vec![0; head];
    put(&mut bytes, 2, user.as_bytes());
    put(&mut bytes, 18, &id.to_le_bytes());
    if is_extended {
        put(
            &mut bytes,
            20,
            &u64::try_from(data.len()).unwrap().to_le_bytes(),
        );
    } else {
        put(
            &mut bytes,
            20,
            &u16::try_from(data.len()).unwrap().to_le_bytes(),
        );
    }
    // Bytes after the end of the text are kept.
    put(&mut bytes, head - 32, b"a text\0behind");
    bytes.extend(data);
    bytes
}

/// Descriptions of three extra values.
fn las_extra() -> Vec<u8> {
    let mut extra = vec![0; 3 * 192];
    for (at, (kind, options, name)) in [(3, 24, "Intensity"), (10, 0, "height"), (0, 5, "raw")]
        .into_iter()
        .enumerate()
    {
        put(&mut extra, at * 192 + 2, &[kind, options]);
        put(&mut extra, at * 192 + 4, name.as_bytes());
    }
    put(&mut extra, 112, &0.01_f64.to_le_bytes());
    extra
}

/// Text of the coordinate reference system of [`las`].
pub(crate) const WKT: &str = r#"PROJCS["a",UNIT["m",1],AUTHORITY["EPSG","25832"]]"#;

/// Fills a point with random numbers, and returns its number of returns.
fn las_point(
    random: &mut Random,
    point: &mut [u8],
    format: u8,
    base: usize,
    bounds: &mut [(i32, i32); 3],
) -> usize {
    for byte in point.iter_mut() {
        *byte = u8::try_from(random.below(256)).unwrap();
    }
    for (axis, (least, most)) in bounds.iter_mut().enumerate() {
        let value = i32::try_from(random.below(4_000_000)).unwrap() - 2_000_000;
        put(point, axis * 4, &value.to_le_bytes());
        (*least, *most) = ((*least).min(value), (*most).max(value));
    }
    let returns = 1 + u8::try_from(random.below(5)).unwrap();
    point[14] = if format < 6 {
        point[14] & !7
    } else {
        point[14] & !15
    } | returns;
    // Times and extra numbers are finite.
    let time = [20, 22][usize::from(format >= 6)];
    if !matches!(format, 0 | 2) {
        put(point, time, &f64::from(random.coordinate()).to_le_bytes());
    }
    let has_waves = matches!(format, 4 | 5 | 9 | 10);
    if has_waves {
        // The crate laz subtracts offsets as signed numbers.
        put(point, base - 28, &random.below(1 << 40).to_le_bytes());
    }
    for number in (0..4).filter(|_| has_waves) {
        let value = random.coordinate().to_le_bytes();
        put(point, base - 16 + 4 * number, &value);
    }
    put(
        point,
        base + 2,
        &f64::from(random.coordinate()).to_le_bytes(),
    );
    usize::from(returns)
}

/// A LAS file of a point format, with extra bytes and other records.
pub(crate) fn las(random: &mut Random, format: u8) -> Vec<u8> {
    let (minor, size) = match format {
        0..=3 => (2, 227),
        4 | 5 => (3, 235),
        _ => (4, 375_u16),
    };
    let base: usize = [20, 28, 26, 34, 57, 63, 30, 36, 38, 59, 67][usize::from(format)];
    let has_waves = matches!(format, 4 | 5 | 9 | 10);
    let record = base + 2 + 8 + 5;
    let extra = las_extra();
    let vlrs = [
        las_record("LASF_Projection", 2112, WKT.as_bytes(), false),
        las_record("LASF_Spec", 4, &extra, false),
        las_record("somebody", 7, b"", false),
    ];
    let start = usize::from(size) + vlrs.iter().map(Vec::len).sum::<usize>();
    let count = 300_u32;
    let mut bytes = vec![0; usize::from(size)];
    put(&mut bytes, 0, b"LASF");
    put(&mut bytes, 4, &[9, 0, 17, 0]);
    put(&mut bytes, 8, b"0123456789abcdef");
    put(&mut bytes, 24, &[1, minor]);
    put(&mut bytes, 26, b"a system");
    put(&mut bytes, 90, &[7, 0, 0xea, 7]);
    put(&mut bytes, 94, &size.to_le_bytes());
    put(&mut bytes, 96, &u32::try_from(start).unwrap().to_le_bytes());
    put(&mut bytes, 100, &3_u32.to_le_bytes());
    put(&mut bytes, 104, &[format]);
    put(
        &mut bytes,
        105,
        &u16::try_from(record).unwrap().to_le_bytes(),
    );
    for (axis, value) in [0.01_f64, 0.001, 0.1, 500_000.0, 5_900_000.0, -0.0]
        .iter()
        .enumerate()
    {
        put(&mut bytes, 131 + axis * 8, &value.to_le_bytes());
    }
    let mut points = vec![0; record * usize::try_from(count).unwrap()];
    let mut by_return = [0_u32; 15];
    let mut bounds = [(i32::MAX, i32::MIN); 3];
    for point in points.chunks_exact_mut(record) {
        let returns = las_point(random, point, format, base, &mut bounds);
        by_return[returns - 1] += 1;
    }
    for (axis, (least, most)) in bounds.into_iter().enumerate() {
        let scale = [0.01, 0.001, 0.1][axis];
        let offset = [500_000.0, 5_900_000.0, -0.0][axis];
        put(
            &mut bytes,
            179 + axis * 16,
            &(f64::from(most) * scale + offset).to_le_bytes(),
        );
        put(
            &mut bytes,
            187 + axis * 16,
            &(f64::from(least) * scale + offset).to_le_bytes(),
        );
    }
    if format < 6 {
        put(&mut bytes, 107, &count.to_le_bytes());
        for (at, count) in by_return.iter().take(5).enumerate() {
            put(&mut bytes, 111 + at * 4, &count.to_le_bytes());
        }
    } else {
        put(&mut bytes, 6, &[if has_waves { 18 } else { 16 }]);
        put(&mut bytes, 247, &u64::from(count).to_le_bytes());
        for (at, count) in by_return.iter().enumerate() {
            put(&mut bytes, 255 + at * 8, &u64::from(*count).to_le_bytes());
        }
        let end = u64::try_from(start + points.len()).unwrap();
        put(&mut bytes, 235, &end.to_le_bytes());
        put(&mut bytes, 243, &[if has_waves { 2 } else { 1 }]);
        if has_waves {
            put(&mut bytes, 227, &(end + 70_060).to_le_bytes());
        }
    }
    bytes.extend(vlrs.concat());
    bytes.extend(points);
    if format >= 6 {
        bytes.extend(las_record("somebody", 8, &vec![3; 70_000], true));
    }
    if format >= 9 {
        bytes.extend(las_record("LASF_Spec", u16::MAX, &[5; 700], true));
    }
    bytes
}

/// A `GraphML` file with defaults, and an edge before its nodes.
pub(crate) const GRAPHML: &str = r#"<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="d0" for="node" attr.name="x" attr.type="double"/>
  <key id="d1" for="node" attr.name="y" attr.type="double"/>
  <key id="d2" for="node" attr.name="mean degree" attr.type="int"><default>7</default></key>
  <key id="d3" for="edge" attr.name="kind" attr.type="string"/>
  <key id="d4" for="edge" attr.name="weight" attr.type="float"/>
  <key id="d5" for="node" attr.name="seen" attr.type="boolean"/>
  <key id="d6" for="graph" attr.name="title" attr.type="string"/>
  <graph edgedefault="directed">
    <data key="d6">roads &amp; paths</data>
    <edge source="a" target="b"><data key="d3">road</data><data key="d4">1.5</data></edge>
    <node id="a"><data key="d0">0.5</data><data key="d1">1</data><data key="d5">True</data></node>
    <node id="b"><data key="d0">2</data><data key="d1">3</data><data key="d2">9</data><data key="d5">false</data></node>
    <node id="c"><data key="d0">4</data><data key="d1">5</data><data key="d5">1</data></node>
    <edge source="b" target="c"><data key="d4">2.5</data></edge>
  </graph>
</graphml>
"#;

/// A table of nodes, one of which lacks a value.
pub(crate) const NODES: &str =
    "id,x,y,z,region\na,0,1,2,\"left, upper\"\nb,1,2,3,right\n7,2.5,3,4,\n";

/// A small graph of geff, as the reference writes it without compression.
pub(crate) fn geff_members() -> Vec<(&'static str, Vec<u8>)> {
    let metadata = r#"{"geff": {"geff_version": "1.3", "directed": true, "axes": [
        {"name": "t", "type": "time", "unit": "second"},
        {"name": "x", "type": "space", "unit": "micrometer"}],
        "node_props_metadata": {
            "t": {"identifier": "t", "dtype": "int64", "varlength": false},
            "x": {"identifier": "x", "dtype": "float64", "varlength": false},
            "cell type": {"identifier": "cell type", "dtype": "str", "varlength": false},
            "score": {"identifier": "score", "dtype": "int16", "varlength": false, "unit": "mm"},
            "lineage": {"identifier": "lineage", "dtype": "uint8", "varlength": false},
            "polygon": {"identifier": "polygon", "dtype": "float64", "varlength": true}},
        "track_node_props": {"lineage": "lineage"},
        "edge_props_metadata": {"w": {"identifier": "w", "dtype": "float32", "varlength": false}}}}"#;
    let array = |shape: &str, chunks: &str, dtype: &str| {
        format!(
            r#"{{"zarr_format": 2, "shape": {shape}, "chunks": {chunks}, "dtype": "{dtype}", "compressor": null,
            "fill_value": 0, "order": "C", "filters": null, "dimension_separator": "."}}"#
        )
    };
    let text: Vec<u8> = "ab\0cd\0e\0\0"
        .chars()
        .flat_map(|it| u32::from(it).to_le_bytes())
        .collect();
    let ids: Vec<u8> = [4_u64, 9, 5]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    let times: Vec<u8> = [0_i64, 1, 2]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    let x: Vec<u8> = [0.5_f64, 1.5]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    let x2: Vec<u8> = [2.5_f64, 99.0]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    let edges: Vec<u8> = [4_u64, 9, 9, 5]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    let score: Vec<u8> = [1_i16, 2, 3]
        .iter()
        .flat_map(|it| it.to_be_bytes())
        .collect();
    let weight: Vec<u8> = [0.5_f32, 0.25]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    vec![
        (".zattrs", metadata.into()),
        ("nodes/ids/.zarray", array("[3]", "[3]", "<u8").into()),
        ("nodes/ids/0", ids),
        (
            "nodes/props/t/values/.zarray",
            array("[3]", "[3]", "<i8").into(),
        ),
        ("nodes/props/t/values/0", times),
        (
            "nodes/props/x/values/.zarray",
            array("[3]", "[2]", "<f8").into(),
        ),
        ("nodes/props/x/values/0", x),
        ("nodes/props/x/values/1", x2),
        (
            "nodes/props/cell type/values/.zarray",
            array("[3]", "[3]", "<U3").into(),
        ),
        ("nodes/props/cell type/values/0", text),
        (
            "nodes/props/score/values/.zarray",
            array("[3]", "[3]", ">i2").into(),
        ),
        ("nodes/props/score/values/0", score),
        (
            "nodes/props/score/missing/.zarray",
            array("[3]", "[3]", "|b1").into(),
        ),
        ("nodes/props/score/missing/0", vec![0, 1, 0]),
        // All rows have the fill value.
        (
            "nodes/props/lineage/values/.zarray",
            array("[3]", "[3]", "|u1").into(),
        ),
        ("edges/ids/.zarray", array("[2, 2]", "[2, 1]", "<u8").into()),
        ("edges/ids/0.0", [&edges[..8], &edges[16..24]].concat()),
        ("edges/ids/0.1", [&edges[8..16], &edges[24..]].concat()),
        (
            "edges/props/w/values/.zarray",
            array("[2]", "[2]", "<f4").into(),
        ),
        ("edges/props/w/values/0", weight),
    ]
}

/// Edges of [`NODES`] in the three forms of attributes.
pub(crate) const EDGES: &str = "# edges\na b {'weight': 1.5, 'kind': 'road'}\nb 7 {'weight': 2}\n";

/// A mesh with attributes, as text.
pub(crate) const PLY: &str = "ply\nformat ascii 1.0\ncomment a test\nelement vertex 4\nproperty float x\n\
    property float y\nproperty float z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\n\
    element face 2\nproperty list uchar int vertex_indices\nproperty short label\nend_header\n\
    0 0 0 255 0 0\n1 0 0 0 255 0\n1 1 0.5 0 0 255\n0 1 0 9 9 9\n3 0 1 2 7\n3 0 2 3 -1\n";

/// Two objects, polygons of both numberings.
pub(crate) const OBJ: &str = "# a test\no one\nv 0 0 0\nv 1 0 0\nv 1 1 0.5\nf 1/1 2/2 3/3\no two\nv 5 0 0\n\
    v 6 0 0\nv 6 1 0.25\nvt 0 0\nf -3//1 -2//1 -1//1\n";

/// Two facets as text.
pub(crate) const STL: &str = "solid a\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 1 1 0\n\
    endloop\nendfacet\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 1 0\nvertex 0 1 0\nendloop\n\
    endfacet\nendsolid a\n";

/// A binary scene: a node with a child, whose meshes are a coloured square with 16-bit indices and a
/// strip of triangles with positions of 16 bits, which the child mirrors and moves.
pub(crate) fn glb() -> Vec<u8> {
    let mut data = Vec::new();
    for number in [
        0.0_f32, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.5, 0.0, 1.0, 0.0,
    ] {
        data.extend(number.to_le_bytes());
    }
    data.extend([255, 0, 0, 255, 0, 255, 0, 255, 0, 0, 255, 255, 9, 9, 9, 255]);
    data.extend(
        [0_u16, 1, 2, 0, 2, 3]
            .into_iter()
            .flat_map(u16::to_le_bytes),
    );
    // Rows of 8 bytes: 6 of a position, and 2 of padding.
    let rows: [[u16; 4]; 4] = [[0, 0, 0, 7], [2, 0, 0, 7], [0, 2, 0, 7], [2, 2, 4, 7]];
    data.extend(rows.into_iter().flatten().flat_map(u16::to_le_bytes));
    let mut scene = r#"{"asset":{"version":"2.0"},"scene":0,"scenes":[{"nodes":[0]}],
        "nodes":[{"name":"object_17","mesh":0,"children":[1]},
        {"mesh":1,"scale":[-1,1,1],"translation":[10,0,0.1]}],
        "meshes":[{"primitives":[{"attributes":{"POSITION":0,"COLOR_0":1},"indices":2}]},
        {"name":"strip","primitives":[{"attributes":{"POSITION":3},"mode":5}]}],
        "buffers":[{"byteLength":108}],
        "bufferViews":[{"buffer":0,"byteLength":48},{"buffer":0,"byteOffset":48,"byteLength":16},
        {"buffer":0,"byteOffset":64,"byteLength":12},
        {"buffer":0,"byteOffset":76,"byteLength":32,"byteStride":8}],
        "accessors":[{"bufferView":0,"componentType":5126,"count":4,"type":"VEC3"},
        {"bufferView":1,"componentType":5121,"normalized":true,"count":4,"type":"VEC4"},
        {"bufferView":2,"componentType":5123,"count":6,"type":"SCALAR"},
        {"bufferView":3,"componentType":5123,"count":4,"type":"VEC3"}]}"#
        .as_bytes()
        .to_vec();
    scene.resize(scene.len().next_multiple_of(4), b' ');
    glb_of(&scene, &data)
}

/// A binary scene of these chunks.
pub(crate) fn glb_of(scene: &[u8], data: &[u8]) -> Vec<u8> {
    let word = |length: usize| u32::try_from(length).unwrap().to_le_bytes();
    let mut bytes = b"glTF\x02\0\0\0".to_vec();
    bytes.extend(word(28 + scene.len() + data.len()));
    for (kind, chunk) in [(b"JSON", scene), (b"BIN\0", data)] {
        bytes.extend(word(chunk.len()));
        bytes.extend(kind);
        bytes.extend(chunk);
    }
    bytes
}

/// A surface with values, as text and as base64.
pub(crate) const GIFTI: &str = "<?xml version=\"1.0\"?>\n<!DOCTYPE GIFTI SYSTEM \"gifti.dtd\">\n\
    <GIFTI Version=\"1.0\" NumberOfDataArrays=\"3\"><MetaData><MD><Name>a</Name><Value>b &amp; c</Value></MD>\
    </MetaData><DataArray Intent=\"NIFTI_INTENT_POINTSET\" DataType=\"NIFTI_TYPE_FLOAT32\" \
    ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"2\" Dim0=\"3\" Dim1=\"3\" Encoding=\"ASCII\" \
    Endian=\"LittleEndian\"><Data>0 0 0 1 0 0 1 1 0.5</Data></DataArray>\
    <DataArray Intent=\"NIFTI_INTENT_TRIANGLE\" DataType=\"NIFTI_TYPE_INT32\" \
    ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"2\" Dim0=\"1\" Dim1=\"3\" Encoding=\"Base64Binary\" \
    Endian=\"LittleEndian\"><Data>AAAAAAEAAAACAAAA</Data></DataArray>\
    <DataArray Intent=\"NIFTI_INTENT_SHAPE\" DataType=\"NIFTI_TYPE_FLOAT32\" \
    ArrayIndexingOrder=\"RowMajorOrder\" Dimensionality=\"1\" Dim0=\"3\" Encoding=\"ASCII\" \
    Endian=\"LittleEndian\"><Data>1 2 3</Data></DataArray></GIFTI>";

/// A surface of `FreeSurfer` with one triangle.
pub(crate) fn freesurfer() -> Vec<u8> {
    let mut bytes = b"\xff\xff\xfecreated by a test\n\n".to_vec();
    bytes.extend([3_i32, 1].iter().flat_map(|it| it.to_be_bytes()));
    let corners = [0.0_f32, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 0.5];
    bytes.extend(corners.iter().flat_map(|it| it.to_be_bytes()));
    bytes.extend([0_i32, 1, 2].iter().flat_map(|it| it.to_be_bytes()));
    bytes
}

/// Files with values for the vertices of [`freesurfer`]: curvature of both forms, and an annotation.
pub(crate) fn freesurfer_values() -> [(&'static str, Vec<u8>); 3] {
    let numbers = |numbers: &[i32]| -> Vec<u8> {
        let bytes = numbers.iter().flat_map(|number| number.to_be_bytes());
        bytes.collect()
    };
    let mut new = vec![0xff; 3];
    new.extend(numbers(&[3, 1, 1]));
    new.extend([0.5_f32, -1.0, 2.0].iter().flat_map(|it| it.to_be_bytes()));
    let old = b"\0\0\x03\0\0\x01\0\x64\xff\xce\x01\x2c".to_vec();
    let mut annotation = numbers(&[3, 0, 7, 1, 0, 2, 7, 1, -2, 1, 2]);
    annotation.extend(b"t\0");
    annotation.extend(numbers(&[1, 0, 2]));
    annotation.extend(b"a\0");
    annotation.extend(numbers(&[7, 0, 0, 0]));
    [
        ("lh.curv", new),
        ("lh.sulc", old),
        ("lh.aparc.annot", annotation),
    ]
}

/// The points of [`las`] as LAZ.
pub(crate) fn laz() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.las");
    std::fs::write(&path, las(&mut Random::new(61), 3)).unwrap();
    written(&path, &folder.path().join("b.laz"))
}

/// Points with an attribute as `GeoParquet`.
#[cfg(feature = "geoparquet")]
pub(crate) fn geoparquet() -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.swc");
    std::fs::write(&path, swc()).unwrap();
    written(&path, &folder.path().join("b.geoparquet"))
}

/// Converts a file, and returns the bytes of the other.
fn written(from: &std::path::Path, to: &std::path::Path) -> Vec<u8> {
    let mut reader = zvf_files::open(from, &zvf_files::FileReadOptions::default()).unwrap();
    let description = zvf_files::StoreDescription::default();
    let mut writer = zvf_files::create(to, &description).unwrap();
    let mut results = zvf_files::FileResults::new(reader.as_mut()).unwrap();
    while let Some(batch) = results.next(1 << 20).unwrap() {
        writer.write(&batch).unwrap();
    }
    writer.finish(&results.groups()).unwrap();
    std::fs::read(to).unwrap()
}
