//! Results in batches, and counts.

use std::ops::ControlFlow;

use futures_util::StreamExt;
use zvf::{BatchOptions, ErrorKind, OpenOptions};
use zvf_query::{
    Column, ColumnValues, Counts, Links, NumericColumn, Query, QueryReport, QueryResult,
};
use zvf_testkit::stores::Made;

use super::columns::{Verdict, ensure};

/// Maximum number of rows of a batch of a stream.
const MAX_ROWS: usize = 5;

/// Opens a store with a small memory budget; `None` if the budget is too small for metadata.
async fn open(made: &Made, budget: u64) -> Option<zvf::Dataset> {
    let files = made.files.iter().cloned();
    let options = OpenOptions::default().budget(budget);
    let store = options.from_memory(files).unwrap();
    zvf::Dataset::open(store).await.ok()
}

/// Checks that batches equal the whole result. A budget below the size of a chunk is not a failure.
pub(super) async fn batches(
    made: &Made,
    query: &Query,
    result: &QueryResult,
    budget: u64,
) -> Verdict {
    let Some(dataset) = open(made, budget).await else {
        return Ok(());
    };
    let mut pieces = Vec::new();
    let outcome = dataset.batches(query, |piece| {
        pieces.push(piece);
        ControlFlow::Continue(())
    });
    let outcome = match outcome.await {
        Ok(outcome) => outcome,
        Err(error) if error.kind() == ErrorKind::OverBudget => return Ok(()),
        Err(error) => return Err(format!("in batches: {error:?}")),
    };
    check(pieces, &outcome, result)?;
    let mut pieces = Vec::new();
    let mut stream = dataset.stream(query, BatchOptions::new().rows(MAX_ROWS));
    while let Some(piece) = stream.next().await {
        let piece = piece.map_err(|error| format!("in a stream: {error:?}"))?;
        let is_one_path = piece.parts.as_ref().is_some_and(|p| p.objects.len() == 1);
        ensure!(
            piece.positions.len() <= MAX_ROWS || is_one_path,
            "a batch of {} rows",
            piece.positions.len()
        );
        let links = piece.links.as_ref().map_or(0, Links::len);
        ensure!(links <= MAX_ROWS, "a batch of {links} links");
        pieces.push(piece);
    }
    let outcome = stream.report().ok_or("the stream has no report")?;
    check(pieces, outcome, result)
}

/// Checks that batches, concatenated, are the whole result.
fn check(pieces: Vec<QueryResult>, outcome: &QueryReport, result: &QueryResult) -> Verdict {
    ensure!(outcome.skipped == result.skipped, "{outcome:?}");
    ensure!(outcome.notes == result.notes, "{outcome:?}");
    let count = pieces.len();
    let mut whole = QueryResult::default();
    for (number, piece) in pieces.into_iter().enumerate() {
        let rows = whole.positions.len() as u64;
        ensure!(
            piece.first_row == rows,
            "piece {number} starts at {}, expected {rows}",
            piece.first_row
        );
        add(&mut whole, piece, number)?;
    }
    whole.skipped.clone_from(&outcome.skipped);
    whole.notes.clone_from(&outcome.notes);
    let (found, expected) = (plain(whole), plain(result.clone()));
    ensure!(
        found == expected,
        "{count} pieces are\n{found:?}\n{expected:?}"
    );
    Ok(())
}

/// Checks that counts equal the result.
pub(super) fn counts(result: &QueryResult, counts: &Counts) -> Verdict {
    let length = |length: usize| length as u64;
    let tells_objects = result.object_ids.is_some() || result.parts.is_some();
    let mut expected = Counts::default();
    expected.level = result.level;
    expected.levels.clone_from(&result.levels);
    expected.vertices = length(result.positions.len());
    expected.parts = result.parts.as_ref().map(|p| length(p.objects.len()));
    expected.objects = tells_objects.then_some(length(result.objects.len()));
    expected.links = result.links.as_ref().map(|links| length(links.len()));
    expected.skipped.clone_from(&result.skipped);
    expected.notes.clone_from(&result.notes);
    ensure!(*counts == expected, "{counts:?}, expected {expected:?}");
    Ok(())
}

