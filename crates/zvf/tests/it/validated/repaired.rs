//! Repair: repaired and remaining findings, and query results after a repair.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use zvf::{
    Column, CreateOptions, Dataset, NumericColumn, OpenOptions, Remedy, RepairReport, Store,
    ValidateOptions,
};
use zvf_build::{
    Design, Geometry, GeometryBuilder, GeometryKind, Profile, ShardingPolicy, WritePlan,
};
use zvf_testkit::{corpus::cases, damage::apply, golden::Files, golden::Golden, stores::Random};
use zvf_validate::rules;

use super::mutants::snapshot;
use crate::{
    block_on,
    damage::{expected::Intact, is_same, run},
    written::random::GeometryGenerator,
};

fn store_of(files: &Files) -> Store {
    let files = files.iter().cloned();
    OpenOptions::default().from_memory(files).unwrap()
}

fn repair(store: &Store) -> RepairReport {
    block_on(zvf::repair(store.clone(), &ValidateOptions::default())).unwrap()
}

fn repair_trusting_files(store: &Store) -> RepairReport {
    let options = ValidateOptions::default();
    block_on(zvf::repair_trusting_files(store.clone(), &options)).unwrap()
}

/// Rules declared as repairable whose recorded cases are not, because a damaged cell of these causes
/// other errors too: a vertex outside its chunk, values that do not match the links, and link fragments
/// that do not match the fragments.
const NOT_ALWAYS: [&str; 3] = ["ZV-L3-013", "ZV-L3-116", "ZV-L3-122"];

#[test]
fn repairable_findings_are_repaired() {
    let mut archives: BTreeMap<String, Golden> = BTreeMap::new();
    let mut mended: BTreeSet<&str> = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in cases() {
        let golden = archives
            .entry(case.archive.clone())
            .or_insert_with(|| Golden::open(&case.archive));
        let mut files = golden.store(&case.store);
        case.damage(&mut files);
        let store = store_of(&files);
        let repaired = match block_on(zvf::repair(store.clone(), &ValidateOptions::default())) {
            Ok(repaired) => repaired,
            // Without a root no transaction can begin.
            Err(error) => {
                wrong.push(format!("{}: {error}", case.name));
                continue;
            }
        };
        let left: Vec<_> = repaired
            .left
            .findings
            .iter()
            .filter(|f| f.fix.is_some())
            .map(|f| (f.rule.code, &f.location, &f.message))
            .collect();
        if !left.is_empty() {
            wrong.push(format!("{}: left {left:?}", case.name));
        }
        assert_eq!(
            repaired.transaction.is_some(),
            !repaired.repaired.is_empty(),
            "{}",
            case.name
        );
        let still: BTreeSet<_> = repaired
            .left
            .findings
            .iter()
            .map(|f| (f.rule.code, &f.path, &f.location))
            .collect();
        let done = repaired
            .repaired
            .iter()
            .filter(|f| !still.contains(&(f.rule.code, &f.path, &f.location)));
        mended.extend(done.map(|f| f.rule.code));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let promised = rules::all().filter(|rule| matches!(rule.remedy, Remedy::Repair(_)));
    let bare: Vec<_> = promised
        .filter(|rule| !mended.contains(rule.code) && !NOT_ALWAYS.contains(&rule.code))
        .map(|rule| format!("{} {}", rule.code, rule.title))
        .collect();
    assert!(bare.is_empty(), "no case is repaired of {bare:#?}");
}

fn geometry(design: &Design) -> GeometryBuilder {
    let mut random = Random::new(11);
    let mut generator = GeometryGenerator {
        random: &mut random,
        design,
        axes: 2,
        double: false,
        tag: 0,
        first_id: 0,
        rich: true,
        with_ids: true,
        attribute_types: 1,
    };
    generator.geometry(60)
}

/// Wrong lists and counts in every kind of store are repaired: queries give the original results.
#[test]
fn repaired_stores_give_the_original_results() {
    for kind in GeometryKind::ALL {
        for sharding in [ShardingPolicy::None, ShardingPolicy::Shape(vec![2, 2])] {
            let mut design = Design::new(kind);
            design.profile = Profile::V09;
            design.chunk_shape = Some(vec![16.0, 16.0]);
            design.sharding = sharding.clone();
            let plan = WritePlan::new(geometry(&design).build().unwrap(), design).unwrap();
            let mut files = block_on(async {
                let none: [(&str, &[u8]); 0] = [];
                let store = Store::from_memory(none).unwrap();
                let options = CreateOptions::default();
                zvf::create_from_plan(&store, plan, &options).await.unwrap();
                snapshot(&store).await
            });
            let intact = block_on(Intact::of(files.clone()));
            let arrays: Vec<String> = files
                .iter()
                .filter(|(path, _)| path.ends_with("zarr.json"))
                .filter(|(_, bytes)| {
                    let node: serde_json::Value = serde_json::from_slice(bytes).unwrap();
                    let list = node["attributes"]["nonempty_chunks"].as_array();
                    list.is_some_and(|list| !list.is_empty())
                })
                .map(|(path, _)| path.clone())
                .collect();
            assert!(arrays.len() >= 3, "{kind:?}");
            for file in &arrays {
                let path = ["attributes", "nonempty_chunks"];
                let edit = json!({"op": "set", "file": file, "path": path, "value": []});
                apply(&mut files, &edit);
            }
            let store = store_of(&files);
            // The inventory and the node copy have the original lists.
            assert_eq!(repair(&store).transaction, None, "{kind:?}");
            let repaired = repair_trusting_files(&store);
            assert!(repaired.repaired.len() >= arrays.len(), "{kind:?}");
            assert!(repaired.left.is_ok(), "{kind:?}: {:#?}", repaired.left);
            block_on(async {
                let dataset = Dataset::open(store).await.unwrap();
                for expected in &intact.results {
                    let result = run(&dataset, &expected.query)
                        .await
                        .unwrap_or_else(|error| panic!("{kind:?}: {error}"));
                    assert!(
                        is_same(&result, &expected.result),
                        "{kind:?}, {}",
                        expected.name
                    );
                }
            });
        }
    }
}

/// Returns the files of points with two attributes.
fn points(options: &CreateOptions) -> Files {
    let positions = NumericColumn::float32(3, [0.0, 0.0, 0.0, 9.0, 1.0, 1.0, 12.0, 5.0, 1.0]);
    let mut points = Geometry::builder(positions);
    for (name, first) in [("a", 0.0), ("b", 100.0)] {
        let column = NumericColumn::float32(1, [first, first + 1.0, first + 2.0]);
        points.vertex.push(Column::new(name, column));
    }
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![10.0; 3]);
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        zvf::create(&store, points.build().unwrap(), design, options)
            .await
            .unwrap();
        snapshot(&store).await
    })
}

