//! Skeletons as files.

use std::ops::ControlFlow;

use rayon::prelude::*;
use zvf::QueryResult;
use zvf_precomputed::{ShardBuilder, ShardingSpec, Skeleton, SkeletonInfo};

use super::{Export, ExportError, objects, output::sharding, progress::LayerProgress};
use crate::layers::{
    Layer, LayerKind,
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
    let layer = SkeletonLayer::new(&work.reading, survey, notes)?;
    let folder = LayerKind::Skeletons.folder_of(work.reading.level);
    let (info, segments) = (layer.info.clone(), &survey.segments);
    let sink = SkeletonSink::new(work, folder, info, segments, survey.vertices)?;
    match layer.is_path {
        true => write_paths(work, survey, &layer, sink, notes).await,
        false => write_shapes(work, survey, &layer, sink, notes).await,
    }
}

async fn write_shapes(
    work: &Export<'_>,
    survey: &StoreSurvey,
    layer: &SkeletonLayer,
    mut sink: SkeletonSink<'_>,
    notes: &mut Vec<String>,
) -> Result<Layer, ExportError> {
    let done = sink.progress.counts.done;
    objects::for_each_group(work, survey, done, |batch| {
        let mut dropped = 0_u64;
        for shape in shapes(batch, survey.has_objects, &mut dropped) {
            match layer.of_shape(batch, &shape) {
                Some(skeleton) => sink.push(shape.object, &skeleton)?,
                None => dropped = dropped.saturating_add(1),
            }
        }
        sink.progress.add_group(dropped);
        sink.progress.keep()
    })
    .await?;
    note_dropped(sink.progress.counts.dropped, notes);
    sink.finish(survey, layer)
}

/// Skeletons that are being written.
struct SkeletonSink<'a> {
    work: &'a Export<'a>,
    folder: String,
    info: SkeletonInfo,
    progress: LayerProgress<'a>,
}

impl<'a> SkeletonSink<'a> {
    /// Creates the layer for segments with about this many vertices.
    fn new(
        work: &'a Export<'a>,
        folder: String,
        mut info: SkeletonInfo,
        segments: &SegmentTable,
        vertices: u64,
    ) -> Result<Self, ExportError> {
        let components = info
            .vertex_attributes
            .iter()
            .map(|attribute| u64::from(attribute.components));
        let row = components.sum::<u64>().saturating_add(5).saturating_mul(4);
        let bytes = vertices.saturating_mul(row);
        let objects = u64::try_from(segments.count).unwrap_or(u64::MAX);
        let sharded = work.options.sharded;
        info.sharding = sharding(sharded, objects, || ShardingSpec::for_any(objects, bytes));
        if let Some(json) = segments.to_json() {
            let path = format!("{folder}/{PROPERTIES}/info");
            work.output.write(&path, json.as_bytes())?;
        }
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

    /// Writes the shards, and the document last. Returns the number of skeletons.
    fn finish_files(self) -> Result<u64, ExportError> {
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
        let path = format!("{folder}/info");
        self.work
            .output
            .write(&path, self.info.to_json().as_bytes())?;
        Ok(self.progress.counts.values)
    }

    /// Writes the shards and the document of the skeletons of objects.
    fn finish(self, survey: &StoreSurvey, layer: &SkeletonLayer) -> Result<Layer, ExportError> {
        let level = self.work.reading.level;
        Ok(Layer {
            kind: LayerKind::Skeletons,
            level,
            items: self.finish_files()?,
            shader: layer.shader.clone(),
            shown: survey.shown(),
            is_related: false,
            transform: None,
        })
    }
}

/// Writes the properties of groups, and a skeleton for each group of paths.
pub(super) async fn write_groups(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Option<Layer>, ExportError> {
    let (folder, table) = (LayerKind::Groups.folder(), &survey.groups.segments);
    if survey.groups.is_empty() {
        return Ok(None);
    }
    if !draws_groups(&work.reading, survey) {
        if let Some(json) = table.to_json() {
            let path = format!("{folder}/info");
            work.output.write(&path, json.as_bytes())?;
        }
        return Ok(Some(group_layer(survey, None)));
    }
    let layer = SkeletonLayer::of_groups(&work.reading, survey)?;
    let info = layer.info.clone();
    let mut sink = SkeletonSink::new(work, folder.to_owned(), info, table, survey.vertices)?;
    let total = u64::try_from(table.ids.len()).unwrap_or(u64::MAX);
    let (mut large, mut empty) = (0_u64, 0_u64);
    for (id, done) in table.ids.iter().zip(0..) {
        (work.reading.report)(done, total);
        let Ok(id) = u64::try_from(*id) else { continue };
        // Members that the store lacks are left out.
        let query = work.reading.query().groups([id]).keep_going(true);
        let vertices = work.reading.dataset.count(&query).await?.vertices;
        if vertices > MAX_GROUP_VERTICES {
            large = large.saturating_add(1);
            continue;
        }
        let skeleton = layer.of_paths(&work.reading.dataset.query(&query).await?)?;
        match skeleton.positions.is_empty() {
            true => empty = empty.saturating_add(1),
            false => sink.push(id, &skeleton)?,
        }
    }
    if large > 0 {
        notes.push(format!(
            "{large} groups of more than {MAX_GROUP_VERTICES} vertices left out: the viewer loads \
             a skeleton as a whole"
        ));
    }
    if empty > 0 {
        notes.push(format!("{empty} groups without vertices left out"));
    }
    let mut described = group_layer(survey, layer.shader.clone());
    described.items = sink.finish_files()?;
    Ok(Some(described))
}

async fn write_paths(
    work: &Export<'_>,
    survey: &StoreSurvey,
    layer: &SkeletonLayer,
    mut sink: SkeletonSink<'_>,
    notes: &mut Vec<String>,
) -> Result<Layer, ExportError> {
    if sink.progress.counts.done == 0 {
        push_paths(work, survey, layer, &mut sink).await?;
        sink.progress.add_group(0);
        sink.progress.keep()?;
    }
    let skipped = sink.progress.counts.dropped;
    if skipped > 0 {
        notes.push(format!(
            "{skipped} paths left out of the skeletons: coordinates that are not finite"
        ));
    }
    sink.finish(survey, layer)
}

/// Adds all paths to the skeletons of their objects.
async fn push_paths(
    work: &Export<'_>,
    survey: &StoreSurvey,
    layer: &SkeletonLayer,
    sink: &mut SkeletonSink<'_>,
) -> Result<(), ExportError> {
    let mut open: Option<(i64, Skeleton)> = None;
    let (mut failed, mut skipped, mut done) = (None, 0_u64, 0_u64);
    let query = work.reading.query();
    work.reading
        .dataset
        .batches(&query, |batch| {
            (work.reading.report)(done, survey.vertices);
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
