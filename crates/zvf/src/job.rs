//! Jobs: work that one process plans, others do in parts, and a last one commits.
//!
//! Everything that the processes share is in the files of the job, in the reserved folder of the
//! store: `job.json` and the input of the parts, written by the plan, and a file for each part that
//! is done: `result-N`, or `filled-N` and `divided-N` in the phases before. A result appears whole or not at all, so a part may be done again, or twice
//! at once.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::Value;
use zvf_store::{JobFiles, Store};

use crate::{failure::Failure, task_plan_error::TaskPlanError};

/// Name of the file that describes a job.
const DESCRIPTION: &str = "job.json";

/// A planned job, before it is written to a plan.
pub(crate) struct PlannedJob {
    /// Identifier of the creation or transaction.
    pub(crate) id: String,
    /// Number of parts.
    pub(crate) parts: usize,
}

/// The files of a job.
pub(crate) struct Job {
    store: Store,
    files: JobFiles,
}

impl Job {
    pub(crate) fn open(store: &Store, id: &str) -> Result<Self, Failure> {
        Ok(Self {
            files: store.job_files(id)?,
            store: store.clone(),
        })
    }

    pub(crate) async fn describe(&self, description: &Value) -> Result<(), Failure> {
        self.put(DESCRIPTION, description.to_string().into()).await
    }

    pub(crate) async fn description(&self) -> Result<Value, Failure> {
        let bytes = self.get(DESCRIPTION).await?;
        serde_json::from_slice(&bytes).map_err(|_| self.problem(TaskPlanError::Invalid))
    }

    pub(crate) async fn put(&self, name: &str, bytes: Bytes) -> Result<(), Failure> {
        Ok(self.files.put(name, bytes).await?)
    }

    /// Reads a file of the job. An absent file is an error: the job was swept or replaced.
    pub(crate) async fn get(&self, name: &str) -> Result<Bytes, Failure> {
        let found = self.files.get(name).await?;
        found.ok_or_else(|| self.problem(TaskPlanError::Outdated))
    }

    pub(crate) async fn put_result(&self, part: usize, bytes: Bytes) -> Result<(), Failure> {
        self.put(&result(part), bytes).await
    }

    pub(crate) async fn result(&self, part: usize) -> Result<Bytes, Failure> {
        self.get(&result(part)).await
    }

    /// Returns the parts whose files `prefix-N` exist. Fails if the job has no description.
    pub(crate) async fn done(&self, prefix: &str) -> Result<BTreeSet<usize>, Failure> {
        let sizes = self.files.sizes().await?;
        if !sizes.contains_key(DESCRIPTION) {
            return Err(self.problem(TaskPlanError::Outdated));
        }
        let parts = sizes
            .keys()
            .filter_map(|name| name.strip_prefix(prefix)?.strip_prefix('-')?.parse().ok());
        Ok(parts.collect())
    }

    /// Deletes all files of the job.
    pub(crate) async fn delete(&self) -> Result<(), Failure> {
        Ok(self.files.delete_all().await?)
    }

    pub(crate) fn problem(&self, source: TaskPlanError) -> Failure {
        Failure::Plan {
            address: self.store.to_string(),
            source,
        }
    }
}

fn result(part: usize) -> String {
    format!("result-{part}")
}
