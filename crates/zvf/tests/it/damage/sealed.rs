//! Random single faults in sealed stores: each result is exact or an error.
//!
//! Files and folders are damaged, deleted, exchanged and replaced by those of other nodes or of
//! earlier transactions. Without an inventory many of these give a wrong result, because the file
//! is valid.

use core::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering},
};
use std::{
    collections::{BTreeMap, BTreeSet},
    time::Instant,
};

use zvf::{
    AutoLevels, CellChecksums, CellCompression, CreateOptions, Dataset, Design, Editor, Geometry,
    GeometryKind, NumericColumn, OpenOptions, OutOfBounds, Profile, PyramidLevels, PyramidOptions,
    Query, QueryResult, ShardingPolicy, ValidateOptions,
};
use zvf_model::key::Key;
use zvf_store::{Read, Store};
use zvf_testkit::{
    golden::Golden,
    stores::{Cells, PyramidLinks, Random, Recipe, RecipeProfile, StoreKind, make, pyramid},
};

use super::{
    Files,
    expected::{ExpectedResult, Intact},
    files, is_same, open, run,
};
use crate::{
    block_on,
    written::{content::Content, edits, random},
};

/// Faults in CI; with `ZVF_TEST_ALL`, as `cargo xtask nightly` sets it, [`ALL_FAULTS`].
const FAULTS: usize = 500;
const ALL_FAULTS: usize = 20_000;

/// Queries that are both served and refused in each run.
const KINDS: [&str; 13] = [
    "whole",
    "object",
    "group",
    "box",
    "clip",
    "coarser",
    "drill",
    "nearest",
    "chunk",
    "half budget",
    "vertex predicate",
    "object predicate",
    "link predicate",
];

/// Changes of stores of ours after their creation.
const CHANGES: usize = 4;

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

/// A sealed store, its queries, and its earlier states.
struct Case {
    name: String,
    intact: Intact,
    before: Vec<Before>,
    /// Cells have several blocks, and are read in parts.
    has_parts: bool,
}

impl Case {
    async fn open(&self, files: &Files) -> Result<Dataset, zvf::Error> {
        if self.has_parts {
            open_in_parts(files).await
        } else {
            open(files).await
        }
    }
}

/// Opens a store whose cells are not read whole for a cache.
async fn open_in_parts(files: &Files) -> Result<Dataset, zvf::Error> {
    let options = OpenOptions::default().cache(0);
    Dataset::open(options.from_memory(files.iter().cloned()).unwrap()).await
}

