//! Arrow's IPC file format, known as Feather 2 too.

use arrow_ipc::writer::FileWriter;
use zvf::query::QueryResult;

use super::{
    WriteError,
    columnar::{Batches, write_batches},
    staged::{Fault, Sink, Staged},
};

pub(super) fn write(
    answer: &QueryResult,
    geometry: &str,
    staged: &mut Staged,
) -> Result<Vec<String>, WriteError> {
    write_batches(answer, geometry, staged, fill)
}

fn fill(batches: &Batches<'_>, sink: &mut Sink<'_>) -> Result<(), Fault> {
    let schema = batches.schema();
    let mut writer = FileWriter::try_new(sink, schema)?;
    for batch in batches.iter() {
        let batch = batch?;
        writer.write(&batch)?;
    }
    writer.finish()?;
    Ok(())
}