/// A repair enters what it writes in the inventory, so it may not follow from a file that differs.
#[test]
fn a_damaged_file_of_a_sealed_store_is_not_entered_in_the_inventory() {
    let mut files = points(&CreateOptions::new().node_copy(false));
    let file = |name: &str| format!("0/vertex_attributes/{name}/zarr.json");
    let (_, other) = files.iter().find(|(path, _)| *path == file("a")).unwrap();
    let other = other.clone();
    let damaged = files.iter_mut().find(|(path, _)| *path == file("b"));
    damaged.unwrap().1 = other;
    let store = store_of(&files);
    let repaired = repair(&store);
    assert_eq!(repaired.transaction, None);
    let left = &repaired.left.findings;
    let obstacle = format!("ZV-L3-123 of {}", file("b"));
    let withheld: Vec<_> = left
        .iter()
        .filter(|f| f.obstacle().is_some())
        .map(|f| (f.rule.code, f.obstacle()))
        .collect();
    assert_eq!(withheld, [("ZV-L2-059", Some(obstacle.as_str()))]);
    // Another program may have changed it, which the caller has to say.
    let repaired = repair_trusting_files(&store);
    assert_eq!(repaired.trusted, 1);
    let codes: Vec<&str> = repaired.repaired.iter().map(|f| f.rule.code).collect();
    assert_eq!(codes, ["ZV-L2-059"]);
    assert!(repaired.left.is_ok(), "{:#?}", repaired.left);
}

/// The node copy may be the only record of a node.
#[test]
fn a_lost_node_stays_in_the_node_copy() {
    let mut files = points(&CreateOptions::new().seal(false));
    let root = |files: &Files| {
        let root = files.iter().find(|(path, _)| path == "zarr.json").unwrap();
        root.1.clone()
    };
    let before = root(&files);
    files.retain(|(path, _)| path != "0/vertices/zarr.json");
    let store = store_of(&files);
    let repaired = repair(&store);
    assert_eq!(repaired.transaction, None, "{:#?}", repaired.repaired);
    assert_eq!(root(&block_on(snapshot(&store))), before);
    let left = &repaired.left.findings;
    let lost = left.iter().find(|f| f.rule.code == "ZV-L2-069").unwrap();
    assert_eq!(lost.path, "0/vertices");
}

