//! Creation of a store from input that several processes read, a share each.
//!
//! | phase | a task | then |
//! |---|---|---|
//! | fill | reads a share, surveys it and keeps its batches in the job | the surveys are joined |
//! | divide | divides the batches of a share among the parts of the store | the divisions are joined |
//! | link | finds the ends of the links of a share, and divides these links | the lists of links are joined |
//! | write | writes a part, as after the plan of one process | the store is committed |
//!
//! Only geometry with links has the phase `link`.
//!
//! Batches are named by a hash of their contents. A share that is read again, perhaps with other
//! contents, leaves the batches of the first reading as they are.

use std::hash::{DefaultHasher, Hasher};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf_build::{
    Design, Geometry, LinkNumbering,
    large::{
        GeometrySurvey, LinkBatch, LinkDivider, LinkedRows, Partitioner, decode_batch,
        design_from_json, design_to_json, encode_batch,
    },
};
use zvf_dataset::{Failure, TaskPlanError};
use zvf_model::{error_chain::error_chain, json::member};
use zvf_store::Store;

use super::{
    COPIES, GeometrySource, clamp_rows, has_tables,
    job::{abandon, begin, check, commit, run_parts, suspend},
    memory,
    pieces::{PieceFile, PieceIndex, PieceKind, shift_name},
    row_size,
};
use crate::{
    job::{Job, PlannedJob},
    writer::{CreateOptions, PlanCheck, WriteReport, copies_nodes, named, run},
};

/// Number of vertices in the first batch of a share.
const FIRST_BATCH: usize = 1 << 16;

/// The largest size at which a bundle of pieces ends.
const MAX_BUNDLE: u64 = 16 << 20;

/// Plans the creation of a store of geometry with links. This process reads the input as a single
/// share and runs all phases before the last.
pub async fn plan_linked(
    store: &Store,
    name: Option<&str>,
    source: &mut dyn GeometrySource,
    design: Design,
    options: &CreateOptions,
    tasks: usize,
    replaces_leftovers: bool,
) -> Result<PlannedJob, Failure> {
    let tables = source.tables().map_err(Failure::of_source)?;
    let reserved = reserve(
        store,
        name,
        design,
        &tables,
        options,
        tasks,
        replaces_leftovers,
    );
    let PlannedJob { id, .. } = reserved.await?;
    let planned = async {
        fill(store, &id, 0, source).await?;
        decide_shapes(store, &id, &[0], options.check.as_ref()).await?;
        divide(store, &id, &[0]).await?;
        join(store, &id).await?;
        divide_links(store, &id, &[0]).await?;
        join_links(store, &id).await
    };
    match Box::pin(planned).await {
        Ok(parts) => Ok(PlannedJob { id, parts }),
        Err(error) => {
            // Leftovers are marked, and the next creation at this address deletes them.
            let _ = abandon(store, &id).await;
            Err(error)
        }
    }
}

/// Creates a store of geometry with links. This process runs all phases; the batches are in the files
/// of a job, in the reserved folder of the store.
pub async fn create_linked(
    store: &Store,
    name: Option<&str>,
    source: &mut dyn GeometrySource,
    design: Design,
    options: &CreateOptions,
) -> Result<WriteReport, Failure> {
    let planned = plan_linked(store, name, source, design, options, 1, false).await?;
    let written = async {
        for part in 0..planned.parts {
            run_parts(store, &planned.id, &[part]).await?;
            if let Some(progress) = &options.progress {
                progress(part as u64 + 1, planned.parts as u64);
            }
        }
        commit(store, &planned.id).await
    };
    match Box::pin(written).await {
        Ok(mut written) => {
            let deleted = Job::open(store, &planned.id)?.delete().await;
            written.unfinished = deleted.err().map(|error| error_chain(&error));
            Ok(written)
        }
        Err(error) => {
            // Leftovers are marked, and the next creation at this address deletes them.
            let _ = abandon(store, &planned.id).await;
            Err(error)
        }
    }
}

