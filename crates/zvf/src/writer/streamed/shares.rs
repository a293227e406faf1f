//! Creation of a store from input that several processes read, a share each.
//!
//! | phase | a task | then |
//! |---|---|---|
//! | fill | reads a share, surveys it and keeps its batches in the job | the surveys are joined |
//! | divide | divides the batches of a share among the parts of the store | the divisions are joined |
//! | write | writes a part, as after the plan of one process | the store is committed |
//!
//! Batches are named by a hash of their contents. A share that is read again, perhaps with other
//! contents, leaves the batches of the first reading as they are.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hasher},
};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf_build::{
    Design, Geometry,
    large::{
        GeometrySurvey, Partitioner, decode_batch, design_from_json, design_to_json, encode_batch,
    },
};
use zvf_store::Store;

use super::{
    COPIES, GeometrySource, append, file,
    job::{check, failed, piece_name, shift_name},
    memory, read, row_size, speaks, within,
};
use crate::{
    failure::Failure,
    job::{Job, PlannedJob},
    task_plan_error::TaskPlanError,
    task_runner::scratch_error,
    writer::{CreateOptions, copies_nodes, named, run},
};

/// Number of vertices in the first batch of a share.
const FIRST_BATCH: usize = 1 << 16;

/// Reserves the address of a store that shares will fill. `tables` has objects, groups and their
/// attributes.
pub(crate) async fn reserve(
    store: &Store,
    name: &str,
    design: Design,
    tables: &Geometry,
    options: &CreateOptions,
    tasks: usize,
    replaces_leftovers: bool,
) -> Result<PlannedJob, Failure> {
    let design = named(design, Some(name));
    // Refuses what cannot be divided before anything is written.
    GeometrySurvey::new(design.clone(), speaks(tables))?;
    let begun = match replaces_leftovers {
        true => store.begin_create_replacing_leftovers().await,
        false => store.begin_create().await,
    };
    let creation = begun.map_err(|source| failed(store, source))?;
    let job = Job::open(store, creation.id())?;
    job.put("tables", encode_batch(tables).into()).await?;
    let description = json!({
        "phase": "fill",
        "node_copy": copies_nodes(design.profile, options.node_copy),
        "seal": options.seal,
        "memory": memory(options),
        "tasks": tasks,
        "design": design_to_json(&design),
        "has_objects": speaks(tables),
    });
    job.describe(&description).await?;
    let id = creation.id().to_owned();
    let suspended = creation.suspend().await;
    suspended.map_err(|source| failed(store, source))?;
    Ok(PlannedJob { id, parts: 0 })
}

/// A job whose input comes in shares.
struct SharedInput {
    job: Job,
    description: Value,
}

impl SharedInput {
    async fn open(store: &Store, id: &str) -> Result<Self, Failure> {
        let job = Job::open(store, id)?;
        check(store, id).await?;
        let description = job.description().await?;
        Ok(Self { job, description })
    }

    fn invalid(&self) -> Failure {
        self.job.problem(TaskPlanError::Invalid)
    }

    fn number(&self, name: &str) -> Result<u64, Failure> {
        let number = self.description[name].as_u64();
        number.ok_or_else(|| self.invalid())
    }

    fn design(&self) -> Result<Design, Failure> {
        Ok(design_from_json(&self.description["design"])?)
    }

    fn is_in(&self, phase: &str) -> bool {
        self.description["phase"].as_str() == Some(phase)
    }

    /// Returns the number of parts of the phase after the one of a plan.
    fn parts(&self) -> Result<usize, Failure> {
        let parts = usize::try_from(self.number("parts")?);
        parts.map_err(|_| self.invalid())
    }

    /// Reads a file that consists of a header and bytes.
    async fn get(&self, name: &str) -> Result<(Value, Bytes), Failure> {
        let bytes = self.job.get(name).await?;
        let (length, rest) = bytes.split_first_chunk().ok_or_else(|| self.invalid())?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| self.invalid())?;
        let (header, rest) = rest
            .split_at_checked(length)
            .ok_or_else(|| self.invalid())?;
        let header = serde_json::from_slice(header).map_err(|_| self.invalid())?;
        Ok((header, bytes.slice_ref(rest)))
    }
}

/// Joins a header and bytes.
fn with_header(header: &Value, bytes: &[u8]) -> Bytes {
    let header = header.to_string();
    let length = (header.len() as u64).to_le_bytes();
    [&length, header.as_bytes(), bytes].concat().into()
}

/// Reads a share of the input and keeps it in the job.
pub(crate) async fn fill(
    store: &Store,
    id: &str,
    share: usize,
    source: &mut dyn GeometrySource,
) -> Result<(), Failure> {
    let input = SharedInput::open(store, id).await?;
    let memory = input.number("memory")?;
    let has_objects = input.description["has_objects"].as_bool();
    let has_objects = has_objects.ok_or_else(|| input.invalid())?;
    let mut survey = GeometrySurvey::new(input.design()?, has_objects)?;
    let (mut batches, mut rows) = (Vec::new(), FIRST_BATCH);
    while let Some(batch) = source.next(rows).map_err(Failure::Source)? {
        if batch.vertices() == 0 && batch.part_offsets.is_none() {
            continue;
        }
        rows = within(memory / COPIES / row_size(&batch) as u64);
        survey.add(&batch)?;
        let bytes = encode_batch(&batch);
        let name = batch_name(share, &bytes);
        input.job.put(&name, bytes.into()).await?;
        batches.push(name);
    }
    let header = json!({"batches": batches});
    let filled = with_header(&header, &survey.to_bytes());
    input.job.put(&filled_name(share), filled).await
}

