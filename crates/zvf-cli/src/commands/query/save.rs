//! Results as files.

mod in_batches;

use std::collections::HashMap;

use zvf::{Column, ColumnValues, Dataset, LevelChoice, Mode, NumericColumn, Query, QueryResult};

use super::{QueryOutput, description::ResultDescription};
use crate::display::{count_noun, group_digits, len_u64};
use zvf_files::{self, FileError, FileFormat, LosslessTarget, OutputFile};

/// The reason why a result is not in a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SaveError {
    /// The query failed.
    #[error(transparent)]
    Query(#[from] zvf::Error),
    /// The transaction of row ids is not known.
    #[error(
        "the store changed while it was read, so its row ids are outdated; run the query again"
    )]
    Changed,
    /// The format has no place for row ids.
    #[error(".{0} files do not hold row ids; write .csv, .npz, .arrow or .parquet")]
    RowIds(FileFormat),
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] FileError),
}

/// Runs a query and writes its whole result to a file, in batches where the format allows it.
/// If `is_strict`, nothing is written unless the format holds everything.
///
/// # Errors
///
/// [`SaveError`]; the file is unchanged then.
pub async fn save(
    dataset: &Dataset,
    query: &Query,
    target: &OutputFile,
    is_strict: bool,
) -> Result<QueryOutput, SaveError> {
    let mut report = QueryOutput::new(dataset.address());
    if query.row_ids && !target.format().is_interchange() {
        return Err(SaveError::RowIds(target.format()));
    }
    // Formats of surfaces have an order of their own; the others name that of the store.
    let query = &query
        .clone()
        .counter_clockwise(!target.format().is_interchange());
    // The nearest are one result, which is ordered by distance, and objects are divided as a whole.
    let is_whole = query.nearest.is_some() || target.of_objects().is_some();
    // A table names its levels before its rows.
    let is_table = target.format().is_table()
        && matches!(query.level, LevelChoice::Number(_))
        && query.drill.is_none();
    if (target.format().is_in_batches() || is_table) && !is_whole {
        in_batches::write(dataset, query, target, is_strict, &mut report).await?;
        return Ok(report);
    }
    let transaction = dataset.transaction();
    let mut result = result(dataset, query).await?;
    let mut described = ResultDescription::new(dataset, query);
    described.description.transaction = query.row_ids.then_some(transaction);
    if query.geometry.is_none() {
        if target.format().has_groups() {
            described.read_direction(dataset, result.level).await?;
            described.read_groups(dataset, &mut result).await?;
            described.read_attributes(dataset, &result).await?;
        } else {
            let format = target.format();
            described.list_groups(dataset, &result, format).await?;
        }
    }
    if target.format().has_header() && query.geometry.is_none() {
        described.read_headers(dataset).await?;
    }
    let pieces = result
        .parts
        .as_ref()
        .map(|parts| len_u64(parts.objects.len()));
    let cut = cut_paths_note(query, target, pieces, len_u64(result.objects.len()));
    described.notes.extend(cut);
    let lossless = LosslessTarget::new(target, is_strict)?;
    let mut written = zvf_files::write(&result, &described.description, lossless.file())?;
    written.left_out.append(&mut described.left_out);
    let mut written = lossless.publish(written)?;
    result.notes.append(&mut described.notes);
    result.notes.append(&mut written.notes);
    report.written(written);
    report.result(&result);
    Ok(report)
}

/// Returns the note that a selection cuts paths into pieces, which a program that reads the file takes
/// for paths.
fn cut_paths_note(
    query: &Query,
    target: &OutputFile,
    pieces: Option<u64>,
    objects: u64,
) -> Option<String> {
    let pieces = pieces.filter(|pieces| *pieces > objects)?;
    let is_cut = query.filter.is_some() || query.region.is_some() && query.mode == Mode::Clip;
    if !is_cut || target.format().is_interchange() {
        return None;
    }
    let objects = count_noun(objects, "path", "paths");
    let pieces = group_digits(pieces);
    Some(format!(
        "the selection cuts {objects} into {pieces} pieces, and the file holds each as a path; the mode \
         touch selects whole paths"
    ))
}

/// Runs a query. Its distances are a column of the result, too.
pub(super) async fn result(dataset: &Dataset, query: &Query) -> Result<QueryResult, SaveError> {
    let transaction = dataset.transaction();
    let mut result = dataset.query(query).await?;
    if query.row_ids && dataset.transaction() != transaction {
        return Err(SaveError::Changed);
    }
    add_distances(&mut result);
    Ok(result)
}

/// Adds the distances of a nearest query as columns: of vertices for points, of links, or, for
/// paths, of the fragments of each vertex, with the distance of their path, and of objects, with that
/// of their nearest path.
fn add_distances(result: &mut QueryResult) {
    let Some(distances) = &result.distances else {
        return;
    };
    match (&result.parts, &result.links) {
        (Some(parts), _) => {
            let mut least: HashMap<i64, f64> = HashMap::new();
            for (object, distance) in parts.objects.iter().zip(distances) {
                let least = least.entry(*object).or_insert(*distance);
                *least = least.min(*distance);
            }
            let objects = result.objects.iter();
            let of_objects = objects.map(|id| least.get(id).copied().unwrap_or(f64::NAN));
            let spans = parts.offsets.iter().zip(parts.offsets.iter().skip(1));
            let of_vertices = spans.zip(distances).flat_map(|((start, end), distance)| {
                let rows = usize::try_from(end.saturating_sub(*start)).unwrap_or(0);
                std::iter::repeat_n(*distance, rows)
            });
            add_distance(&mut result.fragment, of_vertices.collect());
            add_distance(&mut result.object, of_objects.collect());
        }
        (None, Some(_)) => add_distance(&mut result.link, distances.clone()),
        (None, None) => add_distance(&mut result.vertex, distances.clone()),
    }
}

/// Adds a column of distances, under a name that no attribute has.
fn add_distance(columns: &mut Vec<Column>, values: Vec<f64>) {
    let is_taken = |name: &str| columns.iter().any(|column| column.name == name);
    let names = ["distance", "nearest_distance"].map(str::to_owned);
    let more = (2_u32..).map(|number| format!("nearest_distance_{number}"));
    let Some(name) = names.into_iter().chain(more).find(|name| !is_taken(name)) else {
        return;
    };
    columns.push(Column {
        name,
        values: ColumnValues::Numeric(NumericColumn::float64(1, values)),
        nulls: None,
    });
}
