//! Points and paths as annotations.

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::atomic::{AtomicU64, Ordering},
};

use rayon::prelude::*;
use zvf::QueryResult;
use zvf_precomputed::{
    AnnotationInfo, AnnotationKind, AnnotationList, PropertySpec, PropertyType, PropertyValue,
    RecordLayout, Relationship, ShardBuilder, ShardEncoding, ShardingSpec, SpatialLevel,
    SpatialLevels, SpatialSampler, compressed_morton_code,
};

use super::{
    Export, ExportError, ExportedLayer, LayerKind,
    attributes::PropertyPlan,
    output::{OrderedIndex, sharding},
    spill::{PartitionId, Spill, SpillEntry},
    state::{annotation_shader, path_shader},
    survey::{StoreSurvey, finite, paths, query},
};

/// Annotations in a cell that a viewer draws with ease.
const LIMIT: u64 = 5000;
/// Points of a polyline that a viewer can pick.
const MOST_POINTS: usize = 100_000;
const RELATED: &str = "related_object";
/// Buckets of an index that is not in shards.
const BUCKETS: u64 = 64;

/// Writes the annotations of points, lines or paths.
pub(crate) async fn write(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Option<ExportedLayer>, ExportError> {
    let attributes = if survey.is_path {
        &survey.object
    } else {
        &survey.vertex
    };
    let plan = PropertyPlan::new(attributes, notes);
    let kind = match (survey.is_path, survey.is_pairs) {
        (false, _) => AnnotationKind::Point,
        (true, true) => AnnotationKind::Line,
        (true, false) => AnnotationKind::Polyline,
    };
    let mut properties = plan.specs.clone();
    if survey.is_path {
        let taken = properties
            .iter()
            .any(|property| property.id == "orientation");
        properties.push(PropertySpec {
            id: if taken {
                "orientation_rgb"
            } else {
                "orientation"
            }
            .to_owned(),
            kind: PropertyType::Rgb,
            description: Some("Direction from the first to the last point".to_owned()),
            labels: Vec::new(),
        });
    }
    let shader = match properties.last().filter(|_| survey.is_path) {
        Some(orientation) => Some(path_shader(kind, &orientation.id)),
        None => annotation_shader(&plan),
    };
    let levels = levels(work, survey).await?;
    let mut sink = AnnotationSink::new(work, survey, levels, kind, properties)?;
    let mut rows = Rows {
        plan: &plan,
        rank: work.space.rank(),
        total: if survey.is_path {
            survey.parts
        } else {
            survey.vertices
        },
        next: 0,
        last_object: None,
        skipped: 0,
    };
    let mut failed = None;
    let query = query(work);
    work.dataset
        .batches(&query, |batch| {
            work.meter.set(rows.next, rows.total);
            let added = if survey.is_path {
                rows.add_paths(&batch, &mut sink)
            } else {
                rows.add_points(&batch, &mut sink)
            };
            match added {
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
    if rows.skipped > 0 {
        let (skipped, what) = (rows.skipped, kind.name());
        notes.push(format!(
            "{skipped} of kind {what} left out: coordinates that are not finite, fewer than 2 \
             points, or more than {MOST_POINTS}"
        ));
    }
    let items = sink.annotations;
    sink.finish()?;
    Ok(Some(ExportedLayer {
        kind: LayerKind::Annotations,
        items,
        shader,
        shown: Vec::new(),
        is_related: survey.has_objects,
    }))
}

/// Counts annotations in cells and divides them among levels.
async fn levels(work: &Export<'_>, survey: &StoreSurvey) -> Result<SpatialLevels, ExportError> {
    let (lower, upper) = bounds(survey);
    let count = if survey.is_path {
        survey.parts
    } else {
        survey.vertices
    };
    let mut sampler = SpatialSampler::new(&lower, &upper, count, LIMIT);
    if count <= LIMIT {
        return Ok(sampler.finish(LIMIT));
    }
    let query = query(work)
        .columns(zvf_query::Selection::none())
        .owners(false);
    work.dataset
        .batches(&query, |batch| {
            let Some(view) = batch.positions.view() else {
                return ControlFlow::Continue(());
            };
            let mut count = |row| {
                if let Some(point) = finite(&view, row, lower.len()) {
                    sampler.count(&point);
                }
            };
            if survey.is_path {
                paths(&batch).for_each(|path| count(path.start));
            } else {
                (0..view.rows()).for_each(count);
            }
            ControlFlow::Continue(())
        })
        .await?;
    Ok(sampler.finish(LIMIT))
}

/// Returns bounds with a positive extent along every axis.
fn bounds(survey: &StoreSurvey) -> (Vec<f64>, Vec<f64>) {
    let extents = survey
        .lower
        .iter()
        .zip(&survey.upper)
        .map(|(lo, hi)| hi - lo);
    let widest = extents.fold(0.0, f64::max);
    let min = if widest > 0.0 { widest * 1e-3 } else { 1.0 };
    let upper = survey.lower.iter().zip(&survey.upper);
    let upper = upper.map(|(lo, hi)| lo + (hi - lo).max(min) * (1.0 + 1e-6));
    (survey.lower.clone(), upper.collect())
}

/// Conversion of batches into annotations.
struct Rows<'a> {
    plan: &'a PropertyPlan,
    rank: usize,
    total: u64,
    /// Id of the next annotation: the running number in the result.
    next: u64,
    /// The last object with its property values: its paths may continue in the next batch, which
    /// does not repeat the attributes.
    last_object: Option<(i64, Vec<PropertyValue>)>,
    skipped: u64,
}

impl Rows<'_> {
    fn add_points(
        &mut self,
        batch: &QueryResult,
        sink: &mut AnnotationSink<'_>,
    ) -> Result<(), ExportError> {
        let Some(view) = batch.positions.view() else {
            return Ok(());
        };
        let properties = self.plan.bind(&batch.vertex);
        let mut values = Vec::new();
        for row in 0..view.rows() {
            let id = self.next;
            self.next = self.next.saturating_add(1);
            let Some(point) = finite(&view, row, self.rank) else {
                self.skipped = self.skipped.saturating_add(1);
                continue;
            };
            values.clear();
            properties.push(Some(row), &mut values);
            let object = batch.object_ids.as_ref().and_then(|ids| ids.get(row));
            sink.push(id, &point, &values, object.copied())?;
        }
        Ok(())
    }

    fn add_paths(
        &mut self,
        batch: &QueryResult,
        sink: &mut AnnotationSink<'_>,
    ) -> Result<(), ExportError> {
        let Some(view) = batch.positions.view() else {
            return Ok(());
        };
        let rows: HashMap<i64, usize> = batch.objects.iter().copied().zip(0..).collect();
        let properties = self.plan.bind(&batch.object);
        for path in paths(batch) {
            let id = self.next;
            self.next = self.next.saturating_add(1);
            let points = path.end.saturating_sub(path.start);
            let point = |row| finite(&view, row, self.rank);
            let coordinates: Option<Vec<Vec<f32>>> = (path.start..path.end).map(point).collect();
            let is_drawn = (2..=MOST_POINTS).contains(&points);
            let Some(coordinates) = coordinates.filter(|_| is_drawn) else {
                self.skipped = self.skipped.saturating_add(1);
                continue;
            };
            let known = self.last_object.take();
            let mut values = match (rows.get(&path.object), known) {
                (None, Some((object, values))) if object == path.object => values,
                (row, _) => {
                    let mut values = Vec::new();
                    properties.push(row.copied(), &mut values);
                    values
                }
            };
            self.last_object = Some((path.object, values.clone()));
            values.push(PropertyValue::Rgb(orientation(&coordinates)));
            sink.push(id, &coordinates.concat(), &values, Some(path.object))?;
        }
        Ok(())
    }
}

/// Returns the direction from the first to the last point as a colour.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares of a length are between 0 and 1"
)]
fn orientation(points: &[Vec<f32>]) -> [u8; 3] {
    let ends = points.first().zip(points.last());
    let along = |axis: usize| {
        let ends = ends.and_then(|(first, last)| Some((first.get(axis)?, last.get(axis)?)));
        ends.map_or(0.0, |(first, last)| f64::from(*last) - f64::from(*first))
    };
    let direction = [along(0), along(1), along(2)];
    let length = direction
        .iter()
        .map(|along| along * along)
        .sum::<f64>()
        .sqrt();
    direction.map(|along| (along.abs() / length.max(f64::MIN_POSITIVE) * 255.0).round() as u8)
}

