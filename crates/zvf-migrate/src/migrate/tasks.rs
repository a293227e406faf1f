//! Migration by a job: tasks write cells, and the commit everything else.
//!
//! A task writes its share of the cells of each level: those of its chunks, and those of links, if
//! they are independent of each other. The commit migrates the other links, objects, groups and all
//! that is not in levels, and writes the nodes.

use std::collections::btree_map::Entry;

use serde_json::{Map, Value, json};
use zvf_build::{
    Design, GeometryKind,
    large::{design_from_json, design_to_json},
    migrate::{FragmentEnds, MigrationNote},
};
use zvf_dataset::{Dataset, Failure, Location, TaskPlanError, nodes};
use zvf_format::{links::LinkWidth, path::Delta};
use zvf_model::{grid::ChunkCoord, json::member, key::Key, level::LevelId, node_copy};
use zvf_store::{OpenOptions, Store};
use zvf_write::{
    job::{Job, PlannedJob, share},
    writer::{
        WriteReport, copies_nodes,
        job::{JobPart, begin, check, failed, suspend},
    },
};

use super::{
    DAMAGED, MigrateOptions, MigrateReport, Migration, OpenLevel, check_outside, checked,
    level::{ChunkFacts, Level},
    links::{CopiedLinks, WrittenLinks, coords},
    new_name,
    parts::{ChunkArrays, CopiedAttribute, CopiedChunks},
};

/// The cells that the tasks of a job have written.
pub(super) struct CopiedCells {
    job: Job,
    parts: usize,
}

/// A migration that tasks share, as the description of its job.
struct MigrateTask {
    source: String,
    /// The attributes of the root of the source.
    root: Value,
    name: String,
    options: MigrateOptions,
    parts: usize,
}

impl MigrateTask {
    fn describe(&self) -> Value {
        let mut design = Design::new(GeometryKind::Points);
        design.profile = self.options.profile;
        design.compression = self.options.compression;
        design.checksums = self.options.checksums;
        json!({
            "source": self.source,
            "root": self.root,
            "name": self.name,
            "design": design_to_json(&design),
            "skip_damaged": self.options.skip_damaged,
            "node_copy": self.options.node_copy,
            "seal": self.options.seal,
            "parts": self.parts,
        })
    }

    async fn of(job: &Job, open: &OpenOptions) -> Result<Self, Failure> {
        job.described(|json| Self::parse(json, open)).await
    }

    fn parse(json: &Value, open: &OpenOptions) -> Option<Self> {
        let design = design_from_json(&json["design"]).ok()?;
        let mut options = MigrateOptions::new(design.profile);
        options.compression = design.compression;
        options.checksums = design.checksums;
        options.skip_damaged = member(json, "skip_damaged")?;
        options.node_copy = member(json, "node_copy")?;
        options.seal = member(json, "seal")?;
        options.open = open.clone();
        Some(Self {
            source: member(json, "source")?,
            root: member(json, "root")?,
            name: member(json, "name")?,
            options,
            parts: member(json, "parts")?,
        })
    }

    /// Opens the source, which must be as it was when the migration was planned.
    async fn open_source(&self, job: &Job) -> Result<Dataset, Failure> {
        let source = open_source(&self.source, &self.options.open).await?;
        if root_of(&source).await? == self.root {
            Ok(source)
        } else {
            Err(job.problem(TaskPlanError::Outdated))
        }
    }
}

async fn open_source(address: &str, open: &OpenOptions) -> Result<Dataset, Failure> {
    Ok(Dataset::open_with(address, open).await?)
}

/// Returns the attributes of the root, which every transaction changes. The copy of the nodes is left
/// out.
async fn root_of(source: &Dataset) -> Result<Value, Failure> {
    let root = nodes::read_one(source.store(), &Key::root()).await?;
    let mut attributes: Map<String, Value> = root
        .map(|root| root.attributes().clone())
        .unwrap_or_default();
    attributes.remove(node_copy::MEMBER);
    Ok(Value::Object(attributes))
}

