//! `convert`: any dense array to any other.

use std::{error::Error, path::PathBuf};

use serde_json::json;
use zvf_dense::Hyperslab;

use super::{
    DenseTargetArgs, MemoryArgs,
    format::{DenseFormat, has_chunks, open},
    write::write,
};
use crate::outcome::CommandOutcome;

/// Writes a dense array as one of another kind, chunk by chunk:
/// .tet, .npy, .zarr and .b2nd, by
/// what the files are called.
#[derive(Debug, clap::Args)]
pub(crate) struct ConvertArgs {
    /// What is read: a .tet, a .npy, a .b2nd or .cat, or the folder of a Zarr array.
    input: PathBuf,
    /// What is written.
    output: PathBuf,
    /// Which dataset of a .tet; not needed when it has one.
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

/// Only to an array of Blosc2.
pub(crate) fn create_b2nd(asked: &ConvertArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    if DenseFormat::of(&asked.output)? != DenseFormat::B2nd {
        let output = asked.output.display();
        return Err(format!("{output} is not called .b2nd; zvf b2nd convert writes others").into());
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
