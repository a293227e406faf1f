//! Results in batches, each within a memory budget.

use futures_util::StreamExt;
use zvf::{BatchOptions, Dataset, OpenOptions, Query, QueryResult};
use zvf_catalog::{CatalogError, Selection};
use zvf_model::error_chain::error_chain;
use zvf_query::{Column, ColumnValues};
use zvf_testkit::stores::{Made, Recipe, StoreKind, make, wide};

use super::{cases, kinds, opened};
use crate::block_on;

/// Returns the size of a result in bytes.
fn size(result: &QueryResult) -> u64 {
    let columns = [
        &result.vertex,
        &result.fragment,
        &result.link,
        &result.object,
    ]
    .into_iter()
    .flatten()
    .map(|column| match &column.values {
        ColumnValues::Numeric(rows) => rows.bytes.len(),
        ColumnValues::Dictionary { codes, .. } => codes.len() * 4,
    });
    let ends = result.links.as_ref().map_or(0, |links| links.ends.len());
    let ids = result.object_ids.as_ref().map_or(0, zvf::ObjectIds::len);
    let parts = result
        .parts
        .as_ref()
        .map_or(0, |parts| parts.objects.len() * 2);
    let bytes = columns.sum::<usize>() + result.positions.bytes.len() + (ends + ids + parts) * 8;
    u64::try_from(bytes).unwrap()
}

