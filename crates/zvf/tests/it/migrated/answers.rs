//! Queries and validation of stores before and after a migration.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json, json};
use zvf::{
    AutoLevels, CreateOptions, Dataset, Design, Geometry, GeometryBuilder, GeometryKind,
    MigrateOptions, MigrateReport, NumericColumn, OpenOptions, Profile, PyramidOptions, Severity,
    Store, ValidateOptions, validate,
};
use zvf_build::WritePlan;
use zvf_catalog::Selection;
use zvf_model::{error_chain::error_chain, key::Key};
use zvf_query::{Column, Query, QueryResult, Shape};
use zvf_testkit::{
    golden::{Files, Golden},
    stores::{Recipe, RecipeProfile, StoreKind, make},
};

use super::{
    content::{Content, Record},
    migrated,
};
use crate::{
    block_on,
    golden::stores,
    validated::own::is_sound,
    written::random::{self, Case},
};

fn opened(files: &Files) -> Dataset {
    let store = OpenOptions::default().from_memory(files.iter().cloned());
    block_on(Dataset::open(store.unwrap())).unwrap()
}

async fn created(geometry: GeometryBuilder, design: Design) -> Dataset {
    let plan = WritePlan::new(geometry.build().unwrap(), design).unwrap();
    let none: [(&str, &[u8]); 0] = [];
    let store = Store::from_memory(none).unwrap();
    let options = CreateOptions::default();
    zvf::create_from_plan(&store, plan, &options).await.unwrap();
    Dataset::open(store).await.unwrap()
}

/// Changes the attributes of a node.
fn edit_attributes(files: &mut Files, key: &str, edit: impl FnOnce(&mut Map<String, Json>)) {
    let node = files.iter_mut().find(|(path, _)| path == key);
    let (_, bytes) = node.unwrap();
    let mut json: Json = serde_json::from_slice(bytes).unwrap();
    edit(json["attributes"].as_object_mut().unwrap());
    *bytes = json.to_string().into_bytes();
}

/// Note about vertices of skeletons whose parents are lost.
const ORPHANS: &str = "vertices whose parent cannot be read";
/// The rule for vertices without a parent in a coarser level, where the parent is lost.
const NO_PARENT: &str = "ZV-L4-057";

/// Returns the errors of a store.
async fn errors(store: &Store) -> BTreeSet<String> {
    let report = validate(store.clone(), &ValidateOptions::default()).await;
    let findings = report.unwrap().findings.into_iter();
    let errors = findings
        .filter(|found| found.rule.severity == Severity::Error && found.rule.code != NO_PARENT);
    errors
        .map(|found| format!("{} {}: {}", found.rule.code, found.path, found.message))
        .collect()
}

/// Returns the positions of the ends of all links, ascending.
fn ends_of(found: &QueryResult) -> Vec<Vec<Vec<u8>>> {
    let size = found.positions.row_size();
    let position = |row: &u64| {
        let start = usize::try_from(*row).unwrap() * size;
        found.positions.bytes[start..start + size].to_vec()
    };
    let Some(links) = &found.links else {
        return Vec::new();
    };
    let mut links: Vec<_> = links
        .ends
        .chunks(usize::try_from(links.width).unwrap())
        .map(|ends| ends.iter().map(position).collect())
        .collect();
    links.sort_unstable();
    links
}

async fn ends(dataset: &Dataset) -> Vec<Vec<Vec<u8>>> {
    let found = dataset.query(&Query::new().shape(Shape::Links)).await;
    ends_of(&found.unwrap())
}

/// Migrates a store to both profiles, and each of them back.
fn check_links(files: &Files, at: &str) {
    let source = opened(files);
    block_on(async {
        let expected = ends(&source).await;
        for (profile, other) in [(Profile::V08, Profile::V09), (Profile::V09, Profile::V08)] {
            let (target, report) = migrated(&source, profile).await.unwrap();
            assert_eq!(report.lost, [], "{at}");
            assert_eq!(ends(&target).await, expected, "{at} to {profile:?}");
            let (back, _) = migrated(&target, other).await.unwrap();
            assert_eq!(ends(&back).await, expected, "{at} to {other:?}");
        }
    });
}

