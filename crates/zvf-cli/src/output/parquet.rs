//! Parquet, compressed with zstd.

use std::sync::Arc;

use parquet::{
    arrow::ArrowWriter,
    basic::{Compression, ZstdLevel},
    file::{metadata::KeyValue, properties::WriterProperties},
};
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
    // For readers that do not know Arrow; the others find it in the schema.
    let mut entries: Vec<KeyValue> = schema
        .metadata()
        .iter()
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()))
        .collect();
    entries.sort_by(|one, other| one.key.cmp(&other.key));
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(entries))
        .build();
    let writer = ArrowWriter::try_new(sink, Arc::clone(schema), Some(properties));
    let mut writer = writer?;
    for batch in batches.iter() {
        let batch = batch?;
        writer.write(&batch)?;
    }
    writer.close()?;
    Ok(())
}
