//! Precomputed data of Neuroglancer. `cargo xtask conformance --precomputed` reads what other programs
//! write.

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use flate2::write::GzEncoder;
use serde_json::json;
use zvf::{
    Column, ColumnValues, Dataset, GeometryBuilder, GeometryKind, NumericColumn, Query,
    numeric::Kind,
};
use zvf_files::{FileDescription, FileReadOptions};
use zvf_precomputed::{
    Annotation, AnnotationInfo, AnnotationKind, AnnotationList, AttributeType, Dimension,
    Dimensions, IDENTITY, LegacyMeshFragment, LegacyMeshInfo, LegacyMeshManifest, PropertySpec,
    PropertyType, PropertyValue, RecordLayout, Relationship, SegmentProperties, SegmentProperty,
    SegmentPropertyValues, ShardBuilder, ShardEncoding, ShardHash, ShardingSpec, Skeleton,
    SkeletonInfo, SpatialLevel, ValueLabel, VertexAttribute, compressed_morton_code,
};

use crate::{
    damage::{flip, read},
    round_trip::import,
    samples::Random,
};

/// Files of a source by name.
type Files = BTreeMap<String, Vec<u8>>;

/// A folder with a source.
struct Source(tempfile::TempDir);

impl Source {
    fn new(files: &Files) -> Self {
        let source = Self(tempfile::tempdir().unwrap());
        for (name, bytes) in files {
            source.write(name, bytes);
        }
        source
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn read(&self) -> (GeometryBuilder, FileDescription) {
        self.read_as(None)
    }

    fn read_as(&self, kind: Option<GeometryKind>) -> (GeometryBuilder, FileDescription) {
        let mut options = FileReadOptions::default();
        options.kind = kind;
        let mut reader = zvf_files::open(self.0.path(), &options).unwrap();
        let whole = zvf_files::read_whole(reader.as_mut())
            .unwrap()
            .into_builder();
        (whole, reader.description().clone())
    }

    fn refused(&self) -> String {
        read(self.0.path()).unwrap_err()
    }
}

/// Puts values into shards of all forms that readers know.
fn sharded(folder: &str, spec: ShardingSpec, values: &BTreeMap<u64, Vec<u8>>, files: &mut Files) {
    let mut shards: BTreeMap<u64, ShardBuilder> = BTreeMap::new();
    for (key, value) in values {
        let shard = spec.locate(*key).shard;
        let builder = shards
            .entry(shard)
            .or_insert_with(|| ShardBuilder::new(spec, shard));
        builder.push(*key, value).unwrap();
    }
    for (shard, builder) in shards {
        let name = format!("{folder}{}", spec.file_name(shard));
        files.insert(name, builder.finish());
    }
}

fn specs() -> [Option<ShardingSpec>; 3] {
    let raw = ShardingSpec {
        preshift_bits: 1,
        minishard_bits: 1,
        shard_bits: 2,
        ..ShardingSpec::default()
    };
    let packed = ShardingSpec {
        hash: ShardHash::Murmur,
        minishard_index_encoding: ShardEncoding::Gzip,
        data_encoding: ShardEncoding::Gzip,
        ..raw
    };
    [None, Some(raw), Some(packed)]
}

/// Adds values as files or shards.
fn put(
    folder: &str,
    spec: Option<ShardingSpec>,
    values: &BTreeMap<u64, Vec<u8>>,
    files: &mut Files,
) {
    match spec {
        Some(spec) => sharded(folder, spec, values, files),
        None => {
            let named = values
                .iter()
                .map(|(key, value)| (format!("{folder}{key}"), value.clone()));
            files.extend(named);
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn numeric<'a>(columns: &'a [Column], name: &str) -> &'a NumericColumn {
    let column = columns.iter().find(|column| column.name == name).unwrap();
    let ColumnValues::Numeric(numbers) = &column.values else {
        panic!("{name} is text");
    };
    numbers
}

fn texts<'a>(columns: &'a [Column], name: &str) -> Vec<Option<&'a str>> {
    let column = columns.iter().find(|column| column.name == name).unwrap();
    column.texts().collect()
}

const LARGE: u64 = 720_575_940_625_000_003;

/// Three skeletons: a path, a tree whose edges point from its root, and a vertex.
fn skeletons(spec: Option<ShardingSpec>) -> Files {
    let attribute = |id: &str, data_type, components| VertexAttribute {
        id: id.to_owned(),
        data_type,
        components,
    };
    let info = SkeletonInfo {
        transform: [2., 0., 0., 1., 0., 1., 0., 0., 0., 0., 0.5, -1.],
        vertex_attributes: vec![
            attribute("radius", AttributeType::Float32, 1),
            attribute("kind", AttributeType::Uint8, 1),
            attribute("dir", AttributeType::Float32, 3),
        ],
        segment_properties: Some("props".to_owned()),
        sharding: spec,
    };
    let skeleton = |first: u8, count: u8, edges: &[[u32; 2]]| {
        let rows = || first..first + count;
        let skeleton = Skeleton {
            positions: rows().map(|row| [f32::from(row), 0.5, 8.0]).collect(),
            edges: edges.to_vec(),
            attributes: vec![
                rows()
                    .flat_map(|row| f32::from(row).to_le_bytes())
                    .collect(),
                rows().collect(),
                rows()
                    .flat_map(|row| [f32::from(row), 0.0, 1.0].map(f32::to_le_bytes).concat())
                    .collect(),
            ],
        };
        skeleton.encode(&info.vertex_attributes).unwrap()
    };
    let values = BTreeMap::from([
        (7, skeleton(0, 3, &[[1, 0], [2, 1]])),
        (LARGE, skeleton(10, 4, &[[0, 1], [1, 2], [1, 3]])),
        (12, skeleton(20, 1, &[])),
    ]);
    let property = |id: &str, description: Option<&str>, values| SegmentProperty {
        id: id.to_owned(),
        description: description.map(str::to_owned),
        values,
    };
    let text = |texts: [&str; 3]| texts.map(str::to_owned).to_vec();
    let number = |data_type: &str, values: [f64; 3]| SegmentPropertyValues::Number {
        data_type: data_type.to_owned(),
        values: values.to_vec(),
    };
    let properties = SegmentProperties {
        ids: vec![LARGE, 7, 999],
        properties: vec![
            property(
                "label",
                None,
                SegmentPropertyValues::Label(text(["a", "", "c"])),
            ),
            property("fA", Some("FA"), number("float32", [0.5, -1.25, 0.0])),
            property(
                "size",
                Some("Number of parts"),
                number("int16", [-300.0, 300.0, 0.0]),
            ),
            property(
                "tags",
                None,
                SegmentPropertyValues::Tags {
                    tags: text(["left", "right", "cut"]),
                    descriptions: text(["", "", ""]),
                    values: vec![vec![0, 2], vec![1], vec![]],
                },
            ),
        ],
    };
    let mut files = Files::from([
        ("info".to_owned(), info.to_json().into_bytes()),
        (
            "props/info".to_owned(),
            properties.to_json().unwrap().into_bytes(),
        ),
        // Fragments of an unfinished run.
        ("7:0_64:fragment".to_owned(), vec![1, 2, 3]),
    ]);
    put("", spec, &values, &mut files);
    files
}

