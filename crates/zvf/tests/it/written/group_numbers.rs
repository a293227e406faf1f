//! Large group numbers.

use zvf::{CreateOptions, Editor, Error, Store};
use zvf_build::{
    BuildError, Design, Geometry, GeometryKind, NumericColumn, OutOfBounds, WritePlan,
    edit::EditError,
};

use crate::block_on;

fn points(group: u32, ids: [i64; 2]) -> Geometry {
    let mut geometry = Geometry::new(NumericColumn::float32(2, [1.0, 1.0, 2.0, 2.0]));
    geometry.object_ids = Some(ids.to_vec());
    geometry.groups.insert(group, vec![ids[0]]);
    geometry
}

/// A number takes memory for all smaller ones.
#[test]
fn large_group_numbers_are_refused() {
    let design = Design::new(GeometryKind::Points).chunk_shape([10.0; 2]);
    for number in [1 << 20, 4_000_000_000, u32::MAX] {
        let refused = WritePlan::new(points(number, [1, 2]), design.clone());
        assert_eq!(refused.unwrap_err(), BuildError::GroupNumber(number));
    }
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(points(3, [1, 2]), design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();
        let more = points(4_000_000_000, [3, 4]);
        let refused = editor.append(&more, OutOfBounds::Reject).await;
        let expected = BuildError::GroupNumber(4_000_000_000);
        let is_refused = matches!(
            &refused,
            Err(Error::Rejected(error)) if *error == expected
        ) || matches!(
            &refused,
            Err(Error::Edit(EditError::Build(error))) if *error == expected
        );
        assert!(is_refused, "{refused:?}");
        let more = points((1 << 20) - 1, [3, 4]);
        editor.append(&more, OutOfBounds::Reject).await.unwrap();
    });
}
