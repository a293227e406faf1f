//! `convert`: writes a dense array in another format.

use std::{error::Error, path::PathBuf};

use serde_json::json;
use zvf_dense::Hyperslab;

use super::{
    DenseTargetArgs, MemoryArgs,
    format::{DenseFormat, has_chunks, open},
    write::write,
};
use crate::outcome::CommandOutcome;

/// Convert a dense array between .tet, .npy, .zarr and .b2nd, chunk by chunk
#[derive(Debug, clap::Args)]
pub(crate) struct ConvertArgs {
    /// Array to read: a .tet, .npy, .b2nd or .cat file, or the folder of a Zarr array.
    input: PathBuf,
    /// Array to write; its extension selects the format.
    output: PathBuf,
    /// Dataset of a .tet file; optional if it has only one.
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    #[command(flatten)]
    target: DenseTargetArgs,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// Converts to Blosc2; fails if the output has another extension.
pub(crate) fn create_b2nd(asked: &ConvertArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    if DenseFormat::of(&asked.output)? != DenseFormat::B2nd {
        let output = asked.output.display();
        return Err(format!(
            "{output} does not end in .b2nd; write other formats with zvf b2nd convert"
        )
        .into());
    }
    convert(asked)
}

pub(crate) fn convert(asked: &ConvertArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let array = open(&asked.input, asked.dataset.as_deref(), asked.memory)?;
    let whole = Hyperslab::whole(array.shape());
    let has_chunks = has_chunks(&asked.input)?;
    let written = write(
        &*array,
        whole,
        has_chunks,
        &asked.output,
        &asked.target,
        asked.quiet,
    )?;
    let output = asked.output.display().to_string();
    let text = match asked.json {
        true => serde_json::to_string_pretty(&json!({
            "input": asked.input.display().to_string(),
            "output": output,
            "dtype": array.dtype().to_string(),
            "shape": array.shape(),
            "chunk_shape": written.chunk_shape,
            "chunks": written.chunks,
        }))?,
        false => format!("{output}: {} chunks", written.chunks),
    };
    Ok(CommandOutcome {
        text,
        warnings: written.warnings,
        ..CommandOutcome::default()
    })
}