/// Plans a migration: reserves the address of the new store and describes the migration in the files
/// of a job.
pub async fn plan(
    source: &str,
    target: &str,
    options: &MigrateOptions,
    tasks: usize,
    replaces_leftovers: bool,
) -> Result<PlannedJob, Failure> {
    check_outside(source, target)?;
    let dataset = open_source(source, &options.open).await?;
    checked(&dataset, options).await?;
    let task = MigrateTask {
        source: source.to_owned(),
        root: root_of(&dataset).await?,
        name: new_name(&dataset, Some(target), options),
        options: options.clone(),
        parts: tasks,
    };
    let store = &Location::from(target).create(&options.open)?;
    let creation = begin(store, replaces_leftovers).await?;
    let id = creation.id().to_owned();
    let described = Job::open(store, &id)?.describe(&task.describe()).await;
    suspend(store, creation, described).await?;
    Ok(PlannedJob { id, parts: tasks })
}

/// Writes the cells of parts of a job.
pub async fn run_parts(
    store: &Store,
    id: &str,
    parts: &[usize],
    open: &OpenOptions,
) -> Result<(), Failure> {
    let job = Job::open(store, id)?;
    check(store, id).await?;
    let task = MigrateTask::of(&job, open).await?;
    let source = task.open_source(&job).await?;
    let (form, source) = checked(&source, &task.options).await?;
    for part in parts {
        let creation = JobPart::new(store, id);
        let migration = Migration::new(&source, &form, &creation, &task.options);
        let mut levels = Vec::new();
        for level in source.levels() {
            levels.push(migration.copy_level(*level, *part, task.parts).await?);
            migration.writer.forget_arrays();
        }
        let written = migration.writer.take_report();
        let result = json!({
            "levels": levels, "objects": written.objects, "bytes": written.bytes,
            "entries": creation.record().await?,
        });
        job.put_result(*part, result.to_string().into()).await?;
    }
    Ok(())
}

/// Completes the new store from the results of all parts.
pub async fn commit(store: &Store, id: &str, open: &OpenOptions) -> Result<MigrateReport, Failure> {
    let job = Job::open(store, id)?;
    check(store, id).await?;
    let task = MigrateTask::of(&job, open).await?;
    let source = task.open_source(&job).await?;
    let (form, source) = checked(&source, &task.options).await?;
    let mut creation = store
        .resume_create(id)
        .await
        .map_err(|source| failed(store, source))?;
    if copies_nodes(task.options.profile, task.options.node_copy) {
        creation.write_node_copy();
    }
    if task.options.seal {
        creation.write_seal();
    }
    let copied = CopiedCells {
        job,
        parts: task.parts,
    };
    let mut written = WriteReport::default();
    for part in 0..copied.parts {
        let result = copied.job.json_result(part).await?;
        written.objects += result["objects"].as_u64().unwrap_or(0);
        written.bytes += result["bytes"].as_u64().unwrap_or(0);
        let merged = result["entries"].as_str().map(|text| creation.merge(text));
        merged
            .and_then(Result::ok)
            .ok_or_else(|| copied.job.problem(TaskPlanError::Invalid))?;
    }
    let mut migration = Migration::new(&source, &form, &creation, &task.options);
    migration.copied = Some(copied);
    migration.writer.count(&written);
    let root = migration.run(&task.name).await?;
    let (written, mut report) = migration.finish();
    drop(migration);
    report.objects = written.objects + 1;
    report.bytes = written.bytes + root.len() as u64;
    let committed = creation.commit(&root).await;
    committed.map_err(|source| failed(store, source))?;
    Ok(report)
}

