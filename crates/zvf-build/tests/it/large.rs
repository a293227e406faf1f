//! Paths that are partitioned, and the design that tasks share.

use serde_json::json;
use zvf_build::{
    AxisSpec, CellChecksums, Column, Design, Geometry, GeometryBuilder, GeometryKind,
    NumericColumn, OutOfBounds, Profile, Purpose, StepLinks,
    large::{GeometrySurvey, Partitioner, design_from_json, design_to_json},
};
use zvf_model::root::WindingOrder;

/// Paths of two vertices, in two chunks each, with an attribute of their objects.
fn paths(count: u16) -> GeometryBuilder {
    let rows = (0..count).flat_map(|path| [f32::from(path % 10), 5.0, f32::from(path % 10), 15.0]);
    let mut batch = Geometry::builder(NumericColumn::float32(2, rows))
        .paths((0..=u64::from(count)).map(|path| path * 2).collect(), None);
    let lengths = (0..count).map(f32::from);
    batch.object = vec![Column::new("length", NumericColumn::float32(1, lengths))];
    batch
}

#[test]
fn paths_take_no_memory_once_their_records_are_taken() {
    let design = Design::new(GeometryKind::Streamlines).chunk_shape([10.0; 2]);
    let mut survey = GeometrySurvey::new(design, false).unwrap();
    survey.add(&paths(100).build().unwrap()).unwrap();
    let mut partitioner = Partitioner::new(survey.outline().unwrap(), 3);
    let tables = Geometry::new(NumericColumn::float32(2, []));
    let (mut records, mut states) = (0, Vec::new());
    for batch in 0..200 {
        partitioner.split(paths(100).build().unwrap()).unwrap();
        records += partitioner.take_paths().len();
        if batch == 1 || batch == 199 {
            states.push(partitioner.to_bytes(&tables).len());
        }
    }
    assert_eq!(states[0], states[1]);
    assert!(!partitioner.needs_paths(&tables));
    // A byte for the id, four for the attribute, one for the number of fragments and one for each.
    assert_eq!(records, 200 * 100 * 8);
}

#[test]
fn tasks_read_the_design_that_was_planned() {
    let plain = Design::new(GeometryKind::Mesh)
        .profile(Profile::V08)
        .checksums(CellChecksums::Off);
    let design = plain
        .clone()
        .axes(vec![AxisSpec::new("x"), AxisSpec::new("y")])
        .bounds([0.0, 1.0], [2.0, 3.0])
        .chunk_shape([10.0; 2])
        .crs(json!({"type": "GeographicCRS"}))
        .directed(true)
        .duplicate(true)
        .flat_link_attributes(true)
        .fragment_owners(true)
        .name("a mesh")
        .out_of_bounds(OutOfBounds::Expand)
        .purpose(Purpose::Scan)
        .step_links(StepLinks::All)
        .winding(WindingOrder::Clockwise);
    for design in [plain, design] {
        let read = design_from_json(&design_to_json(&design)).unwrap();
        assert_eq!(read, design);
    }
}