/// A store before one of its transactions.
struct Before {
    files: Files,
    /// The results of the queries of the last state, `None` for errors.
    results: Vec<Option<QueryResult>>,
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
    let leaves = root["attributes"]["zvf_seal"]["leaves"].as_array();
    let objects = leaves
        .into_iter()
        .flatten()
        .filter(|leaf| !leaf[2].is_null());
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

/// Returns the stores; a sample of them if not `all`.
async fn cases(all: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = async |name: String, files: Files| {
        cases.push(Case {
            name,
            intact: Intact::of_all_kinds(sealed(files).await).await,
            before: Vec::new(),
            has_parts: false,
        });
    };
    for (number, kind) in StoreKind::ALL.into_iter().enumerate() {
        for (other, profile) in RecipeProfile::ALL.into_iter().enumerate() {
            if !all && (number + other) % 4 > 0 {
                continue;
            }
            let recipe = Recipe {
                seed: 7,
                kind,
                profile,
                cells: Cells::ALL[(number + other) % Cells::ALL.len()],
                ..Recipe::default()
            };
            add(format!("{kind:?} {profile:?}"), make(&recipe).files).await;
        }
        let recipe = Recipe {
            seed: 9,
            kind,
            cells: Cells::ALL[number % Cells::ALL.len()],
            ..Recipe::default()
        };
        let pyramid = pyramid(&recipe, PyramidLinks::Explicit);
        add(format!("pyramid of {kind:?}"), pyramid.fine.files).await;
    }
    let mut archives: BTreeMap<&str, Golden> = BTreeMap::new();
    for (archive, store) in RECORDED {
        let golden = archives
            .entry(archive)
            .or_insert_with(|| Golden::open(archive));
        add(format!("{archive}/{store}"), files(golden, store)).await;
    }
    for kind in GeometryKind::ALL {
        for seed in 0..if all { 4 } else { 1 } {
            cases.push(changed(kind, seed).await);
        }
    }
    cases.push(large().await);
    cases.extend(in_parts().await);
    cases
}

/// 400 paths of 50 vertices in two chunks, whose cells have several blocks.
pub(crate) fn several_blocks(compression: CellCompression) -> (Geometry, Design) {
    let mut random = Random::new(11);
    let (mut positions, mut values) = (Vec::new(), Vec::new());
    let mut number = |limit: usize| f64::from(u32::try_from(random.below(limit)).unwrap());
    for _ in 0..400 {
        let mut place = [(); 3].map(|()| number(100_000));
        for _ in 0..50 {
            place = place.map(|axis| axis + number(1_000));
            positions.extend(place);
            values.push(number(1 << 31) * f64::from(1 << 22) + number(1 << 22));
        }
    }
    let mut geometry = Geometry::builder(NumericColumn::float64(3, positions))
        .paths((0..=400).map(|path| path * 50).collect(), None);
    let values = NumericColumn::float64(1, values);
    geometry.vertex = vec![zvf::Column::new("value", values)];
    let mut design = Design::new(GeometryKind::Streamlines).compression(compression);
    design.chunk_shape = Some(vec![100_000.0, 200_000.0, 200_000.0]);
    (geometry.build().unwrap(), design)
}

/// Stores with cells of several blocks: uncompressed, compressed, and compressed in a shard.
async fn in_parts() -> Vec<Case> {
    let forms = [
        (CellCompression::None, ShardingPolicy::None),
        (CellCompression::Auto, ShardingPolicy::None),
        (CellCompression::Auto, ShardingPolicy::Auto),
    ];
    let mut cases = Vec::new();
    for (compression, sharding) in forms {
        let name = format!("in parts: {compression:?}, {sharding:?}");
        let (geometry, mut design) = several_blocks(compression);
        design.sharding = sharding;
        let store = OpenOptions::default().create("memory:").unwrap();
        let options = CreateOptions::new().seal(true);
        zvf::create(&store, geometry, design, &options)
            .await
            .unwrap();
        let files = files_of(&store).await;
        let dataset = open_in_parts(&files).await.unwrap();
        dataset.query(&Query::new().objects([7])).await.unwrap();
        let size: usize = files.iter().map(|(_, bytes)| bytes.len()).sum();
        let read = dataset.store().activity().bytes_read;
        assert!(read < u64::try_from(size / 2).unwrap(), "{read} of {size}");
        cases.push(Case {
            name,
            intact: Intact::of_all_kinds(files).await,
            before: Vec::new(),
            has_parts: true,
        });
    }
    cases
}

/// A store of ours of random codecs, shards and checksums, with its states before some changes
/// and before a pyramid.
async fn changed(kind: GeometryKind, seed: u64) -> Case {
    let mut case = random::case(seed, kind, Profile::V09);
    let mut random = Random::new(seed ^ 0x5ea1);
    let mut expected = Content::of(&case.geometry, &case.design);
    let name = format!("{kind:?}, seed {seed}: {:?}", case.design);
    let store = edits::unsealed_store(&mut case).await;
    zvf::seal(store.clone()).await.unwrap();
    let mut states = vec![files_of(&store).await];
    let editor = Editor::open(store.clone()).await.unwrap();
    for _ in 0..CHANGES {
        edits::change(&editor, &mut case, &mut random, &mut expected).await;
        states.push(files_of(&store).await);
    }
    let options = PyramidOptions::new().levels(PyramidLevels::Auto(one_level()));
    // Some stores are too small for a coarser level.
    if zvf::build_pyramid(&store, &options).await.is_ok() {
        states.push(files_of(&store).await);
    }
    with_states(name, states).await
}

fn one_level() -> AutoLevels {
    let mut levels = AutoLevels::default();
    levels.levels = Some(1);
    levels
}

/// A store whose inventory has several leaves.
async fn large() -> Case {
    let mut case = random::case(3, GeometryKind::Points, Profile::V09);
    let mut rows = Vec::new();
    for vertex in 0..10_000_u16 {
        rows.extend([f64::from(vertex % 100), f64::from(vertex / 100)]);
    }
    case.geometry = Geometry::builder(NumericColumn::float64(2, rows));
    case.design = Design::new(GeometryKind::Points);
    case.design.chunk_shape = Some(vec![2.0, 2.0]);
    let store = edits::unsealed_store(&mut case).await;
    zvf::seal(store.clone()).await.unwrap();
    let first = files_of(&store).await;
    let leaves = first.iter().filter(|(key, _)| key.starts_with(".zvf/seal"));
    assert!(leaves.count() > 1);
    let editor = Editor::open(store.clone()).await.unwrap();
    let none = OutOfBounds::Reject;
    let more = Geometry::new(NumericColumn::float64(2, [0.5, 0.5]));
    editor.append(&more, none).await.unwrap();
    with_states("large".to_owned(), vec![first, files_of(&store).await]).await
}

/// Returns a case of the last state and the earlier ones.
async fn with_states(name: String, mut states: Vec<Files>) -> Case {
    let intact = Intact::of_all_kinds(states.pop().unwrap()).await;
    let mut before = Vec::new();
    for files in states {
        let dataset = open(&files).await.unwrap();
        let mut results = Vec::new();
        for expected in &intact.results {
            results.push(run(&dataset, &expected.query).await.ok());
        }
        before.push(Before { files, results });
    }
    Case {
        name,
        intact,
        before,
        has_parts: false,
    }
}

/// The folders of files, each with the `/` at its end.
fn folders(files: &Files) -> Vec<String> {
    let mut folders = BTreeSet::new();
    for (key, _) in files {
        let ends = key.match_indices('/').map(|(at, _)| at + 1);
        folders.extend(ends.map(|end| key[..end].to_owned()));
    }
    folders.into_iter().collect()
}

/// Changes files at random and returns the description of the change.
#[expect(clippy::too_many_lines, reason = "an arm for each kind of fault")]
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
    let what = match random.below(12) {
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
            let all = folders(&files);
            let folder = all[random.below(all.len())].clone();
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
        8 => {
            // Whole nodes with their cells: attributes, arrays, groups, levels.
            let all = folders(&files);
            let one = all[random.below(all.len())].clone();
            let depth = |folder: &str| folder.matches('/').count();
            let others: Vec<&String> = all
                .iter()
                .filter(|other| depth(other) == depth(&one))
                .collect();
            let other = others[random.below(others.len())].clone();
            for (key, _) in &mut files {
                if let Some(below) = key.strip_prefix(&one) {
                    *key = format!("{other}{below}");
                } else if let Some(below) = key.strip_prefix(&other) {
                    *key = format!("{one}{below}");
                }
            }
            format!("{one}: exchanged with {other}")
        }
        9 => {
            files.push((format!("{key}0"), files[other].1.clone()));
            name("copied beside itself")
        }
        _ => match case.before.len() {
            0 => {
                bytes.extend(vec![0; 1 + random.below(9)]);
                name("extended")
            }
            states => {
                // A file or a folder as it was in an earlier state.
                let state = random.below(states);
                let depth = random.below(1 + key.matches('/').count());
                let end = key.match_indices('/').nth(depth).map(|(at, _)| at + 1);
                let part = key[..end.unwrap_or(key.len())].to_owned();
                files.retain(|(key, _)| !key.starts_with(&part));
                let before = case.before[state].files.iter();
                files.extend(before.filter(|(key, _)| key.starts_with(&part)).cloned());
                format!("{part}: as in state {state}")
            }
        },
    };
    (files, what)
}

