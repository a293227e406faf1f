//! Creation of a store by a job.

use core::time::Duration;
use std::{
    sync::{Mutex, PoisonError},
    time::Instant,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use zvf_build::{
    Design,
    large::{Outline, PartitionResult, Partitioner},
};
use zvf_dataset::{Failure, TaskPlanError};
use zvf_model::{json::member, key::Key};
use zvf_store::{CreateError, Creation, CreationPart, Store};

use super::{
    GeometrySource, Shared, Survey, complete, file,
    pieces::{PartPieces, PieceKind, PieceShifts},
    read, split,
};
use crate::{
    job::{Job, PlannedJob},
    task_runner::scratch_error,
    writer::{
        CreateOptions, WriteReport,
        cell_writer::{CellWriter, Destination, Objects},
        copies_nodes, named, root, run,
    },
};

/// The part of the memory of a task that holds changes of pieces.
const MEMORY_SHARE: usize = 16;

/// Time after which a task over the network checks again that its creation was not discarded.
const CHECK_PERIOD: Duration = Duration::from_secs(1);

/// Plans the creation of a store: partitions the geometry and reserves the address. `parts` is a lower
/// bound on the number of parts.
pub async fn plan(
    store: &Store,
    name: &str,
    source: &mut dyn GeometrySource,
    design: Design,
    options: &CreateOptions,
    parts: usize,
    replaces_leftovers: bool,
) -> Result<PlannedJob, Failure> {
    let design = named(design, Some(name));
    let has_copy = copies_nodes(design.profile, options.node_copy);
    let survey = Survey::of(source, design, options)?;
    let creation = begin(store, replaces_leftovers).await?;
    let flags = json!({"node_copy": has_copy, "seal": options.seal});
    let staged = Box::pin(stage(
        store, &creation, source, survey, options, parts, flags,
    ));
    let planned = staged.await;
    suspend(store, creation, planned).await
}

/// Begins the creation of a store by a job.
pub async fn begin(store: &Store, replaces_leftovers: bool) -> Result<Creation, Failure> {
    let begun = if replaces_leftovers {
        store.begin_create_replacing_leftovers().await
    } else {
        store.begin_create().await
    };
    begun.map_err(|source| failed(store, source))
}

/// Suspends the creation of a planned job, or aborts that of a job that could not be planned.
pub async fn suspend<T>(
    store: &Store,
    creation: Creation,
    planned: Result<T, Failure>,
) -> Result<T, Failure> {
    match planned {
        Ok(planned) => {
            let suspended = creation.suspend().await;
            suspended.map_err(|source| failed(store, source))?;
            Ok(planned)
        }
        Err(error) => {
            // Leftovers are marked, and the next creation at this address deletes them.
            let _ = creation.abort().await;
            Err(error)
        }
    }
}

async fn stage(
    store: &Store,
    creation: &Creation,
    source: &mut dyn GeometrySource,
    survey: Survey,
    options: &CreateOptions,
    parts: usize,
    mut description: Value,
) -> Result<PlannedJob, Failure> {
    let parts = survey.parts(options).max(parts);
    let (batch, vertices) = (survey.batch, survey.vertices);
    let tables = source.tables().map_err(Failure::of_source)?;
    let mut splitter = Partitioner::new(survey.outline, parts);
    let scratch = tempfile::tempdir().map_err(|source| Failure::Scratch {
        path: std::env::temp_dir().display().to_string(),
        source,
    })?;
    split(source, &mut splitter, batch, scratch.path(), None)?;
    let (outline, chunks) = splitter.settled();
    if let Some(check) = &options.check {
        check(&outline.estimate(vertices, &chunks)).map_err(Failure::Declined)?;
    }
    let job = Job::open(store, creation.id())?;
    let mut count = 0;
    for part in 0..splitter.parts() {
        let path = file(scratch.path(), part);
        if path.exists() {
            job.put(&pieces(count), read(&path)?).await?;
            std::fs::remove_file(&path).map_err(|source| scratch_error(&path, source))?;
            count += 1;
        }
    }
    let outline = outline.to_json(&chunks).to_string();
    job.put("outline", outline.into()).await?;
    job.put("state", splitter.to_bytes(&tables).into()).await?;
    description["parts"] = json!(count);
    job.describe(&description).await?;
    Ok(PlannedJob {
        id: creation.id().to_owned(),
        parts: count,
    })
}

/// Checks that the creation of a job is neither complete nor replaced.
pub async fn check(store: &Store, id: &str) -> Result<(), Failure> {
    match store.check_suspended(id).await {
        Err(CreateError::AlreadyExists | CreateError::TakenOver) => {
            Err(Job::open(store, id)?.problem(TaskPlanError::Outdated))
        }
        checked => checked.map_err(|source| failed(store, source)),
    }
}

/// The objects that a task of a job puts, at their keys in the new store.
///
/// A scheduler may discard a job whose tasks still run, and begin another creation at the address.
/// Such tasks fail instead of putting cells into a store of others.
#[derive(Debug)]
pub struct JobPart {
    part: CreationPart,
    store: Store,
    id: String,
    /// The time of the last check.
    checked: Mutex<Option<Instant>>,
}

impl JobPart {
    /// Joins the creation of a job.
    pub fn new(store: &Store, id: &str) -> Self {
        Self {
            part: store.join_creation(),
            store: store.clone(),
            id: id.to_owned(),
            checked: Mutex::default(),
        }
    }

    /// Returns the record of the objects put so far. Fails if the job was discarded.
    pub async fn record(&self) -> Result<String, Failure> {
        check(&self.store, &self.id).await?;
        Ok(self.part.record())
    }

    /// Checks that the creation is in progress, unless that was checked just now over a network.
    async fn check(&self) -> Result<(), Failure> {
        let last = *self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |last: Instant| last.elapsed() < CHECK_PERIOD;
        if !self.store.is_near() && last.is_some_and(is_recent) {
            return Ok(());
        }
        let now = Instant::now();
        check(&self.store, &self.id).await?;
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
        Ok(())
    }

    /// Deletes objects that were put while the job was discarded, unless there is another creation
    /// or a store, which may have put its own at these keys.
    async fn take_back(&self, keys: Vec<Key>) -> Result<(), Failure> {
        let is_free = matches!(
            self.store.check_suspended(&self.id).await,
            Err(CreateError::TakenOver)
        );
        let unfinished = self.store.is_unfinished().await;
        if is_free && !unfinished.map_err(|source| failed(&self.store, source))? {
            self.store.delete_many(keys).await?;
        }
        Ok(())
    }
}

impl Destination for JobPart {
    fn put(&self, objects: Objects) -> BoxFuture<'_, Result<(), Failure>> {
        Box::pin(async move {
            self.check().await?;
            let keys = objects.iter().map(|(key, _)| key.clone()).collect();
            let put = self.part.put_many(objects).await;
            if let Err(discarded) = self.check().await {
                self.take_back(keys).await?;
                return Err(discarded);
            }
            Ok(put?)
        })
    }
}

