//! The layers of a planned export, and the shares of them that tasks write.

use std::collections::BTreeMap;

use rayon::{current_num_threads, prelude::*};
use serde_json::{Value, json};
use zvf_model::json::member;
use zvf_precomputed::{AnnotationInfo, ShardingSpec, SkeletonInfo};

use super::{
    Export, ExportError,
    annotations::{self, DividedAnnotations},
    meshes::{self, MeshForm},
    objects::ObjectShare,
    output::ExportJob,
    progress::LayerCounts,
    skeletons, write_segments,
};
use crate::{
    layers::{
        Layer, LayerInput, LayerKind,
        meshes::MeshLevels,
        shapes::note_dropped,
        skeletons::{SkeletonLayer, group_layer},
        survey::StoreSurvey,
    },
    spill::{PartitionId, Spill, SpilledPartition},
};

/// A layer of a planned export.
pub(super) struct PlannedLayer {
    /// The layer, without the number of items that tasks write.
    layer: Layer,
    /// Notes since the layer before.
    notes: Vec<String>,
    form: LayerForm,
    /// Mean number of vertices of its objects.
    vertices: u64,
    shares: Vec<LayerShare>,
}

/// The work that tasks do for a layer.
enum LayerForm {
    /// The plan has written everything.
    Written,
    /// The lists of partitions of annotations.
    Annotations,
    /// Skeletons of objects that are not paths, with the sources of their attributes.
    Shapes(Value),
    /// Skeletons of paths, with the sources of their attributes.
    Paths(Value),
    /// Skeletons of groups, with the sources of their attributes.
    Groups(Value),
    Meshes(MeshForm),
}

/// The part of a layer that one task writes.
pub(super) struct LayerShare {
    pub(super) task: usize,
    /// Partitions of annotations, or a list of ids. Without a list, the share is the whole layer.
    parts: Vec<SharePart>,
}

/// Input of a task, by its name in the job.
struct SharePart {
    name: String,
    size: u64,
    crc32: u32,
}

impl SharePart {
    fn new(name: String, bytes: &[u8]) -> Self {
        Self {
            name,
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            crc32: crc32fast::hash(bytes),
        }
    }

    async fn read(&self, job: &ExportJob) -> Result<Vec<u8>, ExportError> {
        let name = format!("parts/{}", self.name);
        let bytes = job.get(&name).await?;
        let is_whole = u64::try_from(bytes.len()) == Ok(self.size);
        if is_whole && crc32fast::hash(&bytes) == self.crc32 {
            Ok(bytes.into())
        } else {
            Err(job.damaged(&name))
        }
    }
}

/// The part of a layer that a task has written.
pub(super) struct ShareResult {
    counts: LayerCounts,
    /// The number of annotations in the longest list of each level of the spatial index.
    longest: Vec<u64>,
    /// Sizes of the files.
    pub(super) files: BTreeMap<String, u64>,
}

/// Plans layers one after another.
pub(super) struct LayerPlanner<'a> {
    pub(super) job: &'a ExportJob,
    /// Number of tasks.
    pub(super) tasks: usize,
    pub(super) layers: Vec<PlannedLayer>,
}

