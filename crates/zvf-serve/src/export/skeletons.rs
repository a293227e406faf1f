//! Skeletons as files.

use std::ops::ControlFlow;

use rayon::prelude::*;
use zvf::{Query, QueryResult};
use zvf_precomputed::{ShardBuilder, ShardingSpec, Skeleton, SkeletonInfo};

use super::{
    Export, ExportError,
    objects::{self, ObjectShare},
    output::sharding,
    progress::{LayerCounts, LayerProgress},
};
use crate::layers::{
    Layer, LayerKind, check_undamaged,
    segments::{PROPERTIES, SegmentTable},
    shapes::{note_dropped, shapes},
    skeletons::{SkeletonLayer, draws_groups, group_layer},
    survey::{StoreSurvey, paths},
};
use crate::spill::{PartitionId, SpillEntry};

/// Vertices of a group that is drawn as one skeleton.
const MAX_GROUP_VERTICES: u64 = 4 << 20;

/// Writes a skeleton for each object.
pub(super) async fn write(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Layer, ExportError> {
    let layer = design(work, survey, notes)?;
    let counts = if layer.is_path {
        write_paths(work, &layer, &work.reading.query(), survey.vertices).await?
    } else {
        write_shapes(work, &layer, &ObjectShare::all(survey)).await?
    };
    if layer.is_path {
        note_skipped_paths(counts.dropped, notes);
    } else {
        note_dropped(counts.dropped, notes);
    }
    Ok(Layer {
        items: counts.values,
        ..described(work, survey, &layer)
    })
}

/// Plans the skeletons of objects, and writes the documents of the layer.
pub(super) fn design(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<SkeletonLayer, ExportError> {
    let mut layer = SkeletonLayer::new(&work.reading, survey, notes)?;
    let folder = LayerKind::Skeletons.folder_of(work.reading.level);
    write_documents(work, &folder, &mut layer, &survey.segments, survey.vertices)?;
    Ok(layer)
}

/// Describes the layer of the skeletons of objects, without the number of its items.
pub(super) fn described(work: &Export<'_>, survey: &StoreSurvey, layer: &SkeletonLayer) -> Layer {
    Layer {
        kind: LayerKind::Skeletons,
        level: work.reading.level,
        items: 0,
        shader: layer.shader.clone(),
        shown: survey.shown(),
        is_related: false,
        transform: None,
    }
}

/// Notes paths that skeletons leave out.
pub(super) fn note_skipped_paths(skipped: u64, notes: &mut Vec<String>) {
    if skipped > 0 {
        notes.push(format!(
            "{skipped} paths left out of the skeletons: coordinates that are not finite"
        ));
    }
}

/// Chooses the shards of a layer for segments with about this many vertices, and writes its documents.
fn write_documents(
    work: &Export<'_>,
    folder: &str,
    layer: &mut SkeletonLayer,
    segments: &SegmentTable,
    vertices: u64,
) -> Result<(), ExportError> {
    let info = &mut layer.info;
    let components = info
        .vertex_attributes
        .iter()
        .map(|attribute| u64::from(attribute.components));
    let row = components.sum::<u64>().saturating_add(5).saturating_mul(4);
    let bytes = vertices.saturating_mul(row);
    let bytes = work.options.sharded_bytes(bytes);
    let objects = u64::try_from(segments.count).unwrap_or(u64::MAX);
    let sharded = work.options.sharded;
    info.sharding = sharding(sharded, objects, || ShardingSpec::for_any(objects, bytes));
    if let Some(json) = segments.to_json() {
        let path = format!("{folder}/{PROPERTIES}/info");
        work.output.write(&path, json.as_bytes())?;
    }
    let path = format!("{folder}/info");
    work.output.write(&path, info.to_json().as_bytes())
}

/// Writes the skeletons of objects that are not paths.
pub(super) async fn write_shapes(
    work: &Export<'_>,
    layer: &SkeletonLayer,
    share: &ObjectShare<'_>,
) -> Result<LayerCounts, ExportError> {
    let folder = LayerKind::Skeletons.folder_of(work.reading.level);
    let mut sink = SkeletonSink::new(work, folder, &layer.info)?;
    let done = sink.progress.counts.done;
    objects::for_each_group(work, share, done, |batch| {
        let mut dropped = 0_u64;
        for shape in shapes(batch, share.ids.is_some(), &mut dropped) {
            match layer.of_shape(batch, &shape) {
                Some(skeleton) => sink.push(shape.object, &skeleton)?,
                None => dropped = dropped.saturating_add(1),
            }
        }
        sink.progress.add_group(dropped);
        sink.progress.keep()
    })
    .await?;
    sink.finish()
}

/// Skeletons that are being written.
struct SkeletonSink<'a> {
    work: &'a Export<'a>,
    folder: String,
    info: &'a SkeletonInfo,
    progress: LayerProgress<'a>,
}

impl<'a> SkeletonSink<'a> {
    fn new(
        work: &'a Export<'a>,
        folder: String,
        info: &'a SkeletonInfo,
    ) -> Result<Self, ExportError> {
        Ok(Self {
            work,
            progress: LayerProgress::open(work.output, &folder)?,
            folder,
            info,
        })
    }

    /// Adds the skeleton of an object.
    fn push(&mut self, object: u64, skeleton: &Skeleton) -> Result<(), ExportError> {
        let value = skeleton.encode(&self.info.vertex_attributes)?;
        self.progress.add_value();
        let Some(spec) = self.info.sharding else {
            let path = format!("{}/{object}", self.folder);
            return self.work.output.write(&path, &value);
        };
        let shard = spec.locate(object).shard;
        let entry = SpillEntry {
            key: object,
            id: 0,
            record: &value,
        };
        let partition = PartitionId { index: 0, shard };
        Ok(self.progress.spill.push(partition, entry)?)
    }

    /// Writes the shards.
    fn finish(self) -> Result<LayerCounts, ExportError> {
        let folder = &self.folder;
        if let Some(spec) = self.info.sharding {
            let spill = &self.progress.spill;
            spill.partitions().par_iter().try_for_each(|partition| {
                let spilled = spill.read(*partition)?;
                let mut shard = ShardBuilder::new(spec, partition.shard);
                for entry in spilled.entries() {
                    shard.push(entry.key, entry.record)?;
                }
                let path = format!("{folder}/{}", spec.file_name(partition.shard));
                self.work.output.write(&path, &shard.finish())
            })?;
        }
        Ok(self.progress.counts)
    }
}

/// Writes the properties of groups, and a skeleton for each group of paths.
pub(super) async fn write_groups(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Option<Layer>, ExportError> {
    if survey.groups.is_empty() {
        return Ok(None);
    }
    let Some(layer) = design_groups(work, survey)? else {
        return Ok(Some(group_layer(survey, None)));
    };
    let counts = write_group_share(work, &layer, &survey.groups.segments.ids).await?;
    note_group_counts(counts, notes);
    Ok(Some(Layer {
        items: counts.values,
        ..group_layer(survey, layer.shader.clone())
    }))
}

/// Plans the skeletons of groups, and writes the documents of the layer. Returns `None` if the layer
/// has documents only.
pub(super) fn design_groups(
    work: &Export<'_>,
    survey: &StoreSurvey,
) -> Result<Option<SkeletonLayer>, ExportError> {
    let (folder, table) = (LayerKind::Groups.folder(), &survey.groups.segments);
    if !draws_groups(&work.reading, survey) {
        if let Some(json) = table.to_json() {
            let path = format!("{folder}/info");
            work.output.write(&path, json.as_bytes())?;
        }
        return Ok(None);
    }
    let mut layer = SkeletonLayer::of_groups(&work.reading, survey)?;
    write_documents(work, folder, &mut layer, table, survey.vertices)?;
    Ok(Some(layer))
}

/// Writes the skeletons of groups. Counts a group with too many vertices as dropped.
pub(super) async fn write_group_share(
    work: &Export<'_>,
    layer: &SkeletonLayer,
    ids: &[i64],
) -> Result<LayerCounts, ExportError> {
    let folder = LayerKind::Groups.folder().to_owned();
    let mut sink = SkeletonSink::new(work, folder, &layer.info)?;
    let total = u64::try_from(ids.len()).unwrap_or(u64::MAX);
    for (id, done) in ids.iter().zip(0..) {
        (work.reading.report)(done, total);
        let Ok(id) = u64::try_from(*id) else { continue };
        // Members that the store lacks are left out.
        let query = work.reading.query().groups([id]).keep_going(true);
        let counts = work.reading.dataset.count(&query).await?;
        check_undamaged(&counts.skipped)?;
        if counts.vertices > MAX_GROUP_VERTICES {
            sink.progress.add_dropped();
            continue;
        }
        let paths = work.reading.dataset.query(&query).await?;
        check_undamaged(&paths.skipped)?;
        let skeleton = layer.of_paths(&paths)?;
        if skeleton.positions.is_empty() {
            sink.progress.add_empty();
        } else {
            sink.push(id, &skeleton)?;
        }
    }
    sink.finish()
}

/// Notes the groups that are left out.
pub(super) fn note_group_counts(counts: LayerCounts, notes: &mut Vec<String>) {
    let LayerCounts { dropped, empty, .. } = counts;
    if dropped > 0 {
        notes.push(format!(
            "{dropped} groups of more than {MAX_GROUP_VERTICES} vertices left out: the viewer loads \
             a skeleton as a whole"
        ));
    }
    if empty > 0 {
        notes.push(format!("{empty} groups without vertices left out"));
    }
}

/// Writes the skeletons of the paths that a query selects, which are about `vertices` vertices.
pub(super) async fn write_paths(
    work: &Export<'_>,
    layer: &SkeletonLayer,
    query: &Query,
    vertices: u64,
) -> Result<LayerCounts, ExportError> {
    let folder = LayerKind::Skeletons.folder_of(work.reading.level);
    let mut sink = SkeletonSink::new(work, folder, &layer.info)?;
    if sink.progress.counts.done == 0 {
        push_paths(work, layer, query, vertices, &mut sink).await?;
        sink.progress.add_group(0);
        sink.progress.keep()?;
    }
    sink.finish()
}

/// Adds all paths to the skeletons of their objects.
async fn push_paths(
    work: &Export<'_>,
    layer: &SkeletonLayer,
    query: &Query,
    vertices: u64,
    sink: &mut SkeletonSink<'_>,
) -> Result<(), ExportError> {
    let mut open: Option<(i64, Skeleton)> = None;
    let (mut failed, mut skipped, mut done) = (None, 0_u64, 0_u64);
    work.reading
        .dataset
        .batches(query, |batch| {
            (work.reading.report)(done, vertices);
            let rows = u64::try_from(batch.positions.len()).unwrap_or(u64::MAX);
            done = done.saturating_add(rows);
            match add_paths(&batch, layer, &mut open, sink, &mut skipped) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })
        .await?;
    if let Some(error) = failed {
        return Err(error);
    }
    if let Some((object, skeleton)) = open {
        push_object(object, &skeleton, sink)?;
    }
    sink.progress.counts.dropped = skipped;
    Ok(())
}

fn push_object(
    object: i64,
    skeleton: &Skeleton,
    sink: &mut SkeletonSink<'_>,
) -> Result<(), ExportError> {
    match u64::try_from(object) {
        Ok(id) if !skeleton.positions.is_empty() => sink.push(id, skeleton),
        _ => Ok(()),
    }
}

/// Adds the paths of a batch to the skeletons of their objects, which follow each other.
fn add_paths(
    batch: &QueryResult,
    layer: &SkeletonLayer,
    open: &mut Option<(i64, Skeleton)>,
    sink: &mut SkeletonSink<'_>,
    skipped: &mut u64,
) -> Result<(), ExportError> {
    for path in paths(batch) {
        if open
            .as_ref()
            .is_some_and(|(object, _)| *object != path.object)
            && let Some((object, skeleton)) = open.take()
        {
            push_object(object, &skeleton, sink)?;
        }
        let (_, skeleton) = open.get_or_insert_with(|| (path.object, layer.empty()));
        if !layer.push_path(batch, path.start..path.end, skeleton)? {
            *skipped = skipped.saturating_add(1);
        }
    }
    Ok(())
}