#[test]
fn skeletons_keep_ids_values_and_properties() {
    for spec in specs() {
        let (geometry, description) = Source::new(&skeletons(spec)).read();
        assert_eq!(description.kind, GeometryKind::Skeletons);
        let units = description.axes.iter().map(|axis| axis.unit.as_deref());
        assert!(units.eq([Some("nanometer"); 3]));
        let large = i64::try_from(LARGE).unwrap();
        assert_eq!(geometry.objects, Some(vec![7, 12, large]));
        let owners = [7, 7, 7, 12, large, large, large, large];
        assert_eq!(geometry.owners.ids(), Some(&owners[..]));
        let rows = [0.0_f32, 1., 2., 20., 10., 11., 12., 13.];
        let positions = rows.map(|x| [f64::from(x) * 2.0 + 1.0, 0.5, 3.0]).concat();
        assert_eq!(geometry.positions.to_vec::<f64>(), Some(positions));
        assert_eq!(
            numeric(&geometry.vertex, "radius").to_vec::<f32>().unwrap(),
            rows
        );
        assert_eq!(
            numeric(&geometry.vertex, "kind").to_vec::<u8>().unwrap(),
            [0, 1, 2, 20, 10, 11, 12, 13]
        );
        let directions = rows.map(|x| [x, 0.0, 1.0]).concat();
        assert_eq!(
            numeric(&geometry.vertex, "dir").to_vec::<f32>().unwrap(),
            directions
        );
        // The edges of the first skeleton are (child, parent); those of the third are reversed.
        assert_eq!(geometry.links.ends, [1, 0, 2, 1, 5, 4, 6, 5, 7, 5]);
        let object = &geometry.object;
        assert_eq!(texts(object, "label"), [None, None, Some("a")]);
        assert_eq!(
            texts(object, "tags"),
            [Some("right"), None, Some("left cut")]
        );
        assert_eq!(
            numeric(object, "size").to_vec::<i16>().unwrap(),
            [300, 0, -300]
        );
        assert!(object.iter().any(|column| column.is_null(1)));
        let fa = numeric(object, "FA").to_vec::<f32>().unwrap();
        assert!(fa[0].to_bits() == (-1.25_f32).to_bits() && fa[1].is_nan());
        let size = &description.attributes["object"]["size"];
        assert_eq!(size["description"], json!("Number of parts"));
        let notes = [
            "vertex.radius is in stored units, because the scale of the transform depends on the direction",
            "properties of 1 segments without geometry are left out",
        ];
        assert_eq!(description.notes, notes);
    }
}

/// The attribute `radius` is in the units of stored positions.
#[test]
fn radii_of_skeletons_have_the_scale_of_the_transform() {
    let rows = [0.0_f32, 1., 2., 20., 10., 11., 12., 13.];
    let turned = [0., -5., 0., 1., 3., 0., 4., 2., -4., 0., 3., 3.];
    let doubled = [2., 0., 0., 1., 0., -2., 0., 0., 0., 0., 2., 0.];
    for (transform, scale) in [(IDENTITY, 1.0), (doubled, 2.0), (turned, 5.0)] {
        let mut files = skeletons(None);
        with_info(&mut files, |info| info["transform"] = json!(transform));
        let (geometry, description) = Source::new(&files).read();
        let radius = numeric(&geometry.vertex, "radius").to_vec::<f32>();
        assert_eq!(radius.unwrap(), rows.map(|row| row * scale));
        // Other attributes keep their numbers.
        let directions = numeric(&geometry.vertex, "dir").to_vec::<f32>();
        assert_eq!(directions.unwrap(), rows.map(|x| [x, 0.0, 1.0]).concat());
        let note = "properties of 1 segments without geometry are left out";
        assert_eq!(description.notes, [note]);
    }
    // An attribute of this name with other values is no length.
    let mut files = skeletons(None);
    with_info(&mut files, |info| {
        info["transform"] = json!(doubled);
        info["vertex_attributes"][0]["id"] = json!("width");
        info["vertex_attributes"][1]["id"] = json!("radius");
    });
    let (geometry, _) = Source::new(&files).read();
    let width = numeric(&geometry.vertex, "width").to_vec::<f32>();
    assert_eq!(width.unwrap(), rows);
    let radius = numeric(&geometry.vertex, "radius").to_vec::<u8>();
    assert_eq!(radius.unwrap(), [0, 1, 2, 20, 10, 11, 12, 13]);
}

#[test]
fn compressed_files_are_unpacked() {
    let mut files = skeletons(None);
    let expected = Source::new(&files).read().0;
    for id in [7, LARGE] {
        let bytes = files.remove(&id.to_string()).unwrap();
        files.insert(format!("{id}.gz"), gzip(&bytes));
    }
    assert_eq!(Source::new(&files).read().0, expected);
    // A small file that unpacks to more than any skeleton of its size.
    files.insert("7.gz".to_owned(), gzip(&vec![0; 80 << 20]));
    let why = Source::new(&files).refused();
    assert!(why.contains("7.gz: unpacks to more than"), "{why}");
}

