//! Results that are written in batches to a format of `zvf-files`.

use std::ops::ControlFlow;

use zvf::{Dataset, Links, Query, QueryResult};

use super::{SaveError, geometry};
use crate::{
    commands::query::{QueryOutput, ResultCounts, description::Described},
    display::len_u64,
    formats::{FieldSink, LosslessTarget, OutputFile},
};

/// Runs a query and writes its batches as they arrive.
pub(super) async fn write(
    dataset: &Dataset,
    query: &Query,
    target: &OutputFile,
    is_strict: bool,
    report: &mut QueryOutput,
) -> Result<(), SaveError> {
    let mut described = Described::new(dataset, geometry(query, dataset));
    if query.geometry.is_none() {
        described.read_headers(dataset).await;
    }
    let lossless = LosslessTarget::new(target, is_strict)?;
    let mut sink = FieldSink::create(lossless.file(), &described.description)?;
    let mut counts = ResultCounts::default();
    // Collects what the groups are selected by.
    let mut selected = QueryResult::default();
    let mut failure = None;
    let batches = dataset.batches(query, |mut batch| {
        counts.vertices = counts
            .vertices
            .saturating_add(len_u64(batch.positions.len()));
        let links = len_u64(batch.links.as_ref().map_or(0, Links::len));
        counts.links = counts.links.saturating_add(links);
        if let Some(parts) = &batch.parts {
            let before = counts.parts.unwrap_or(0);
            counts.parts = Some(before.saturating_add(len_u64(parts.objects.len())));
        }
        let written = sink.write(&batch);
        selected.level = batch.level;
        selected.objects.append(&mut batch.objects);
        selected.groups.append(&mut batch.groups);
        match written {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failure = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    let outcome = batches.await?;
    if let Some(error) = failure {
        return Err(error.into());
    }
    counts.level = Some(selected.level.number());
    counts.objects = len_u64(selected.objects.len());
    if query.geometry.is_none() {
        described.read_groups(dataset, &mut selected).await;
    }
    let mut written = sink.finish(&selected.groups, &described.description.group)?;
    written.left_out.append(&mut described.left_out);
    let mut notes = outcome.notes;
    notes.append(&mut described.notes);
    report.count(counts, outcome.skipped, notes);
    report.levels(&outcome.levels);
    report.written(lossless.publish(written)?);
    Ok(())
}