/// Returns whether a result is that of the store, or of one of its earlier states.
fn is_exact(case: &Case, number: usize, result: &QueryResult) -> bool {
    let expected: &ExpectedResult = &case.intact.results[number];
    let mut before = case
        .before
        .iter()
        .flat_map(|before| &before.results[number]);
    // The root as it was before, and nothing else that the query reads has changed.
    is_same(result, &expected.result) || before.any(|before| is_same(result, before))
}

/// Outcomes of faults.
#[derive(Default)]
struct Outcomes {
    faults: usize,
    unopened: usize,
    /// Refused and exact results by kind of query.
    kinds: BTreeMap<&'static str, [u32; 2]>,
    /// Silent wrong results.
    wrong: Vec<String>,
    /// The fault that took longest, and its time in seconds.
    longest: (f64, String),
}

impl Outcomes {
    /// Inflicts the fault of this number and asks three queries.
    async fn add(&mut self, cases: &[Case], number: usize) {
        let case = &cases[number % cases.len()];
        // A number alone repeats its fault.
        let mut random = Random::new(0x5eed_0f5e_a1ed ^ u64::try_from(number).unwrap());
        let (files, what) = inflict(case, &mut random);
        let started = Instant::now();
        self.faults += 1;
        if let Ok(dataset) = case.open(&files).await {
            for _ in 0..3 {
                let query = random.below(case.intact.results.len());
                let expected = &case.intact.results[query];
                let counts = self.kinds.entry(expected.name).or_default();
                match run(&dataset, &expected.query).await {
                    Err(_) => counts[0] += 1,
                    Ok(result) if is_exact(case, query, &result) => counts[1] += 1,
                    Ok(_) => {
                        let name = expected.name;
                        let wrong = format!("{number}, {}: {what}, {name}", case.name);
                        self.wrong.push(wrong);
                    }
                }
            }
        } else {
            self.unopened += 1;
        }
        let seconds = started.elapsed().as_secs_f64();
        if seconds > self.longest.0 {
            self.longest = (seconds, format!("{number}, {}: {what}", case.name));
        }
    }

