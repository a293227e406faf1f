//! The entry point of worker processes.

use std::path::Path;

use zvf_dataset::{Error, boxed};
use zvf_store::OpenOptions;
use zvf_write::{task_runner::read_json, writer};

/// Runs the task that the file `task` describes. Running a task twice leaves the same result.
///
/// Called by the processes that a [`TaskRunner`](zvf_write::task_runner::TaskRunner) starts. `open` are the
/// options of the store that is written.
///
/// # Errors
///
/// [`Error`] when the file is not a task, or the store cannot be written.
pub async fn run_task(task: &Path, open: &OpenOptions) -> Result<(), Error> {
    boxed(async move {
        let json = read_json(task)?;
        #[cfg(feature = "pyramid")]
        if json.get("level").is_some() {
            return zvf_pyramid::tasks::run_task(&json, open).await;
        }
        writer::run_part(&json, open).await
    })
    .await
}
