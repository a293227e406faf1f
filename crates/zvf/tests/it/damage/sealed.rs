//! Random single faults in sealed stores: each answer is exact or an error.
//!
//! Files are damaged, deleted, exchanged and replaced by those of other nodes or of an earlier
//! transaction. Without an inventory many of these give a wrong answer, because the file is valid.

use std::collections::BTreeMap;

use zvf::{Dataset, Design, Editor, Geometry, GeometryKind, NumericColumn, OpenOptions, Query};
use zvf_build::CellChecksums;
use zvf_model::key::Key;
use zvf_store::{Read, Store};
use zvf_testkit::{
    golden::Golden,
    stores::{Cells, Random, Recipe, RecipeProfile, StoreKind, make},
};

use super::{
    Files, ask,
    asks::{Asked, Intact},
    files, is_same, open,
};
use crate::block_on;

/// Faults in CI; with `ZVF_TEST_ALL`, as `cargo xtask nightly` sets it, [`ALL_FAULTS`].
const FAULTS: usize = 300;
const ALL_FAULTS: usize = 20_000;

/// Recorded stores of the reference, each generation and form.
const RECORDED: &[(&str, &str)] = &[
    ("zvf-09", "points_objects_groups/store.zarrvectors"),
    ("zvf-09", "points_sharded_zstd/store.zarrvectors"),
    ("zvf-09", "polylines_3d/store.zarrvectors"),
    ("zvf-09", "graph_2d_objects/store.zarrvectors"),
    ("zvf-09", "skeleton_multi/store.zarrvectors"),
    ("zvf-09", "mesh_objects/store.zarrvectors"),
    ("zvf-09", "pyramid_points/store.zarrvectors"),
    ("zvf-06", "streamlines.zv"),
    ("zvf-07", "graph.zv"),
    ("zvf-08", "0.8.1/streamlines.zv"),
];

/// A sealed store, its queries, and its files before its last transaction, if it had one.
struct Case {
    name: String,
    intact: Intact,
    before: Option<Intact>,
}

/// Returns the files of a store in memory, with the leaves of its inventory.
async fn files_of(store: &Store) -> Files {
    let listed = store.list_all(&Key::root(), usize::MAX).await.unwrap();
    let mut keys: Vec<Key> = listed
        .iter()
        .map(|f| Key::parse(&f.name).unwrap())
        .collect();
    let root = store.read_one(Read::full(Key::parse("zarr.json").unwrap()));
    let root: serde_json::Value = serde_json::from_slice(&root.await.unwrap().unwrap()).unwrap();
    let leaves = root["attributes"]["zvf_seal"]["leaves"].as_array().unwrap();
    let objects = leaves.iter().filter(|leaf| !leaf[2].is_null());
    keys.extend(objects.map(|leaf| Key::parse(leaf[1].as_str().unwrap()).unwrap()));
    let mut files = Files::new();
    for key in keys {
        let bytes = store.read_one(Read::full(key.clone())).await.unwrap();
        files.push((key.as_str().to_owned(), bytes.unwrap().to_vec()));
    }
    files
}

/// Returns the files of a store after it is sealed.
async fn sealed(files: Files) -> Files {
    let store = OpenOptions::default().from_memory(files).unwrap();
    zvf::seal(store.clone()).await.unwrap();
    files_of(&store).await
}

async fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (number, kind) in StoreKind::ALL.into_iter().enumerate() {
        for profile in [RecipeProfile::V09, RecipeProfile::V080] {
            let recipe = Recipe {
                seed: 7,
                kind,
                profile,
                cells: Cells::ALL[number % Cells::ALL.len()],
                attributes: true,
                ..Recipe::default()
            };
            cases.push(Case {
                name: format!("{kind:?} {profile:?}"),
                intact: Intact::of(sealed(make(&recipe).files).await).await,
                before: None,
            });
        }
    }
    let mut archives: BTreeMap<&str, Golden> = BTreeMap::new();
    for (archive, store) in RECORDED {
        let golden = archives
            .entry(archive)
            .or_insert_with(|| Golden::open(archive));
        cases.push(Case {
            name: format!("{archive}/{store}"),
            intact: Intact::of(sealed(files(golden, store)).await).await,
            before: None,
        });
    }
    for checksums in [CellChecksums::On, CellChecksums::Off] {
        cases.push(edited(checksums).await);
    }
    cases
}

