//! Edited stores have the expected content after every change.

use std::collections::BTreeSet;

use zvf::{ColumnValues, CreateOptions, Dataset, Editor, ManifestForm, Query, StateError, Store};
use zvf_build::{
    Design, Geometry, GeometryBuilder, GeometryKind, NumericColumn, OutOfBounds, Profile,
    ShardingPolicy, VertexOwners, WritePlan, edit::EditError,
};
use zvf_model::key::Key;
use zvf_testkit::stores::Random;

use super::{
    content::Content,
    random::{self, Case},
    round_trip::compare,
};
use crate::{block_on, validated::own::is_sound};

/// Creates the store of a case with bounds that leave room for more.
pub(crate) async fn store(case: &mut Case) -> Store {
    store_with(case, CreateOptions::new()).await
}

/// Creates the store without an inventory, for tests that compare or change its files.
pub(crate) async fn unsealed_store(case: &mut Case) -> Store {
    store_with(case, CreateOptions::new().seal(false)).await
}

async fn store_with(case: &mut Case, options: CreateOptions) -> Store {
    let axes = case.geometry.axes();
    case.design.bounds = Some((vec![-200.0; axes], vec![200.0; axes]));
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let plan = WritePlan::new(case.geometry.clone().build().unwrap(), case.design.clone()).unwrap();
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    store
}

async fn content(store: &Store) -> Content {
    let dataset = Dataset::open(store.clone()).await.unwrap();
    let content = Content::read(&dataset).await;
    let info = dataset.info().await.unwrap();
    let vertices = content.vertices.len() as u64;
    assert_eq!(info.levels[0].vertices, Some(vertices));
    content
}

/// Applies a series of changes to a store. Every other store has a dense object index.
fn check(seed: u64, kind: GeometryKind) {
    let mut case = random::case(seed, kind, Profile::V09);
    if seed % 8 < 4 {
        case.design.object_index = ManifestForm::Dense;
    }
    let mut random = Random::new(seed ^ 0x5eed);
    let mut expected = Content::of(&case.geometry, &case.design);
    block_on(async {
        let store = store(&mut case).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        for step in 0..5 {
            let about = format!("seed {seed}, {kind:?}, step {step}, {:?}", case.design);
            let what = change(&editor, &mut case, &mut random, &mut expected).await;
            let about = format!("{what}, {about}");
            compare(&expected, &content(&store).await, &about);
            if step == 4 && seed.is_multiple_of(4) {
                is_sound(&store, &about).await;
            }
        }
    });
}

/// Applies one change to the store and to the expected content.
pub(crate) async fn change(
    editor: &Editor,
    case: &mut Case,
    random: &mut Random,
    expected: &mut Content,
) -> &'static str {
    let ids: Vec<i64> = expected.objects.keys().copied().collect();
    let next = ids.last().map_or(0, |last| last + 1);
    let some: BTreeSet<i64> = ids.iter().filter(|_| random.chance(30)).copied().collect();
    let kind = case.design.kind;
    let has_order = kind.is_paths() || kind == GeometryKind::Skeletons;
    let has_objects = case.geometry.owners.ids().is_some();
    match random.below(7) {
        0 | 1 => {
            let size = 1 + random.below(60);
            let geometry = with_ids(case.more(random, size, next), case, next);
            let bounds = OutOfBounds::Reject;
            let changed = editor
                .append(&geometry.clone().build().unwrap(), bounds)
                .await
                .unwrap();
            assert_eq!(changed.added, geometry.vertices() as u64);
            expected.add(Content::of(&geometry, &case.design));
            "append"
        }
        2 if !some.is_empty() && some.len() < ids.len() => {
            let list: Vec<i64> = some.iter().copied().collect();
            let changed = editor.remove(&list).await.unwrap();
            let severed = expected.remove(&some);
            assert_eq!(changed.severed, severed as u64);
            "remove"
        }
        3 if !some.is_empty()
            && case.geometry.owners.ids().is_some() | case.design.kind.is_paths() =>
        {
            replace(editor, case, random, (&some, next), expected).await
        }
        4 if !has_order => {
            remove_vertices(editor, random, expected).await;
            "remove_rows"
        }
        5 if kind == GeometryKind::Points && !has_objects => {
            let (transaction, rows, gone) = some_vertices(editor, random, expected).await;
            let size = 1 + random.below(20);
            let geometry = with_ids(case.more(random, size, next), case, next);
            let bounds = OutOfBounds::Reject;
            let changed = editor
                .replace_rows(
                    Some(transaction),
                    &rows,
                    &geometry.clone().build().unwrap(),
                    bounds,
                )
                .await
                .unwrap();
            assert_eq!(changed.removed, rows.len() as u64);
            assert_eq!(changed.added, geometry.vertices() as u64);
            expected.remove_vertices(&gone);
            expected.add(Content::of(&geometry, &case.design));
            let again = editor
                .replace_rows(Some(transaction), &rows, &geometry.build().unwrap(), bounds)
                .await;
            assert!(
                matches!(&again, Err(error) if matches!(error.cause(), Some(StateError::OutdatedRows { .. }))),
                "{again:?}"
            );
            "replace_rows"
        }
        _ => {
            let before = expected.vertices.len();
            let changed = editor.compact().await.unwrap();
            assert_eq!((changed.added, changed.removed, before), (0, 0, before));
            "compact"
        }
    }
}

