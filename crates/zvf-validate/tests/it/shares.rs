//! Validations that are divided into shares: the joined report equals that of one process.

use std::sync::Arc;

use serde_json::Value;
use zvf_model::{
    fetch::{AnyArray, CellOptions, CellRequest, Fetch, FetchError, FetchProblem, Fetched, Port},
    key::Key,
    zarr::{Array, Node},
};
use zvf_store::{Activity, CellReader};
use zvf_testkit::{
    corpus::cases,
    golden::{Files, Golden},
    stores::{
        Cells, PyramidLinks, Recipe, RecipeProfile, RecordPolicy, StoreKind, make, pyramid, wide,
    },
};
use zvf_validate::{
    Depth, ShareReport, ValidateOptions, ValidationReport, ValidationShare, validate,
    validate_joined, validate_share,
};

use crate::memory::{block_on, open, report};

/// Numbers of tasks.
const COUNTS: [usize; 3] = [1, 3, 16];

/// Checks a share of a store, and passes its outcomes on as text.
async fn share(
    files: &Files,
    options: &ValidateOptions,
    (index, count): (usize, usize),
) -> (ShareReport, Activity) {
    let cells = open(files).await;
    let share = ValidationShare::new(index, count).unwrap();
    let found = validate_share(cells.port(), options, share).await;
    let text = found.to_json().to_string();
    let json: Value = serde_json::from_str(&text).unwrap();
    let read = ShareReport::from_json(&json).unwrap();
    assert_eq!(read, found);
    (read, cells.store().activity())
}

/// Validates a store in shares, the last one first and the first one twice.
fn joined(files: &Files, options: &ValidateOptions, count: usize) -> ValidationReport {
    block_on(async {
        let mut all = ShareReport::default();
        for index in (0..count).rev().chain([0]) {
            all.extend(share(files, options, (index, count)).await.0);
        }
        let cells = open(files).await;
        validate_joined(cells.port(), options, &all).await
    })
}

#[track_caller]
fn check(about: &str, files: &Files, counts: &[usize]) {
    // With a limit, the order of findings decides which of them are listed.
    let limited = [(3, 1)].into_iter();
    for (count, max) in counts.iter().map(|count| (*count, 1000)).chain(limited) {
        let options = ValidateOptions::default().max_findings_per_rule(max);
        let joined = joined(files, &options, count);
        let whole = report(files, &options);
        assert_eq!(joined, whole, "{about}, {count} tasks, {max} findings");
    }
}

/// Checks every fourth damaged store from a number on.
fn check_damaged(first: usize) {
    for case in cases().into_iter().skip(first).step_by(4) {
        let mut files = Golden::open(&case.archive).store(&case.store);
        case.damage(&mut files);
        check(&case.name, &files, &COUNTS);
    }
}

// Four tests, which run at once.
#[test]
fn damaged_stores_have_the_findings_of_one_process() {
    check_damaged(0);
}

#[test]
fn more_damaged_stores_have_the_findings_of_one_process() {
    check_damaged(1);
}

#[test]
fn other_damaged_stores_have_the_findings_of_one_process() {
    check_damaged(2);
}

#[test]
fn the_last_damaged_stores_have_the_findings_of_one_process() {
    check_damaged(3);
}

/// Returns generated stores of every kind, generation and form.
fn generated() -> impl Iterator<Item = (String, Files)> {
    let kinds = StoreKind::ALL.into_iter();
    let all = kinds
        .flat_map(|kind| RecipeProfile::ALL.map(|profile| (kind, profile)))
        .flat_map(|(kind, profile)| Cells::ALL.map(|cells| (kind, profile, cells)));
    (0_usize..)
        .zip(all)
        .map(|(number, (kind, profile, cells))| {
            let recipe = Recipe {
                seed: number as u64,
                kind,
                profile,
                cells,
                policy: RecordPolicy::ALL[number % 3],
                chunked: number % 7 == 2,
                ..Recipe::default()
            }
            .possible();
            (format!("{recipe:?}"), make(&recipe).files)
        })
}

#[test]
fn generated_stores_have_the_findings_of_one_process() {
    for (about, mut files) in generated() {
        check(&about, &files, &[3]);
        // Without one file: the first cell, or the first of a shard.
        let is_cell = |file: &str| file.contains("/c/") && file.contains("vertices");
        if let Some(at) = files.iter().position(|(file, _)| is_cell(file)) {
            files.remove(at);
            check(&about, &files, &[3]);
        }
    }
}

/// Returns a pyramid with links between levels, of points or of another kind.
fn pyramid_of(kind: StoreKind, cells: Cells) -> Files {
    let recipe = Recipe {
        seed: 5,
        kind,
        cells,
        ..Recipe::default()
    }
    .possible();
    pyramid(&recipe, PyramidLinks::Explicit).fine.files
}

#[test]
fn pyramids_have_the_findings_of_one_process() {
    for kind in StoreKind::ALL {
        for cells in [Cells::Plain, Cells::Sharded] {
            let mut files = pyramid_of(kind, cells);
            check(&format!("{kind:?} {cells:?}"), &files, &COUNTS);
            // Vertices without a parent, or an unreadable cell of links.
            let is_link = |file: &str| file.starts_with("0/links/+1/") && file.contains("/c/");
            let links: Vec<usize> = (0..files.len())
                .filter(|at| is_link(&files[*at].0))
                .collect();
            if let Some(at) = links.first() {
                let half = files[*at].1.len() / 2;
                files[*at].1.truncate(half);
                check(&format!("{kind:?} {cells:?} cut"), &files, &[3]);
                files.remove(*at);
                check(&format!("{kind:?} {cells:?} lost"), &files, &[3]);
            }
        }
    }
}