/// Writes the cells of parts.
pub async fn run_parts(store: &Store, id: &str, parts: &[usize]) -> Result<(), Failure> {
    let job = Job::open(store, id)?;
    check(store, id).await?;
    let (outline, chunks) = Outline::from_json(&job.json("outline").await?)?;
    let shared = Shared::new(outline, chunks)?;
    let mut shares = SharedParts::read(&job, parts).await?;
    for part in parts {
        let (bytes, links) = match &mut shares {
            Some(shares) => shares.part(&job, *part).await?,
            None => (job.get(&pieces(*part)).await?, Bytes::new()),
        };
        let writer = CellWriter::new(JobPart::new(store, id), shared.generation());
        let made = shared.make(move || Ok((bytes, links)), &writer).await?;
        let written = writer.take_report();
        let result = json!({
            "part": made.to_json(), "objects": written.objects, "bytes": written.bytes,
            "entries": writer.into_destination().record().await?,
        });
        job.put_result(*part, result.to_string().into()).await?;
    }
    Ok(())
}

/// Parts whose rows come from shares.
struct SharedParts {
    rows: PartPieces,
    links: Option<PartPieces>,
    shifts: PieceShifts,
}

impl SharedParts {
    /// Finds the pieces of parts. Returns `None` if one process has divided the input.
    async fn read(job: &Job, parts: &[usize]) -> Result<Option<Self>, Failure> {
        let description = job.description().await?;
        if description["pieces"].is_null() {
            return Ok(None);
        }
        let number = |name: &str| {
            let number = member::<usize>(&description, name);
            number.ok_or_else(|| job.problem(TaskPlanError::Invalid))
        };
        let all = number("parts")?;
        let links = match description["has_links"].as_bool() {
            Some(true) => Some(PartPieces::read(job, PieceKind::Links, parts, all).await?),
            _ => None,
        };
        Ok(Some(Self {
            rows: PartPieces::read(job, PieceKind::Rows, parts, all).await?,
            links,
            shifts: PieceShifts::new(number("memory")? / MEMORY_SHARE),
        }))
    }

