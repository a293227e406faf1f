//! Groups of added geometry.

use zvf::{CreateOptions, Editor, LevelId, Store};
use zvf_build::{
    BuildError, Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds,
    WritePlan,
};

use crate::block_on;

fn points(group: u32, ids: [i64; 2]) -> GeometryBuilder {
    let mut geometry =
        Geometry::builder(NumericColumn::float32(2, [1.0, 1.0, 2.0, 2.0])).object_ids(ids.to_vec());
    geometry.groups.insert(group, vec![ids[0]]);
    geometry
}

/// A number takes memory for all smaller ones.
#[test]
fn large_group_numbers_are_refused() {
    let design = Design::new(GeometryKind::Points).chunk_shape([10.0; 2]);
    for number in [1 << 20, 4_000_000_000, u32::MAX] {
        let refused = points(number, [1, 2]).build().unwrap_err();
        assert_eq!(refused, BuildError::GroupNumber(number));
    }
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(points(3, [1, 2]).build().unwrap(), design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();
        let more = points((1 << 20) - 1, [3, 4]);
        editor
            .append(&more.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
    });
}

/// Added objects and stored ones.
#[test]
fn stored_objects_join_groups() {
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let design = Design::new(GeometryKind::Points).chunk_shape([10.0; 2]);
        let plan = WritePlan::new(points(0, [1, 2]).build().unwrap(), design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();

        let mut more = points(1, [3, 4]);
        more.groups.insert(0, vec![2, 4, 1]);
        more.groups.insert(2, vec![1]);
        editor
            .append(&more.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        let members = groups(&editor).await;
        assert_eq!(members, [vec![1, 4, 2], vec![3], vec![1]]);

        // Object 3 is replaced, and 2 joins its group.
        let mut other = points(1, [3, 3]);
        other.groups.insert(1, vec![2, 3]);
        editor
            .replace(&other.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        let members = groups(&editor).await;
        assert_eq!(members, [vec![1, 4, 2], vec![3, 2], vec![1]]);

        // An object that the same change removes, and one that never existed.
        let mut gone = points(0, [5, 5]);
        gone.groups.insert(0, vec![2]);
        let refused = editor
            .replace_objects(&[2], &gone.clone().build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("group 0 refers to object 2"), "{refused}");
        gone.groups.insert(0, vec![7]);
        let refused = editor
            .append(&gone.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("group 0 refers to object 7"), "{refused}");
        assert_eq!(groups(&editor).await, members);

        // A replaced object outside of the bounds is dropped, also from its group.
        let mut outside = points(1, [3, 4]);
        outside.positions = NumericColumn::float32(2, [100.0, 1.0, 2.0, 2.0]);
        let dropped = editor
            .replace(&outside.build().unwrap(), OutOfBounds::Drop)
            .await;
        dropped.unwrap();
        assert_eq!(groups(&editor).await, [vec![1, 4, 2], vec![2], vec![1]]);
    });
}

/// They were stored as often as given.
#[test]
fn repeated_members_are_stored_once() {
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let design = Design::new(GeometryKind::Points).chunk_shape([10.0; 2]);
        let mut first = points(0, [1, 2]);
        first.groups.insert(0, vec![2, 1, 2]);
        let plan = WritePlan::new(first.build().unwrap(), design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let editor = Editor::open(store.clone()).await.unwrap();
        assert_eq!(groups(&editor).await, [vec![2, 1]]);

        let mut more = points(0, [3, 4]);
        more.groups.insert(0, vec![4, 1, 4, 3, 3]);
        editor
            .append(&more.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        assert_eq!(groups(&editor).await, [vec![2, 1, 4, 3]]);

        let mut other = points(1, [3, 3]);
        other.groups.insert(1, vec![3, 3]);
        editor
            .replace(&other.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap();
        assert_eq!(groups(&editor).await, [vec![2, 1, 4, 3], vec![3]]);
    });
}

/// Members of groups are numbers of paths if the paths have no ids, not ids of stored objects.
#[test]
fn groups_of_paths_without_ids_take_no_stored_objects() {
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let positions = NumericColumn::float32(2, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0, 4.0, 4.0]);
        let mut paths = Geometry::builder(positions).paths(vec![0, 2, 4], None);
        paths.groups.insert(0, vec![0]);
        let design = Design::new(GeometryKind::Polylines).chunk_shape([10.0; 2]);
        let plan = WritePlan::new(paths.clone().build().unwrap(), design).unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let editor = Editor::open(store).await.unwrap();
        let refused = editor
            .append(&paths.build().unwrap(), OutOfBounds::Reject)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains("group 0 refers to object 0"), "{refused}");
        assert_eq!(groups(&editor).await, [vec![0]]);
    });
}

async fn groups(editor: &Editor) -> Vec<Vec<i64>> {
    let dataset = editor.dataset().await.unwrap();
    let catalog = dataset.catalog();
    let groups = catalog.group_list(LevelId::FULL).await.unwrap().unwrap();
    let members = |group| groups.members(group).unwrap().iter().collect();
    (0..groups.len()).map(members).collect()
}
