//! A store as a stream of Arrow, a batch of vertices at a time: never more in memory than a batch.
//!
//! ```text
//! cargo run --package zvf-cli --example stream_arrow -- tracts.zv > tracts.arrows
//! ```

use std::{
    env,
    error::Error,
    io::{self, Write},
    ops::ControlFlow,
    sync::Arc,
};

use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_ipc::writer::StreamWriter;
use zvf::{Dataset, Query, QueryResult, numeric::Value};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = env::args().nth(1).ok_or("give the address of a store")?;
    let dataset = Dataset::open(&address).await?;
    let mut writer = None;
    let mut failed = None;
    let each = |result: QueryResult| match write(&result, &mut writer) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    };
    dataset.batches(&Query::new(), each).await?;
    if let Some(mut writer) = writer {
        writer.finish()?;
    }
    failed.map_or(Ok(()), |error| Err(error.into()))
}

type Writer = StreamWriter<io::Stdout>;

fn write(
    result: &QueryResult,
    writer: &mut Option<Writer>,
) -> Result<(), arrow_schema::ArrowError> {
    let rows = result.positions.view();
    let value = |row, axis| match rows.as_ref()?.value(row, axis)? {
        Value::Float(value) => Some(value),
        // Other types have their own arrays; one is enough to show how.
        _ => None,
    };
    let columns = result.axes.iter().zip(0..).map(|(name, axis)| {
        let values = (0..result.positions.len()).map(|row| value(row, axis));
        (name, Arc::new(values.collect::<Float64Array>()) as ArrayRef)
    });
    let batch = RecordBatch::try_from_iter(columns)?;
    if writer.is_none() {
        *writer = Some(StreamWriter::try_new(io::stdout(), &batch.schema())?);
    }
    let Some(writer) = writer else { return Ok(()) };
    writer.write(&batch)?;
    Ok(writer.get_mut().flush()?)
}