/// Chunks that a repair lists again are missing in coarser levels, which a refresh builds again.
#[test]
fn repaired_chunks_make_coarser_levels_stale() {
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![16.0, 16.0]);
    let plan = WritePlan::new(geometry(&design).build().unwrap(), design).unwrap();
    block_on(async {
        let none: [(&str, &[u8]); 0] = [];
        let store = Store::from_memory(none).unwrap();
        let options = CreateOptions::new().seal(false);
        zvf::create_from_plan(&store, plan, &options).await.unwrap();
        let whole = Dataset::open(&store).await.unwrap().info().await.unwrap();
        let mut files = snapshot(&store).await;
        for array in ["vertices", "vertex_fragments"] {
            let file = format!("0/{array}/zarr.json");
            let (_, node) = files.iter().find(|(path, _)| *path == file).unwrap();
            let node: serde_json::Value = serde_json::from_slice(node).unwrap();
            let mut list = node["attributes"]["nonempty_chunks"].clone();
            list.as_array_mut().unwrap().remove(0);
            let path = ["attributes", "nonempty_chunks"];
            let edit = json!({"op": "set", "file": file, "path": path, "value": list});
            apply(&mut files, &edit);
        }
        let store = store_of(&files);
        let mut levels = zvf::AutoLevels::default();
        levels.levels = Some(1);
        let levels = zvf::PyramidOptions::new().levels(levels);
        zvf::build_pyramid(&store, &levels).await.unwrap();
        let options = ValidateOptions::default();
        let repaired = zvf::repair_trusting_files(store.clone(), &options)
            .await
            .unwrap();
        assert!(!repaired.repaired.is_empty());
        let dataset = Dataset::open(&store).await.unwrap();
        let info = dataset.info().await.unwrap();
        assert_eq!(info.levels[0].vertices, whole.levels[0].vertices);
        let stale: Vec<u32> = dataset
            .root()
            .stale_levels()
            .map(zvf::LevelId::number)
            .collect();
        assert_eq!(stale.first(), Some(&1));
        assert_eq!(stale.len() + 1, dataset.levels().len());
        zvf::refresh_pyramid(&store, &zvf::PyramidOptions::default())
            .await
            .unwrap();
        let report = zvf::validate(store.clone(), &options).await.unwrap();
        assert!(report.is_ok(), "{report:#?}");
    });
}

/// A commit while a store is checked is no damage.
#[test]
fn a_store_that_changes_while_it_is_checked_is_checked_again() {
    let mut design = Design::new(GeometryKind::Polylines);
    design.chunk_shape = Some(vec![16.0, 16.0]);
    let plan = WritePlan::new(geometry(&design).build().unwrap(), design).unwrap();
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let options = CreateOptions::new().seal(false);
    block_on(zvf::create_from_plan(&store, plan, &options)).unwrap();
    let remaining = std::sync::atomic::AtomicUsize::new(1);
    let other = store.clone();
    let progress: zvf::Progress = std::sync::Arc::new(move |_, _| {
        use std::sync::atomic::Ordering::Relaxed;
        if remaining.swap(0, Relaxed) == 1 {
            let other = other.clone();
            let edit = std::thread::spawn(move || {
                block_on(async {
                    let dataset = Dataset::open(&other).await.unwrap();
                    let ids = dataset
                        .catalog()
                        .object_list(zvf::LevelId::FULL)
                        .await
                        .unwrap()
                        .unwrap();
                    let ids: Vec<i64> = (0..ids.len()).filter_map(|at| ids.id(at)).collect();
                    let editor = zvf::Editor::open(&other).await.unwrap();
                    editor.remove(&ids[1..]).await.unwrap();
                });
            });
            edit.join().unwrap();
        }
    });
    let options = ValidateOptions::default();
    let report = block_on(zvf::validate_with_progress(
        store.clone(),
        &options,
        progress,
    ))
    .unwrap();
    assert!(report.is_ok(), "{report:#?}");
    let dataset = block_on(Dataset::open(&store)).unwrap();
    assert_eq!(dataset.transaction(), 1);
}
