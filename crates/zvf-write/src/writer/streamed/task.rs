//! Parts that other processes write, described by files.

use std::{
    io,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use serde_json::{Value, json};
use zvf_build::large::{Outline, PartitionResult};
use zvf_dataset::Failure;
use zvf_store::{Creation, OpenOptions};

use super::{Shared, read};
use crate::{
    task_runner::{read_json, scratch_error, write_json},
    writer::{WriteReport, cell_writer::CellWriter},
};

/// The files of a task and of its result.
pub(super) struct Task {
    file: PathBuf,
    result: PathBuf,
}

/// Writes a task for each file of pieces.
pub(super) fn write_tasks(
    address: &str,
    folder: &Path,
    outline: &Value,
    pieces: &[PathBuf],
) -> Result<Vec<Task>, Failure> {
    let shared = folder.join("outline.json");
    write_json(&shared, outline)?;
    let mut tasks = Vec::with_capacity(pieces.len());
    for (number, pieces) in pieces.iter().enumerate() {
        let task = Task {
            file: folder.join(format!("task-{number}.json")),
            result: folder.join(format!("result-{number}.json")),
        };
        let attributes = json!({
            "address": address, "outline": shared, "pieces": pieces, "result": task.result,
        });
        write_json(&task.file, &attributes)?;
        tasks.push(task);
    }
    Ok(tasks)
}

/// Returns the files of tasks.
pub(super) fn files(tasks: &[Task]) -> Vec<PathBuf> {
    tasks.iter().map(|task| task.file.clone()).collect()
}

/// Reads the results of all tasks, and adds their objects to the inventory.
pub(super) fn collect(
    tasks: &[Task],
    creation: &Creation,
) -> Result<(Vec<PartitionResult>, WriteReport), Failure> {
    let mut written = WriteReport::default();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        let json = read_json(&task.result)?;
        results.push(PartitionResult::from_json(&json["part"])?);
        // A record that is absent counts as damaged.
        let merged = creation.merge(json["entries"].as_str().unwrap_or_default());
        merged.map_err(|source| scratch_error(&task.result, io::Error::other(source)))?;
        written.objects += json["objects"].as_u64().unwrap_or(0);
        written.bytes += json["bytes"].as_u64().unwrap_or(0);
    }
    Ok((results, written))
}

/// Runs the task described by `json`: writes one part of a store and its result.
pub async fn run_part(json: &Value, open: &OpenOptions) -> Result<(), Failure> {
    let text = |key: &str| json[key].as_str().unwrap_or_default();
    let (outline, chunks) = Outline::from_json(&read_json(Path::new(text("outline")))?)?;
    let store = open.create(text("address"))?;
    let shared = Shared::new(outline, chunks)?;
    let writer = CellWriter::new(store.join_creation(), shared.generation());
    let pieces = PathBuf::from(text("pieces"));
    let part = shared
        .make(move || Ok((read(&pieces)?, Bytes::new())), &writer)
        .await?;
    let written = writer.take_report();
    let result = json!({
        "part": part.to_json(), "objects": written.objects, "bytes": written.bytes,
        "entries": writer.into_destination().record(),
    });
    write_json(Path::new(text("result")), &result)
}