    /// Reads the rows and the links of a part, as one process would have written them.
    async fn part(&mut self, job: &Job, part: usize) -> Result<(Bytes, Bytes), Failure> {
        let mut rows = Vec::new();
        for (share, piece) in self.rows.pieces(job, part).await? {
            rows.extend(self.shifts.apply(job, share, piece).await?);
        }
        let mut of_links = Vec::new();
        if let Some(links) = &self.links {
            for (_, piece) in links.pieces(job, part).await? {
                of_links.extend(piece);
            }
        }
        Ok((rows.into(), of_links.into()))
    }
}

/// Completes the store from the results of all parts.
pub async fn commit(store: &Store, id: &str) -> Result<WriteReport, Failure> {
    let job = Job::open(store, id)?;
    check(store, id).await?;
    let invalid = || job.problem(TaskPlanError::Invalid);
    let description = job.description().await?;
    let flag = |name: &str| member(&description, name).ok_or_else(invalid);
    let (has_copy, is_sealed): (bool, bool) = (flag("node_copy")?, flag("seal")?);
    let parts: usize = member(&description, "parts").ok_or_else(invalid)?;
    let state = job.get("state").await?;
    let (splitter, tables) = run(move || Ok(Partitioner::from_bytes(&state)?)).await?;
    let splitter = splitter.with_links(description["placed"].as_u64().unwrap_or(0));
    let mut written = WriteReport::default();
    let mut results = Vec::new();
    let mut creation = store
        .resume_create(id)
        .await
        .map_err(|source| failed(store, source))?;
    if has_copy {
        creation.write_node_copy();
    }
    if is_sealed {
        creation.write_seal();
    }
    for part in 0..parts {
        let result = job.json_result(part).await?;
        results.push(PartitionResult::from_json(&result["part"])?);
        written.objects += result["objects"].as_u64().unwrap_or(0);
        written.bytes += result["bytes"].as_u64().unwrap_or(0);
        let entries = result["entries"].as_str().ok_or_else(invalid)?;
        creation.merge(entries).map_err(|_| invalid())?;
    }
    let writer = CellWriter::new(&creation, splitter.generation());
    writer.count(&written);
    let (plan, mut written) = complete(&writer, splitter, results, tables, None).await?;
    let root = root(&plan);
    written.objects += 1;
    written.bytes += root.len() as u64;
    let committed = creation.commit(&root).await;
    committed.map_err(|source| failed(store, source))?;
    Ok(written)
}

/// Deletes everything that a creation has written, and its reservation.
pub async fn abandon(store: &Store, id: &str) -> Result<(), Failure> {
    let creation = store.resume_create(id).await;
    let aborted = creation.map_err(|source| failed(store, source))?.abort();
    aborted.await.map_err(|source| failed(store, source))
}

/// Returns the error of a creation.
pub fn failed(store: &Store, source: CreateError) -> Failure {
    Failure::Create {
        address: store.to_string(),
        source,
    }
}

fn pieces(part: usize) -> String {
    format!("pieces-{part}")
}