/// A store with objects, of which the last transaction removed one.
async fn edited(checksums: CellChecksums) -> Case {
    let mut positions = Vec::new();
    let mut objects = Vec::new();
    for vertex in 0..120_u8 {
        let at = f32::from(vertex % 40);
        positions.extend([at, f32::from(vertex / 40), 1.0]);
        objects.push(i64::from(vertex / 20));
    }
    let mut points = Geometry::new(NumericColumn::float32(3, positions));
    points.object_ids = Some(objects);
    let mut design = Design::new(GeometryKind::Points);
    design.chunk_shape = Some(vec![10.0; 3]);
    design.checksums = checksums;
    let store = OpenOptions::default().create("memory:").unwrap();
    let options = zvf::CreateOptions::new().seal(true);
    let created = zvf::create(store.clone(), &points, design, &options).await;
    created.unwrap();
    let before = files_of(&store).await;
    let editor = Editor::open(store.clone()).await.unwrap();
    editor.remove(&[2]).await.unwrap();
    Case {
        name: format!("edited, checksums: {checksums:?}"),
        intact: Intact::of(files_of(&store).await).await,
        before: Some(Intact::of(before).await),
    }
}

/// Changes files at random and returns the description of the change.
fn inflict(case: &Case, random: &mut Random) -> (Files, String) {
    let mut files = case.intact.files.clone();
    let number = random.below(files.len());
    let other = random.below(files.len());
    let key = files[number].0.clone();
    let name = |what: &str| format!("{key}: {what}");
    let parent = key.rsplit_once('/').map(|(parent, _)| format!("{parent}/"));
    let in_array = |file: &String| {
        parent
            .as_ref()
            .is_some_and(|parent| file.starts_with(parent))
    };
    let last = |key: &str| key.rsplit('/').next().map(str::to_owned);
    let bytes = &mut files[number].1;
    let length = bytes.len();
    let what = match random.below(9) {
        0 => {
            let at = random.below(length);
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
            name(&format!("bit of byte {at}"))
        }
        1 => {
            let length = random.below(length);
            bytes.truncate(length);
            name(&format!("cut to {length}"))
        }
        2 => {
            let from = random.below(length);
            bytes[from..].fill(0);
            name(&format!("zero from {from}"))
        }
        3 => {
            files.remove(number);
            name("deleted")
        }
        4 => {
            // A folder at any depth.
            let depth = 1 + random.below(key.matches('/').count());
            let end = key.match_indices('/').nth(depth - 1).map(|(at, _)| at + 1);
            let folder = key[..end.unwrap_or(key.len())].to_owned();
            files.retain(|(key, _)| !key.starts_with(&folder));
            format!("{folder}: deleted")
        }
        5 => {
            // Another file of the same array, exchanged.
            let same: Vec<usize> = (0..files.len())
                .filter(|at| in_array(&files[*at].0))
                .collect();
            let other = same.get(random.below(same.len())).copied().unwrap_or(other);
            let bytes = files[other].1.clone();
            files[other].1 = core::mem::replace(&mut files[number].1, bytes);
            name(&format!("exchanged with {}", files[other].0))
        }
        6 => {
            // The file of the same name of another array, attribute or level.
            let same = |at: &usize| last(&files[*at].0) == last(&key);
            let same: Vec<usize> = (0..files.len()).filter(same).collect();
            let other = same[random.below(same.len())];
            let bytes = files[other].1.clone();
            files[number].1 = bytes;
            name(&format!("replaced by {}", files[other].0))
        }
        7 => {
            let bytes = files[other].1.clone();
            files[number].1 = bytes;
            name(&format!("replaced by {}", files[other].0))
        }
        _ => match &case.before {
            None => {
                files.push((format!("{key}0"), files[other].1.clone()));
                name("copied beside itself")
            }
            Some(before) => {
                // A file or a folder as it was before the last transaction.
                let depth = random.below(1 + key.matches('/').count());
                let end = key.match_indices('/').nth(depth).map(|(at, _)| at + 1);
                let part = key[..end.unwrap_or(key.len())].to_owned();
                files.retain(|(key, _)| !key.starts_with(&part));
                let old = before
                    .files
                    .iter()
                    .filter(|(key, _)| key.starts_with(&part));
                files.extend(old.cloned());
                format!("{part}: as before")
            }
        },
    };
    (files, what)
}

