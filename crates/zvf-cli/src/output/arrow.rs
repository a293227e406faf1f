//! Arrow's IPC file format, known as Feather 2 too.

use arrow_ipc::writer::FileWriter;
use zvf::query::Answer;

use super::{
    Table, WriteError,
    columnar::{Batches, metadata},
    staged::{Fault, Sink, Staged},
};

pub(super) fn write(
    answer: &Answer,
    geometry: &str,
    staged: &mut Staged,
) -> Result<Vec<String>, WriteError> {
    let about = metadata(answer, geometry);
    let vertices = Table::vertices(answer)?;
    let vertices = Batches::of(&vertices, about.clone())?;
    staged.write(|sink| fill(&vertices, sink))?;
    for (part, table) in Table::beside(answer)? {
        let batches = Batches::of(&table, about.clone())?;
        staged.write_beside(part, |sink| fill(&batches, sink))?;
    }
    Ok(Vec::new())
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