    fn append(&mut self, other: Self) {
        self.faults += other.faults;
        self.unopened += other.unopened;
        for (kind, [refused, exact]) in other.kinds {
            let counts = self.kinds.entry(kind).or_default();
            counts[0] += refused;
            counts[1] += exact;
        }
        self.wrong.extend(other.wrong);
        if other.longest.0 > self.longest.0 {
            self.longest = other.longest;
        }
    }
}

/// Inflicts faults on all cores.
#[expect(clippy::print_stdout, reason = "a long run shows its progress")]
fn inflict_all(cases: &[Case], faults: usize) -> Outcomes {
    let next = AtomicUsize::new(0);
    let work = || {
        block_on(async {
            let mut outcomes = Outcomes::default();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= faults {
                    return outcomes;
                }
                if number > 0 && number.is_multiple_of(FAULTS) {
                    println!("sealed: {number} of {faults} faults");
                }
                outcomes.add(cases, number).await;
            }
        })
    };
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        let mut all = Outcomes::default();
        for worker in workers {
            all.append(worker.join().unwrap());
        }
        all
    })
}

#[test]
#[expect(clippy::print_stdout, reason = "what was seen is worth showing")]
fn each_fault_in_a_sealed_store_is_an_error_or_changes_no_result() {
    let faults = match std::env::var_os("ZVF_TEST_ALL") {
        Some(_) => ALL_FAULTS,
        None => FAULTS,
    };
    let cases = block_on(cases(faults == ALL_FAULTS));
    let outcomes = inflict_all(&cases, faults);
    println!(
        "sealed: {} faults in {} stores, {} not opened; the longest took {:.1} s: {}",
        outcomes.faults,
        cases.len(),
        outcomes.unopened,
        outcomes.longest.0,
        outcomes.longest.1
    );
    println!("refused and exact: {:?}", outcomes.kinds);
    assert_eq!(outcomes.wrong, Vec::<String>::new());
    for kind in KINDS {
        let counts = outcomes.kinds.get(kind).copied().unwrap_or_default();
        assert!(counts[0] > 0 && counts[1] > 0, "{kind}: {counts:?}");
    }
}