/// Replaces the document by one with other members.
fn with_info(files: &mut Files, change: impl Fn(&mut serde_json::Value)) {
    let mut info = serde_json::from_slice(&files["info"]).unwrap();
    change(&mut info);
    files.insert("info".to_owned(), info.to_string().into_bytes());
}

#[test]
fn positions_without_a_transform_are_float32() {
    let mut files = skeletons(None);
    with_info(&mut files, |info| info["transform"] = json!(IDENTITY));
    let (geometry, _) = Source::new(&files).read();
    assert_eq!(geometry.positions.kind, Kind::Float32);
    let first = geometry.positions.to_vec::<f32>().unwrap();
    assert_eq!(first[..6], [0.0, 0.5, 8.0, 1.0, 0.5, 8.0]);
}

/// A source of one skeleton without attributes.
fn one_skeleton(vertices: u8, edges: &[[u32; 2]]) -> Source {
    let skeleton = Skeleton {
        positions: (0..vertices).map(|x| [f32::from(x), 0.0, 0.0]).collect(),
        edges: edges.to_vec(),
        attributes: Vec::new(),
    };
    let info = SkeletonInfo::default().to_json().into_bytes();
    Source::new(&Files::from([
        ("info".to_owned(), info),
        ("5".to_owned(), skeleton.encode(&[]).unwrap()),
    ]))
}

#[test]
fn circles_become_graphs() {
    let source = one_skeleton(3, &[[0, 1], [1, 2], [2, 0]]);
    let (geometry, description) = source.read();
    assert_eq!(description.kind, GeometryKind::Graphs);
    assert_eq!(geometry.links.ends, [0, 1, 1, 2, 2, 0]);
    assert!(description.notes[0].contains("edges form cycles"));
    let mut options = FileReadOptions::default();
    options.kind = Some(GeometryKind::Skeletons);
    let refused = zvf_files::open(source.0.path(), &options).err().unwrap();
    let why = refused.to_string();
    assert!(why.contains("holds graphs, not skeletons"), "{why}");
    // Trees are graphs on request, with their edges as they are.
    let source = one_skeleton(3, &[[0, 1], [0, 2], [0, 2]]);
    let (geometry, description) = source.read_as(Some(GeometryKind::Graphs));
    assert_eq!(geometry.links.ends, [0, 1, 0, 2, 0, 2]);
    assert_eq!(description.notes, [""; 0]);
    let (geometry, description) = source.read();
    assert_eq!(geometry.links.ends, [1, 0, 2, 0]);
    assert!(description.notes[0].starts_with("1 edges that repeat"));
}

#[test]
fn skeletons_that_are_paths_become_streamlines_on_request() {
    let kind = Some(GeometryKind::Streamlines);
    let (geometry, description) = one_skeleton(3, &[[1, 2], [1, 0]]).read_as(kind);
    assert_eq!(description.kind, GeometryKind::Streamlines);
    assert_eq!(geometry.owners.offsets(), Some([0, 3].as_slice()));
    assert_eq!(geometry.owners.ids(), Some([5].as_slice()));
    assert!(geometry.links.is_empty());
    let mut options = FileReadOptions::default();
    options.kind = kind;
    for edges in [&[[0, 1], [0, 2]][..], &[[0, 1]], &[[0, 1], [1, 0]]] {
        let source = one_skeleton(3, edges);
        let refused = zvf_files::open(source.0.path(), &options).err().unwrap();
        let why = refused.to_string();
        assert!(why.contains("is no path; leave out the kind"), "{why}");
        assert!(refused.path.ends_with("5"), "{refused}");
    }
}

fn axis(name: &str, scale: f64, unit: &str) -> Dimension {
    Dimension {
        name: name.to_owned(),
        scale,
        unit: unit.to_owned(),
    }
}

fn property(id: &str, kind: PropertyType) -> PropertySpec {
    PropertySpec {
        id: id.to_owned(),
        kind,
        ..PropertySpec::default()
    }
}

/// The document of annotations on two levels with four properties.
fn annotation_info(
    kind: AnnotationKind,
    spec: Option<ShardingSpec>,
    is_related: bool,
) -> AnnotationInfo {
    let mut words = property("kind", PropertyType::Uint8);
    words.labels = [(0.0, "soma"), (3.0, "axon"), (4.0, "(none)")]
        .map(|(value, label)| ValueLabel {
            value,
            label: label.to_owned(),
        })
        .to_vec();
    let mut size = property("size", PropertyType::Int32);
    size.description = Some("Size of the thing".to_owned());
    AnnotationInfo {
        dimensions: Dimensions(vec![
            axis("x", 1e-6, "m"),
            axis("y", 1e-6, "m"),
            axis("t", 1e-3, "s"),
        ]),
        lower_bound: vec![0.0; 3],
        upper_bound: vec![8.0; 3],
        kind,
        properties: vec![
            words,
            size,
            property("shade", PropertyType::Rgb),
            property("fa", PropertyType::Float32),
        ],
        relationships: if is_related {
            vec![Relationship {
                id: "object".to_owned(),
                key: "related".to_owned(),
                sharding: None,
            }]
        } else {
            Vec::new()
        },
        by_id: "by_id".to_owned(),
        by_id_sharding: spec,
        spatial: [(1, 8.0), (2, 4.0)]
            .map(|(cells, size)| SpatialLevel {
                key: format!("spatial{cells}"),
                grid_shape: vec![cells; 3],
                chunk_size: vec![size; 3],
                limit: 9,
                sharding: spec,
            })
            .to_vec(),
    }
}

