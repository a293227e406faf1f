//! Chunks of a level built by other processes, with tasks passed as files.

use std::{
    fs,
    io::Write as _,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use serde_json::{Map, Value, json};
use zvf_build::coarsen::FragmentReference;
use zvf_dataset::{Failure, TaskPlanError, base};
use zvf_model::{grid::ChunkCoord, json::member, key::Key, level::LevelId, root::CrossLevel};
use zvf_store::{OpenOptions, Store, Transaction};
use zvf_write::{
    job::{Job, PlannedJob},
    task_runner::{TaskRunner, read_json, scratch_error, write_json},
    writer::run,
};

use super::{
    LevelDesign, LevelReport, PyramidOptions,
    build::{Build, NewLevel},
    clear, commit_kept,
    design::Coarsening,
    form,
    shards::Groups,
    source::{SortedLinks, Source},
    stage_rest, stats,
    tally::{Part, Tally, max_error},
};

/// Number of tasks per process, so that all processes stay busy until the end.
const TASKS_PER_PROCESS: usize = 4;

impl Build<'_> {
    /// Builds all chunks by tasks that `runner` runs.
    pub(super) async fn run_tasks(
        &mut self,
        runner: Arc<dyn TaskRunner>,
        groups: &Groups,
    ) -> Result<(), Failure> {
        self.check_shared()?;
        let scratch = tempfile::tempdir().map_err(|source| Failure::Scratch {
            path: std::env::temp_dir().display().to_string(),
            source,
        })?;
        let shared = scratch.path().join("level.json");
        write_json(&shared, &self.attributes())?;
        let mut tasks = Vec::new();
        let ranges = groups.split(runner.at_once().saturating_mul(TASKS_PER_PROCESS));
        for (number, range) in ranges.into_iter().enumerate() {
            let task = scratch.path().join(format!("task-{number}.json"));
            let result = scratch.path().join(format!("result-{number}"));
            let attributes = json!({
                "level": shared, "result": result, "first": range.start, "end": range.end,
            });
            write_json(&task, &attributes)?;
            tasks.push((task, result));
        }
        let files: Vec<PathBuf> = tasks.iter().map(|(task, _)| task.clone()).collect();
        run(move || runner.run(&files).map_err(Failure::Source)).await?;
        for (_, result) in tasks {
            let attributes = read_json(&result.with_extension("json"))?;
            let rows = attributes["rows"]
                .as_str()
                .ok_or_else(|| no_task(&result))?;
            let rows = Path::new(rows);
            let rows = fs::read(rows).map_err(|source| scratch_error(rows, source))?;
            self.merge(&attributes, &rows, || no_task(&result)).await?;
        }
        self.writer.expect(groups.len());
        self.writer.done(groups.len());
        Ok(())
    }

    /// Adds the result of a task.
    async fn merge(
        &mut self,
        attributes: &Value,
        rows: &[u8],
        invalid: impl Fn() -> Failure,
    ) -> Result<(), Failure> {
        let staged = attributes["staged"].as_str().ok_or_else(&invalid)?;
        self.transaction().merge_staged(staged.as_bytes()).await?;
        let tally = tally(&attributes["tally"], rows).ok_or_else(invalid)?;
        self.tally.append(tally);
        Ok(())
    }

    /// Adds the results of a job.
    async fn collect(&mut self, job: &Job, parts: usize) -> Result<(), Failure> {
        let invalid = || job.problem(TaskPlanError::Invalid);
        for part in 0..parts {
            let (attributes, rows) = job.table(part).await?;
            self.merge(&attributes, &rows, invalid).await?;
        }
        Ok(())
    }

    /// Checks that the chunks of the level can be built by tasks.
    pub(super) fn check_shared(&self) -> Result<(), Failure> {
        if self.shared.form.is_current() {
            return Ok(());
        }
        Err(Failure::NoPyramid {
            why: "only levels of stores of 0.9 are shared among processes; make them in one, or \
                  `zvf migrate` the store",
        })
    }

    /// Returns the description that all tasks of the level share.
    fn attributes(&mut self) -> Value {
        let transaction = self.transaction();
        let (id, base) = (transaction.id().to_owned(), transaction.base());
        let kept = self.shared.recipe.kept.as_ref();
        json!({
            "address": self.source.dataset.address(),
            "transaction": id,
            "base": base,
            "source": self.source.id.number(),
            "target": self.target.number(),
            "is_again": self.is_again,
            "cross_level": self.options.cross_level.as_str(),
            "depth": self.options.depth,
            "kept": kept.map(|kept| kept.iter().map(|kept| u8::from(*kept)).collect::<Vec<u8>>()),
            "zvf_pyramid": stats::describe(self),
        })
    }
}

