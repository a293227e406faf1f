//! Results that are written in batches.

use std::ops::ControlFlow;

use zvf::{Dataset, LevelChoice, Links, Query, QueryReport, QueryResult};
use zvf_files::{
    FileError, FileFormat, LosslessTarget, ObjectFiles, OutputFile, ResultSink, ResultTables,
};

use super::{SaveError, cut_paths_note};
use crate::{
    commands::query::{QueryOutput, ResultCounts, description::ResultDescription},
    display::len_u64,
};

/// Approximate size in bytes of a vertex that waits for its object to be complete.
const WAITING: u64 = 512;

/// Runs a query and writes its batches as they arrive.
pub(super) async fn write(
    dataset: &Dataset,
    query: &Query,
    target: &OutputFile,
    is_strict: bool,
    report: &mut QueryOutput,
) -> Result<(), SaveError> {
    let mut described = ResultDescription::new(dataset, query);
    let transaction = dataset.transaction();
    described.description.transaction = query.row_ids.then_some(transaction);
    if query.geometry.is_none() {
        if let (true, LevelChoice::Number(level)) = (target.format().is_table(), &query.level) {
            described.read_selected(dataset, query, *level).await?;
            described.read_direction(dataset, *level).await?;
        }
        described.read_headers(dataset).await?;
    }
    let lossless = LosslessTarget::new(target, is_strict)?;
    let mut writing = BatchWriting {
        sink: ResultSink::create(lossless.file(), &described.description)?,
        counts: ResultCounts::default(),
        selected: QueryResult::default(),
        failure: None,
    };
    let mut outcome = QueryReport::default();
    match object_groups(dataset, query, target).await? {
        None => outcome = writing.run(dataset, query).await?,
        Some((groups, vertices)) => {
            for group in groups {
                let mut more = writing.run(dataset, &group).await?;
                writing.sink.end_objects()?;
                outcome.skipped.append(&mut more.skipped);
                more.notes.retain(|note| !outcome.notes.contains(note));
                outcome.notes.append(&mut more.notes);
                outcome.levels = more.levels;
            }
            let rest = vertices.saturating_sub(writing.counts.vertices);
            described.left_out.extend(zvf_files::unowned(rest));
        }
    }
    let BatchWriting {
        sink,
        mut counts,
        mut selected,
        ..
    } = writing;
    if query.row_ids && dataset.transaction() != transaction {
        return Err(SaveError::Changed);
    }
    let finest = outcome.levels.iter().map(|level| level.level).min();
    counts.level = Some(finest.unwrap_or(selected.level).number());
    counts.objects = len_u64(selected.objects.len());
    if query.geometry.is_none() {
        match target.format() {
            FileFormat::Ply => {
                described
                    .list_groups(dataset, &selected, FileFormat::Ply)
                    .await?;
            }
            _ => described.read_groups(dataset, &mut selected).await?,
        }
    }
    let cut = cut_paths_note(query, target, counts.parts, counts.objects);
    described.notes.extend(cut);
    let mut written = sink.finish(&ResultTables {
        groups: &selected.groups,
        group: &described.description.group,
        levels: &outcome.levels,
    })?;
    written.left_out.append(&mut described.left_out);
    let mut notes = outcome.notes;
    notes.append(&mut described.notes);
    notes.append(&mut written.notes);
    report.count(counts, outcome.skipped, notes);
    report.levels(&outcome.levels);
    report.written(lossless.publish(written)?);
    Ok(())
}

/// A file that is being written.
struct BatchWriting {
    sink: ResultSink,
    counts: ResultCounts,
    /// Collects what the groups are selected by.
    selected: QueryResult,
    failure: Option<FileError>,
}

impl BatchWriting {
    /// Writes the batches of a query after those of earlier ones.
    async fn run(&mut self, dataset: &Dataset, query: &Query) -> Result<QueryReport, SaveError> {
        let before = self.counts.vertices;
        let report = dataset
            .batches(query, |batch| self.add(batch, before))
            .await?;
        match self.failure.take() {
            None => Ok(report),
            Some(error) => Err(error.into()),
        }
    }

    /// Writes a batch of a query before which the file has `before` vertices.
    fn add(&mut self, mut batch: QueryResult, before: u64) -> ControlFlow<()> {
        batch.first_row = batch.first_row.saturating_add(before);
        if let Some(links) = batch.links.as_mut().filter(|_| before > 0) {
            let ends = links.ends.iter_mut();
            ends.for_each(|end| *end = end.saturating_add(before));
        }
        let counts = &mut self.counts;
        counts.vertices = counts
            .vertices
            .saturating_add(len_u64(batch.positions.len()));
        let links = len_u64(batch.links.as_ref().map_or(0, Links::len));
        counts.links = counts.links.saturating_add(links);
        if let Some(parts) = &batch.parts {
            let before = counts.parts.unwrap_or(0);
            counts.parts = Some(before.saturating_add(len_u64(parts.objects.len())));
        }
        let written = self.sink.write(&batch);
        self.selected.level = batch.level;
        self.selected.objects.append(&mut batch.objects);
        self.selected.groups.append(&mut batch.groups);
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Returns queries of groups of objects, and the number of vertices of all, if each object gets a
/// file of skeletons and the vertices of a query do not fit into memory.
async fn object_groups(
    dataset: &Dataset,
    query: &Query,
    target: &OutputFile,
) -> Result<Option<(Vec<Query>, u64)>, SaveError> {
    let is_divided =
        target.format() == FileFormat::Swc && ObjectFiles::parse(target.path()).is_some();
    let LevelChoice::Number(level) = query.level else {
        return Ok(None);
    };
    let is_whole = query.region.is_none()
        && query.filter.is_none()
        && query.objects.is_none()
        && query.groups.is_none()
        && query.chunks.is_none()
        && query.chunked_by.is_none()
        && query.limit.is_none()
        && query.drill.is_none()
        && query.geometry.is_none();
    if !is_divided || !is_whole {
        return Ok(None);
    }
    let held = (dataset.store().budget() / WAITING).max(1);
    let vertices = dataset.level(level).await?.vertex_count;
    let Some(vertices) = vertices.filter(|vertices| *vertices > held) else {
        return Ok(None);
    };
    let objects = dataset.catalog().object_list(level).await;
    let Some(objects) = objects.map_err(zvf::Error::from)? else {
        return Ok(None);
    };
    let ids: Option<Vec<i64>> = (0..objects.len()).map(|at| objects.id(at)).collect();
    let Some(ids) = ids.filter(|_| !objects.is_incomplete()) else {
        return Ok(None);
    };
    let average = vertices.div_ceil(len_u64(ids.len()).max(1));
    let size = usize::try_from(held / average.max(1)).unwrap_or(usize::MAX);
    let groups = ids
        .chunks(size.clamp(1, 1 << 14))
        .map(|ids| query.clone().objects(ids));
    // The count in the metadata of a level may be outdated.
    let vertices = dataset.count(query).await?.vertices;
    Ok(Some((groups.collect(), vertices)))
}