impl LayerPlanner<'_> {
    /// Plans a layer, if the store has it. Takes the notes so far.
    pub(super) async fn add(
        &mut self,
        work: &Export<'_>,
        kind: LayerKind,
        survey: &StoreSurvey,
        notes: &mut Vec<String>,
    ) -> Result<(), ExportError> {
        let all = ObjectShare::all(survey);
        let mut vertices = all.vertices;
        let (layer, form, shares) = match kind {
            LayerKind::Annotations => {
                let DividedAnnotations {
                    layer,
                    info,
                    progress,
                } = annotations::divide(work, survey, notes).await?;
                let document = annotations::document();
                work.output.write(&document, info.to_json().as_bytes())?;
                let shares = self.share_partitions(work, &progress.spill)?;
                (layer, LayerForm::Annotations, shares)
            }
            LayerKind::Skeletons => {
                let design = skeletons::design(work, survey, notes)?;
                let shares = self.share_ids(work, all.ids, design.info.sharding)?;
                let form = if design.is_path {
                    LayerForm::Paths(design.sources())
                } else {
                    LayerForm::Shapes(design.sources())
                };
                (skeletons::described(work, survey, &design), form, shares)
            }
            LayerKind::Meshes => {
                let form = meshes::design(work, survey, notes)?;
                let sharding = match form {
                    MeshForm::Draco(sharding) => {
                        let (dataset, has_objects) = (work.reading.dataset, survey.has_objects);
                        // Each task chooses the levels itself.
                        MeshLevels::new(dataset, has_objects, notes).await?;
                        sharding
                    }
                    MeshForm::Legacy => None,
                };
                let shares = self.share_ids(work, all.ids, sharding)?;
                (meshes::described(survey), LayerForm::Meshes(form), shares)
            }
            LayerKind::Segments => match write_segments(work, &survey.segments)? {
                Some(layer) => (layer, LayerForm::Written, Vec::new()),
                None => return Ok(()),
            },
            LayerKind::Groups if survey.groups.is_empty() => return Ok(()),
            LayerKind::Groups => match skeletons::design_groups(work, survey)? {
                Some(design) => {
                    vertices = 0;
                    let ids = &survey.groups.segments.ids;
                    let shares = self.share_ids(work, Some(ids), design.info.sharding)?;
                    let layer = group_layer(survey, design.shader.clone());
                    (layer, LayerForm::Groups(design.sources()), shares)
                }
                None => (group_layer(survey, None), LayerForm::Written, Vec::new()),
            },
            LayerKind::Volume => return Ok(()),
        };
        self.layers.push(PlannedLayer {
            layer,
            notes: core::mem::take(notes),
            form,
            vertices,
            shares,
        });
        Ok(())
    }

    /// Divides the partitions of annotations among tasks, and puts them.
    fn share_partitions(
        &self,
        work: &Export<'_>,
        spill: &Spill,
    ) -> Result<Vec<LayerShare>, ExportError> {
        let layer = self.layers.len();
        let mut parts = Vec::new();
        for partition in spill.partitions() {
            let spilled = spill.read(partition)?;
            let PartitionId { index, shard } = partition;
            let part = SharePart::new(format!("{layer}-{index}-{shard}"), spilled.bytes());
            work.output
                .write(&self.job.part_path(&part.name), spilled.bytes())?;
            parts.push(part);
        }
        let total = parts.iter().map(|part| part.size);
        let mut division = Division::new(total.fold(0, u64::saturating_add), self.tasks);
        let mut shares: BTreeMap<usize, Vec<SharePart>> = BTreeMap::new();
        for part in parts {
            let task = division.next(part.size);
            shares.entry(task).or_default().push(part);
        }
        let shares = shares.into_iter();
        Ok(shares
            .map(|(task, parts)| LayerShare { task, parts })
            .collect())
    }

    /// Divides objects or groups among tasks, by shard if there are shards, and puts the lists.
    fn share_ids(
        &self,
        work: &Export<'_>,
        ids: Option<&[i64]>,
        sharding: Option<ShardingSpec>,
    ) -> Result<Vec<LayerShare>, ExportError> {
        let layer = self.layers.len();
        let Some(ids) = ids else {
            let task = layer.checked_rem(self.tasks).unwrap_or(0);
            let parts = Vec::new();
            return Ok(vec![LayerShare { task, parts }]);
        };
        let total = u64::try_from(ids.len()).unwrap_or(u64::MAX);
        let mut division = Division::new(total, self.tasks);
        let mut shares: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
        match sharding {
            None => {
                for id in ids {
                    let task = division.next(1);
                    let list = shares.entry(task).or_default();
                    list.extend_from_slice(&id.to_le_bytes());
                }
            }
            Some(spec) => {
                // Objects with negative ids are not written.
                let shard = |id: i64| u64::try_from(id).map_or(0, |id| spec.locate(id).shard);
                let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
                for id in ids {
                    let count = counts.entry(shard(*id)).or_default();
                    *count = count.saturating_add(1);
                }
                let tasks: BTreeMap<u64, usize> = counts
                    .into_iter()
                    .map(|(shard, count)| (shard, division.next(count)))
                    .collect();
                for id in ids {
                    let task = tasks.get(&shard(*id)).copied().unwrap_or(0);
                    let list = shares.entry(task).or_default();
                    list.extend_from_slice(&id.to_le_bytes());
                }
            }
        }
        let shares = shares.into_iter().map(|(task, list)| {
            let part = SharePart::new(format!("{layer}-{task}"), &list);
            work.output.write(&self.job.part_path(&part.name), &list)?;
            let parts = vec![part];
            Ok::<_, ExportError>(LayerShare { task, parts })
        });
        shares.collect()
    }
}