#[test]
fn links_of_streamed_skeletons_lead_from_children_to_parents() {
    let golden = Golden::open("zvf-09");
    let streamed = golden.store("skeleton_streamed/store.zarrvectors");
    check_links(&streamed, "streamed");
}

#[test]
fn links_of_directed_skeletons_of_08_lead_from_children_to_parents() {
    let made = make(&Recipe {
        seed: 3,
        kind: StoreKind::Skeleton,
        profile: RecipeProfile::V081,
        axes: 3,
        size: 40,
        ..Recipe::default()
    });
    let mut files = made.files;
    edit_attributes(
        &mut files,
        "0/cross_chunk_links/0/zarr.json",
        |attributes| {
            attributes.insert("directed".to_owned(), true.into());
        },
    );
    check_links(&files, "directed");
}

/// Vertices with their objects, and links, without what is damaged.
type Answer = (Vec<(Vec<u8>, Option<i64>)>, Vec<Vec<Vec<u8>>>);

async fn answer(dataset: &Dataset) -> Answer {
    let query = Query::new().keep_going(true);
    let found = dataset.query(&query).await.unwrap();
    let rows = found.positions.bytes.chunks(found.positions.row_size());
    let object = |row: usize| found.object_ids.as_ref().map(|ids| ids.numbers()[row]);
    let mut vertices: Vec<_> = rows.map(<[u8]>::to_vec).zip((0..).map(object)).collect();
    vertices.sort_unstable();
    (vertices, ends_of(&found))
}

/// Damages each cell of vertices in turn. The new store has all that queries of the damaged one
/// return, and no errors.
fn check_damaged(archive: &str, store: &str) -> BTreeMap<&'static str, u64> {
    let whole = Golden::open(archive).store(store);
    let is_cell = |key: &&String| key.contains("/vertices/") && key.contains("/c/");
    let cells: Vec<String> = whole
        .iter()
        .map(|(key, _)| key)
        .filter(is_cell)
        .cloned()
        .collect();
    assert!(!cells.is_empty(), "{store}");
    let mut lost = BTreeMap::new();
    for cell in cells {
        let mut files = whole.clone();
        let damaged = files.iter_mut().find(|(key, _)| *key == cell);
        damaged.unwrap().1 = b"xx".to_vec();
        let source = opened(&files);
        for profile in [Profile::V09, Profile::V08] {
            let at = format!("{store} without {cell} to {profile:?}");
            let report: MigrateReport = block_on(async {
                let none: [(&str, &[u8]); 0] = [];
                let target = Store::from_memory(none).unwrap();
                let options = MigrateOptions::new(profile).skip_damaged(true);
                let report = zvf::migrate_dataset(&source, &target, &options)
                    .await
                    .unwrap();
                let dataset = Dataset::open(target.clone()).await.unwrap();
                let (found, expected) = (answer(&dataset).await, answer(&source).await);
                assert_eq!(found.0, expected.0, "{at}");
                // The format implies the parents of the vertices whose parents are lost.
                let orphans: u64 = report
                    .lost
                    .iter()
                    .filter(|note| note.what == ORPHANS)
                    .map(|note| note.count)
                    .sum();
                let (mut links, mut added) = (expected.1.into_iter().peekable(), 0);
                for link in found.1 {
                    added += u64::from(links.next_if_eq(&link).is_none());
                }
                assert_eq!(links.next(), None, "{at}");
                assert!(added <= orphans, "{at}: {added} links of {orphans} orphans");
                assert_eq!(errors(&target).await, BTreeSet::new(), "{at}");
                report
            });
            let unwritten = "manifests that were never written and are now empty";
            let mut repaired = report.repaired.iter();
            assert!(!repaired.any(|note| note.what == unwritten), "{at}");
            for note in report.lost {
                *lost.entry(note.what).or_default() += note.count;
            }
        }
    }
    lost
}