/// Reserves the address of a store that shares will fill. `tables` has objects, groups and their
/// attributes.
pub async fn reserve(
    store: &Store,
    name: Option<&str>,
    design: Design,
    tables: &Geometry,
    options: &CreateOptions,
    tasks: usize,
    replaces_leftovers: bool,
) -> Result<PlannedJob, Failure> {
    let design = named(design, name);
    // Refuses what cannot be divided before anything is written.
    super::check_tables(&design, tables)?;
    GeometrySurvey::new(design.clone(), has_tables(tables))?;
    let creation = begin(store, replaces_leftovers).await?;
    let job = Job::open(store, creation.id())?;
    let description = json!({
        "phase": "fill",
        "node_copy": copies_nodes(design.profile, options.node_copy),
        "seal": options.seal,
        "memory": memory(options),
        "tasks": tasks,
        "design": design_to_json(&design),
        "has_objects": has_tables(tables),
    });
    let id = creation.id().to_owned();
    let written = async {
        job.put("tables", encode_batch(tables).into()).await?;
        job.describe(&description).await
    };
    let written = written.await;
    suspend(store, creation, written).await?;
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
        member(&self.description, name).ok_or_else(|| self.invalid())
    }

    fn design(&self) -> Result<Design, Failure> {
        Ok(design_from_json(&self.description["design"])?)
    }

    fn is_in(&self, phase: &str) -> bool {
        self.description["phase"].as_str() == Some(phase)
    }

    /// Returns the number of shares, which the first join fixes.
    fn shares(&self) -> Result<usize, Failure> {
        let shares = self.description["shares"].as_array();
        Ok(shares.ok_or_else(|| self.invalid())?.len())
    }

    /// Returns the number of parts of the phase after the one of a plan.
    fn parts(&self) -> Result<usize, Failure> {
        member(&self.description, "parts").ok_or_else(|| self.invalid())
    }

    /// Returns the size at which a bundle of pieces ends.
    fn bundle_size(&self) -> Result<usize, Failure> {
        let size = (self.number("memory")? / COPIES).min(MAX_BUNDLE);
        Ok(usize::try_from(size).unwrap_or(usize::MAX))
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
pub async fn fill(
    store: &Store,
    id: &str,
    share: usize,
    source: &mut dyn GeometrySource,
) -> Result<(), Failure> {
    let input = SharedInput::open(store, id).await?;
    let memory = input.number("memory")?;
    let has_objects = input.description["has_objects"]
        .as_bool()
        .ok_or_else(|| input.invalid())?;
    let mut survey = GeometrySurvey::new(input.design()?, has_objects)?;
    let (mut batches, mut rows) = (Vec::new(), FIRST_BATCH);
    let numbering = source.link_numbering();
    while let Some(batch) = source.next(rows).map_err(Failure::of_source)? {
        if batch.vertices() == 0 && batch.owners().offsets().is_none() && batch.links().is_empty() {
            continue;
        }
        rows = clamp_rows(memory / COPIES / row_size(&batch) as u64);
        survey.add_numbered(&batch, numbering)?;
        let bytes = encode_batch(&batch);
        let name = batch_name(share, &bytes);
        input.job.put(&name, bytes.into()).await?;
        batches.push(name);
    }
    let header = json!({
        "batches": batches,
        "numbers_input": numbering == LinkNumbering::Input,
    });
    let filled = with_header(&header, &survey.to_bytes());
    input.job.put(&filled_name(share), filled).await
}

/// Joins the surveys of shares, in this order, and decides the shapes. Returns the number of shares.
pub async fn decide_shapes(
    store: &Store,
    id: &str,
    shares: &[usize],
    check: Option<&PlanCheck>,
) -> Result<usize, Failure> {
    let mut input = SharedInput::open(store, id).await?;
    if !input.is_in("fill") {
        // A process that died before it wrote the plan had settled the job.
        return input.shares();
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
        described.push(json!({
            "batches": header["batches"],
            "numbers_input": header["numbers_input"],
            "first": first,
        }));
        match &mut all {
            None => all = Some(survey),
            Some(all) => all.append(survey)?,
        }
    }
    let all = all.ok_or_else(|| input.job.problem(TaskPlanError::NoShares))?;
    let (vertices, links) = (all.stored_vertices(), all.links());
    let sample = all.sample().cloned();
    let outline = all.outline()?;
    if let (Some(check), Some(sample)) = (check, sample) {
        check(&outline.estimate_sampled(sample, vertices)?).map_err(Failure::Declined)?;
    }
    let bytes = vertices
        .saturating_mul(outline.row_size() as u64)
        .saturating_add(links.saturating_mul(outline.link_row_size() as u64));
    let fitting = bytes
        .saturating_mul(COPIES)
        .div_ceil(input.number("memory")?);
    let parts = clamp_rows(fitting.max(input.number("tasks")?));
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
pub async fn divide(store: &Store, id: &str, numbers: &[usize]) -> Result<(), Failure> {
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
        let mut pieces = PieceFile::new()?;
        let batches = of_share["batches"].as_array();
        let numbering = match of_share["numbers_input"].as_bool() {
            Some(true) => LinkNumbering::Input,
            Some(false) => LinkNumbering::Batch,
            None => return Err(input.invalid()),
        };
        let (mut tables, mut with_links) = (Vec::new(), Vec::new());
        for (at, name) in batches.ok_or_else(|| input.invalid())?.iter().enumerate() {
            let name = name.as_str().ok_or_else(|| input.invalid())?;
            let bytes = input.job.get(name).await?;
            let divided = move || {
                let batch = decode_batch(&bytes)?;
                let vertices = batch.vertices();
                for (part, bytes) in partitioner.split_numbered(batch, numbering)? {
                    pieces.append(part, &bytes)?;
                }
                Ok((partitioner, pieces, vertices))
            };
            let vertices;
            (partitioner, pieces, vertices) = run(divided).await?;
            if let Some(LinkedRows {
                vertices: table,
                links,
            }) = partitioner.take_linked()
            {
                tables.push(vertices);
                input
                    .job
                    .put(&table_name(*number, at), table.into())
                    .await?;
                if !links.is_empty() {
                    with_links.push(at);
                    input
                        .job
                        .put(&records_name(*number, at), links.into())
                        .await?;
                }
            }
        }
        let size = input.bundle_size()?;
        let bundles = pieces.put(&input.job, PieceKind::Rows, *number, size);
        let header = json!({"bundles": bundles.await?, "tables": tables, "links": with_links});
        let divided = with_header(&header, &partitioner.share_to_bytes());
        input.job.put(&divided_name(*number), divided).await?;
    }
    Ok(())
}

/// Returns whether a plan has a phase in which links are divided.
pub async fn has_links(store: &Store, id: &str) -> Result<bool, Failure> {
    let input = SharedInput::open(store, id).await?;
    Ok(input.design()?.kind.is_linked())
}

/// Joins the divisions. Returns the number of parts of the next phase.
pub async fn join(store: &Store, id: &str) -> Result<usize, Failure> {
    let mut input = SharedInput::open(store, id).await?;
    let is_linked = input.design()?.kind.is_linked();
    if !input.is_in("divide") {
        return if is_linked {
            input.shares()
        } else {
            input.parts()
        };
    }
    let state = input.job.get("settled").await?;
    let (mut all, _) = Partitioner::from_bytes(&state)?;
    let (unwritten, _) = all.settled();
    let mut pieces = PieceIndex::default();
    let shares = input.shares()?;
    for number in 0..shares {
        let (header, share) = input.get(&divided_name(number)).await?;
        let share = Partitioner::share_from_bytes(unwritten.clone(), &share)?;
        let shift = all.append(&share)?.to_json().to_string();
        input.job.put(&shift_name(number), shift.into()).await?;
        let added = pieces.add(number, &header["bundles"]);
        added.ok_or_else(|| input.invalid())?;
        if is_linked {
            let of_share = &mut input.description["shares"][number];
            of_share["tables"] = header["tables"].clone();
            of_share["links"] = header["links"].clone();
        }
    }
    if is_linked {
        for (number, table) in all.run_tables()?.into_iter().enumerate() {
            input.job.put(&runs_name(number), table.into()).await?;
        }
    }
    let tables = decode_batch(&input.job.get("tables").await?)?;
    let (outline, chunks) = all.settled();
    let outline = outline.to_json(&chunks).to_string();
    input.job.put("outline", outline.into()).await?;
    input.job.put("state", all.to_bytes(&tables).into()).await?;
    let parts = pieces.parts();
    pieces.put(&input.job, PieceKind::Rows, &parts).await?;
    let (phase, count) = if is_linked {
        ("link", shares)
    } else {
        ("write", parts.len())
    };
    let description = &mut input.description;
    description["phase"] = json!(phase);
    description["parts"] = json!(count);
    description["pieces"] = json!(parts);
    input.job.describe(&input.description).await?;
    Ok(count)
}

/// The batches of all shares in the order of the input, by their first vertices.
struct VertexTables {
    /// First vertex, share and number of each batch.
    batches: Vec<(u64, usize, usize)>,
    vertices: u64,
}

impl VertexTables {
    fn of(input: &SharedInput) -> Result<Self, Failure> {
        let mut tables = Self {
            batches: Vec::new(),
            vertices: 0,
        };
        let shares = input.description["shares"].as_array();
        for (share, one) in shares.ok_or_else(|| input.invalid())?.iter().enumerate() {
            let sizes = one["tables"].as_array().ok_or_else(|| input.invalid())?;
            for (batch, size) in sizes.iter().enumerate() {
                let size = size.as_u64().ok_or_else(|| input.invalid())?;
                tables.batches.push((tables.vertices, share, batch));
                tables.vertices = tables.vertices.saturating_add(size);
            }
        }
        Ok(tables)
    }

    /// Returns the batch of a vertex.
    fn batch_of(&self, vertex: u64) -> Option<(u64, usize, usize)> {
        // A batch without vertices has the same first vertex as the next batch.
        let after = self.batches.partition_point(|(first, ..)| *first <= vertex);
        (vertex < self.vertices).then(|| self.batches.get(after.checked_sub(1)?).copied())?
    }
}

/// Finds the ends of the links of shares, and divides the links among the parts of the store.
pub async fn divide_links(store: &Store, id: &str, numbers: &[usize]) -> Result<(), Failure> {
    let input = SharedInput::open(store, id).await?;
    let tables = VertexTables::of(&input)?;
    let state = input.job.get("state").await?;
    let prepare = move || {
        let (all, _) = Partitioner::from_bytes(&state)?;
        let divider = LinkDivider::new(&all)?;
        Ok((all.settled().0, divider))
    };
    let (outline, mut divider) = run(prepare).await?;
    for number in numbers {
        let mut pieces = PieceFile::new()?;
        let (mut placed, mut runs) = (0_u64, (usize::MAX, Bytes::new()));
        let batches = input.description["shares"][*number]["links"].as_array();
        for batch in batches.ok_or_else(|| input.invalid())? {
            let batch = batch.as_u64().and_then(|batch| usize::try_from(batch).ok());
            let name = records_name(*number, batch.ok_or_else(|| input.invalid())?);
            let records = input.job.get(&name).await?;
            let of = outline.clone();
            let mut links = run(move || Ok(LinkBatch::new(&of, records.into())?)).await?;
            while let Some(vertex) = links.vertex() {
                let place = tables.batch_of(vertex);
                let (first, share, batch) = place.ok_or_else(|| links.lost(tables.vertices))?;
                if runs.0 != share {
                    runs = (share, input.job.get(&runs_name(share)).await?);
                }
                let table = input.job.get(&table_name(share, batch)).await?;
                let own = runs.1.clone();
                let find = move || {
                    links.find(first, &table, &own)?;
                    Ok(links)
                };
                links = run(find).await?;
            }
            let divide = move || {
                let divided = divider.divide(&links)?;
                for (part, bytes) in divided.parts {
                    pieces.append(part, &bytes)?;
                }
                Ok((divider, pieces, divided.placed))
            };
            let more;
            (divider, pieces, more) = run(divide).await?;
            placed = placed.saturating_add(more);
        }
        let size = input.bundle_size()?;
        let bundles = pieces.put(&input.job, PieceKind::Links, *number, size);
        let header = json!({"bundles": bundles.await?, "placed": placed});
        let linked = with_header(&header, &[]);
        input.job.put(&linked_name(*number), linked).await?;
    }
    Ok(())
}

/// Joins the lists of divided links. Returns the number of parts to write.
pub async fn join_links(store: &Store, id: &str) -> Result<usize, Failure> {
    let mut input = SharedInput::open(store, id).await?;
    if !input.is_in("link") {
        return input.parts();
    }
    let mut links = PieceIndex::default();
    let mut placed = 0_u64;
    for number in 0..input.shares()? {
        let (header, _) = input.get(&linked_name(number)).await?;
        let more = header["placed"].as_u64().ok_or_else(|| input.invalid())?;
        placed = placed.saturating_add(more);
        let added = links.add(number, &header["bundles"]);
        added.ok_or_else(|| input.invalid())?;
    }
    let parts: Vec<u64> =
        serde_json::from_value(input.description["pieces"].clone()).map_err(|_| input.invalid())?;
    links.put(&input.job, PieceKind::Links, &parts).await?;
    let count = parts.len();
    let description = &mut input.description;
    description["phase"] = json!("write");
    description["parts"] = json!(count);
    description["has_links"] = json!(true);
    description["placed"] = json!(placed);
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

fn linked_name(number: usize) -> String {
    format!("linked-{number}")
}

/// Returns the name of the file with the run and position of each vertex of a batch.
fn table_name(number: usize, batch: usize) -> String {
    format!("vertices-{number}-{batch}")
}

/// Returns the name of the file with the links of a batch.
fn records_name(number: usize, batch: usize) -> String {
    format!("records-{number}-{batch}")
}

/// Returns the name of the file with the chunk and first row of each run of a share.
fn runs_name(number: usize) -> String {
    format!("runs-{number}")
}
