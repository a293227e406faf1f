//! Attributes that the tasks of a plan compute.
//!
//! Tasks for an attribute of vertices stage its cells. Those for an attribute of objects reduce the
//! values of the fragments of some chunks, and the commit joins them in the order of chunks.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use zvf_dataset::{Failure, TaskPlanError, base};
use zvf_format::numeric::Kind;
use zvf_model::json::member;
use zvf_store::{Store, Transaction};

use super::{
    AttributeReport, AttributeSpec, ObjectReduction, VertexFn, begin,
    object::{FragmentValues, ObjectTarget},
    root,
    vertex::{Values, VertexTarget},
};
use crate::{
    commit::unfinished,
    job::{Job, PlannedJob, share},
    writer::cell_writer::{CellWriter, StagedTransaction},
};

/// An attribute that tasks compute, as the description of its job.
struct AttributeTask {
    transaction: String,
    base: u64,
    spec: AttributeSpec,
    reduction: Option<ObjectReduction>,
    parts: usize,
}

impl AttributeTask {
    fn describe(&self) -> Value {
        json!({
            "transaction": self.transaction,
            "base": self.base,
            "name": self.spec.name,
            "dtype": self.spec.kind.name(),
            "row_shape": self.spec.row_shape,
            "overwrite": self.spec.overwrite,
            "memory": self.spec.memory,
            "reduction": self.reduction.map(ObjectReduction::name),
            "parts": self.parts,
        })
    }

    fn parse(json: &Value) -> Option<Self> {
        let (name, dtype): (&str, &str) = (member(json, "name")?, member(json, "dtype")?);
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == dtype)?;
        let mut all = ObjectReduction::ALL.into_iter();
        Some(Self {
            transaction: member(json, "transaction")?,
            base: member(json, "base")?,
            spec: AttributeSpec::new(name, kind)
                .row_shape(member::<Vec<u64>>(json, "row_shape")?)
                .overwrite(member(json, "overwrite")?)
                .memory(member(json, "memory")?),
            reduction: match member::<Option<&str>>(json, "reduction")? {
                None => None,
                Some(name) => Some(all.find(|known| known.name() == name)?),
            },
            parts: member(json, "parts")?,
        })
    }

    /// Checks that the store is as it was when the attribute was planned.
    fn check_base(&self, job: &Job, transaction: &Transaction) -> Result<(), Failure> {
        if transaction.base() == self.base {
            Ok(())
        } else {
            Err(job.problem(TaskPlanError::Outdated))
        }
    }
}

/// Plans an attribute: describes it in the files of a job.
pub async fn plan(
    store: &Store,
    spec: &AttributeSpec,
    reduction: Option<ObjectReduction>,
    tasks: usize,
) -> Result<PlannedJob, Failure> {
    let transaction = begin(store).await?;
    let dataset = base::open(store.without_node_copy()).await?;
    let count = match reduction {
        None => VertexTarget::open(&dataset, spec, Map::new()).await?.len(),
        Some(reduction) => {
            let target = ObjectTarget::open(&dataset, spec, reduction).await?;
            target.chunks().len()
        }
    };
    let (id, parts) = (transaction.id().to_owned(), count.clamp(1, tasks));
    let task = AttributeTask {
        transaction: id.clone(),
        base: transaction.base(),
        spec: spec.clone(),
        reduction,
        parts,
    };
    Job::open(store, &id)?.describe(&task.describe()).await?;
    Ok(PlannedJob { id, parts })
}

/// Computes the values of parts of a job.
pub async fn run_parts(
    store: &Store,
    id: &str,
    parts: &[usize],
    values: &Arc<VertexFn>,
) -> Result<(), Failure> {
    let job = Job::open(store, id)?;
    let task = job.described(AttributeTask::parse).await?;
    let store = store.without_node_copy();
    for part in parts {
        let mut transaction = store.join_transaction(&task.transaction).await?;
        task.check_base(&job, &transaction)?;
        let dataset = base::open(store.clone()).await?;
        let mut numbers = Vec::new();
        let (written, staged) = match task.reduction {
            None => {
                let target = VertexTarget::open(&dataset, &task.spec, Map::new()).await?;
                let range = share(target.len(), *part, task.parts);
                let generation = dataset.layout().generation;
                let staged = StagedTransaction::new(&mut transaction);
                let writer = CellWriter::new(staged, generation);
                let values = Values::Positions(Arc::clone(values));
                let mut written = target.write_cells(&writer, range, &values).await?;
                written.bytes = writer.take_report().bytes;
                drop(writer);
                let staged = transaction.staged_journal();
                (written, Some(String::from_utf8_lossy(&staged).into_owned()))
            }
            Some(reduction) => {
                let target = ObjectTarget::open(&dataset, &task.spec, reduction).await?;
                let range = share(target.chunks().len(), *part, task.parts);
                let columns = target.columns();
                let pass = |fragments: FragmentValues| fragments.encode(columns, &mut numbers);
                (target.reduce(range, values, pass).await?, None)
            }
        };
        let result = json!({
            "vertices": written.vertices, "chunks": written.chunks, "batches": written.batches,
            "bytes": written.bytes, "staged": staged,
        });
        job.put_table(*part, &result, &numbers).await?;
    }
    Ok(())
}

/// Commits an attribute from the results of all parts.
pub async fn commit(store: &Store, id: &str) -> Result<AttributeReport, Failure> {
    let job = Job::open(store, id)?;
    let task = job.described(AttributeTask::parse).await?;
    let invalid = || job.problem(TaskPlanError::Invalid);
    let store = store.without_node_copy();
    let mut transaction = store.resume_transaction(id).await?;
    task.check_base(&job, &transaction)?;
    let dataset = base::open(store.clone()).await?;
    let mut written = AttributeReport::default();
    let root = match task.reduction {
        None => {
            let target = VertexTarget::open(&dataset, &task.spec, Map::new()).await?;
            target.delete_replaced(&mut transaction).await?;
            for part in 0..task.parts {
                let (result, _) = job.table(part).await?;
                add(&mut written, &result).ok_or_else(invalid)?;
                let staged = result["staged"].as_str().ok_or_else(invalid)?;
                transaction.merge_staged(staged.as_bytes()).await?;
            }
            written.bytes += target.stage_nodes(&mut transaction).await?;
            root(&dataset, &mut transaction, target.chunks()).await?
        }
        Some(reduction) => {
            let target = ObjectTarget::open(&dataset, &task.spec, reduction).await?;
            let mut table = target.table();
            for part in 0..task.parts {
                let (result, numbers) = job.table(part).await?;
                add(&mut written, &result).ok_or_else(invalid)?;
                let fragments = FragmentValues::decode(&numbers, target.columns());
                let is_added = fragments.is_some_and(|fragments| table.add(&fragments));
                is_added.then_some(()).ok_or_else(invalid)?;
            }
            let staged = target.stage(&mut transaction, table, written).await?;
            written = staged.1;
            staged.0
        }
    };
    let committed = transaction.commit(&root).await?;
    written.transaction = committed.transaction;
    written.unfinished = unfinished(&committed);
    Ok(written)
}

/// Adds the counts of a part; `None` if they are invalid.
fn add(written: &mut AttributeReport, result: &Value) -> Option<()> {
    written.vertices += member::<u64>(result, "vertices")?;
    written.chunks += member::<u64>(result, "chunks")?;
    written.batches += member::<u64>(result, "batches")?;
    written.bytes += member::<u64>(result, "bytes")?;
    Some(())
}