/// Annotations 30, 10 and 20 with four properties, on two levels. Lines lie in two cells of the
/// second level.
fn annotations(kind: AnnotationKind, spec: Option<ShardingSpec>, segments: &[&[u64]]) -> Files {
    let info = annotation_info(kind, spec, !segments.is_empty());
    let layout = RecordLayout::of(&info);
    let annotation = |id: u8, code: u8| {
        let points = match kind {
            AnnotationKind::Point => 1,
            AnnotationKind::Polyline => 1 + id / 10,
            _ => 2,
        };
        let points = (0..points).map(|at| [f32::from(id) / 8.0, f32::from(at), 2.5]);
        Annotation {
            coordinates: points.flatten().collect(),
            properties: vec![
                PropertyValue::Uint8(code),
                PropertyValue::Int32(-i32::from(id)),
                PropertyValue::Rgb([id, 1, 2]),
                PropertyValue::Float32(f32::from(id) / 2.0),
            ],
        }
    };
    let all = [(30, 3), (10, 0), (20, 5)].map(|(id, code)| (id, annotation(id, code)));
    let mut files = Files::from([("info".to_owned(), info.to_json().into_bytes())]);
    let list = |rows: &[usize]| {
        let list = AnnotationList {
            annotations: rows.iter().map(|row| all[*row].1.clone()).collect(),
            ids: rows.iter().map(|row| u64::from(all[*row].0)).collect(),
        };
        list.encode(&layout).unwrap()
    };
    let mut cells = vec![("spatial1", vec![0_u64, 0, 0], list(&[1]))];
    match kind {
        AnnotationKind::Point => {
            cells.push(("spatial2", vec![0, 0, 0], list(&[0, 2])));
        }
        _ => {
            cells.push(("spatial2", vec![0, 0, 0], list(&[0, 2])));
            cells.push(("spatial2", vec![1, 0, 1], list(&[2, 0])));
        }
    }
    for (level, cell, value) in cells {
        let shape = if level == "spatial1" { [1; 3] } else { [2; 3] };
        match spec {
            Some(_) => {
                let code = compressed_morton_code(&cell, &shape).unwrap();
                let values = BTreeMap::from([(code, value)]);
                put(&format!("{level}/"), spec, &values, &mut files);
            }
            None => {
                let name: Vec<String> = cell.iter().map(u64::to_string).collect();
                files.insert(format!("{level}/{}", name.join("_")), value);
            }
        }
    }
    if !segments.is_empty() {
        let values = all
            .iter()
            .zip(segments)
            .map(|((id, annotation), segments)| {
                let value = layout.encode_single(annotation, &[segments.to_vec()]);
                (u64::from(*id), value.unwrap())
            });
        put("by_id/", spec, &values.collect(), &mut files);
    }
    files
}

fn check_properties(columns: &[Column]) {
    assert_eq!(
        texts(columns, "kind"),
        [Some("soma"), Some("5"), Some("axon")]
    );
    assert_eq!(
        numeric(columns, "size").to_vec::<i32>().unwrap(),
        [-10, -20, -30]
    );
    assert_eq!(
        numeric(columns, "shade").to_vec::<u8>().unwrap(),
        [10, 1, 2, 20, 1, 2, 30, 1, 2]
    );
    assert_eq!(
        numeric(columns, "fa").to_vec::<f32>().unwrap(),
        [5.0, 10.0, 15.0]
    );
}

#[test]
fn points_of_all_cells_have_ids_and_properties() {
    for spec in specs() {
        let source = Source::new(&annotations(AnnotationKind::Point, spec, &[]));
        let (geometry, description) = source.read();
        assert_eq!(description.kind, GeometryKind::Points);
        let axes: Vec<_> = description
            .axes
            .iter()
            .map(|axis| (axis.name.as_str(), axis.unit.as_deref().unwrap()))
            .collect();
        let expected = [
            ("x", "micrometer"),
            ("y", "micrometer"),
            ("t", "millisecond"),
        ];
        assert_eq!(axes, expected);
        assert_eq!(description.axes[2].kind, "time");
        // The numbers of the file, in the order of the ids.
        let positions = [1.25_f32, 0.0, 2.5, 2.5, 0.0, 2.5, 3.75, 0.0, 2.5];
        assert_eq!(geometry.positions.to_vec::<f32>().unwrap(), positions);
        check_properties(&geometry.vertex);
        assert_eq!(
            numeric(&geometry.vertex, "annotation_id")
                .to_vec::<u64>()
                .unwrap(),
            [10, 20, 30]
        );
        let size = &description.attributes["vertex"]["size"];
        assert_eq!(size["description"], json!("Size of the thing"));
        assert_eq!(description.notes, [""; 0]);
    }
}

#[test]
fn the_segments_of_points_become_objects() {
    for spec in specs() {
        let files = annotations(AnnotationKind::Point, spec, &[&[5], &[6, 9], &[5]]);
        let (geometry, description) = Source::new(&files).read();
        assert_eq!(geometry.owners.ids(), Some([6, 5, 5].as_slice()));
        check_properties(&geometry.vertex);
        let note = "further segments of 1 annotations in relationship object are left out";
        assert!(description.notes[0].starts_with(note), "{description:?}");
    }
    // A point without a segment has no object, so that segments are an attribute.
    let files = annotations(AnnotationKind::Point, None, &[&[5], &[], &[5]]);
    let (geometry, _) = Source::new(&files).read();
    assert_eq!(geometry.owners.ids(), None);
    assert_eq!(
        numeric(&geometry.vertex, "object").to_vec::<i64>().unwrap(),
        [-1, 5, 5]
    );
}

#[test]
fn paths_in_several_cells_are_read_once() {
    for (kind, geometry_kind, offsets) in [
        (AnnotationKind::Line, GeometryKind::Lines, [0, 2, 4, 6]),
        (
            AnnotationKind::Polyline,
            GeometryKind::Polylines,
            [0, 2, 5, 9],
        ),
    ] {
        for spec in specs() {
            let source = Source::new(&annotations(kind, spec, &[]));
            let (geometry, description) = source.read();
            assert_eq!(description.kind, geometry_kind);
            assert_eq!(geometry.owners.offsets(), Some(offsets.as_slice()));
            assert_eq!(geometry.owners.ids(), Some([10, 20, 30].as_slice()));
            assert_eq!(geometry.objects, Some(vec![10, 20, 30]));
            check_properties(&geometry.object);
            assert_eq!(geometry.vertex, []);
        }
    }
}