/// Stores of ours of one column of the table, each with an earlier state and a coarser level.
async fn stores_of_column(checksums: CellChecksums, is_sealed: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    let kinds = [
        GeometryKind::Points,
        GeometryKind::Polylines,
        GeometryKind::Graphs,
    ];
    for (seed, kind) in (20..).zip(kinds) {
        let mut case = (seed..seed + 1_000)
            .map(|seed| random::case(seed, kind, Profile::V09))
            .find(|case| {
                let geometry = &case.geometry;
                geometry.vertices() > 60
                    && geometry.vertex.len() > 1
                    && geometry.object.len() > 1
                    && case.design.chunk_shape.is_some()
                    && case.design.sharding == ShardingPolicy::None
            })
            .unwrap();
        case.design.checksums = checksums;
        case.design.compression = CellCompression::None;
        let mut random = Random::new(seed);
        let mut expected = Content::of(&case.geometry, &case.design);
        let store = edits::unsealed_store(&mut case).await;
        let options = PyramidOptions::new().levels(PyramidLevels::Auto(one_level()));
        zvf::build_pyramid(&store, &options).await.unwrap();
        if is_sealed {
            zvf::seal(store.clone()).await.unwrap();
        }
        let mut states = vec![files_of(&store).await];
        let editor = Editor::open(store.clone()).await.unwrap();
        edits::change(&editor, &mut case, &mut random, &mut expected).await;
        states.push(files_of(&store).await);
        let name = format!("{kind:?}, checksums {checksums:?}, sealed {is_sealed}");
        cases.push(with_states(name, states).await);
    }
    cases
}

fn is_cell(key: &str) -> bool {
    !key.ends_with("zarr.json") && !key.starts_with(".zvf")
}

