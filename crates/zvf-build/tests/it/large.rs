//! Memory of paths that are partitioned.

use zvf_build::{
    Column, Design, Geometry, GeometryKind, NumericColumn,
    large::{GeometrySurvey, Partitioner},
};

/// Paths of two vertices, in two chunks each, with an attribute of their objects.
fn paths(count: u16) -> Geometry {
    let rows = (0..count).flat_map(|path| [f32::from(path % 10), 5.0, f32::from(path % 10), 15.0]);
    let mut batch = Geometry::new(NumericColumn::float32(2, rows));
    batch.part_offsets = Some((0..=u64::from(count)).map(|path| path * 2).collect());
    let lengths = (0..count).map(f32::from);
    batch.object = vec![Column::new("length", NumericColumn::float32(1, lengths))];
    batch
}

#[test]
fn paths_take_no_memory_once_their_records_are_taken() {
    let design = Design::new(GeometryKind::Streamlines).chunk_shape([10.0; 2]);
    let mut survey = GeometrySurvey::new(design, false).unwrap();
    survey.add(&paths(100)).unwrap();
    let mut partitioner = Partitioner::new(survey.outline().unwrap(), 3);
    let tables = Geometry::new(NumericColumn::float32(2, []));
    let (mut records, mut states) = (0, Vec::new());
    for batch in 0..200 {
        partitioner.split(paths(100)).unwrap();
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