/// The indexes of annotations.
struct AnnotationSink<'a> {
    work: &'a Export<'a>,
    info: AnnotationInfo,
    layout: RecordLayout,
    levels: SpatialLevels,
    by_id: OrderedIndex<'a>,
    spill: Spill,
    annotations: u64,
    record: Vec<u8>,
}

impl<'a> AnnotationSink<'a> {
    fn new(
        work: &'a Export<'a>,
        survey: &StoreSurvey,
        levels: SpatialLevels,
        kind: AnnotationKind,
        properties: Vec<PropertySpec>,
    ) -> Result<Self, ExportError> {
        let (lower_bound, upper_bound) = bounds(survey);
        let rank = work.space.rank();
        let layout = RecordLayout::new(kind, rank, &properties);
        let count = if survey.is_path {
            survey.parts
        } else {
            survey.vertices
        };
        let geometry = survey
            .vertices
            .saturating_mul(u64::try_from(rank).unwrap_or(8) * 4);
        let fixed = RecordLayout::new(AnnotationKind::Point, 0, &properties).record_size();
        let fixed = u64::try_from(fixed.unwrap_or(0))
            .unwrap_or(u64::MAX)
            .saturating_add(16);
        let bytes = geometry.saturating_add(count.saturating_mul(fixed));
        let sharded = work.options.sharded;
        let by_id_sharding = sharding(sharded, count, || {
            // A record is too small to gain from compression.
            ShardingSpec::for_consecutive(count, bytes).data_encoding(ShardEncoding::Raw)
        });
        let mut spatial = Vec::new();
        for (at, grid) in levels.grids().iter().enumerate() {
            let cells = grid
                .shape
                .iter()
                .fold(1_u64, |cells, n| cells.saturating_mul(*n));
            let cells = cells.min(count);
            spatial.push(SpatialLevel {
                key: format!("spatial{at}"),
                grid_shape: grid.shape.clone(),
                chunk_size: grid.cell.clone(),
                limit: 1,
                sharding: sharding(sharded, cells, || ShardingSpec::for_any(cells, bytes)),
            });
        }
        let mut relationships = Vec::new();
        if survey.has_objects {
            let objects = u64::try_from(survey.segments.ids.len()).unwrap_or(u64::MAX);
            relationships.push(Relationship {
                id: "object".to_owned(),
                key: RELATED.to_owned(),
                sharding: sharding(sharded, objects, || ShardingSpec::for_any(objects, bytes)),
            });
        }
        let folder = LayerKind::Annotations.folder();
        let by_id = OrderedIndex::new(work.output, format!("{folder}/by_id"), by_id_sharding);
        Ok(Self {
            work,
            info: AnnotationInfo {
                dimensions: work.space.dimensions.clone(),
                lower_bound,
                upper_bound,
                kind,
                properties,
                relationships,
                by_id: "by_id".to_owned(),
                by_id_sharding,
                spatial,
            },
            layout,
            levels,
            by_id,
            spill: Spill::new(work.output.scratch()?),
            annotations: 0,
            record: Vec::new(),
        })
    }