/// Selects about a third of the vertices. Returns the transaction, their addresses and their tags.
async fn some_vertices(
    editor: &Editor,
    random: &mut Random,
    expected: &Content,
) -> (u64, Vec<u64>, BTreeSet<u64>) {
    let dataset = editor.dataset().await.unwrap();
    let all = dataset.query(&Query::new().row_ids(true)).await.unwrap();
    let tags = all.vertex.iter().find(|column| column.name == "tag");
    let ColumnValues::Numeric(tags) = &tags.unwrap().values else {
        panic!("tags are numbers")
    };
    let ids = all.row_ids.unwrap();
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    assert_eq!(ids.len(), expected.vertices.len());
    let (mut rows, mut gone) = (Vec::new(), BTreeSet::new());
    for (id, tag) in ids.iter().zip(tags.bytes.chunks_exact(8)) {
        if random.chance(33) {
            rows.push(*id);
            gone.insert(u64::from_le_bytes(tag.try_into().unwrap()));
        }
    }
    (dataset.transaction(), rows, gone)
}

/// Removes about a third of the vertices by their addresses.
async fn remove_vertices(editor: &Editor, random: &mut Random, expected: &mut Content) {
    let (transaction, rows, gone) = some_vertices(editor, random, expected).await;
    let changed = editor.remove_rows(Some(transaction), &rows).await.unwrap();
    let (links, severed) = expected.remove_vertices(&gone);
    assert_eq!(changed.removed, rows.len() as u64);
    assert_eq!(
        (changed.links, changed.severed),
        (links as u64, severed as u64)
    );
    if !rows.is_empty() {
        let again = editor.remove_rows(Some(transaction), &rows).await;
        assert!(
            matches!(&again, Err(error) if matches!(error.cause(), Some(StateError::OutdatedRows { .. }))),
            "{again:?}"
        );
    }
}

/// Replaces objects; rejected if links of others lead to them.
async fn replace(
    editor: &Editor,
    case: &mut Case,
    random: &mut Random,
    (some, next): (&BTreeSet<i64>, i64),
    expected: &mut Content,
) -> &'static str {
    let geometry = with_ids(case.more(random, 20, next), case, next);
    let bounds = OutOfBounds::Reject;
    let mut after = expected.clone();
    let severed = after.remove(some);
    let changed = editor
        .replace_objects(
            &some.iter().copied().collect::<Vec<_>>(),
            &geometry.clone().build().unwrap(),
            bounds,
        )
        .await;
    if severed > 0 {
        assert!(
            matches!(&changed, Err(error) if error.cause() == Some(&EditError::Severed { links: severed }))
        );
        return "refused";
    }
    changed.unwrap();
    after.add(Content::of(&geometry, &case.design));
    *expected = after;
    "replace_objects"
}

/// Assigns the ids that a store gives to objects without ids.
fn with_ids(mut geometry: GeometryBuilder, case: &Case, next: i64) -> GeometryBuilder {
    let kind = case.design.kind;
    geometry.owners.number_paths(next);
    if kind.is_linked() && geometry.owners.ids().is_none() {
        geometry.owners = VertexOwners::Vertices(vec![next; geometry.vertices()]);
    }
    let own = geometry.owners.ids().is_some();
    // Appended geometry must not have attributes that the store lacks.
    let lacks = |names: &[zvf_build::Column]| names.is_empty();
    if own && lacks(&case.geometry.object) {
        geometry.object.clear();
    }
    // Groups refer to object ids that the store assigned.
    if !own || case.geometry.object.is_empty() {
        geometry.groups.clear();
        geometry.group.clear();
    } else {
        let ids = geometry.owners.ids().unwrap_or_default();
        for members in geometry.groups.values_mut() {
            for (at, member) in members.iter_mut().enumerate() {
                *member = ids[at % ids.len()];
            }
            members.sort_unstable();
            members.dedup();
        }
    }
    geometry
}