/// A level that tasks build, as [`Build::attributes`] describes it.
struct LevelTask {
    transaction: String,
    base: u64,
    source: LevelId,
    target: LevelId,
    design: LevelDesign,
    coarsening: Coarsening,
    kept: Option<Vec<bool>>,
    options: PyramidOptions,
}

impl LevelTask {
    /// Parses a description; `None` if it is invalid.
    fn parse(level: &Value) -> Option<Self> {
        let recipe = stats::recipe(level.as_object()?)?;
        let kept: Option<Vec<u64>> = member(level, "kept")?;
        Some(Self {
            transaction: member(level, "transaction")?,
            base: member(level, "base")?,
            source: LevelId::new(member(level, "source")?),
            target: LevelId::new(member(level, "target")?),
            design: recipe.design,
            coarsening: Coarsening {
                rules: recipe.rules.clone(),
                is_again: member(level, "is_again")?,
            },
            kept: kept.map(|kept| kept.into_iter().map(|kept| kept == 1).collect()),
            options: PyramidOptions {
                rules: recipe.rules,
                cross_level: CrossLevel::of_word(member(level, "cross_level")?)?,
                depth: member(level, "depth")?,
                ..PyramidOptions::default()
            },
        })
    }

    /// Checks that the store is as it was when the level was planned.
    fn check_base(&self, transaction: &Transaction) -> Result<(), Failure> {
        if transaction.base() == self.base {
            Ok(())
        } else {
            Err(Failure::NoPyramid {
                why: "another writer changed the store; build the level again",
            })
        }
    }

    /// Builds the chunks of a range. Returns the result and its row numbers.
    async fn run(
        &self,
        store: &Store,
        range: Range<usize>,
        invalid: impl Fn() -> Failure,
    ) -> Result<(Value, Vec<u8>), Failure> {
        let store = store.without_node_copy();
        let transaction = store.join_transaction(&self.transaction).await?;
        self.check_base(&transaction)?;
        let dataset = base::open(store).await?;
        let source = Source::open(&dataset, self.source, &self.coarsening).await?;
        let form = form(&dataset).await?;
        let level = NewLevel {
            id: self.target,
            design: &self.design,
            kept: self.kept.clone(),
            form,
            transaction,
            pending: None,
        };
        let mut build = Build::new(&source, &self.options, &self.coarsening, level)?;
        let sorted: SortedLinks = source.sorted_links(&build.scale);
        let groups = build.chunk_groups();
        if range.end > groups.len() {
            return Err(invalid());
        }
        build.make_groups(&sorted, groups, range).await?;
        let mut rows = Vec::new();
        build.count_written();
        let tally = encode_tally(&build.tally, &mut rows);
        let staged = build.transaction().staged_journal();
        let staged = String::from_utf8_lossy(&staged);
        Ok((json!({"tally": tally, "staged": staged}), rows))
    }
}

/// Returns the range of chunks between two members; `None` if it is invalid.
fn range(attributes: &Value) -> Option<Range<usize>> {
    let range = member(attributes, "first")?..member(attributes, "end")?;
    (range.start <= range.end).then_some(range)
}

