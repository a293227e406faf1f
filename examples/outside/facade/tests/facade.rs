//! Both forms give the same counts.

use facade::{lengths, lengths_blocking};
use zvf::blocking::block_on;
use zvf::{Bbox, CreateOptions, Design, Geometry, GeometryKind, NumericColumn};

#[test]
fn async_and_blocking_code_count_the_same_vertices() {
    let folder = tempfile::tempdir().unwrap();
    let address = folder.path().join("tracts.zv").display().to_string();
    // Path 0 reaches into the box, path 1 lies outside.
    let along = [0.0, 1.0, 2.0, 3.0, 90.0, 91.0];
    let positions = along.iter().flat_map(|x| [*x, 0.0, 0.0]);
    let paths = Geometry::builder(NumericColumn::float32(3, positions)).paths(vec![0, 4, 6], None);
    let design = Design::new(GeometryKind::Streamlines);
    block_on(zvf::create(&address, paths.build().unwrap(), design, &CreateOptions::new())).unwrap();

    let bbox = Bbox::parse("2,-1,-1,9,1,1").unwrap();
    let counts = lengths_blocking(&address, &bbox).unwrap();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(0, 4)]);
    let counts = pollster::block_on(lengths(&address, &bbox)).unwrap();
    assert_eq!(counts.into_iter().collect::<Vec<_>>(), [(0, 4)]);
    assert!(lengths_blocking("missing.zv", &bbox).unwrap_err().is_not_found());
}
