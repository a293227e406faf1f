//! Attributes of objects, fragments and groups: every given value is stored.

use zvf_build::{
    BuildError, CellCompression, Column, Design, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, OutOfBounds, Output, VertexOwners, WritePlan,
};

/// Returns vertices at (0), (1), (2) and so on.
fn row(vertices: u8) -> GeometryBuilder {
    Geometry::builder(NumericColumn::float32(1, (0..vertices).map(f32::from)))
}

fn design(kind: GeometryKind) -> Design {
    let mut design = Design::new(kind);
    design.chunk_shape = Some(vec![10.0]);
    design
}

fn numbers(name: &str, values: impl IntoIterator<Item = f64>) -> Column {
    Column::new(name.to_owned(), NumericColumn::float64(1, values))
}

/// Returns the attributes of an array or group.
#[track_caller]
fn node(outputs: &[Output], wanted: &str) -> serde_json::Value {
    let mut nodes = outputs.iter().filter_map(|output| match output {
        Output::Node { key, node } if key.as_str() == wanted => Some(node.to_json()),
        _ => None,
    });
    nodes.next().expect(wanted)
}

#[track_caller]
fn payload(outputs: &[Output], wanted: &str) -> Vec<u8> {
    let mut cells = outputs.iter().filter_map(|output| match output {
        Output::Cell { array, payload, .. } if array.as_str() == wanted => Some(payload.clone()),
        _ => None,
    });
    cells.next().expect(wanted)
}

fn floats(bytes: &[u8]) -> Vec<f64> {
    let all = bytes.chunks_exact(8);
    all.map(|one| f64::from_le_bytes(one.try_into().unwrap()))
        .collect()
}

/// The element size of Blosc ends at 255 bytes, and text of 64 letters has 256.
#[test]
fn blosc_compresses_long_text_by_letter() {
    let mut geometry = row(1);
    geometry.object = vec![Column::text("text", vec![Some("a".repeat(64))])];
    let mut design = design(GeometryKind::Points);
    design.compression = CellCompression::Blosc;
    let outputs = WritePlan::new(geometry.build().unwrap(), design)
        .unwrap()
        .rest()
        .unwrap();
    let codecs = &node(&outputs, "0/object_attributes/text")["codecs"];
    assert_eq!(codecs[1]["configuration"]["typesize"], 4);
}

/// Cells of chunks have one codec, and tables one for their type.
#[test]
fn auto_compression_shuffles_numbers() {
    let mut geometry = row(4);
    geometry.owners = VertexOwners::Vertices(vec![1, 1, 2, 2]);
    geometry.vertex = vec![
        numbers("wide", [0.5; 4]),
        Column::new("narrow", NumericColumn::from_values(1, [7_u8; 4])),
    ];
    let weights = NumericColumn::float32(1, [0.5, 1.5]);
    geometry.object = vec![Column::new("weight", weights)];
    let mut design = design(GeometryKind::Points);
    design.compression = CellCompression::Auto;
    let outputs = WritePlan::new(geometry.build().unwrap(), design)
        .unwrap()
        .rest()
        .unwrap();
    let codec = |array: &str| {
        let codec = &node(&outputs, array)["codecs"][1];
        let size = codec["configuration"]["typesize"].as_u64();
        (codec["name"].as_str().unwrap().to_owned(), size)
    };
    let lz4 = |size| ("blosc".to_owned(), Some(size));
    let zstd = ("zstd".to_owned(), None);
    assert_eq!(codec("0/vertices"), lz4(8));
    assert_eq!(codec("0/vertex_fragments"), lz4(8));
    assert_eq!(codec("0/vertex_attributes/wide"), lz4(8));
    assert_eq!(codec("0/vertex_attributes/narrow"), lz4(8));
    assert_eq!(codec("0/object_attributes/weight"), lz4(4));
    assert_eq!(codec("0/object_index/manifests"), zstd);
    let configuration = &node(&outputs, "0/vertices")["codecs"][1]["configuration"];
    assert_eq!(configuration["cname"], "lz4");
    assert_eq!(configuration["shuffle"], "bitshuffle");
}

/// Objects have a fill value for null integers; vertices have none.
#[test]
fn null_integers_are_stored_for_objects_only() {
    let counts = Column {
        nulls: Some(vec![false, true]),
        ..Column::new("count", NumericColumn::int64(1, [7, 9]))
    };
    let mut geometry = row(2);
    geometry.owners = VertexOwners::Vertices(vec![1, 2]);
    geometry.object = vec![counts.clone()];
    let plan = WritePlan::new(geometry.build().unwrap(), design(GeometryKind::Points)).unwrap();
    let outputs = plan.rest().unwrap();
    let fill = node(&outputs, "0/object_attributes/count")["fill_value"].as_i64();
    let cell = payload(&outputs, "0/object_attributes/count");
    let stored = cell
        .chunks_exact(8)
        .map(|value| i64::from_le_bytes(value.try_into().unwrap()));
    assert_eq!(stored.collect::<Vec<_>>(), [7, fill.unwrap()]);
    assert_ne!(fill, Some(7));

    let mut geometry = row(2);
    geometry.vertex = vec![counts];
    let error =
        WritePlan::new(geometry.build().unwrap(), design(GeometryKind::Points)).unwrap_err();
    assert!(matches!(error, BuildError::NullInteger(name) if name == "count"));
}

#[test]
fn groups_without_members_keep_their_attributes() {
    let mut geometry = row(2);
    geometry.group = vec![numbers("weight", [1.5, 2.5, 3.5])];
    let plan = WritePlan::new(geometry.build().unwrap(), design(GeometryKind::Points)).unwrap();
    let outputs = plan.rest().unwrap();
    let attributes = &node(&outputs, "0/groups")["attributes"];
    assert_eq!(attributes["num_groups"], 3);
    let weights = payload(&outputs, "0/group_attributes/weight");
    assert_eq!(floats(&weights), [1.5, 2.5, 3.5]);
}

#[test]
fn fragment_attributes_make_each_point_an_object() {
    let mut geometry = row(2);
    geometry.fragment = vec![numbers("d", [1.5, 2.5])];
    let plan = WritePlan::new(
        geometry.clone().build().unwrap(),
        design(GeometryKind::Points),
    )
    .unwrap();
    let cells = plan.run(0).unwrap();
    let values = payload(&cells, "0/fragment_attributes/d");
    assert_eq!(floats(&values), [1.5, 2.5]);
    geometry.fragment = vec![numbers("d", [1.5])];
    let refused =
        WritePlan::new(geometry.build().unwrap(), design(GeometryKind::Points)).unwrap_err();
    assert!(matches!(
        refused,
        BuildError::RowCount {
            expected: 2,
            found: 1,
            ..
        }
    ));
}

/// Regression test: the graph became one object for each vertex.
#[test]
fn a_graph_stays_one_object_when_vertices_are_dropped() {
    let mut geometry = row(4);
    geometry.object = vec![numbers("q", [7.5])];
    let mut design = design(GeometryKind::Graphs);
    design.bounds = Some((vec![1.0], vec![2.0]));
    design.out_of_bounds = OutOfBounds::Drop;
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    assert_eq!((plan.summary().vertices, plan.summary().objects), (2, 1));
    let values = payload(&plan.rest().unwrap(), "0/object_attributes/q");
    assert_eq!(floats(&values), [7.5]);
}