/// Builds the chunks of a task.
pub async fn run_task(attributes: &Value, open: &OpenOptions) -> Result<(), Failure> {
    let name = |member: &str| attributes[member].as_str().map(PathBuf::from);
    let (Some(path), Some(result)) = (name("level"), name("result")) else {
        return Err(no_task(Path::new("task")));
    };
    let level = read_json(&path)?;
    let missing = || no_task(&path);
    let store = open.open(level["address"].as_str().ok_or_else(missing)?)?;
    let task = LevelTask::parse(&level).ok_or_else(missing)?;
    let range = range(attributes).ok_or_else(missing)?;
    let (mut made, bytes) = task.run(&store, range, missing).await?;
    // If a task runs twice at the same time, the result names the rows file of the run that wrote
    // it.
    let folder = result.parent().unwrap_or(Path::new("."));
    let rows = tempfile::Builder::new().suffix(".rows").tempfile_in(folder);
    let kept = rows.and_then(|mut rows| {
        rows.write_all(&bytes)?;
        Ok(rows.keep()?.1)
    });
    let rows = kept.map_err(|source| scratch_error(&result, source))?;
    made["rows"] = json!(rows);
    write_json(&result.with_extension("json"), &made)
}

/// Plans a level whose chunks tasks build: describes it in the files of a job.
pub(super) async fn plan(
    mut build: Build<'_>,
    store: &Store,
    tasks: usize,
) -> Result<PlannedJob, Failure> {
    build.check_shared()?;
    let groups = build.chunk_groups();
    let ranges: Vec<Value> = groups
        .split(tasks)
        .into_iter()
        .map(|range| json!({"first": range.start, "end": range.end}))
        .collect();
    let parts = ranges.len();
    let mut level = build.attributes();
    level["ranges"] = Value::Array(ranges);
    let id = build.transaction().id().to_owned();
    Job::open(store, &id)?.describe(&level).await?;
    Ok(PlannedJob { id, parts })
}

/// Builds the chunks of parts of a job.
pub async fn run_parts(store: &Store, id: &str, parts: &[usize]) -> Result<(), Failure> {
    let job = Job::open(store, id)?;
    let invalid = || job.problem(TaskPlanError::Invalid);
    let level = job.description().await?;
    let task = LevelTask::parse(&level).ok_or_else(invalid)?;
    for part in parts {
        let range = level["ranges"].get(*part).and_then(range);
        let made = task.run(store, range.ok_or_else(invalid)?, invalid).await;
        let (made, rows) = made.map_err(|error| outdated(&job, error))?;
        job.put_table(*part, &made, &rows).await?;
    }
    Ok(())
}

/// Commits a level from the results of all parts.
pub async fn commit(store: &Store, id: &str) -> Result<LevelReport, Failure> {
    let start = Instant::now();
    let job = Job::open(store, id)?;
    let invalid = || job.problem(TaskPlanError::Invalid);
    let level = job.description().await?;
    let task = LevelTask::parse(&level).ok_or_else(invalid)?;
    let parts = level["ranges"].as_array().ok_or_else(invalid)?.len();
    let store = store.without_node_copy();
    let mut transaction = store.resume_transaction(id).await?;
    let checked = task.check_base(&transaction);
    checked.map_err(|error| outdated(&job, error))?;
    let dataset = base::open(store).await?;
    let source = Source::open(&dataset, task.source, &task.coarsening).await?;
    let present: Vec<LevelId> = base::surveyed(&dataset).await?.levels().to_vec();
    clear::levels(dataset.store(), &mut transaction, task.target, &present).await?;
    let level = NewLevel {
        id: task.target,
        design: &task.design,
        kept: task.kept.clone(),
        form: form(&dataset).await?,
        transaction,
        pending: None,
    };
    let mut build = Build::new(&source, &task.options, &task.coarsening, level)?;
    build.collect(&job, parts).await?;
    let sorted: SortedLinks = source.sorted_links(&build.scale);
    let root = stage_rest(&mut build, &sorted).await?;
    // The objects of the parts serve another attempt.
    commit_kept(&mut build, &root, start).await
}

/// Replaces the error of a changed store by that of an outdated plan.
fn outdated(job: &Job, error: Failure) -> Failure {
    match error {
        Failure::NoPyramid { why } if why.starts_with("another writer") => {
            job.problem(TaskPlanError::Outdated)
        }
        error => error,
    }
}

fn no_task(path: &Path) -> Failure {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, "does not describe a task");
    scratch_error(path, source)
}