/// A division of things among tasks, in order, with about equal weights.
struct Division {
    total: u64,
    tasks: usize,
    /// Weight of the things so far.
    before: u64,
}

impl Division {
    fn new(total: u64, tasks: usize) -> Self {
        Self {
            total,
            tasks,
            before: 0,
        }
    }

    /// Returns the task of the next thing: that in whose range its middle is.
    fn next(&mut self, weight: u64) -> usize {
        let middle = u128::from(self.before) * 2 + u128::from(weight);
        self.before = self.before.saturating_add(weight);
        let tasks = u128::try_from(self.tasks).unwrap_or(1);
        let total = u128::from(self.total) * 2;
        let task = middle.saturating_mul(tasks).checked_div(total).unwrap_or(0);
        let last = self.tasks.saturating_sub(1);
        usize::try_from(task).unwrap_or(last).min(last)
    }
}

impl PlannedLayer {
    /// Returns the kind of the layer.
    pub(super) fn kind(&self) -> LayerKind {
        self.layer.kind
    }

    /// Returns the shares of tasks.
    pub(super) fn shares(&self) -> &[LayerShare] {
        &self.shares
    }

    /// Returns whether the limits of the document are known only after all tasks.
    pub(super) fn needs_limits(&self) -> bool {
        matches!(self.form, LayerForm::Annotations)
    }

    /// Writes a share, and returns what was written.
    pub(super) async fn write(
        &self,
        share: &LayerShare,
        work: &Export<'_>,
        job: &ExportJob,
    ) -> Result<ShareResult, ExportError> {
        let reading = LayerInput {
            level: self.layer.level,
            ..work.reading
        };
        let work = &Export { reading, ..*work };
        let mut longest = Vec::new();
        let counts = match &self.form {
            LayerForm::Written => LayerCounts::default(),
            LayerForm::Annotations => {
                longest = write_lists(share, work, job).await?;
                LayerCounts::default()
            }
            LayerForm::Shapes(sources) => {
                let layer = self.skeletons(sources, job).await?;
                let ids = share.ids(job).await?;
                skeletons::write_shapes(work, &layer, &self.objects(ids.as_deref())).await?
            }
            LayerForm::Paths(sources) => {
                let layer = self.skeletons(sources, job).await?;
                let (mut query, mut vertices) = (work.reading.query(), self.vertices);
                if let Some(ids) = share.ids(job).await? {
                    let count = u64::try_from(ids.len()).unwrap_or(u64::MAX);
                    vertices = vertices.saturating_mul(count);
                    query = query.objects(ids);
                }
                skeletons::write_paths(work, &layer, &query, vertices).await?
            }
            LayerForm::Groups(sources) => {
                let layer = self.skeletons(sources, job).await?;
                let ids = share.ids(job).await?.unwrap_or_default();
                skeletons::write_group_share(work, &layer, &ids).await?
            }
            LayerForm::Meshes(form) => {
                let ids = share.ids(job).await?;
                let objects = self.objects(ids.as_deref());
                match form {
                    MeshForm::Draco(sharding) => {
                        let (dataset, has_objects) = (work.reading.dataset, ids.is_some());
                        // The plan has noted the levels that are left out.
                        let mut noted = Vec::new();
                        let levels = MeshLevels::new(dataset, has_objects, &mut noted).await?;
                        meshes::write_levels(work, &levels, *sharding, &objects).await?
                    }
                    MeshForm::Legacy => meshes::write_legacy(work, &objects).await?,
                }
            }
        };
        Ok(ShareResult {
            counts,
            longest,
            files: work.output.take_written()?,
        })
    }

