//! Skeletons: the writer, and paths as skeletons.

use std::ops::ControlFlow;

use rayon::prelude::*;
use zvf::QueryResult;
use zvf_precomputed::{
    AttributeType, IDENTITY, ShardBuilder, ShardingSpec, Skeleton, SkeletonInfo, VertexAttribute,
};

use super::{
    Export, ExportError, ExportedLayer, LayerKind,
    attributes::{SkeletonPlan, narrow},
    output::sharding,
    segments::ONLY,
    spill::{PartitionId, Spill, SpillEntry},
    state::skeleton_shader,
    survey::{StoreSurvey, finite, paths, query},
};

/// Skeletons that are being written.
pub(super) struct SkeletonSink<'a> {
    work: &'a Export<'a>,
    info: SkeletonInfo,
    spill: Spill,
    skeletons: u64,
}

impl<'a> SkeletonSink<'a> {
    /// Creates the layer for the objects of a survey.
    pub(super) fn new(
        work: &'a Export<'a>,
        survey: &StoreSurvey,
        attributes: Vec<VertexAttribute>,
    ) -> Result<Self, ExportError> {
        let scale = work.space.nanometres();
        let scale = scale.ok_or_else(|| ExportError::Axes(work.space.rank()))?;
        let mut transform = IDENTITY;
        for (at, along) in [0, 5, 10].into_iter().zip(scale) {
            if let Some(place) = transform.get_mut(at) {
                *place = along;
            }
        }
        let components = attributes
            .iter()
            .map(|attribute| u64::from(attribute.components));
        let row = components.sum::<u64>().saturating_add(5).saturating_mul(4);
        let bytes = survey.vertices.saturating_mul(row);
        let objects = u64::try_from(survey.segments.ids.len()).unwrap_or(u64::MAX);
        let sharded = work.options.sharded;
        Ok(Self {
            work,
            info: SkeletonInfo {
                transform,
                vertex_attributes: attributes,
                segment_properties: survey.segments.write(work, LayerKind::Skeletons)?,
                sharding: sharding(sharded, objects, || ShardingSpec::for_any(objects, bytes)),
            },
            spill: Spill::new(work.output.scratch()?),
            skeletons: 0,
        })
    }

    /// Adds the skeleton of an object.
    pub(super) fn push(&mut self, object: u64, skeleton: &Skeleton) -> Result<(), ExportError> {
        let value = skeleton.encode(&self.info.vertex_attributes)?;
        self.skeletons = self.skeletons.saturating_add(1);
        let Some(spec) = self.info.sharding else {
            let path = format!("{}/{object}", LayerKind::Skeletons.folder());
            return self.work.output.write(&path, &value);
        };
        let shard = spec.locate(object).shard;
        let entry = SpillEntry {
            key: object,
            id: 0,
            record: &value,
        };
        self.spill.push(PartitionId { index: 0, shard }, entry)
    }