/// Returns the results of a task as JSON, and appends its row numbers to `bytes`.
fn encode_tally(tally: &Tally, bytes: &mut Vec<u8>) -> Value {
    for (named, chunk) in &tally.named {
        for number in [named.object, named.at, named.fragment, *chunk] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
    }
    let mut parents = Vec::new();
    for (chunk, rows) in &tally.parents {
        bytes.extend(rows.iter().flat_map(|row| row.to_le_bytes()));
        parents.push(json!([chunk.coords(), rows.len()]));
    }
    let put: Map<String, Value> = tally
        .put
        .iter()
        .map(|(path, part)| {
            let attributes = json!({"chunks": part.chunks, "says": part.attributes});
            (path.to_string(), attributes)
        })
        .collect();
    let chunks: Vec<&[i64]> = tally.chunk_of.iter().map(ChunkCoord::coords).collect();
    json!({
        "rows": tally.rows, "names": tally.names, "chunks": tally.chunks, "links": tally.links,
        "physical": tally.physical, "between_levels": tally.between_levels,
        "between_chunks": tally.between_chunks, "is_untiled": tally.is_untiled,
        "error": tally.error, "dropped": tally.dropped, "objects": tally.objects,
        "bytes": tally.bytes,
        "named": tally.named.len(), "parents": parents, "put": put, "chunk_of": chunks,
    })
}

/// Parses the results that [`encode_tally`] returns.
fn tally(attributes: &Value, bytes: &[u8]) -> Option<Tally> {
    let count = |name: &str| member::<u64>(attributes, name);
    let (words, rest) = bytes.as_chunks::<4>();
    let mut words = words.iter().map(|word| u32::from_le_bytes(*word));
    let mut named = Vec::new();
    for _ in 0..count("named")? {
        let object = words.next()?;
        let (at, fragment) = (words.next()?, words.next()?);
        let named_there = FragmentReference {
            object,
            at,
            fragment,
        };
        named.push((named_there, words.next()?));
    }
    let mut tally = Tally {
        rows: count("rows")?,
        names: count("names")?,
        chunks: count("chunks")?,
        links: count("links")?,
        physical: count("physical")?,
        between_levels: count("between_levels")?,
        between_chunks: count("between_chunks")?,
        is_untiled: member(attributes, "is_untiled")?,
        error: member(attributes, "error")?,
        dropped: count("dropped")?,
        objects: count("objects")?,
        bytes: count("bytes")?,
        named,
        ..Tally::default()
    };
    for chunk in member::<Vec<Vec<i64>>>(attributes, "chunk_of")? {
        tally.chunk_of.push(ChunkCoord::new(chunk));
    }
    for (chunk, len) in member::<Vec<(Vec<i64>, usize)>>(attributes, "parents")? {
        let rows: Vec<u32> = words.by_ref().take(len).collect();
        if rows.len() < len {
            return None;
        }
        tally.parents.insert(ChunkCoord::new(chunk), rows);
    }
    for (path, part) in attributes.get("put")?.as_object()? {
        let part = Part {
            chunks: member(part, "chunks")?,
            attributes: part.get("says").and_then(Value::as_object).cloned(),
        };
        tally.put.insert(Key::parse(path).ok()?, part);
    }
    let is_all = words.next().is_none() && rest.is_empty();
    let chunks = tally.chunk_of.len();
    let is_known = |(_, chunk): &(FragmentReference, u32)| (*chunk as usize) < chunks;
    (is_all && tally.named.iter().all(is_known)).then_some(tally)
}

impl Tally {
    /// Appends the results of another task.
    fn append(&mut self, other: Self) {
        let before = u32::try_from(self.chunk_of.len()).unwrap_or(u32::MAX);
        self.rows += other.rows;
        self.names += other.names;
        self.chunks += other.chunks;
        self.links += other.links;
        self.physical += other.physical;
        self.between_levels += other.between_levels;
        self.between_chunks += other.between_chunks;
        self.is_untiled |= other.is_untiled;
        self.error = max_error(self.error, other.error);
        self.dropped += other.dropped;
        self.objects += other.objects;
        self.bytes += other.bytes;
        let named = other.named.into_iter();
        self.named
            .extend(named.map(|(named, chunk)| (named, chunk.saturating_add(before))));
        self.chunk_of.extend(other.chunk_of);
        self.parents.extend(other.parents);
        for (path, part) in other.put {
            let own = self.put.entry(path).or_default();
            own.chunks.extend(part.chunks);
            own.attributes = own.attributes.take().or(part.attributes);
        }
    }
}