#[test]
fn what_is_intact_beside_damaged_vertices_is_kept() {
    let parts = "parts of objects whose vertices cannot be read";
    let gaps = "gaps in paths, whose ends are now connected";
    let links = "links to vertices that cannot be read";
    for (archive, store, expected) in [
        ("zvf-06", "streamlines.zv", &[parts][..]),
        ("zvf-07", "graph.zv", &[parts, links]),
        ("zvf-08", "0.8.1/streamlines.zv", &[parts, links]),
        ("zvf-08", "0.8.1/graph.zv", &[parts, links]),
        ("zvf-08", "0.8.0/pyramid.zv", &[]),
        (
            "zvf-09",
            "polylines_3d/store.zarrvectors",
            &[parts, links, gaps],
        ),
        ("zvf-09", "graph_3d/store.zarrvectors", &[parts, links]),
        (
            "zvf-09",
            "skeleton_multi/store.zarrvectors",
            &[parts, links, ORPHANS],
        ),
        ("zvf-09", "skeleton_streamed/store.zarrvectors", &[links]),
        ("zvf-09", "mesh_objects/store.zarrvectors", &[parts, links]),
        ("zvf-09", "links_duplicate/store.zarrvectors", &[links]),
        ("zvf-09", "pyramid_points/store.zarrvectors", &[links]),
        ("zvf-09", "points_attributes/store.zarrvectors", &[]),
    ] {
        let lost = check_damaged(archive, store);
        for what in expected {
            assert!(lost.contains_key(what), "{archive} {store}: {lost:?}");
        }
    }
}

/// Returns the values of each link by its ends.
fn by_ends(content: &Content) -> BTreeMap<Record, BTreeMap<String, String>> {
    let links = content.levels[&0]
        .links
        .values()
        .flatten()
        .map(|((ends, values), _)| ((ends.clone(), BTreeMap::new()), values.clone()));
    links.collect()
}

#[test]
fn links_without_values_are_filled_in_stores_of_09() {
    let nan = format!("{:?}", f32::NAN.to_le_bytes());
    let is_zero = |value: &str| !value.contains(|digit: char| ('1'..='9').contains(&digit));
    let mut filled = 0;
    for archive in ["zvf-06", "zvf-07", "zvf-08"] {
        let golden = Golden::open(archive);
        for (store, _) in stores(&golden) {
            let files = golden.store(&store);
            if !files
                .iter()
                .any(|(key, _)| key.contains("link_attributes/"))
            {
                continue;
            }
            let source = opened(&files);
            block_on(async {
                let (target, report) = migrated(&source, Profile::V09).await.unwrap();
                // The nodes of links differ.
                let rules = |errors: BTreeSet<String>| -> BTreeSet<String> {
                    let rules = errors.iter().filter_map(|error| error.split(' ').next());
                    rules.map(ToOwned::to_owned).collect()
                };
                let before = rules(errors(source.store()).await);
                let after = errors(target.store()).await;
                assert!(
                    rules(after.clone()).is_subset(&before),
                    "{store}: {after:?}"
                );
                let (old, new) = (Content::of(&source).await, Content::of(&target).await);
                let (old, new) = (by_ends(&old), by_ends(&new));
                let names: BTreeSet<&String> = old.values().flat_map(BTreeMap::keys).collect();
                let mut absent = 0;
                for (ends, values) in &new {
                    for name in &names {
                        let Some(known) = old.get(ends).and_then(|old| old.get(*name)) else {
                            absent += 1;
                            let value = &values[*name];
                            assert!(*value == nan || is_zero(value), "{store} {name} {value}");
                            continue;
                        };
                        assert_eq!(values[*name], *known, "{store} {name}");
                    }
                }
                let what = "values of links that had none, now filled in";
                let lost: u64 = report
                    .lost
                    .iter()
                    .filter(|note| note.what == what)
                    .map(|note| note.count)
                    .sum();
                assert_eq!(lost, absent, "{store}");
                filled += absent;
            });
        }
    }
    assert!(filled > 0);
}