/// Inflicts a fault of a row of the table in `docs/security.md`, by its text.
fn inflict_row(row: &str, case: &Case, random: &mut Random) -> Files {
    let mut files = case.intact.files.clone();
    let cells: Vec<usize> = (0..files.len())
        .filter(|at| is_cell(&files[*at].0))
        .collect();
    let nodes: Vec<usize> = (0..files.len())
        .filter(|at| files[*at].0.ends_with("zarr.json"))
        .collect();
    let (cell, other) = (*random.pick(&cells), *random.pick(&cells));
    let (node, other_node) = (*random.pick(&nodes), *random.pick(&nodes));
    match row {
        "a changed bit or zeros in a cell" => {
            let bytes = &mut files[cell].1;
            let at = random.below(bytes.len());
            if random.chance(50) {
                bytes[at] ^= 1 << random.below(8);
            } else {
                bytes[at..].fill(0);
            }
        }
        "a changed bit in a `zarr.json`" => {
            let bytes = &mut files[node].1;
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        "a truncated or extended file" => {
            let number = random.below(files.len());
            let bytes = &mut files[number].1;
            if random.chance(50) {
                bytes.truncate(random.below(bytes.len()));
            } else {
                bytes.extend(vec![0; 1 + random.below(24)]);
            }
        }
        "a cell or table that is gone" => drop(files.remove(cell)),
        "an attribute, array or level that is gone" => {
            let key = files[node].0.clone();
            let folder = key.strip_suffix("zarr.json").unwrap();
            if !folder.is_empty() {
                files.retain(|(key, _)| !key.starts_with(folder));
            }
        }
        "a cell of another array, level or place" => {
            let bytes = files[other].1.clone();
            files[cell].1 = bytes;
        }
        "a node of another array or level" => {
            let bytes = files[other_node].1.clone();
            files[node].1 = bytes;
        }
        "a file of an earlier transaction" => {
            let before = &case.before[0].files;
            let (key, bytes) = &before[random.below(before.len())];
            files.retain(|(other, _)| other != key);
            files.push((key.clone(), bytes.clone()));
        }
        "a file that should not exist" => {
            let (key, _) = &files[cell];
            let (folder, name) = key.rsplit_once('/').unwrap();
            let key = match name.parse::<u64>() {
                Ok(number) => format!("{folder}/{}", number + 1),
                Err(_) => format!("{key}0"),
            };
            if files.iter().all(|(other, _)| *other != key) {
                files.push((key, files[other].1.clone()));
            }
        }
        "all of the above, where nothing that a query reads is affected" => {}
        other => panic!("the table has an unknown row: {other}"),
    }
    files
}

/// The cells of the table state which outcomes are possible: an error, or a wrong result in the
/// words of [`WRONG_RESULTS`]. The exact result is always possible.
#[test]
#[expect(clippy::print_stdout, reason = "what was seen is worth showing")]
fn the_table_of_faults_in_the_guide_is_true() {
    const WRONG_RESULTS: [&str; 5] = [
        "change a result",
        "absent",
        "fill values",
        "not found",
        "be read",
    ];
    let page = include_str!("../../../../../docs/security.md");
    let (_, table) = page
        .split_once("| fault | without checksums | with checksums | sealed |")
        .unwrap();
    let lines = table
        .lines()
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<&str>> = lines
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 10);
    let faults = zvf_testkit::sample::cases(60_u64);
    block_on(async {
        let columns = [
            (CellChecksums::Off, false),
            (CellChecksums::On, false),
            (CellChecksums::On, true),
        ];
        let mut seen = BTreeMap::new();
        for (column, (checksums, is_sealed)) in columns.into_iter().enumerate() {
            let cases = stores_of_column(checksums, is_sealed).await;
            let mut random = Random::new(0x7ab1e);
            for row in &rows {
                let text = match row[column + 1] {
                    "the same" => row[column],
                    text => text,
                };
                let is_silent = WRONG_RESULTS.iter().any(|words| text.contains(words));
                let is_error = text.contains("error");
                let counts = seen.entry((row[0], column)).or_insert([0_u32; 3]);
                for fault in 0..faults {
                    let case = &cases[usize::try_from(fault).unwrap() % cases.len()];
                    let files = inflict_row(row[0], case, &mut random);
                    let opened = open(&files).await;
                    for _ in 0..3 {
                        let number = random.below(case.intact.results.len());
                        let outcome = match &opened {
                            Ok(dataset) => run(dataset, &case.intact.results[number].query).await,
                            Err(error) => Err(error.to_string()),
                        };
                        let is_possible = match &outcome {
                            Err(_) => {
                                counts[0] += 1;
                                is_error
                            }
                            Ok(result) if is_exact(case, number, result) => {
                                counts[1] += 1;
                                true
                            }
                            Ok(_) => {
                                counts[2] += 1;
                                is_silent
                            }
                        };
                        let expected = case.intact.results[number].name;
                        let outcome = outcome.map(|_| "another result");
                        assert!(
                            is_possible,
                            "{}: {}, {expected}: {outcome:?}, not {text}",
                            case.name, row[0]
                        );
                    }
                }
            }
        }
        for ((row, column), [errors, exact, silent]) in &seen {
            println!("{row}, column {column}: {errors} errors, {exact} exact, {silent} wrong");
        }
        // The table would be true if nothing had an effect.
        let wrong = |column| {
            seen.iter()
                .filter(move |((_, c), counts)| *c == column && counts[2] > 0)
        };
        assert!(wrong(0).count() > 4 && wrong(1).count() > 2, "{seen:?}");
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
        run(&silent, &whole).await.unwrap();
        let dataset = open(&without(&sealed)).await.unwrap();
        let error = run(&dataset, &whole).await.unwrap_err();
        assert!(error.contains(&cell), "{error}");
        assert!(
            error.contains("the inventory of the store lists it"),
            "{error}"
        );
        // The check can be turned off.
        let options = OpenOptions::default().seal(false);
        let store = options.from_memory(without(&sealed)).unwrap();
        let dataset = Dataset::open_with(store, &options).await.unwrap();
        run(&dataset, &whole).await.unwrap();
    });
}