fn join_columns(columns: &mut Vec<Column>, next: Vec<Column>) {
    if columns.is_empty() {
        *columns = next;
        return;
    }
    for column in next {
        let rows = column.values.len();
        let whole = columns
            .iter_mut()
            .find(|other| other.name == column.name)
            .unwrap_or_else(|| panic!("{} came late", column.name));
        let before = whole.values.len();
        if whole.nulls.is_some() || column.nulls.is_some() {
            let missing = whole.nulls.get_or_insert_with(|| vec![false; before]);
            missing.extend(column.nulls.unwrap_or_else(|| vec![false; rows]));
        }
        match (&mut whole.values, column.values) {
            (ColumnValues::Numeric(whole), ColumnValues::Numeric(next)) => {
                whole.bytes.extend(next.bytes);
            }
            (
                ColumnValues::Dictionary { codes, words },
                ColumnValues::Dictionary {
                    codes: next,
                    words: others,
                },
            ) => {
                assert_eq!(words.as_ref(), others.as_ref());
                codes.extend(next);
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Concatenates batches as the documentation describes.
fn joined(batches: Vec<QueryResult>) -> QueryResult {
    let mut batches = batches.into_iter();
    let mut whole = batches.next().unwrap();
    assert_eq!(whole.first_row, 0);
    for next in batches {
        let rows = u64::try_from(whole.positions.len()).unwrap();
        assert_eq!(next.first_row, rows);
        whole.positions.bytes.extend(next.positions.bytes);
        if let Some(ids) = next.object_ids {
            let all = whole.object_ids.get_or_insert_default();
            *all = all.iter().chain(ids.iter()).collect();
        }
        if let Some(parts) = next.parts {
            let all = whole.parts.as_mut().unwrap();
            assert_eq!(parts.offsets.first(), all.offsets.last());
            all.offsets.extend(&parts.offsets[1..]);
            all.objects.extend(parts.objects);
        }
        if let Some(links) = next.links {
            let all = whole.links.as_mut().unwrap();
            assert_eq!(links.width, all.width);
            all.ends.extend(links.ends);
        }
        join_columns(&mut whole.vertex, next.vertex);
        join_columns(&mut whole.fragment, next.fragment);
        join_columns(&mut whole.link, next.link);
        join_columns(&mut whole.object, next.object);
        whole.objects.extend(next.objects);
        whole.groups.extend(next.groups);
    }
    whole
}

fn of_size(made: &Made, budget: u64) -> Dataset {
    opened(&kinds::files(made), &OpenOptions::default().budget(budget)).0
}

fn check(name: &str, made: &Made, query: &Query, part: u64) {
    let total: usize = made.files.iter().map(|(_, bytes)| bytes.len()).sum();
    let budget = u64::try_from(total).unwrap() / part;
    let expected = block_on(of_size(made, 1 << 30).query(query)).unwrap();
    let case = cases::case("all", query.clone());
    let batches = case
        .batches(&of_size(made, budget))
        .unwrap_or_else(|error| panic!("{name}: {error:?}"));
    let largest = batches.iter().map(size).max().unwrap();
    assert!(largest <= budget, "{name}: {largest} of {budget}");
    assert!(
        batches.len() > 1,
        "{name}: {} bytes at once",
        size(&batches[0])
    );
    assert_eq!(joined(batches), expected, "{name}");
    // A single result does not fit into a budget below its size.
    let min = of_size(made, budget.min(size(&expected) / 2));
    let error = block_on(min.query(query)).unwrap_err();
    let is_over = matches!(error.cause(), Some(CatalogError::OverBudget { .. }));
    assert!(is_over, "{name}: {error:?}");
}

fn large(kind: StoreKind) -> Made {
    let recipe = Recipe {
        seed: 5,
        kind,
        size: 20_000,
        ..Recipe::default()
    };
    wide(&recipe, 5)
}

#[test]
fn points_come_in_batches() {
    check("points", &large(StoreKind::BinnedPoints), &Query::new(), 10);
}

/// Large results are assembled on all cores; batches come chunk by chunk. Both must be equal.
#[test]
fn large_results_equal_their_batches() {
    for kind in [StoreKind::BinnedPoints, StoreKind::Triangles] {
        let recipe = Recipe {
            seed: 6,
            kind,
            size: 100_000,
            ..Recipe::default()
        };
        check("many", &wide(&recipe, 5), &Query::new(), 4);
    }
}

/// The list of the fragments of each object takes more than a tenth of the budget.
#[test]
fn paths_come_in_batches() {
    check("paths", &large(StoreKind::Polylines), &Query::new(), 6);
}

/// Batches of wide rows have fewer rows.
#[test]
fn columns_are_within_the_budget() {
    for seed in 0..8 {
        let made = make(&Recipe {
            seed,
            kind: StoreKind::Points,
            size: 4000,
            axes: 2,
            ..Recipe::default()
        });
        if made.truth.vertices.len() > 2000 {
            check("columns", &made, &Query::new(), 10);
        }
    }
}

#[test]
fn faces_come_in_batches() {
    check("faces", &large(StoreKind::Triangles), &Query::new(), 10);
}

#[test]
fn edges_come_in_batches() {
    let made = make(&Recipe {
        seed: 1,
        kind: StoreKind::Graph,
        size: 4000,
        axes: 2,
        ..Recipe::default()
    });
    check("edges", &made, &Query::new(), 10);
}

/// A single chunk or path that exceeds the budget is an error, never a shorter result.
#[test]
fn a_chunk_that_exceeds_the_budget_is_an_error() {
    for kind in [
        StoreKind::BinnedPoints,
        StoreKind::Polylines,
        StoreKind::Triangles,
    ] {
        let made = large(kind);
        let query = Query::new().columns(Selection::none());
        for budget in [0, 1, 100, 1000] {
            let files = kinds::files(&made);
            let options = OpenOptions::default().budget(budget).record_requests(true);
            let store = options.from_memory(files).unwrap();
            let error = block_on(async {
                let dataset = Dataset::open(store).await?;
                dataset.query(&query).await
            })
            .unwrap_err();
            let text = error_chain(&error);
            assert!(text.contains("budget"), "{kind:?} {budget}: {text}");
        }
    }
}

/// A query reads its next chunks when its batches were taken, and none after the stream was dropped.
#[test]
fn a_stream_reads_no_further_than_it_is_taken() {
    for kind in [StoreKind::BinnedPoints, StoreKind::Triangles] {
        let made = large(kind);
        let total: usize = made.files.iter().map(|(_, bytes)| bytes.len()).sum();
        let budget = u64::try_from(total).unwrap() / 10;
        let options = BatchOptions::new().rows(100);
        let dataset = of_size(&made, budget);
        let requests = |dataset: &Dataset| dataset.store().take_request_log().len();
        let mut stream = dataset.stream(&Query::new(), options);
        assert_eq!(
            requests(&dataset),
            0,
            "{kind:?}: a stream reads when polled"
        );
        let first = block_on(stream.next()).unwrap().unwrap();
        assert_eq!((first.first_row, first.positions.len()), (0, 100));
        let before = requests(&dataset);
        let second = block_on(stream.next()).unwrap().unwrap();
        assert_eq!((second.first_row, second.positions.len()), (100, 100));
        assert_eq!(requests(&dataset), 0, "{kind:?}: the batch was cut already");
        let rest: Vec<_> = block_on(stream.by_ref().collect());
        assert!(rest.iter().all(Result::is_ok) && stream.report().is_some());
        let after = requests(&dataset);
        assert!(before > 0 && after > 0, "{kind:?}: {before}, then {after}");

        let dataset = of_size(&made, budget);
        let mut stream = dataset.stream(&Query::new(), options);
        block_on(stream.next()).unwrap().unwrap();
        drop(stream);
        assert_eq!(requests(&dataset), before, "{kind:?}");
    }
}