impl Migration<'_> {
    /// Writes the share of a task in the cells of a level, and returns what the commit needs.
    async fn copy_level(&self, id: LevelId, part: usize, parts: usize) -> Result<Value, Failure> {
        let OpenLevel {
            mut level,
            links,
            arrays,
        } = self.open_level(id).await?;
        // The commit opens the arrays again, and notes what is wrong with them.
        self.state().lost.clear();
        let own = share(arrays.chunks.len(), part, parts);
        let chunks = arrays.chunks.get(own).unwrap_or_default();
        let chunks = self.copy_chunks(&mut level, &arrays, chunks).await?;
        let links: Vec<Value> = self
            .copy_links(&level, &links, part, parts)
            .await?
            .iter()
            .map(|((delta, width), written)| {
                json!([delta.to_string(), width.get(), written.to_json()])
            })
            .collect();
        let mut facts: Vec<(&ChunkCoord, &ChunkFacts)> = level.chunks.iter().collect();
        facts.sort_unstable_by_key(|(chunk, _)| *chunk);
        let facts: Vec<Value> = facts
            .into_iter()
            .map(|(chunk, facts)| json!([chunk.coords(), facts.rows, facts.fragments, facts.ends]))
            .collect();
        let attributes: Vec<Value> = chunks
            .attributes
            .iter()
            .map(|own| json!({"chunks": own.chunks, "columns": own.columns}))
            .collect();
        let lost: Vec<Value> = core::mem::take(&mut self.state().lost)
            .into_iter()
            .map(|note| json!([note.path, note.why]))
            .collect();
        Ok(json!({
            "count": arrays.chunks.len(),
            "tiles": level.facts.tiles,
            "facts": facts,
            "vertices": chunks.vertices,
            "fragments": chunks.fragments,
            "attributes": attributes,
            "links": links,
            "lost": lost,
        }))
    }

    /// Reads what all tasks have written of a level.
    pub(super) async fn copied_level(
        &self,
        copied: &CopiedCells,
        level: &mut Level,
        arrays: &ChunkArrays,
    ) -> Result<(CopiedChunks, CopiedLinks), Failure> {
        let levels = self.source.levels();
        let number = levels.iter().position(|known| *known == level.id);
        let mut all = (CopiedChunks::default(), CopiedLinks::new());
        for part in 0..copied.parts {
            let result = copied.job.json_result(part).await?;
            let json = &result["levels"][number.unwrap_or(usize::MAX)];
            if json["count"].as_u64() != Some(arrays.chunks.len() as u64) {
                return Err(self.outdated());
            }
            let added = self
                .add_copied(level, &mut all, json)
                .filter(|()| all.0.attributes.len() == arrays.copied_attributes());
            added.ok_or_else(|| copied.job.problem(TaskPlanError::Invalid))?;
        }
        Ok(all)
    }

    /// Returns the error if the cells of tasks do not fit the source.
    pub(super) fn outdated(&self) -> Failure {
        Failure::Plan {
            address: self.source.address().to_owned(),
            source: TaskPlanError::Outdated,
        }
    }

    /// Adds the result of a task; `None` if it is invalid.
    fn add_copied(
        &self,
        level: &mut Level,
        (chunks, links): &mut (CopiedChunks, CopiedLinks),
        json: &Value,
    ) -> Option<()> {
        level.facts.tiles &= json["tiles"].as_bool()?;
        for facts in json["facts"].as_array()? {
            let (chunk, facts) = chunk_facts(facts)?;
            level.chunks.insert(chunk, facts);
        }
        chunks.vertices.extend(coords(&json["vertices"])?);
        chunks.fragments.extend(coords(&json["fragments"])?);
        let attributes = json["attributes"].as_array()?;
        let count = attributes.len();
        chunks
            .attributes
            .resize_with(count, CopiedAttribute::default);
        for (all, own) in chunks.attributes.iter_mut().zip(attributes) {
            all.chunks.extend(coords(&own["chunks"])?);
            all.columns = all.columns.or(own["columns"].as_u64());
        }
        let own = json["links"].as_array()?;
        for own in own {
            let (key, written) = written_links(own)?;
            match links.entry(key) {
                Entry::Vacant(entry) => drop(entry.insert(written)),
                Entry::Occupied(mut all) => all.get_mut().append(written)?,
            }
        }
        // All tasks write the same links.
        (own.len() == links.len()).then_some(())?;
        for lost in json["lost"].as_array()? {
            let note = MigrationNote::new(lost[0].as_str()?, DAMAGED, 1);
            self.lost(note.because(lost[1].as_str().unwrap_or_default()));
        }
        Some(())
    }
}

/// Parses the state of a chunk.
fn chunk_facts(json: &Value) -> Option<(ChunkCoord, ChunkFacts)> {
    let chunk = json[0].as_array()?.iter().map(Value::as_i64);
    let ends = json[3].as_array()?.iter().map(|ends| match ends {
        Value::Null => Some(None),
        ends => Some(Some((ends[0].as_u64()?, ends[1].as_u64()?))),
    });
    let facts = ChunkFacts {
        rows: json[1].as_u64()?,
        fragments: u32::try_from(json[2].as_u64()?).ok()?,
        ends: ends.collect::<Option<FragmentEnds>>()?,
        named: Vec::new(),
    };
    Some((ChunkCoord::new(chunk.collect::<Option<Vec<i64>>>()?), facts))
}

fn written_links(json: &Value) -> Option<((Delta, LinkWidth), WrittenLinks)> {
    let delta = Delta::parse(json[0].as_str()?).ok()?;
    let width = LinkWidth::new(json[1].as_u64()?).ok()?;
    Some(((delta, width), WrittenLinks::from_json(&json[2])?))
}