    fn push(
        &mut self,
        id: u64,
        coordinates: &[f32],
        values: &[PropertyValue],
        object: Option<i64>,
    ) -> Result<(), ExportError> {
        let mut record = core::mem::take(&mut self.record);
        record.clear();
        self.layout.write(coordinates, values, &mut record)?;
        let index = self.levels.level_of(id);
        let grid = self.levels.grids().get(index);
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
                let key = linear(&cell, &grid.shape);
                let shard = match spec {
                    Some(spec) => {
                        spec.locate(compressed_morton_code(&cell, &grid.shape)?)
                            .shard
                    }
                    None => key % BUCKETS,
                };
                let partition = PartitionId { index, shard };
                let record = record.as_slice();
                self.spill.push(partition, SpillEntry { key, id, record })?;
            }
        }
        let object = object.and_then(|object| u64::try_from(object).ok());
        if let (Some(relationship), Some(key)) = (self.info.relationships.first(), object) {
            let shard = match relationship.sharding {
                Some(spec) => spec.locate(key).shard,
                None => key % BUCKETS,
            };
            let index = self.info.spatial.len();
            let entry = SpillEntry {
                key,
                id,
                record: &record,
            };
            self.spill.push(PartitionId { index, shard }, entry)?;
        }
        if !self.info.relationships.is_empty() {
            RecordLayout::write_related(object.as_slice(), &mut record)?;
        }
        self.by_id.push(id, &record)?;
        self.annotations = self.annotations.saturating_add(1);
        self.record = record;
        Ok(())
    }

    /// Groups the entries, writes the indexes, and the document last.
    fn finish(mut self) -> Result<(), ExportError> {
        self.by_id.finish()?;
        let (info, work) = (&self.info, self.work);
        let limits: Vec<AtomicU64> = info.spatial.iter().map(|_| AtomicU64::new(1)).collect();
        let partitions = self.spill.partitions();
        let done = AtomicU64::new(0);
        let total = u64::try_from(partitions.len()).unwrap_or(u64::MAX);
        partitions.par_iter().try_for_each(|partition| {
            let largest = write_partition(work, info, &self.spill, *partition)?;
            if let Some(limit) = limits.get(partition.index) {
                limit.fetch_max(largest, Ordering::Relaxed);
            }
            let done = done.fetch_add(1, Ordering::Relaxed);
            work.meter.set(done, total);
            Ok::<_, ExportError>(())
        })?;
        for (level, limit) in self.info.spatial.iter_mut().zip(limits) {
            level.limit = limit.into_inner();
        }
        let path = format!("{}/info", LayerKind::Annotations.folder());
        self.work
            .output
            .write(&path, self.info.to_json().as_bytes())
    }
}