    /// Writes the shards, and the document last.
    pub(super) fn finish(
        self,
        survey: &StoreSurvey,
        shader: Option<String>,
    ) -> Result<ExportedLayer, ExportError> {
        let folder = LayerKind::Skeletons.folder();
        if let Some(spec) = self.info.sharding {
            self.spill
                .partitions()
                .par_iter()
                .try_for_each(|partition| {
                    let spilled = self.spill.read(*partition)?;
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
        let shown = match survey.has_objects {
            true => survey.segments.shown(),
            false => vec![ONLY],
        };
        Ok(ExportedLayer {
            kind: LayerKind::Skeletons,
            items: self.skeletons,
            shader,
            shown,
            is_related: false,
        })
    }
}

/// Writes the paths of each object as a skeleton.
pub(super) async fn write_paths(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Option<ExportedLayer>, ExportError> {
    let direction = VertexAttribute {
        id: "dir".to_owned(),
        data_type: AttributeType::Float32,
        components: 3,
    };
    let plan = SkeletonPlan::new(&survey.vertex, &[direction], notes);
    let orientation = plan.attributes.last().map(|attribute| attribute.id.clone());
    let shader = orientation.map(|id| format!("void main() {{ emitRGB(abs(prop_{id}())); }}"));
    let mut sink = SkeletonSink::new(work, survey, plan.attributes.clone())?;
    let mut open: Option<(i64, Skeleton)> = None;
    let (mut failed, mut skipped, mut done) = (None, 0_u64, 0_u64);
    let query = query(work);
    work.dataset
        .batches(&query, |batch| {
            work.meter.set(done, survey.vertices);
            let rows = u64::try_from(batch.positions.len()).unwrap_or(u64::MAX);
            done = done.saturating_add(rows);
            match add_paths(&batch, &plan, &mut open, &mut sink, &mut skipped) {
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
        push_object(object, &skeleton, &mut sink)?;
    }
    if skipped > 0 {
        notes.push(format!(
            "{skipped} paths left out of the skeletons: coordinates that are not finite"
        ));
    }
    Ok(Some(sink.finish(survey, shader)?))
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
    plan: &SkeletonPlan,
    open: &mut Option<(i64, Skeleton)>,
    sink: &mut SkeletonSink<'_>,
    skipped: &mut u64,
) -> Result<(), ExportError> {
    let Some(view) = batch.positions.view() else {
        return Ok(());
    };
    for path in paths(batch) {
        let point = |row| <[f32; 3]>::try_from(finite(&view, row, 3)?).ok();
        let points: Option<Vec<[f32; 3]>> = (path.start..path.end).map(point).collect();
        let Some(points) = points else {
            *skipped = skipped.saturating_add(1);
            continue;
        };
        if open
            .as_ref()
            .is_some_and(|(object, _)| *object != path.object)
            && let Some((object, skeleton)) = open.take()
        {
            push_object(object, &skeleton, sink)?;
        }
        let (_, skeleton) = open.get_or_insert_with(|| {
            let attributes = vec![Vec::new(); plan.attributes.len()];
            let skeleton = Skeleton {
                attributes,
                ..Skeleton::default()
            };
            (path.object, skeleton)
        });
        let first = u32::try_from(skeleton.positions.len());
        let first = first.map_err(|_| zvf_precomputed::PrecomputedError::Count("vertices"))?;
        let count = u32::try_from(points.len()).unwrap_or(u32::MAX);
        let last = first.saturating_add(count).saturating_sub(1);
        skeleton
            .edges
            .extend((first..last).map(|row| [row, row.saturating_add(1)]));
        let rows: Vec<usize> = (path.start..path.end).collect();
        plan.push(&batch.vertex, &rows, &mut skeleton.attributes);
        if let Some(directions) = skeleton.attributes.last_mut() {
            let numbers = tangents(&points).into_iter().flatten();
            directions.extend(numbers.flat_map(f32::to_le_bytes));
        }
        skeleton.positions.extend_from_slice(&points);
    }
    Ok(())
}

/// Returns the unit direction at each point, from its neighbours.
fn tangents(points: &[[f32; 3]]) -> Vec<[f32; 3]> {
    let directions = (0..points.len()).map(|at| {
        let before = points.get(at.saturating_sub(1));
        let after = points.get(at.saturating_add(1)).or(points.get(at));
        let ends = before.zip(after);
        let along = ends.map_or([0.0; 3], |(from, to)| {
            let [ax, ay, az] = from.map(f64::from);
            let [bx, by, bz] = to.map(f64::from);
            [bx - ax, by - ay, bz - az]
        });
        let length = along.iter().map(|part| part * part).sum::<f64>().sqrt();
        along.map(|part| narrow(part / length.max(f64::MIN_POSITIVE)))
    });
    directions.collect()
}

/// Returns the shader of the skeletons of a plan.
pub(super) fn shader_of(plan: &SkeletonPlan) -> Option<String> {
    skeleton_shader(&plan.attributes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tangents_are_unit_vectors() {
        let points = [[0.0, 0.0, 0.0], [2.0, 0.0, 0.0], [2.0, 2.0, 0.0]];
        let half = 0.5_f32.sqrt();
        assert_eq!(
            tangents(&points),
            [[1.0, 0.0, 0.0], [half, half, 0.0], [0.0, 1.0, 0.0]]
        );
        assert_eq!(tangents(&[[1.0; 3]]), [[0.0; 3]]);
    }
}
