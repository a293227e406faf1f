//! Tasks for other processes: the trait that runs them, and the files that describe them.

use core::error::Error as StdError;
use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use zvf_dataset::Failure;

/// Runs tasks outside of this process: in other processes, or on a cluster with shared files.
pub trait TaskRunner: Send + Sync {
    /// Returns the number of tasks that run at once.
    fn at_once(&self) -> usize;

    /// Passes each file to `zvf::run_task`, in any order, until every task has
    /// succeeded once. A task may fail, and may run again or twice at once.
    ///
    /// # Errors
    ///
    /// An error when a task cannot be completed.
    fn run(&self, tasks: &[PathBuf]) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

/// Writes a file atomically: to a temporary name, then renamed.
pub fn write_json(path: &Path, json: &Value) -> Result<(), Failure> {
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let written = fs::write(&unfinished, json.to_string());
    let renamed = written.and_then(|()| fs::rename(&unfinished, path));
    renamed.map_err(|source| scratch_error(path, source))
}

/// Reads a file of JSON.
pub fn read_json(path: &Path) -> Result<Value, Failure> {
    let bytes = fs::read(path).map_err(|source| scratch_error(path, source))?;
    serde_json::from_slice(&bytes).map_err(|source| scratch_error(path, source.into()))
}

/// Returns the error for a scratch file that cannot be read or written.
pub fn scratch_error(path: &Path, source: std::io::Error) -> Failure {
    Failure::Scratch {
        path: path.display().to_string(),
        source,
    }
}