/// Writes the lists of a partition and returns the number of annotations in the longest.
fn write_partition(
    work: &Export<'_>,
    info: &AnnotationInfo,
    spill: &Spill,
    partition: PartitionId,
) -> Result<u64, ExportError> {
    let spilled = spill.read(partition)?;
    let entries = spilled.entries();
    let level = info.spatial.get(partition.index);
    let (key, spec) = match (level, info.relationships.first()) {
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
                work.output
                    .write(&format!("{folder}/{}", name.join("_")), &list)?;
            }
            (None, None, _) => work.output.write(&format!("{folder}/{key}"), &list)?,
        }
    }
    if let Some((spec, shard)) = shard.filter(|(_, shard)| !shard.is_empty()) {
        let path = format!("{folder}/{}", spec.file_name(partition.shard));
        work.output.write(&path, &shard.finish())?;
    }
    Ok(longest)
}

/// Numbers the cells of a grid.
fn linear(cell: &[u64], shape: &[u64]) -> u64 {
    let axes = cell.iter().zip(shape);
    axes.fold(0, |at, (along, extent)| {
        at.saturating_mul(*extent).saturating_add(*along)
    })
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
            .map(|at| linear(&cell_at(at, &shape), &shape))
            .collect();
        assert_eq!(numbers, (0..12).collect::<Vec<_>>());
        assert_eq!(linear(&[2, 0, 3], &shape), 11);
    }

    #[test]
    fn orientations_are_colours() {
        let points = |to: [f32; 3]| [vec![0.0, 0.0, 0.0], to.to_vec()];
        assert_eq!(orientation(&points([0.0, -5.0, 0.0])), [0, 255, 0]);
        assert_eq!(orientation(&points([0.0; 3])), [0, 0, 0]);
        assert_eq!(
            orientation(&[vec![0.0, 0.0], vec![3.0, 4.0]]),
            [153, 204, 0]
        );
    }
}