/// A store that delivers no cell.
struct NoCells(CellReader);

impl Fetch for NoCells {
    fn array(&self, node: &Key, array: Arc<Array>) -> Result<AnyArray, FetchError> {
        self.0.array(node, array)
    }

    async fn nodes(&self, keys: &[Key]) -> Result<Vec<Option<Node>>, FetchError> {
        self.0.nodes(keys).await
    }

    async fn cells(
        &self,
        wanted: &[CellRequest],
        _options: CellOptions,
    ) -> Vec<Result<Option<Fetched>, FetchError>> {
        let errors = wanted.iter().map(|_| {
            Err(FetchError {
                key: Key::root(),
                problem: FetchProblem::Unavailable,
                source: "no".into(),
            })
        });
        errors.collect()
    }

    async fn children(&self, key: &Key) -> Result<Vec<String>, FetchError> {
        self.0.children(key).await
    }

    async fn sizes(&self, keys: &[Key]) -> Result<Vec<Option<u64>>, FetchError> {
        self.0.sizes(keys).await
    }

    async fn files(&self, prefix: &Key) -> Result<Vec<(String, u64)>, FetchError> {
        self.0.files(prefix).await
    }

    fn budget(&self) -> u64 {
        self.0.budget()
    }
}

#[test]
fn cells_that_a_task_does_not_get_are_read_again() {
    for cells in [Cells::Plain, Cells::Sharded] {
        let files = pyramid_of(StoreKind::Graph, cells);
        let options = ValidateOptions::default();
        let whole = report(&files, &options);
        let joined = block_on(async {
            let cells = NoCells(open(&files).await);
            let share = ValidationShare::new(0, 1).unwrap();
            let found = validate_share(Port::new(&cells), &options, share).await;
            validate_joined(open(&files).await.port(), &options, &found).await
        });
        assert_eq!(joined, whole);
    }
}

/// Requests and bytes of a validation.
type Costs = (u64, u64);

fn costs(activity: Activity) -> Costs {
    (activity.requests, activity.bytes_read)
}

fn minus(one: Costs, other: Costs) -> Costs {
    (one.0 - other.0, one.1 - other.1)
}

/// Returns what one process, each task and the joining process read, without nodes.
fn measured(files: &Files, count: usize) -> (Costs, Vec<Costs>, Costs) {
    let options = ValidateOptions::default();
    block_on(async {
        let cells = open(files).await;
        let nodes = options.clone().depth(Depth::Metadata);
        validate(cells.port(), &nodes).await;
        let nodes = costs(cells.store().activity());
        let cells = open(files).await;
        validate(cells.port(), &options).await;
        let whole = minus(costs(cells.store().activity()), nodes);
        let (mut tasks, mut all) = (Vec::new(), ShareReport::default());
        for index in 0..count {
            let (found, activity) = share(files, &options, (index, count)).await;
            all.extend(found);
            tasks.push(minus(costs(activity), nodes));
        }
        let cells = open(files).await;
        validate_joined(cells.port(), &options, &all).await;
        let joined = minus(costs(cells.store().activity()), nodes);
        (whole, tasks, joined)
    })
}

fn sum(costs: &[Costs]) -> Costs {
    costs
        .iter()
        .fold((0, 0), |sum, costs| (sum.0 + costs.0, sum.1 + costs.1))
}

/// Returns whether one of two costs is at most `percent` of the other.
fn is_within(one: Costs, other: Costs, percent: u64) -> bool {
    one.0 * 100 <= other.0 * percent && one.1 * 100 <= other.1 * percent
}

#[test]
fn tasks_read_together_what_one_process_reads() {
    for kind in StoreKind::ALL {
        let files = pyramid_of(kind, Cells::Plain);
        let (whole, mut all, joined) = measured(&files, 5);
        all.push(joined);
        // The links of chunks in which a vertex has no parent are read twice.
        let twice = match kind {
            StoreKind::Lines => (7, 364),
            StoreKind::Polylines => (4, 208),
            StoreKind::Skeleton => (9, 468),
            StoreKind::StreamedSkeleton => (9, 484),
            _ => (0, 0),
        };
        assert_eq!(minus(sum(&all), whole), twice, "{kind:?}");
        if [StoreKind::Points, StoreKind::BinnedPoints].contains(&kind) {
            assert_eq!(joined, (0, 0));
        }
    }
}

#[test]
fn tasks_read_equal_parts() {
    // The arrays of this store have different shards, and several tasks read the index of a shard.
    for (cells, percent) in [(Cells::Plain, 105), (Cells::Sharded, 150)] {
        let recipe = Recipe {
            cells,
            ..Recipe::default()
        };
        let files = wide(&recipe, 8).files;
        let (whole, tasks, joined) = measured(&files, 4);
        for (requests, bytes) in tasks {
            assert!(is_within((requests * 4, bytes * 4), whole, percent));
        }
        assert_eq!(joined, (0, 0));
    }
}