    fn objects<'i>(&self, ids: Option<&'i [i64]>) -> ObjectShare<'i> {
        ObjectShare {
            ids,
            vertices: self.vertices,
        }
    }

    async fn skeletons(
        &self,
        sources: &Value,
        job: &ExportJob,
    ) -> Result<SkeletonLayer, ExportError> {
        let path = format!("{}/info", self.layer.folder());
        let info = SkeletonInfo::parse(&job.document(&path).await?)
            .map_err(|_| job.damaged_document(&path))?;
        let is_path = matches!(self.form, LayerForm::Paths(_) | LayerForm::Groups(_));
        let restored = SkeletonLayer::restore(info, sources, is_path);
        restored.ok_or_else(|| job.damaged("plan.json"))
    }

    /// Returns the layer and its notes after all tasks.
    pub(super) fn finished(&self, results: &[ShareResult]) -> FinishedLayer {
        let sum = |count: fn(&LayerCounts) -> u64| {
            let counts = results.iter().map(|result| count(&result.counts));
            counts.fold(0, u64::saturating_add)
        };
        let counts = LayerCounts {
            done: 0,
            values: sum(|counts| counts.values),
            dropped: sum(|counts| counts.dropped),
            empty: sum(|counts| counts.empty),
        };
        let mut notes = self.notes.clone();
        match self.form {
            LayerForm::Written | LayerForm::Annotations => {}
            LayerForm::Shapes(_) => note_dropped(counts.dropped, &mut notes),
            LayerForm::Paths(_) => skeletons::note_skipped_paths(counts.dropped, &mut notes),
            LayerForm::Groups(_) => skeletons::note_group_counts(counts, &mut notes),
            LayerForm::Meshes(_) => meshes::note_counts(counts, &mut notes),
        }
        let items = match self.form {
            LayerForm::Written | LayerForm::Annotations => self.layer.items,
            _ => counts.values,
        };
        let layer = Layer {
            items,
            ..self.layer.clone()
        };
        FinishedLayer { layer, notes }
    }

    /// Returns what [`from_json`](Self::from_json) needs.
    pub(super) fn to_json(&self) -> Value {
        let (form, details) = match &self.form {
            LayerForm::Written => ("written", Value::Null),
            LayerForm::Annotations => ("annotations", Value::Null),
            LayerForm::Shapes(sources) => ("shapes", sources.clone()),
            LayerForm::Paths(sources) => ("paths", sources.clone()),
            LayerForm::Groups(sources) => ("groups", sources.clone()),
            LayerForm::Meshes(MeshForm::Legacy) => ("legacy_meshes", Value::Null),
            LayerForm::Meshes(MeshForm::Draco(sharding)) => (
                "meshes",
                sharding.map_or(Value::Null, |spec| spec.to_json()),
            ),
        };
        let shares = self.shares.iter().map(|share| {
            let parts = share
                .parts
                .iter()
                .map(|part| json!([part.name, part.size, part.crc32]));
            json!({ "task": share.task, "parts": parts.collect::<Value>() })
        });
        json!({
            "kind": self.layer.kind.folder(),
            "level": self.layer.level.number(),
            "layer": self.layer.to_json(),
            "notes": self.notes,
            "form": form,
            "details": details,
            "vertices": self.vertices,
            "shares": shares.collect::<Value>(),
        })
    }

    pub(super) fn from_json(json: &Value) -> Option<Self> {
        let details = json.get("details")?;
        let form = match member(json, "form")? {
            "written" => LayerForm::Written,
            "annotations" => LayerForm::Annotations,
            "shapes" => LayerForm::Shapes(details.clone()),
            "paths" => LayerForm::Paths(details.clone()),
            "groups" => LayerForm::Groups(details.clone()),
            "legacy_meshes" => LayerForm::Meshes(MeshForm::Legacy),
            "meshes" => LayerForm::Meshes(MeshForm::Draco(match details {
                Value::Null => None,
                spec => Some(ShardingSpec::from_json(spec).ok()?),
            })),
            _ => return None,
        };
        let shares = json.get("shares")?.as_array()?.iter().map(|share| {
            let parts: Vec<(String, u64, u32)> = member(share, "parts")?;
            let parts = parts.into_iter();
            Some(LayerShare {
                task: member(share, "task")?,
                parts: parts
                    .map(|(name, size, crc32)| SharePart { name, size, crc32 })
                    .collect(),
            })
        });
        Some(Self {
            layer: Layer::parse(json)?,
            notes: member(json, "notes")?,
            form,
            vertices: member(json, "vertices")?,
            shares: shares.collect::<Option<_>>()?,
        })
    }
}

/// A layer after all tasks.
pub(super) struct FinishedLayer {
    pub(super) layer: Layer,
    pub(super) notes: Vec<String>,
}

