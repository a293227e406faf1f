//! Annotations as files.

use std::{
    ops::ControlFlow,
    sync::atomic::{AtomicU64, Ordering},
};

use rayon::prelude::*;
use zvf_model::level::LevelId;
use zvf_precomputed::{
    AnnotationInfo, AnnotationKind, AnnotationList, RecordLayout, ShardBuilder, ShardEncoding,
    ShardingSpec, compressed_morton_code,
};

use super::{
    Export, ExportError,
    output::{ExportOutput, OrderedIndex, sharding},
    progress::LayerProgress,
};
use crate::layers::{
    Layer, LayerKind,
    annotations::{
        AnnotationPlan, AnnotationSink, IdScheme, RelatedSegments, StoreAnnotation, cell_number,
    },
    survey::StoreSurvey,
};
use crate::spill::{PartitionId, SpillEntry, SpilledPartition};

/// Buckets of an index that is not in shards.
const BUCKETS: u64 = 64;

/// Writes the annotations of points, lines or paths.
pub(super) async fn write(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Layer, ExportError> {
    let DividedAnnotations {
        layer,
        mut info,
        progress,
    } = divide(work, survey, notes).await?;
    let longest: Vec<AtomicU64> = info.spatial.iter().map(|_| AtomicU64::new(0)).collect();
    let partitions = progress.spill.partitions();
    let done = AtomicU64::new(0);
    let total = u64::try_from(partitions.len()).unwrap_or(u64::MAX);
    partitions.par_iter().try_for_each(|partition| {
        let spilled = progress.spill.read(*partition)?;
        let list = write_partition(work.output, &info, *partition, &spilled)?;
        if let Some(longest) = longest.get(partition.index) {
            longest.fetch_max(list, Ordering::Relaxed);
        }
        let done = done.fetch_add(1, Ordering::Relaxed);
        (work.reading.report)(done, total);
        Ok::<_, ExportError>(())
    })?;
    let longest: Vec<u64> = longest.into_iter().map(AtomicU64::into_inner).collect();
    set_limits(&mut info, &longest);
    work.output.write(&document(), info.to_json().as_bytes())?;
    Ok(layer)
}

/// Returns the path of the document.
pub(super) fn document() -> String {
    format!("{}/info", LayerKind::Annotations.folder())
}

/// Sets the limit of each level of the spatial index from the number of annotations in its longest
/// list.
pub(super) fn set_limits(info: &mut AnnotationInfo, longest: &[u64]) {
    for (level, longest) in info.spatial.iter_mut().zip(longest) {
        level.limit = (*longest).max(1);
    }
}

/// Annotations whose lists are not written yet.
pub(super) struct DividedAnnotations<'a> {
    pub(super) layer: Layer,
    /// The document, without the limits of the levels.
    pub(super) info: AnnotationInfo,
    /// The entries of the lists.
    pub(super) progress: LayerProgress<'a>,
}

/// Reads all annotations, writes the index by id, and divides the entries of the other indexes among
/// partitions.
pub(super) async fn divide<'a>(
    work: &Export<'a>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<DividedAnnotations<'a>, ExportError> {
    let reading = &work.reading;
    let plan = AnnotationPlan::new(reading, survey, IdScheme::Running, notes).await?;
    let mut sink = IndexWriter::new(work, survey, &plan)?;
    if sink.progress.counts.done == 0 {
        push_rows(work, &plan, &mut sink).await?;
        sink.by_id.finish()?;
        sink.progress.add_group(0);
        sink.progress.keep()?;
    }
    let IndexWriter { info, progress, .. } = sink;
    let layer = Layer {
        kind: LayerKind::Annotations,
        level: LevelId::FULL,
        items: progress.counts.values,
        shader: plan.shader.clone(),
        shown: Vec::new(),
        is_related: survey.has_objects,
        transform: None,
    };
    Ok(DividedAnnotations {
        layer,
        info,
        progress,
    })
}