fn check_all(kind: GeometryKind) {
    for seed in 0..zvf_testkit::sample::cases(10) {
        check(seed, kind);
    }
}

#[test]
fn edits_of_points_have_the_expected_content() {
    check_all(GeometryKind::Points);
}

#[test]
fn edits_of_lines_have_the_expected_content() {
    check_all(GeometryKind::Lines);
}

#[test]
fn edits_of_polylines_have_the_expected_content() {
    check_all(GeometryKind::Polylines);
}

#[test]
fn edits_of_skeletons_have_the_expected_content() {
    check_all(GeometryKind::Skeletons);
}

#[test]
fn edits_of_graphs_have_the_expected_content() {
    check_all(GeometryKind::Graphs);
}

#[test]
fn edits_of_meshes_have_the_expected_content() {
    check_all(GeometryKind::Mesh);
}

#[test]
fn appending_an_existing_object_is_an_error() {
    let mut case = random::case(3, GeometryKind::Polylines, Profile::V09);
    block_on(async {
        let store = store(&mut case).await;
        let before = content(&store).await;
        let editor = Editor::open(store.clone()).await.unwrap();
        let bounds = OutOfBounds::Reject;
        let mut again = case.geometry.clone();
        again.owners.number_paths(0);
        let refused = editor.append(&again.build().unwrap(), bounds).await;
        let is_there = matches!(&refused, Err(error) if matches!(error.cause(), Some(EditError::ObjectExists(_))));
        assert!(is_there, "{refused:?}");
        compare(&before, &content(&store).await, "refused");
    });
}

/// Regression test: ids of an earlier state removed objects that others had replaced since.
#[test]
fn found_objects_are_removed_at_their_transaction_only() {
    let geometry =
        Geometry::builder(NumericColumn::float32(2, [1.0, 1.0, 2.0, 2.0])).object_ids(vec![7, 8]);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let plan = WritePlan::new(
            geometry.clone().build().unwrap(),
            Design::new(GeometryKind::Points),
        )
        .unwrap();
        let options = CreateOptions::default();
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let editor = Editor::open(store).await.unwrap();
        let base = editor.dataset().await.unwrap().transaction();
        let replaced = editor
            .replace(&geometry.build().unwrap(), OutOfBounds::Reject)
            .await;
        let now = replaced.unwrap().transaction;
        let error = editor.remove_objects(base, &[7]).await.unwrap_err();
        let Some(&StateError::OutdatedRows { expected, found }) = error.cause() else {
            panic!("{error:?}");
        };
        assert_eq!((expected, found), (base, now));
        let removed = editor.remove_objects(now, &[7]).await.unwrap();
        assert_eq!(removed.removed, 1);
    });
}

/// Regression test: an array without cells gets another origin, and the former cells were looked for
/// at keys of the new one, so that they remained.
#[test]
fn files_of_replaced_cells_are_deleted_below_the_grid() {
    for sharding in [ShardingPolicy::None, ShardingPolicy::Shape(vec![2; 2])] {
        let about = format!("{sharding:?}");
        let object = |positions: [f32; 4]| {
            Geometry::builder(NumericColumn::float32(2, positions))
                .object_ids(vec![1; 2])
                .links(2, vec![1, 0])
        };
        let mut design = Design::new(GeometryKind::Skeletons);
        design.chunk_shape = Some(vec![10.0; 2]);
        design.bounds = Some((vec![0.0; 2], vec![60.0; 2]));
        design.sharding = sharding;
        block_on(async {
            let none: [(&str, &[u8]); 0] = [];
            let store = Store::from_memory(none).unwrap();
            let plan =
                WritePlan::new(object([5.0, 55.0, 6.0, 56.0]).build().unwrap(), design).unwrap();
            let options = CreateOptions::default();
            zvf::create_from_plan(&store, plan, &options).await.unwrap();
            let editor = Editor::open(store.clone()).await.unwrap();
            let below = object([15.0, -5.0, 16.0, -4.0]);
            let replaced = editor
                .replace(&below.clone().build().unwrap(), OutOfBounds::Expand)
                .await;
            assert_eq!(replaced.unwrap().removed, 2, "{about}");
            let key = Key::parse("0/vertices/c").unwrap();
            let files = store.list_all(&key, 10).await.unwrap();
            assert_eq!(files.len(), 1, "{files:?}: {about}");
            is_sound(&store, &about).await;
            let found = editor.dataset().await.unwrap().query(&Query::new()).await;
            assert_eq!(found.unwrap().positions, below.positions, "{about}");
        });
    }
}