impl LayerShare {
    /// Reads the list of ids; `None` if the share is the whole layer.
    async fn ids(&self, job: &ExportJob) -> Result<Option<Vec<i64>>, ExportError> {
        let Some(part) = self.parts.first() else {
            return Ok(None);
        };
        let bytes = part.read(job).await?;
        let ids = bytes.as_chunks::<8>().0.iter();
        Ok(Some(ids.map(|id| i64::from_le_bytes(*id)).collect()))
    }
}

/// Writes the lists of partitions, as many at a time as there are threads. Returns the number of
/// annotations in the longest list of each level of the spatial index.
async fn write_lists(
    share: &LayerShare,
    work: &Export<'_>,
    job: &ExportJob,
) -> Result<Vec<u64>, ExportError> {
    let path = annotations::document();
    let info = AnnotationInfo::parse(&job.document(&path).await?)
        .map_err(|_| job.damaged_document(&path))?;
    let indexes = info.spatial.len().saturating_add(info.relationships.len());
    let mut longest = vec![0_u64; info.spatial.len()];
    let total = u64::try_from(share.parts.len()).unwrap_or(u64::MAX);
    let mut done = 0_u64;
    for parts in share.parts.chunks(current_num_threads().max(1)) {
        (work.reading.report)(done, total);
        let mut partitions = Vec::new();
        for part in parts {
            let partition = partition(&part.name)
                .filter(|partition| partition.index < indexes)
                .ok_or_else(|| job.damaged("plan.json"))?;
            partitions.push((partition, SpilledPartition::new(part.read(job).await?)));
        }
        let written: Vec<(usize, u64)> = partitions
            .par_iter()
            .map(|(partition, spilled)| {
                let list = annotations::write_partition(work.output, &info, *partition, spilled)?;
                Ok((partition.index, list))
            })
            .collect::<Result<_, ExportError>>()?;
        for (index, list) in written {
            if let Some(longest) = longest.get_mut(index) {
                *longest = list.max(*longest);
            }
        }
        done = done.saturating_add(u64::try_from(parts.len()).unwrap_or(u64::MAX));
    }
    Ok(longest)
}

/// Returns the partition whose entries a part has.
fn partition(name: &str) -> Option<PartitionId> {
    let mut numbers = name.split('-').skip(1);
    let (index, shard) = (numbers.next()?, numbers.next()?);
    Some(PartitionId {
        index: index.parse().ok()?,
        shard: shard.parse().ok()?,
    })
}

impl ShareResult {
    /// Returns what [`from_json`](Self::from_json) needs.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "values": self.counts.values,
            "dropped": self.counts.dropped,
            "empty": self.counts.empty,
            "longest": self.longest,
            "files": self.files,
        })
    }

    pub(super) fn from_json(json: &Value) -> Option<Self> {
        Some(Self {
            counts: LayerCounts {
                done: 0,
                values: member(json, "values")?,
                dropped: member(json, "dropped")?,
                empty: member(json, "empty")?,
            },
            longest: member(json, "longest")?,
            files: member(json, "files")?,
        })
    }
}

/// Returns the document of annotations with the limits that the tasks have found.
pub(super) fn with_limits(document: &[u8], results: &[ShareResult]) -> Option<String> {
    let mut info = AnnotationInfo::parse(document).ok()?;
    let mut longest = vec![0_u64; info.spatial.len()];
    for result in results {
        for (longest, list) in longest.iter_mut().zip(&result.longest) {
            *longest = (*list).max(*longest);
        }
    }
    annotations::set_limits(&mut info, &longest);
    Some(info.to_json())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(weights: &[u64], tasks: usize, expected: &[usize]) {
        let mut division = Division::new(weights.iter().sum(), tasks);
        let found: Vec<usize> = weights
            .iter()
            .map(|weight| division.next(*weight))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn things_are_divided_in_order() {
        check(&[1; 6], 3, &[0, 0, 1, 1, 2, 2]);
        check(&[1, 1], 4, &[1, 3]);
        check(&[9, 1, 1, 1], 2, &[0, 1, 1, 1]);
        check(&[0, 0], 2, &[0, 0]);
        check(&[u64::MAX / 2, u64::MAX / 2], 3, &[0, 2]);
    }
}