#[test]
fn the_segments_of_paths_are_objects_or_an_attribute() {
    let read = |segments: &[&[u64]]| {
        let files = annotations(AnnotationKind::Polyline, None, segments);
        Source::new(&files).read().0
    };
    // In the order of the ids: 40, 50 and 60.
    let geometry = read(&[&[60], &[40], &[50]]);
    assert_eq!(geometry.owners.ids(), Some([40, 50, 60].as_slice()));
    assert_eq!(
        numeric(&geometry.object, "annotation_id")
            .to_vec::<u64>()
            .unwrap(),
        [10, 20, 30]
    );
    let geometry = read(&[&[40], &[], &[40, 7]]);
    assert_eq!(geometry.owners.ids(), Some([10, 20, 30].as_slice()));
    assert_eq!(
        numeric(&geometry.object, "object").to_vec::<i64>().unwrap(),
        [-1, 40, 40]
    );
}

#[test]
fn steps_of_axes_are_multiplied() {
    let mut files = annotations(AnnotationKind::Point, None, &[]);
    let text = String::from_utf8(files["info"].clone())
        .unwrap()
        .replace(r#""y":[1e-6,"m"]"#, r#""y":[4e-8,"m"]"#);
    assert!(text.contains("4e-8"), "{text}");
    files.insert("info".to_owned(), text.into_bytes());
    let annotation = |geometry: GeometryBuilder| geometry.positions.to_vec::<f64>().unwrap();
    let (geometry, description) = Source::new(&files).read();
    assert_eq!(description.axes[1].unit.as_deref(), Some("nanometer"));
    assert_eq!(annotation(geometry)[..3], [1.25, 0.0, 2.5]);
    let files: Files = files
        .into_iter()
        .map(|(name, bytes)| match name.as_str() {
            "info" => {
                let text = String::from_utf8(bytes)
                    .unwrap()
                    .replace(r#""x":[1e-6,"m"]"#, r#""x":[4e-9,"m"]"#);
                (name, text.into_bytes())
            }
            _ => (name, bytes),
        })
        .collect();
    let (geometry, _) = Source::new(&files).read();
    assert_eq!(annotation(geometry)[..3], [5.0, 0.0, 2.5]);
}

#[test]
fn boxes_and_ellipsoids_are_refused() {
    for kind in [AnnotationKind::BoundingBox, AnnotationKind::Ellipsoid] {
        let why = Source::new(&annotations(kind, None, &[])).refused();
        let expected = format!("annotation_type is {}; points, lines", kind.name());
        assert!(why.contains(&expected), "{why}");
    }
}

#[tokio::test]
async fn stores_in_batches_equal_whole_ones() {
    for kind in [AnnotationKind::Point, AnnotationKind::Polyline] {
        let source = Source::new(&annotations(kind, specs()[2], &[&[5], &[6], &[5]]));
        let folder = tempfile::tempdir().unwrap();
        let mut results = Vec::new();
        for is_streamed in [false, true] {
            let store = folder.path().join(format!("{is_streamed}.zv"));
            let options = FileReadOptions::default();
            import(source.0.path(), &store, &options, is_streamed).await;
            let dataset = Dataset::open(store.display().to_string()).await.unwrap();
            results.push(dataset.query(&Query::new()).await.unwrap());
        }
        assert_eq!(results[0], results[1]);
        assert_eq!(
            results[0].objects.len(),
            if kind == AnnotationKind::Point { 2 } else { 3 }
        );
    }
}

fn fragment(positions: &[[f32; 3]], triangles: &[[u32; 3]]) -> Vec<u8> {
    let fragment = LegacyMeshFragment {
        positions: positions.to_vec(),
        triangles: triangles.to_vec(),
    };
    fragment.encode().unwrap()
}

/// A square whose halves are fragments, and a triangle.
fn legacy_meshes() -> Files {
    let manifest = |names: &[&str]| {
        let fragments = names.iter().map(|name| (*name).to_owned()).collect();
        LegacyMeshManifest { fragments }.to_json().into_bytes()
    };
    let [a, b, c, d] = [
        [0.0, 0.0, 9.0],
        [1.0, 0.0, 9.0],
        [1.0, 1.0, 9.0],
        [-0.0, 1.0, 9.0],
    ];
    let origin = [-0.0, 0.0, 9.0];
    Files::from([
        (
            "info".to_owned(),
            LegacyMeshInfo::default().to_json().into_bytes(),
        ),
        ("3:0".to_owned(), manifest(&["3:0:a", "3:0:b"])),
        ("3:0:a".to_owned(), fragment(&[a, b, c], &[[0, 1, 2]])),
        (
            "3:0:b.gz".to_owned(),
            gzip(&fragment(&[c, d, origin], &[[0, 1, 2]])),
        ),
        ("1:0".to_owned(), manifest(&["1:0:0"])),
        // Equal positions of a mesh of one fragment stay apart.
        (
            "1:0:0".to_owned(),
            fragment(&[a, b, b, c], &[[0, 1, 3], [0, 2, 3]]),
        ),
    ])
}

#[test]
fn fragments_of_single_resolution_meshes_are_joined() {
    let (geometry, description) = Source::new(&legacy_meshes()).read();
    assert_eq!(description.kind, GeometryKind::Mesh);
    assert_eq!(geometry.links.width, 3);
    assert_eq!(
        geometry.owners.ids(),
        Some([1, 1, 1, 1, 3, 3, 3, 3].as_slice())
    );
    assert_eq!(geometry.links.ends, [0, 1, 3, 0, 2, 3, 4, 5, 6, 6, 7, 4]);
    assert_eq!(geometry.positions.kind, Kind::Float32);
}

#[cfg(feature = "draco")]
mod draco {
    use zvf_precomputed::{CutMesh, MultilodMeshInfo, TriangleMesh, VertexBits};

    use super::*;

    /// A closed surface: a cube with its sides divided.
    fn cube(steps: u16, size: f32) -> TriangleMesh {
        let mut mesh = TriangleMesh::default();
        let mut rows: BTreeMap<[u16; 3], u32> = BTreeMap::new();
        let mut row = |at: [u16; 3], mesh: &mut TriangleMesh| {
            *rows.entry(at).or_insert_with(|| {
                let along = |at: u16| f32::from(at) / f32::from(steps) * size + 10.0;
                mesh.positions.push(at.map(along));
                u32::try_from(mesh.positions.len()).unwrap() - 1
            })
        };
        for axis in 0..3 {
            for side in [0, steps] {
                for u in 0..steps {
                    for v in 0..steps {
                        let mut corner = |du: u16, dv: u16| {
                            let mut at = [0; 3];
                            at[axis] = side;
                            at[(axis + 1) % 3] = u + du;
                            at[(axis + 2) % 3] = v + dv;
                            row(at, &mut mesh)
                        };
                        let [a, b, c, d] = [corner(0, 0), corner(1, 0), corner(1, 1), corner(0, 1)];
                        mesh.triangles.extend([[a, b, c], [a, c, d]]);
                    }
                }
            }
        }
        mesh
    }

    pub(super) fn meshes(spec: Option<ShardingSpec>, bits: VertexBits) -> Files {
        let spec = spec.map(|spec| spec.data_encoding(ShardEncoding::Raw));
        let info = MultilodMeshInfo {
            vertex_bits: bits,
            transform: [2., 0., 0., 0., 0., 2., 0., 0., 0., 0., 2., -20.],
            sharding: spec,
            ..MultilodMeshInfo::default()
        };
        let mut files = Files::from([("info".to_owned(), info.to_json().into_bytes())]);
        let mut shards: BTreeMap<u64, ShardBuilder> = BTreeMap::new();
        for (id, steps) in [(4_u64, 2), (9, 12)] {
            // A coarser level, which is not read.
            let levels = [cube(steps, 8.0), cube(1, 8.0)];
            let cut = CutMesh::new(&levels, bits, 40).unwrap().unwrap();
            let mesh = cut.encode().unwrap();
            let manifest = mesh.manifest.encode().unwrap();
            match spec {
                None => {
                    files.insert(id.to_string(), mesh.data);
                    files.insert(format!("{id}.index"), manifest);
                }
                Some(spec) => {
                    let shard = spec.locate(id).shard;
                    let builder = shards
                        .entry(shard)
                        .or_insert_with(|| ShardBuilder::new(spec, shard));
                    builder.push_after(id, &mesh.data, &manifest).unwrap();
                }
            }
        }
        for (shard, builder) in shards {
            let spec = spec.unwrap_or_default();
            files.insert(spec.file_name(shard), builder.finish());
        }
        files
    }

    #[test]
    fn multi_resolution_meshes_are_closed_and_in_place() {
        for bits in [VertexBits::Ten, VertexBits::Sixteen] {
            for spec in specs() {
                let (geometry, _) = Source::new(&meshes(spec, bits)).read();
                assert_eq!(geometry.objects, Some(vec![4, 9]));
                let mut edges: BTreeMap<[i64; 2], u32> = BTreeMap::new();
                for corners in geometry.links.ends.chunks_exact(3) {
                    let &[a, b, c] = corners else { panic!() };
                    for [a, b] in [[a, b], [b, c], [c, a]] {
                        *edges.entry([a.min(b), a.max(b)]).or_default() += 1;
                    }
                }
                assert!(edges.values().all(|count| *count == 2), "{bits:?} {spec:?}");
                let positions = geometry.positions.to_vec::<f64>().unwrap();
                // The surface of a cube from 10 to 18, after the transform. A node has at most 8.
                let step = 2.0 * 8.0 / f64::from(bits.last());
                for point in positions.chunks_exact(3) {
                    let local = [point[0], point[1], point[2] + 20.0];
                    let is_inside = |along: &f64| (20.0 - step..=36.0 + step).contains(along);
                    assert!(local.iter().all(is_inside), "{point:?}");
                    let is_side =
                        |along: &f64| (along - 20.0).abs() <= step || (along - 36.0).abs() <= step;
                    assert!(local.iter().any(is_side), "{point:?}");
                }
                let has = |corner: [f64; 3]| {
                    positions.chunks_exact(3).any(|point| {
                        let mut axes = point.iter().zip(corner);
                        axes.all(|(at, corner)| (at - corner).abs() <= step)
                    })
                };
                assert!(has([20.0, 20.0, 0.0]) && has([36.0, 36.0, 16.0]));
            }
        }
    }

    #[test]
    fn damaged_multi_resolution_meshes_are_refused_or_read() {
        check_damage(&meshes(None, VertexBits::Ten), 5);
        check_damage(&meshes(specs()[1], VertexBits::Ten), 6);
    }

    #[test]
    fn steps_outside_of_a_node_are_refused() {
        let mut files = meshes(None, VertexBits::Sixteen);
        with_info(&mut files, |info| {
            info["vertex_quantization_bits"] = json!(10);
        });
        let why = Source::new(&files).refused();
        assert!(
            why.contains("vertex_quantization_bits of the info"),
            "{why}"
        );
    }
}

#[test]
fn a_folder_with_one_source_stands_for_it() {
    let below = |folder: &str, files: &Files| -> Files {
        let files = files
            .iter()
            .map(|(name, bytes)| (format!("{folder}/{name}"), bytes.clone()));
        files.collect()
    };
    let expected = Source::new(&skeletons(None)).read().0;
    let mut files = below("skeletons", &skeletons(None));
    assert_eq!(Source::new(&files).read().0, expected);
    // The info of a volume names the folders.
    let volume = json!({"type": "segmentation", "skeletons": "skeletons"});
    files.insert("info".to_owned(), volume.to_string().into_bytes());
    assert_eq!(Source::new(&files).read().0, expected);
    files.extend(below("mesh", &legacy_meshes()));
    let why = Source::new(&files).refused();
    let expected = "holds several layers, in the folders mesh, skeletons; name one of them";
    assert!(why.contains(expected), "{why}");
    // Properties beside points belong to their segments.
    let points = annotations(AnnotationKind::Point, None, &[&[7], &[999], &[7]]);
    let mut files = below("annotations", &points);
    let properties = skeletons(None)["props/info"].clone();
    files.insert("segments/info".to_owned(), properties);
    let (geometry, _) = Source::new(&files).read();
    assert_eq!(geometry.objects, Some(vec![7, 999]));
    assert_eq!(texts(&geometry.object, "label"), [None, Some("c")]);
}

#[test]
fn folders_without_a_source_are_refused() {
    let info = |json: &serde_json::Value| {
        let bytes = json.to_string().into_bytes();
        Source::new(&Files::from([("info".to_owned(), bytes)]))
    };
    for (document, expected) in [
        (
            json!({"redirect": "gs://a/b"}),
            "redirects to another address",
        ),
        (
            json!({"@type": "neuroglancer_multiscale_volume"}),
            "holds no precomputed",
        ),
        (
            json!({"@type": "neuroglancer_segment_properties"}),
            "holds no precomputed",
        ),
        (
            json!({"@type": "neuroglancer_skeletons"}),
            "holds no vertices",
        ),
        (
            json!({"@type": "neuroglancer_skeletons", "transform": [1]}),
            "12 numbers",
        ),
        (
            json!({"@type": "neuroglancer_annotations_v1"}),
            "dimensions",
        ),
    ] {
        let why = info(&document).refused();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn names_do_not_lead_out_of_the_source() {
    let mut files = legacy_meshes();
    files.insert("1:0".to_owned(), br#"{"fragments": ["../x"]}"#.to_vec());
    let why = Source::new(&files).refused();
    assert!(
        why.contains("1:0: ") && why.contains("the name of a file in this folder"),
        "{why}"
    );
    files.insert(
        "1:0".to_owned(),
        br#"{"fragments": ["1:0:0", "1:0:0"]}"#.to_vec(),
    );
    let why = Source::new(&files).refused();
    assert!(why.contains("\"1:0:0\" occurs twice"), "{why}");
    let mut files = annotations(AnnotationKind::Point, None, &[]);
    with_info_text(&mut files, r#""key":"spatial1""#, r#""key":"../spatial1""#);
    let why = Source::new(&files).refused();
    assert!(why.contains("other folders are not read"), "{why}");
    let mut files = skeletons(None);
    with_info(&mut files, |info| {
        info["segment_properties"] = json!("/etc");
    });
    let (geometry, description) = Source::new(&files).read();
    assert_eq!(geometry.object, []);
    assert!(description.notes[1].contains("properties of segments are left out"));
}

/// Replaces text of a document of annotations, whose axes are in order.
fn with_info_text(files: &mut Files, from: &str, to: &str) {
    let text = String::from_utf8(files["info"].clone()).unwrap();
    assert!(text.contains(from), "{text}");
    files.insert("info".to_owned(), text.replace(from, to).into_bytes());
}

#[test]
fn ids_that_are_no_objects_are_refused_or_kept_as_attribute() {
    let mut files = skeletons(None);
    let skeleton = files["7"].clone();
    files.insert(u64::MAX.to_string(), skeleton);
    let why = Source::new(&files).refused();
    assert!(why.contains("ids of objects are below 2^63"), "{why}");
    let mut files = annotations(AnnotationKind::Line, None, &[]);
    // The id follows the only record of the cell.
    let cell = files.get_mut("spatial1/0_0_0").unwrap();
    let end = cell.len();
    cell[end - 8..].fill(0xff);
    let (geometry, _) = Source::new(&files).read();
    assert_eq!(geometry.owners.ids(), Some([0, 1, 2].as_slice()));
    let ids = numeric(&geometry.object, "annotation_id")
        .to_vec::<u64>()
        .unwrap();
    assert_eq!(ids, [20, 30, u64::MAX]);
}

#[test]
fn coordinates_that_are_not_finite_are_refused() {
    let mut files = skeletons(None);
    files.get_mut("12").unwrap()[8..12].copy_from_slice(&f32::NAN.to_le_bytes());
    let why = Source::new(&files).refused();
    assert!(why.contains("12: a coordinate is NaN"), "{why}");
    let mut files = annotations(AnnotationKind::Point, None, &[]);
    let cell = files.get_mut("spatial1/0_0_0").unwrap();
    cell[8..12].copy_from_slice(&f32::INFINITY.to_le_bytes());
    let why = Source::new(&files).refused();
    assert!(why.contains("member \"10\": a coordinate is inf"), "{why}");
}

/// Cuts each file and changes bytes of it: an error names a file of the source, or the source is
/// read.
fn check_damage(files: &Files, seed: u64) {
    let source = Source::new(files);
    let mut random = Random::new(seed);
    for (name, bytes) in files {
        let step = (bytes.len() / 40).max(1);
        for end in (0..bytes.len()).step_by(step) {
            source.write(name, &bytes[..end]);
            if let Err(error) = read(source.0.path()) {
                let folder = source.0.path().display().to_string();
                assert!(error.starts_with(&folder), "{error}");
            }
        }
        for _ in 0..40 {
            source.write(name, flip(bytes, &mut random));
            drop(read(source.0.path()));
        }
        source.write(name, bytes);
    }
    read(source.0.path()).unwrap();
}

#[test]
fn damaged_skeletons_are_refused_or_read() {
    for (spec, seed) in specs().into_iter().zip(1..) {
        check_damage(&skeletons(spec), seed);
    }
}

#[test]
fn damaged_annotations_are_refused_or_read() {
    let segments: [&[&[u64]]; 2] = [&[], &[&[5], &[6], &[5]]];
    for segments in segments {
        for (spec, seed) in specs().into_iter().zip(11..) {
            for kind in [AnnotationKind::Point, AnnotationKind::Polyline] {
                check_damage(&annotations(kind, spec, segments), seed);
            }
        }
    }
}

#[test]
fn damaged_single_resolution_meshes_are_refused_or_read() {
    check_damage(&legacy_meshes(), 4);
}

/// Bytes of osteoid 0.7.4, which writes skeletons for cloud-volume, and of Neuroglancer's annotation
/// writer 2.41.2.
#[test]
fn golden_sources_of_other_programs_have_their_values() {
    let hex = |text: &str| -> Vec<u8> {
        let digits: Vec<char> = text.chars().filter(|c| !c.is_whitespace()).collect();
        let pairs = digits.chunks(2).map(|pair| pair.iter().collect::<String>());
        pairs
            .map(|pair| u8::from_str_radix(&pair, 16).unwrap())
            .collect()
    };
    let info = json!({"@type": "neuroglancer_skeletons", "vertex_attributes": [
        {"id": "radius", "data_type": "float32", "num_components": 1},
        {"id": "kind", "data_type": "uint8", "num_components": 1}]});
    let skeleton = "02000000010000000000803f0000004000004040000080400000a0400000d040
                    00000000010000000000003f000000400307";
    let source = Source::new(&Files::from([
        ("info".to_owned(), info.to_string().into_bytes()),
        ("17".to_owned(), hex(skeleton)),
    ]));
    let (geometry, _) = source.read();
    let positions = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.5];
    assert_eq!(geometry.positions.to_vec::<f32>().unwrap(), positions);
    assert_eq!(geometry.links.ends, [0, 1]);
    assert_eq!(
        numeric(&geometry.vertex, "radius").to_vec::<f32>().unwrap(),
        [0.5, 2.0]
    );
    assert_eq!(
        numeric(&geometry.vertex, "kind").to_vec::<u8>().unwrap(),
        [3, 7]
    );
    let info = r#"{"@type": "neuroglancer_annotations_v1",
        "dimensions": {"x": [1e-06, "m"], "y": [1e-06, "m"], "z": [1e-06, "m"]},
        "lower_bound": [1.0, 2.0, 3.0], "upper_bound": [4.0, 5.0, 6.0], "annotation_type": "polyline",
        "properties": [{"id": "a", "type": "uint32"}, {"id": "h", "type": "uint16"},
                       {"id": "c", "type": "uint8"}, {"id": "col", "type": "rgb"}],
        "relationships": [{"id": "cell", "key": "rel_cell"}], "by_id": {"key": "by_id"},
        "spatial": [{"key": "spatial0", "grid_shape": [1, 1, 1], "chunk_size": [3.0, 3.0, 3.0],
                     "limit": 2}]}"#;
    let record = "030000000000803f0000004000004040000080400000a0400000c0400000e0400000004100001041
                  701101002c01050102030000";
    let source = Source::new(&Files::from([
        ("info".to_owned(), info.as_bytes().to_vec()),
        (
            "by_id/17".to_owned(),
            hex(&format!("{record}0200000009000000000000000a00000000000000")),
        ),
        (
            "spatial0/0_0_0".to_owned(),
            hex(&format!("0100000000000000{record}1100000000000000")),
        ),
    ]));
    let (geometry, description) = source.read();
    let positions = [1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    assert_eq!(geometry.positions.to_vec::<f32>().unwrap(), positions);
    assert_eq!(geometry.owners.ids(), Some([17].as_slice()));
    assert_eq!(
        numeric(&geometry.object, "a").to_vec::<u32>().unwrap(),
        [70_000]
    );
    assert_eq!(
        numeric(&geometry.object, "h").to_vec::<u16>().unwrap(),
        [300]
    );
    assert_eq!(numeric(&geometry.object, "c").to_vec::<u8>().unwrap(), [5]);
    assert_eq!(
        numeric(&geometry.object, "col").to_vec::<u8>().unwrap(),
        [1, 2, 3]
    );
    assert_eq!(
        numeric(&geometry.object, "cell").to_vec::<i64>().unwrap(),
        [9]
    );
    assert!(description.notes[0].starts_with("further segments of 1 annotations"));
}

#[test]
fn folders_are_recognized_by_their_documents() {
    use zvf_files::FileFormat;
    let source = Source::new(&skeletons(None));
    let format = |path: &Path| FileFormat::of_input(path);
    assert_eq!(format(source.0.path()), Some(FileFormat::Precomputed));
    assert_eq!(format(&source.path("props")), Some(FileFormat::Precomputed));
    assert_eq!(format(tempfile::tempdir().unwrap().path()), None);
    assert_eq!(FileFormat::of_path(Path::new("a.precomputed")), None);
}

/// Regression test: of several values with one key, an arbitrary one was kept, and values that share
/// bytes were read over and over.
#[test]
fn keys_and_bytes_of_shards_occur_once() {
    let one = ShardingSpec::default();
    let several = ShardingSpec {
        minishard_bits: 1,
        ..one
    };
    let mut reasons = String::new();
    for spec in [several, one] {
        let files = skeletons(Some(spec));
        let source = Source::new(&files);
        let is_shard = |name: &str| name.strip_suffix(".shard").is_some();
        let shards = files.iter().filter(|(name, _)| is_shard(name));
        for (name, bytes) in shards {
            for at in (0..bytes.len() - 7).step_by(4) {
                // Makes two keys equal, or a value longer, so that it overlaps the next minishard.
                let (mut equal, mut longer) = (bytes.clone(), bytes.clone());
                equal[at..at + 8].fill(0);
                longer[at] = longer[at].wrapping_add(1);
                for changed in [equal, longer] {
                    source.write(name, changed);
                    reasons.extend(read(source.0.path()).err());
                }
            }
            source.write(name, bytes);
        }
    }
    for reason in ["occurs twice", "values of the shard overlap"] {
        assert!(reasons.contains(reason), "{reason}");
    }
}

#[test]
fn records_of_an_annotation_are_equal_in_all_cells() {
    let files = annotations(AnnotationKind::Line, None, &[]);
    let source = Source::new(&files);
    let mut reasons = String::new();
    for (name, bytes) in files.iter().filter(|(name, _)| !name.ends_with("info")) {
        let mut changed = bytes.clone();
        // The lowest byte of a coordinate, after the number of records.
        changed[8] ^= 1;
        source.write(name, &changed);
        reasons.extend(read(source.0.path()).err());
        source.write(name, bytes);
    }
    assert!(reasons.contains("occurs twice"), "{reasons}");
}