#[test]
fn ids_are_kept_beside_an_attribute_of_their_name() {
    let ids = [-7, 5, 1 << 40];
    let numbers = |numbers: &[i64]| {
        let mut column = NumericColumn::new(zvf_format::numeric::Kind::Int64, 1);
        column.bytes = numbers.iter().flat_map(|id| id.to_le_bytes()).collect();
        column
    };
    let rows = (0_u8..9).map(f32::from);
    let points = Geometry::builder(NumericColumn::float32(3, rows))
        .object_ids(ids.to_vec())
        .objects(ids.to_vec())
        .object(vec![Column::new("object_id", numbers(&[33, 11, 22]))]);
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![10.0; 3]);
    block_on(async {
        let source = created(points, design).await;
        let (target, report) = migrated(&source, Profile::V08).await.unwrap();
        let why = report
            .lost
            .iter()
            .find(|note| note.what == "ids of objects");
        let why = why.unwrap().why.clone().unwrap();
        assert!(
            why.ends_with("object_attributes/object_id_2 has their ids"),
            "{why}"
        );
        let query = Query::new().columns(Selection::All);
        let found = target.query(&query).await.unwrap();
        let column = |name: &str| found.object.iter().find(|column| column.name == name);
        assert_eq!(
            column("object_id").unwrap().values,
            numbers(&[33, 11, 22]).into()
        );
        assert_eq!(column("object_id_2").unwrap().values, numbers(&ids).into());
        is_sound(target.store(), "renumbered").await;
    });
}

/// Regression test: coarser levels declared the number of objects of the source, although 0.8 has a
/// row for each unused id.
#[test]
fn levels_with_gaps_of_ids_have_no_findings() {
    let rows = (0_u8..60).map(f32::from);
    let points = Geometry::builder(NumericColumn::float32(3, rows))
        .object_ids((0..20).map(|row| if row < 10 { 3 } else { 9 }).collect())
        .objects(vec![3, 9]);
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![32.0; 3]);
    block_on(async {
        let source = created(points, design).await;
        let store = source.store().clone();
        let mut levels = AutoLevels::default();
        levels.levels = Some(1);
        let options = PyramidOptions::new().levels(levels);
        zvf::build_pyramid(store.clone(), &options).await.unwrap();
        let source = Dataset::open(store).await.unwrap();
        assert!(source.levels().len() > 1);
        let (target, _) = migrated(&source, Profile::V08).await.unwrap();
        is_sound(target.store(), "gaps").await;
    });
}

#[test]
fn stores_migrated_to_08_have_no_findings() {
    for kind in GeometryKind::ALL {
        for seed in 0..6 {
            let Case {
                geometry, design, ..
            } = random::case(seed, kind, Profile::V09);
            let at = format!("seed {seed}, {kind:?}, {design:?}");
            block_on(async {
                let source = created(geometry, design).await;
                let (target, _) = migrated(&source, Profile::V08).await.unwrap();
                is_sound(target.store(), &at).await;
                // Another migration finds nothing to repair either.
                let (again, report) = migrated(&target, Profile::V08).await.unwrap();
                assert_eq!(report.repaired, [], "{at}");
                is_sound(again.store(), &at).await;
            });
        }
    }
}

/// Regression test: `rows_of` kept a mask without nulls, so that truth values became numbers.
#[test]
fn bools_of_reordered_objects_stay_bools() {
    let flags = |flags: &[u8]| {
        let mut column = NumericColumn::new(zvf_format::numeric::Kind::Bool, 1);
        column.bytes = flags.to_vec();
        column
    };
    let rows = (0_u8..9).map(f32::from);
    let points = Geometry::builder(NumericColumn::float32(3, rows))
        .object_ids(vec![2, 0, 1])
        .objects(vec![2, 0, 1])
        .object(vec![Column::new("flag", flags(&[1, 0, 0]))]);
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![10.0; 3]);
    block_on(async {
        let source = created(points, design).await;
        let (target, report) = migrated(&source, Profile::V08).await.unwrap();
        let notes = report.lost.iter();
        let of_flag: Vec<_> = notes.filter(|note| note.path.contains("flag")).collect();
        assert!(of_flag.is_empty(), "{of_flag:?}");
        let found = target.query(&Query::new()).await.unwrap();
        assert_eq!(found.objects, [0, 1, 2]);
        assert_eq!(found.object, [Column::new("flag", flags(&[0, 0, 1]))]);
        let (back, report) = migrated(&target, Profile::V09).await.unwrap();
        assert_eq!(report.lost, []);
        let found = back.query(&Query::new()).await.unwrap();
        assert_eq!(found.object, [Column::new("flag", flags(&[0, 0, 1]))]);
    });
}