/// Returns whether an answer is that of the store, or of its state before.
fn is_exact(case: &Case, asked: &Asked, answer: &zvf::QueryResult) -> bool {
    let before = case.before.iter().flat_map(|before| &before.asked);
    let mut before = before.filter(|before| before.name == asked.name);
    // The root as it was before, and nothing else that the query reads has changed.
    is_same(answer, &asked.answer) || before.any(|before| is_same(answer, &before.answer))
}

#[test]
#[expect(clippy::print_stdout, reason = "what was seen is worth showing")]
fn each_fault_in_a_sealed_store_is_an_error_or_changes_no_answer() {
    let faults = match std::env::var_os("ZVF_TEST_ALL") {
        Some(_) => ALL_FAULTS,
        None => FAULTS,
    };
    block_on(async {
        let cases = cases().await;
        let mut random = Random::new(0x5eed_0f5e_a1ed);
        let (mut refused, mut exact) = (0_u32, 0_u32);
        let mut wrong = Vec::new();
        for number in 0..faults {
            let case = &cases[number % cases.len()];
            let (files, what) = inflict(case, &mut random);
            let Ok(dataset) = open(&files).await else {
                refused += 1;
                continue;
            };
            for _ in 0..2 {
                let asked = &case.intact.asked[random.below(case.intact.asked.len())];
                match ask(&dataset, &asked.query).await {
                    Err(_) => refused += 1,
                    Ok(answer) if is_exact(case, asked, &answer) => exact += 1,
                    Ok(_) => wrong.push(format!("{}: {what}, {}", case.name, asked.name)),
                }
            }
        }
        assert_eq!(wrong, Vec::<String>::new());
        println!("sealed: {faults} faults, {refused} refused, {exact} exact");
        assert!(refused > 100 && exact > 100);
    });
}

/// The faults that no checksum finds, with the text of the error.
#[test]
fn valid_files_in_the_wrong_place_are_errors_that_name_them() {
    block_on(async {
        let golden = Golden::open("zvf-09");
        let plain = files(&golden, "points_objects_groups/store.zarrvectors");
        let whole = Query::new();
        let sealed = sealed(plain.clone()).await;
        let is_cell = |key: &str| key.contains("/object_attributes/") && key.contains("/c/");
        let cell = plain
            .iter()
            .find(|(key, _)| is_cell(key))
            .unwrap()
            .0
            .clone();
        // A table whose cell is gone reads as fill values, in silence, unless the store is sealed.
        let without = |files: &Files| -> Files {
            files
                .iter()
                .filter(|(key, _)| *key != cell)
                .cloned()
                .collect()
        };
        let silent = open(&without(&plain)).await.unwrap();
        ask(&silent, &whole).await.unwrap();
        let dataset = open(&without(&sealed)).await.unwrap();
        let error = ask(&dataset, &whole).await.unwrap_err();
        assert!(error.contains(&cell), "{error}");
        assert!(
            error.contains("the inventory of the store lists it"),
            "{error}"
        );
        // The check can be turned off.
        let options = OpenOptions::default().seal(false);
        let store = options.from_memory(without(&sealed)).unwrap();
        let dataset = Dataset::open_with(store, &options).await.unwrap();
        ask(&dataset, &whole).await.unwrap();
    });
}