/// Every difference is a finding, also one that no query notices.
#[test]
fn validation_reports_each_difference_from_the_inventory() {
    block_on(async {
        let golden = Golden::open("zvf-09");
        let plain = files(&golden, "points_objects_groups/store.zarrvectors");
        let sealed = sealed(plain).await;
        let found = async |files: &Files| {
            let store = OpenOptions::default().from_memory(files.clone()).unwrap();
            let options = ValidateOptions::default();
            let report = zvf::validate(store, &options).await.unwrap();
            let own = report
                .findings
                .into_iter()
                .filter(|finding| finding.rule.code == "ZV-L3-123");
            own.map(|finding| finding.path).collect::<Vec<_>>()
        };
        assert_eq!(found(&sealed).await, [""; 0]);
        let mut random = Random::new(3);
        for number in 0..sealed.len() {
            let key = sealed[number].0.clone();
            if key == "zarr.json" {
                continue;
            }
            let mut damaged = sealed.clone();
            match number % 3 {
                0 => drop(damaged.remove(number)),
                1 => {
                    let at = random.below(damaged[number].1.len());
                    damaged[number].1[at] ^= 4;
                }
                _ => damaged[number].1.push(0),
            }
            assert_eq!(found(&damaged).await, [key]);
        }
        let mut more = sealed.clone();
        more.push(("0/vertices/c/9/9/9".to_owned(), vec![1]));
        assert_eq!(found(&more).await, ["0/vertices/c/9/9/9"]);
        let mut damaged = sealed.clone();
        let root = damaged.iter_mut().find(|(key, _)| key == "zarr.json");
        let (_, root) = root.unwrap();
        let text = String::from_utf8(root.clone()).unwrap();
        *root = text.replacen("\"store\"", "\"stone\"", 1).into_bytes();
        assert_ne!(*root, text.into_bytes());
        assert_eq!(found(&damaged).await, ["zarr.json"]);
    });
}

/// A change by another program is refused until the store is sealed again.
#[test]
fn a_store_changed_by_others_is_sealed_again() {
    block_on(async {
        let golden = Golden::open("zvf-09");
        let plain = files(&golden, "points_objects_groups/store.zarrvectors");
        let mut changed = sealed(plain).await;
        let is_cell = |key: &str| key.starts_with("0/vertices/c/");
        let cell = changed.iter_mut().find(|(key, _)| is_cell(key)).unwrap();
        // The lowest bit of the first coordinate, after the length of the cell.
        cell.1[8] ^= 1;
        let key = cell.0.clone();
        let store = OpenOptions::default().from_memory(changed).unwrap();
        let dataset = Dataset::open(store.clone()).await.unwrap();
        let error = run(&dataset, &Query::new()).await.unwrap_err();
        assert!(error.contains(&key), "{error}");
        let options = ValidateOptions::default();
        let mut report = zvf::repair(store.clone(), &options).await.unwrap().left;
        let paths: Vec<&str> = report.findings.iter().map(|f| f.path.as_str()).collect();
        assert!(paths.contains(&key.as_str()), "{paths:?}");
        assert!(!report.is_ok());
        let sealed = zvf::seal_validated(store.clone(), &mut report)
            .await
            .unwrap();
        assert!(sealed.is_some() && report.is_ok(), "{:?}", report.findings);
        let dataset = Dataset::open(store.clone()).await.unwrap();
        run(&dataset, &Query::new()).await.unwrap();
        let after = zvf::validate(store, &options).await.unwrap();
        assert_eq!(after.findings, report.findings);
    });
}

/// Writing damaged data anew would give it a valid entry in the inventory.
#[test]
fn a_change_of_a_damaged_cell_is_an_error_that_names_it() {
    block_on(async {
        let point = |at: f32| Geometry::builder(NumericColumn::float32(3, [at; 3]));
        let mut design = Design::new(GeometryKind::Points);
        design.chunk_shape = Some(vec![10.0; 3]);
        design.bounds = Some((vec![0.0; 3], vec![20.0; 3]));
        design.checksums = CellChecksums::Off;
        let store = OpenOptions::default().create("memory:").unwrap();
        let options = CreateOptions::new();
        zvf::create(&store, point(1.0).build().unwrap(), design, &options)
            .await
            .unwrap();
        let mut files = files_of(&store).await;
        let is_cell = |key: &str| key.starts_with("0/vertices/c/");
        let cell = files.iter_mut().find(|(key, _)| is_cell(key)).unwrap();
        *cell.1.last_mut().unwrap() ^= 1;
        let key = cell.0.clone();
        let editor = Editor::open(Store::from_memory(files).unwrap())
            .await
            .unwrap();
        let append = |at| {
            let (editor, point) = (&editor, point(at));
            async move {
                editor
                    .append(&point.build().unwrap(), OutOfBounds::Reject)
                    .await
            }
        };
        let error = append(2.0).await.unwrap_err();
        let error = zvf_model::error_chain::error_chain(&error);
        assert!(
            error.contains(&key) && error.contains("inventory"),
            "{error}"
        );
        append(15.0).await.unwrap();
    });
}