#[test]
fn damaged_headers_are_left_out_if_damage_is_skipped() {
    let mut files = Golden::open("zvf-09").store("points_attributes/store.zarrvectors");
    let group = |attributes: Json| {
        let node = json!({"zarr_format": 3, "node_type": "group", "attributes": attributes});
        node.to_string().into_bytes()
    };
    let intact = group(json!({"system": "scanner"}));
    for (name, bytes) in [
        ("headers/zarr.json", group(json!({}))),
        ("headers/las/zarr.json", intact.clone()),
        ("headers/ply/zarr.json", b"{".to_vec()),
        ("headers/ply/notes.txt", b"of the damaged header".to_vec()),
        ("headers/trk/zarr.json", b"7".to_vec()),
    ] {
        files.push((name.to_owned(), bytes));
    }
    let source = opened(&files);
    for profile in [Profile::V08, Profile::V09] {
        block_on(async {
            let none: [(&str, &[u8]); 0] = [];
            let target = Store::from_memory(none).unwrap();
            let options = MigrateOptions::new(profile);
            let migrated = zvf::migrate_dataset(&source, &target, &options).await;
            let refused = error_chain(&migrated.unwrap_err());
            assert!(refused.contains("headers/"), "{refused}");

            let target = Store::from_memory(none).unwrap();
            let options = options.skip_damaged(true);
            let report = zvf::migrate_dataset(&source, &target, &options)
                .await
                .unwrap();
            let unread: Vec<&str> = report
                .lost
                .iter()
                .filter(|note| note.what == "cannot be read")
                .map(|note| note.path.as_str())
                .collect();
            assert_eq!(unread, ["headers/ply/zarr.json", "headers/trk/zarr.json"]);
            let headers = Key::parse("headers").unwrap();
            let files = target.list_all(&headers, 1 << 10).await.unwrap();
            let kept: BTreeSet<String> = files.into_iter().map(|file| file.name).collect();
            let expected = ["las/zarr.json", "zarr.json"].map(str::to_owned);
            assert_eq!(kept, BTreeSet::from(expected));
            let dataset = Dataset::open(target).await.unwrap();
            let headers = dataset.catalog().headers().await.unwrap();
            let formats: Vec<&str> = headers.iter().map(|own| own.format.as_str()).collect();
            assert_eq!(formats, ["las"]);
        });
    }
}

#[test]
fn links_left_out_for_their_width_are_read() {
    let mut files = Golden::open("zvf-08").store("0.8.1/graph.zv");
    let node = "0/cross_chunk_links/0/zarr.json";
    edit_attributes(&mut files, node, |attributes| {
        attributes.insert("link_width".to_owned(), 3.into());
    });
    let source = opened(&files);
    block_on(async {
        // Links of another width are not migrated, but a wrong width is damage.
        let refused = error_chain(&migrated(&source, Profile::V09).await.unwrap_err());
        assert!(refused.contains("0/cross_chunk_links/0"), "{refused}");
        let none: [(&str, &[u8]); 0] = [];
        let target = Store::from_memory(none).unwrap();
        let options = MigrateOptions::new(Profile::V09).skip_damaged(true);
        let report = zvf::migrate_dataset(&source, &target, &options)
            .await
            .unwrap();
        let mut lost = report.lost.iter();
        let is_cell = |note: &zvf::MigrationNote| note.path.contains("0/cross_chunk_links/0/");
        assert!(lost.any(|note| note.what == "cannot be read" && is_cell(note)));
    });
}