/// Passes all annotations on.
async fn push_rows(
    work: &Export<'_>,
    plan: &AnnotationPlan,
    sink: &mut IndexWriter<'_, '_>,
) -> Result<(), ExportError> {
    let reading = &work.reading;
    let mut rows = plan.rows();
    let mut failed = None;
    let query = reading.query();
    reading
        .dataset
        .batches(&query, |batch| {
            (reading.report)(rows.next, plan.count);
            match rows.add(&batch, sink) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
        .await?;
    failed.map_or(Ok(()), Err)
}

/// The indexes of annotations.
struct IndexWriter<'a, 'p> {
    plan: &'p AnnotationPlan,
    info: AnnotationInfo,
    by_id: OrderedIndex<'a>,
    progress: LayerProgress<'a>,
    record: Vec<u8>,
}

impl<'a, 'p> IndexWriter<'a, 'p> {
    fn new(
        work: &Export<'a>,
        survey: &StoreSurvey,
        plan: &'p AnnotationPlan,
    ) -> Result<Self, ExportError> {
        let rank = work.reading.space.rank();
        let count = plan.count;
        let geometry = survey
            .vertices
            .saturating_mul(u64::try_from(rank).unwrap_or(8) * 4);
        let fixed = RecordLayout::new(AnnotationKind::Point, 0, &plan.properties).record_size();
        let fixed = u64::try_from(fixed.unwrap_or(0))
            .unwrap_or(u64::MAX)
            .saturating_add(16);
        let bytes = geometry.saturating_add(count.saturating_mul(fixed));
        let bytes = work.options.sharded_bytes(bytes);
        let sharded = work.options.sharded;
        let mut info = plan.info(&work.reading.space.dimensions);
        info.by_id_sharding = sharding(sharded, count, || {
            // A record is too small to gain from compression.
            ShardingSpec::for_consecutive(count, bytes).data_encoding(ShardEncoding::Raw)
        });
        for level in &mut info.spatial {
            let cells = level
                .grid_shape
                .iter()
                .fold(1_u64, |cells, n| cells.saturating_mul(*n))
                .min(count);
            level.sharding = sharding(sharded, cells, || ShardingSpec::for_any(cells, bytes));
        }
        for (relationship, related) in info.relationships.iter_mut().zip(&plan.related) {
            let segments = match related {
                RelatedSegments::Object => &survey.segments,
                RelatedSegments::Group => &survey.groups.segments,
            };
            let segments = u64::try_from(segments.count).unwrap_or(u64::MAX);
            relationship.sharding =
                sharding(sharded, segments, || ShardingSpec::for_any(segments, bytes));
        }
        let folder = LayerKind::Annotations.folder();
        let progress = LayerProgress::open(work.output, folder)?;
        let folder = format!("{folder}/{}", info.by_id);
        let by_id = OrderedIndex::new(work.output, folder, info.by_id_sharding);
        Ok(Self {
            plan,
            info,
            by_id,
            progress,
            record: Vec::new(),
        })
    }
}

impl AnnotationSink for IndexWriter<'_, '_> {
    type Error = ExportError;

    fn push(&mut self, annotation: StoreAnnotation<'_>) -> Result<(), ExportError> {
        let StoreAnnotation {
            id,
            coordinates,
            values,
            object,
        } = annotation;
        let mut record = core::mem::take(&mut self.record);
        record.clear();
        self.plan.layout.write(coordinates, values, &mut record)?;
        let index = self.plan.level_of(annotation);
        let grid = self.plan.levels.grids().get(index);
        let spec = self
            .info
            .spatial
            .get(index)
            .and_then(|level| level.sharding);
        if let Some(grid) = grid {
            let cells = match self.info.kind {
                AnnotationKind::Point => vec![grid.cell_of(coordinates)],
                _ => grid.cells_of_path(coordinates),
            };
            for cell in cells {
                let key = cell_number(&cell, &grid.shape);
                let shard = match spec {
                    Some(spec) => {
                        spec.locate(compressed_morton_code(&cell, &grid.shape)?)
                            .shard
                    }
                    None => key % BUCKETS,
                };
                let partition = PartitionId { index, shard };
                let record = record.as_slice();
                self.progress
                    .spill
                    .push(partition, SpillEntry { key, id, record })?;
            }
        }
        let related = self.plan.related_to(object);
        let relationships = self.info.relationships.iter().zip(&related);
        let first = self.info.spatial.len();
        for ((relationship, segments), index) in relationships.zip(first..) {
            for key in segments.iter().copied() {
                let shard = match relationship.sharding {
                    Some(spec) => spec.locate(key).shard,
                    None => key % BUCKETS,
                };
                let record = record.as_slice();
                let entry = SpillEntry { key, id, record };
                self.progress
                    .spill
                    .push(PartitionId { index, shard }, entry)?;
            }
        }
        for segments in &related {
            RecordLayout::write_related(segments, &mut record)?;
        }
        self.by_id.push(id, &record)?;
        self.progress.add_value();
        self.record = record;
        Ok(())
    }
}

/// Writes the lists of a partition and returns the number of annotations in the longest.
pub(super) fn write_partition(
    output: &ExportOutput,
    info: &AnnotationInfo,
    partition: PartitionId,
    spilled: &SpilledPartition,
) -> Result<u64, ExportError> {
    let entries = spilled.entries();
    let level = info.spatial.get(partition.index);
    let related = partition.index.checked_sub(info.spatial.len());
    let related = related.and_then(|related| info.relationships.get(related));
    let (key, spec) = match (level, related) {
        (Some(level), _) => (&level.key, level.sharding),
        (None, Some(relationship)) => (&relationship.key, relationship.sharding),
        (None, None) => return Ok(0),
    };
    let folder = format!("{}/{key}", LayerKind::Annotations.folder());
    let mut shard = spec.map(|spec| (spec, ShardBuilder::new(spec, partition.shard)));
    let mut longest = 0;
    for group in entries.chunk_by(|a, b| a.key == b.key) {
        let Some(key) = group.first().map(|entry| entry.key) else {
            continue;
        };
        let ids: Vec<u64> = group.iter().map(|entry| entry.id).collect();
        let list = AnnotationList::join(group.iter().map(|entry| entry.record), &ids);
        longest = longest.max(u64::try_from(ids.len()).unwrap_or(u64::MAX));
        let cell = level.map(|level| cell_at(key, &level.grid_shape));
        match (&mut shard, &cell, level) {
            (Some((_, shard)), Some(cell), Some(level)) => {
                shard.push(compressed_morton_code(cell, &level.grid_shape)?, &list)?;
            }
            (Some((_, shard)), ..) => shard.push(key, &list)?,
            (None, Some(cell), _) => {
                let name: Vec<String> = cell.iter().map(u64::to_string).collect();
                output.write(&format!("{folder}/{}", name.join("_")), &list)?;
            }
            (None, None, _) => output.write(&format!("{folder}/{key}"), &list)?,
        }
    }
    if let Some((spec, shard)) = shard.filter(|(_, shard)| !shard.is_empty()) {
        let path = format!("{folder}/{}", spec.file_name(partition.shard));
        output.write(&path, &shard.finish())?;
    }
    Ok(longest)
}

/// Returns the cell with this number.
fn cell_at(mut number: u64, shape: &[u64]) -> Vec<u64> {
    let mut cell: Vec<u64> = shape
        .iter()
        .rev()
        .map(|extent| {
            let along = number.checked_rem(*extent).unwrap_or(0);
            number = number.checked_div(*extent).unwrap_or(0);
            along
        })
        .collect();
    cell.reverse();
    cell
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_numbers() {
        let shape = [3, 1, 4];
        let numbers: Vec<u64> = (0..12)
            .map(|at| cell_number(&cell_at(at, &shape), &shape))
            .collect();
        assert_eq!(numbers, (0..12).collect::<Vec<_>>());
        assert_eq!(cell_number(&[2, 0, 3], &shape), 11);
    }
}
