//! Parts that other processes make: tasks as files.

use core::error::Error as StdError;
use futures_util::future::BoxFuture;
use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use zvf_build::large::{Outline, PartitionResult};
use zvf_store::OpenOptions;

use super::{Shared, failed};
use crate::{error::Error, pyramid, writing::WriteReport};

/// Runs tasks somewhere else: processes of this machine, or those of a cluster that
/// see the same files.
pub trait TaskRunner: Send + Sync {
    /// How many tasks run at once.
    fn at_once(&self) -> usize;

    /// Has each of these files given to [`run_task`], in any order, until each was
    /// done once. A task may die, and may run again or twice at once.
    ///
    /// # Errors
    ///
    /// When one cannot be done.
    fn run(&self, tasks: &[PathBuf]) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

/// A task and where what comes of it is left.
pub(super) struct Task {
    file: PathBuf,
    result: PathBuf,
}

/// Writes down a task for each file of pieces.
pub(super) fn hand_out(
    address: &str,
    folder: &Path,
    outline: &Value,
    pieces: &[PathBuf],
) -> Result<Vec<Task>, Error> {
    let shared = folder.join("outline.json");
    put(&shared, outline)?;
    let mut tasks = Vec::with_capacity(pieces.len());
    for (number, pieces) in pieces.iter().enumerate() {
        let task = Task {
            file: folder.join(format!("task-{number}.json")),
            result: folder.join(format!("result-{number}.json")),
        };
        let says = json!({
            "address": address, "outline": shared, "pieces": pieces, "result": task.result,
        });
        put(&task.file, &says)?;
        tasks.push(task);
    }
    Ok(tasks)
}

/// The files of tasks.
pub(super) fn files(tasks: &[Task]) -> Vec<PathBuf> {
    tasks.iter().map(|task| task.file.clone()).collect()
}

/// What came of all tasks.
pub(super) fn collect(tasks: &[Task]) -> Result<(Vec<PartitionResult>, WriteReport), Error> {
    let mut written = WriteReport::default();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        let json = get(&task.result)?;
        results.push(PartitionResult::from_json(&json["part"])?);
        written.objects += json["objects"].as_u64().unwrap_or(0);
        written.bytes += json["bytes"].as_u64().unwrap_or(0);
    }
    Ok((results, written))
}

/// Does the task that a file says. Done again it leaves the same.
///
/// # Errors
///
/// [`Error`] when the file is no task, or the store cannot be written.
pub fn run_task<'a>(task: &'a Path, open: &'a OpenOptions) -> BoxFuture<'a, Result<(), Error>> {
    Box::pin(async move {
        let says = get(task)?;
        if says.get("level").is_some() {
            return pyramid::tasks::run_task(&says, open).await;
        }
        let text = |key: &str| says[key].as_str().unwrap_or_default();
        let (outline, chunks) = Outline::from_json(&get(Path::new(text("outline")))?)?;
        let store = open.create(text("address"))?;
        let mut written = WriteReport::default();
        let put_many = async |objects| Ok::<(), Error>(store.put_many(objects).await?);
        let shared = Shared::new(outline, chunks)?;
        let part = shared
            .make(Path::new(text("pieces")), put_many, &mut written)
            .await?;
        let result = json!({
            "part": part.to_json(), "objects": written.objects, "bytes": written.bytes,
        });
        put(Path::new(text("result")), &result)
    })
}

/// Writes a file whole or not at all.
pub(crate) fn put(path: &Path, json: &Value) -> Result<(), Error> {
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let written = fs::write(&unfinished, json.to_string());
    let renamed = written.and_then(|()| fs::rename(&unfinished, path));
    renamed.map_err(|source| failed(path, source))
}

/// Reads such a file.
pub(crate) fn get(path: &Path) -> Result<Value, Error> {
    let bytes = fs::read(path).map_err(|source| failed(path, source))?;
    serde_json::from_slice(&bytes).map_err(|source| failed(path, source.into()))
}
