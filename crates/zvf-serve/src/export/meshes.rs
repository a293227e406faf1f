//! Meshes as files.

use rayon::prelude::*;
use zvf::QueryResult;
use zvf_model::level::LevelId;
use zvf_precomputed::{
    LegacyMeshFragment, LegacyMeshInfo, LegacyMeshManifest, ShardBuilder, ShardEncoding,
    ShardingSpec,
};

use super::{
    Export, ExportError, MeshFormat,
    objects::{self, ObjectShare},
    output::sharding,
    progress::{LayerCounts, LayerProgress},
};
use crate::layers::{
    Layer, LayerError, LayerKind,
    attributes::narrow,
    meshes::{EncodedMesh, MeshLevels, ObjectMesh, encode, mesh_info},
    segments::PROPERTIES,
    shapes::{mesh_of, note_dropped, shapes},
    survey::StoreSurvey,
};
use crate::spill::{PartitionId, SpillEntry};

/// Bytes of a vertex with its share of triangles, to choose the number of shards.
const VERTEX: u64 = 8;

/// Writes a mesh for each object.
pub(super) async fn write(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<Layer, ExportError> {
    let share = ObjectShare::all(survey);
    let form = design(work, survey, notes)?;
    let counts = match form {
        MeshForm::Draco(sharding) => {
            let has_objects = survey.has_objects;
            let levels = MeshLevels::new(work.reading.dataset, has_objects, notes).await?;
            write_levels(work, &levels, sharding, &share).await?
        }
        MeshForm::Legacy => write_legacy(work, &share).await?,
    };
    note_counts(counts, notes);
    Ok(Layer {
        items: counts.values,
        ..described(survey)
    })
}

/// The form of the meshes of a layer.
#[derive(Clone, Copy)]
pub(super) enum MeshForm {
    /// Draco fragments with these shards.
    Draco(Option<ShardingSpec>),
    Legacy,
}

/// Plans the meshes, and writes the documents of the layer.
pub(super) fn design(
    work: &Export<'_>,
    survey: &StoreSurvey,
    notes: &mut Vec<String>,
) -> Result<MeshForm, ExportError> {
    if !survey.vertex.columns.is_empty() {
        notes.push("attributes of vertices are left out: meshes cannot hold them".to_owned());
    }
    let folder = LayerKind::Meshes.folder();
    if let Some(json) = survey.segments.to_json() {
        let path = format!("{folder}/{PROPERTIES}/info");
        work.output.write(&path, json.as_bytes())?;
    }
    let path = format!("{folder}/info");
    match work.options.mesh_format {
        MeshFormat::Draco => {
            let mut info = mesh_info(&work.reading, survey)?;
            let objects = u64::try_from(survey.segments.count).unwrap_or(u64::MAX);
            let bytes = survey.vertices.saturating_mul(VERTEX);
            let bytes = work.options.sharded_bytes(bytes);
            info.sharding = sharding(work.options.sharded, objects, || {
                // Fragments are read by ranges of the shard.
                ShardingSpec::for_any(objects, bytes).data_encoding(ShardEncoding::Raw)
            });
            work.output.write(&path, info.to_json().as_bytes())?;
            Ok(MeshForm::Draco(info.sharding))
        }
        MeshFormat::Legacy => {
            nanometres(work)?;
            let info = LegacyMeshInfo {
                segment_properties: survey
                    .segments
                    .has_document()
                    .then(|| PROPERTIES.to_owned()),
            };
            work.output.write(&path, info.to_json().as_bytes())?;
            Ok(MeshForm::Legacy)
        }
    }
}

/// Describes the layer, without the number of its items.
pub(super) fn described(survey: &StoreSurvey) -> Layer {
    Layer {
        kind: LayerKind::Meshes,
        level: LevelId::FULL,
        items: 0,
        shader: None,
        shown: survey.shown(),
        is_related: false,
        transform: None,
    }
}

/// Notes what the meshes leave out.
pub(super) fn note_counts(counts: LayerCounts, notes: &mut Vec<String>) {
    note_dropped(counts.dropped, notes);
    let empty = counts.empty;
    if empty > 0 {
        notes.push(format!("{empty} objects without triangles left out"));
    }
}

/// Writes meshes with levels of detail.
pub(super) async fn write_levels(
    work: &Export<'_>,
    levels: &MeshLevels,
    sharding: Option<ShardingSpec>,
    share: &ObjectShare<'_>,
) -> Result<LayerCounts, ExportError> {
    let mut sink = MeshSink {
        work,
        sharding,
        progress: LayerProgress::open(work.output, LayerKind::Meshes.folder())?,
    };
    let done = sink.progress.counts.done;
    objects::for_each_group_of_levels(work, share, levels, done, |results| {
        let mut dropped = 0_u64;
        let meshes = levels.meshes(results, &mut dropped).into_par_iter();
        let encoded: Vec<Option<(u64, EncodedMesh)>> = meshes
            .map(|mesh| {
                let ObjectMesh { object, levels } = mesh;
                Ok(encode(&levels)?.map(|encoded| (object, encoded)))
            })
            .collect::<Result<_, LayerError>>()?;
        for mesh in encoded {
            match mesh {
                Some((object, mesh)) => sink.push(object, &mesh)?,
                None => sink.progress.add_empty(),
            }
        }
        sink.progress.add_group(dropped);
        sink.progress.keep()
    })
    .await?;
    sink.finish()
}

/// Meshes that are being written.
struct MeshSink<'a> {
    work: &'a Export<'a>,
    sharding: Option<ShardingSpec>,
    progress: LayerProgress<'a>,
}