/// Appends a batch; row numbers are relative to the whole result.
fn add(whole: &mut QueryResult, piece: QueryResult, number: usize) -> Verdict {
    if number == 0 {
        *whole = piece;
        return Ok(());
    }
    let rows = whole.positions.len() as u64;
    add_rows(&mut whole.positions, piece.positions);
    match (&mut whole.object_ids, piece.object_ids) {
        (Some(ids), Some(more)) => *ids = ids.iter().chain(more.iter()).collect(),
        (ids, None) => {
            let is_empty = rows == whole.positions.len() as u64;
            ensure!(
                ids.is_none() || is_empty,
                "piece {number} has no object ids"
            );
        }
        (None, Some(_)) => return Err(format!("piece {number} has object ids")),
    }
    match (&mut whole.parts, piece.parts) {
        (Some(parts), Some(more)) => {
            ensure!(more.offsets[0] == rows, "parts start at {:?}", more.offsets);
            parts.offsets.extend(&more.offsets[1..]);
            parts.objects.extend(more.objects);
        }
        (parts, more) => {
            ensure!(parts.is_some() == more.is_some(), "parts of {number}");
        }
    }
    match (&mut whole.links, piece.links) {
        (Some(links), Some(more)) if links.ends.is_empty() => *links = more,
        (Some(links), Some(more)) => links.ends.extend(more.ends),
        (links, more) => {
            ensure!(links.is_some() == more.is_some(), "links of {number}");
        }
    }
    add_columns(&mut whole.vertex, piece.vertex);
    add_columns(&mut whole.fragment, piece.fragment);
    add_columns(&mut whole.link, piece.link);
    add_columns(&mut whole.object, piece.object);
    whole.objects.extend(piece.objects);
    match (&mut whole.distances, piece.distances) {
        (Some(distances), Some(more)) => distances.extend(more),
        (distances, more) => {
            ensure!(
                distances.is_some() == more.is_some(),
                "distances of {number}"
            );
        }
    }
    whole.groups.extend(piece.groups);
    Ok(())
}

fn add_rows(rows: &mut NumericColumn, more: NumericColumn) {
    if rows.is_empty() {
        *rows = more;
    } else {
        assert!(more.is_empty() || (rows.kind, rows.width) == (more.kind, more.width));
        rows.bytes.extend(more.bytes);
    }
}

fn add_columns(columns: &mut Vec<Column>, more: Vec<Column>) {
    for more in more {
        let found = columns.iter_mut().find(|column| column.name == more.name);
        let Some(column) = found else {
            columns.push(more);
            continue;
        };
        let mut missing = flags(column);
        missing.extend(flags(&more));
        column.nulls = Some(missing);
        match (&mut column.values, more.values) {
            (values, more) if values.is_empty() => *values = more,
            (ColumnValues::Numeric(rows), ColumnValues::Numeric(more)) => add_rows(rows, more),
            (
                ColumnValues::Dictionary { codes, .. },
                ColumnValues::Dictionary { codes: more, .. },
            ) => codes.extend(more),
            (values, more) => panic!("{values:?} and {more:?}"),
        }
    }
}

fn flags(column: &Column) -> Vec<bool> {
    let none = vec![false; column.values.len()];
    column.nulls.clone().unwrap_or(none)
}

/// Removes irrelevant differences: empty flags, columns without rows, and the order of columns.
fn plain(mut result: QueryResult) -> QueryResult {
    result.first_row = 0;
    for columns in [
        &mut result.vertex,
        &mut result.fragment,
        &mut result.link,
        &mut result.object,
    ] {
        columns.retain(|column| !column.values.is_empty());
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        for column in columns {
            column.nulls = Some(flags(column));
        }
    }
    result
}