/// Joins the surveys of shares, in this order, and decides the shapes. Returns the number of shares.
pub(crate) async fn settle(store: &Store, id: &str, shares: &[usize]) -> Result<usize, Failure> {
    let mut input = SharedInput::open(store, id).await?;
    if !input.is_in("fill") {
        // A process that died before it wrote the plan had settled the job.
        return input.parts();
    }
    let design = input.design()?;
    let mut all: Option<GeometrySurvey> = None;
    let mut described = Vec::with_capacity(shares.len());
    for share in shares {
        let (header, survey) = input.get(&filled_name(*share)).await?;
        let survey = GeometrySurvey::from_bytes(design.clone(), &survey)?;
        let first = all
            .as_ref()
            .map_or([0, 0], |all| [all.vertices(), all.paths()]);
        described.push(json!({"batches": header["batches"], "first": first}));
        match &mut all {
            None => all = Some(survey),
            Some(all) => all.append(survey)?,
        }
    }
    let all = all.ok_or_else(|| input.job.problem(TaskPlanError::NoShares))?;
    let vertices = all.vertices();
    let outline = all.outline()?;
    let bytes = vertices.saturating_mul(outline.row_size() as u64);
    let fitting = bytes
        .saturating_mul(COPIES)
        .div_ceil(input.number("memory")?);
    let parts = within(fitting.max(input.number("tasks")?));
    let state = Partitioner::new(outline, parts);
    let tables = Geometry::new(zvf_model::column::NumericColumn::default());
    let state = state.to_bytes(&tables);
    input.job.put("settled", state.into()).await?;
    let count = described.len();
    let description = &mut input.description;
    description["phase"] = json!("divide");
    description["shares"] = json!(described);
    description["parts"] = json!(count);
    input.job.describe(&input.description).await?;
    Ok(count)
}

/// Divides shares, by their numbers in the order of all shares.
pub(crate) async fn divide(store: &Store, id: &str, numbers: &[usize]) -> Result<(), Failure> {
    let input = SharedInput::open(store, id).await?;
    let state = input.job.get("settled").await?;
    for number in numbers {
        let of_share = &input.description["shares"][*number];
        let first = |at: usize| {
            of_share["first"][at]
                .as_u64()
                .ok_or_else(|| input.invalid())
        };
        let (state, first) = (state.clone(), (first(0)?, first(1)?));
        let fresh = run(move || Ok(Partitioner::from_bytes(&state)?)).await?;
        let mut partitioner = fresh.0.after(first.0, first.1);
        let scratch = tempfile::tempdir().map_err(|source| Failure::Scratch {
            path: std::env::temp_dir().display().to_string(),
            source,
        })?;
        let batches = of_share["batches"].as_array();
        for name in batches.ok_or_else(|| input.invalid())? {
            let name = name.as_str().ok_or_else(|| input.invalid())?;
            let bytes = input.job.get(name).await?;
            let folder = scratch.path().to_owned();
            let divided = move || {
                for (part, bytes) in partitioner.split(decode_batch(&bytes)?)? {
                    append(&file(&folder, part), &bytes)?;
                }
                Ok(partitioner)
            };
            partitioner = run(divided).await?;
        }
        let mut parts = Vec::new();
        for part in 0..partitioner.parts() {
            let path = file(scratch.path(), part);
            if path.exists() {
                input
                    .job
                    .put(&piece_name(part, *number), read(&path)?)
                    .await?;
                std::fs::remove_file(&path).map_err(|source| scratch_error(&path, source))?;
                parts.push(part);
            }
        }
        let divided = with_header(&json!({"parts": parts}), &partitioner.share_to_bytes());
        input.job.put(&divided_name(*number), divided).await?;
    }
    Ok(())
}

/// Joins the divisions. Returns the number of parts to write.
pub(crate) async fn join(store: &Store, id: &str) -> Result<usize, Failure> {
    let mut input = SharedInput::open(store, id).await?;
    if !input.is_in("divide") {
        return input.parts();
    }
    let state = input.job.get("settled").await?;
    let (mut all, _) = Partitioner::from_bytes(&state)?;
    let (unwritten, _) = all.settled();
    let mut pieces: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for number in 0..input.parts()? {
        let (header, share) = input.get(&divided_name(number)).await?;
        let share = Partitioner::share_from_bytes(unwritten.clone(), &share)?;
        let shift = all.append(&share)?.to_json().to_string();
        input.job.put(&shift_name(number), shift.into()).await?;
        let parts = header["parts"].as_array().ok_or_else(|| input.invalid())?;
        for part in parts {
            let part = part.as_u64().ok_or_else(|| input.invalid())?;
            pieces.entry(part).or_default().push(number);
        }
    }
    let tables = decode_batch(&input.job.get("tables").await?)?;
    let (outline, chunks) = all.settled();
    let outline = outline.to_json(&chunks).to_string();
    input.job.put("outline", outline.into()).await?;
    input.job.put("state", all.to_bytes(&tables).into()).await?;
    let count = pieces.len();
    let description = &mut input.description;
    description["phase"] = json!("write");
    description["parts"] = json!(count);
    description["pieces"] = json!(pieces.into_iter().collect::<Vec<_>>());
    input.job.describe(&input.description).await?;
    Ok(count)
}

fn batch_name(share: usize, bytes: &[u8]) -> String {
    // This hasher has no seed: equal batches have equal names on every machine.
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    format!("input-{share}-{:016x}-{}", hasher.finish(), bytes.len())
}

fn filled_name(share: usize) -> String {
    format!("filled-{share}")
}

fn divided_name(number: usize) -> String {
    format!("divided-{number}")
}