impl MeshSink<'_> {
    /// Adds the mesh of an object.
    fn push(&mut self, object: u64, mesh: &EncodedMesh) -> Result<(), ExportError> {
        self.progress.add_value();
        let Some(spec) = self.sharding else {
            let path = format!("{}/{object}", LayerKind::Meshes.folder());
            self.work.output.write(&path, &mesh.data)?;
            return self
                .work
                .output
                .write(&format!("{path}.index"), &mesh.manifest);
        };
        let shard = spec.locate(object).shard;
        let entry = SpillEntry {
            key: object,
            // The offset of the manifest.
            id: u64::try_from(mesh.data.len()).unwrap_or(u64::MAX),
            record: &[mesh.data.as_slice(), &mesh.manifest].concat(),
        };
        let partition = PartitionId { index: 0, shard };
        Ok(self.progress.spill.push(partition, entry)?)
    }

    /// Writes the shards.
    fn finish(self) -> Result<LayerCounts, ExportError> {
        if let Some(spec) = self.sharding {
            let folder = LayerKind::Meshes.folder();
            let spill = &self.progress.spill;
            let partitions = spill.partitions();
            partitions.par_iter().try_for_each(|partition| {
                let spilled = spill.read(*partition)?;
                let mut shard = ShardBuilder::new(spec, partition.shard);
                for entry in spilled.entries() {
                    let end = usize::try_from(entry.id).unwrap_or(usize::MAX);
                    let parts = entry.record.split_at_checked(end);
                    let (data, manifest) = parts.ok_or(ExportError::Record)?;
                    shard.push_after(entry.key, data, manifest)?;
                }
                let path = format!("{folder}/{}", spec.file_name(partition.shard));
                self.work.output.write(&path, &shard.finish())
            })?;
        }
        Ok(self.progress.counts)
    }
}

/// Writes meshes of level 0 in the single-resolution format.
pub(super) async fn write_legacy(
    work: &Export<'_>,
    share: &ObjectShare<'_>,
) -> Result<LayerCounts, ExportError> {
    let scale = nanometres(work)?;
    let folder = LayerKind::Meshes.folder();
    let mut progress = LayerProgress::open(work.output, folder)?;
    let done = progress.counts.done;
    let has_objects = share.ids.is_some();
    objects::for_each_group(work, share, done, |batch| {
        let mut dropped = 0_u64;
        for (object, mesh) in legacy_meshes(batch, has_objects, scale, &mut dropped) {
            let fragment = format!("{object}:0:0");
            let path = format!("{folder}/{fragment}");
            work.output.write(&path, &mesh.encode()?)?;
            let manifest = LegacyMeshManifest {
                fragments: vec![fragment],
            };
            let path = format!("{folder}/{object}:0");
            work.output.write(&path, manifest.to_json().as_bytes())?;
            progress.add_value();
        }
        progress.add_group(dropped);
        progress.keep()
    })
    .await?;
    Ok(progress.counts)
}

/// Returns nanometres per unit of each axis.
fn nanometres(work: &Export<'_>) -> Result<[f64; 3], LayerError> {
    let scale = work.reading.space.nanometres();
    scale.ok_or_else(|| LayerError::Axes(work.reading.space.rank()))
}

/// Returns the mesh of each object of a result, in nanometres.
fn legacy_meshes(
    batch: &QueryResult,
    has_objects: bool,
    scale: [f64; 3],
    dropped: &mut u64,
) -> Vec<(u64, LegacyMeshFragment)> {
    let mut meshes = Vec::new();
    for shape in shapes(batch, has_objects, dropped) {
        let Some(mesh) = mesh_of(batch, &shape) else {
            *dropped = dropped.saturating_add(1);
            continue;
        };
        let mut positions = mesh.positions;
        for (along, scale) in positions.iter_mut().flat_map(|at| at.iter_mut().zip(scale)) {
            *along = narrow(f64::from(*along) * scale);
        }
        let triangles = mesh.triangles;
        let fragment = LegacyMeshFragment {
            positions,
            triangles,
        };
        meshes.push((shape.object, fragment));
    }
    meshes
}
