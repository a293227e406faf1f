//! `convert`: writes a dense array in another format.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use serde_json::json;
use zvf_dense::{DenseArray, Hyperslab};

use super::{
    DenseTargetArgs, MemoryArgs,
    format::{self, DenseFormat, has_chunks, open},
    write::write,
};
use crate::{display::count_noun, outcome::CommandOutcome};

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
pub(crate) fn create_b2nd(args: &ConvertArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    if DenseFormat::of(&args.output)? != DenseFormat::B2nd {
        let output = args.output.display();
        return Err(format!(
            "{output} does not end in .b2nd; write other formats with zvf b2nd convert"
        )
        .into());
    }
    convert(args)
}

pub(crate) fn convert(args: &ConvertArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let array = open(&args.input, args.dataset.as_deref(), args.memory)?;
    let whole = Hyperslab::whole(array.shape());
    let has_chunks = has_chunks(&args.input)?;
    let written = write(
        &*array,
        whole,
        has_chunks,
        &args.output,
        &args.target,
        args.quiet,
    )?;
    let mut warnings = unread(&args.input, args.memory)?;
    warnings.extend(written.warnings);
    let output = args.output.display().to_string();
    let text = if args.json {
        serde_json::to_string_pretty(&json!({
            "input": args.input.display().to_string(),
            "output": output,
            "dtype": array.dtype().to_string(),
            "shape": array.shape(),
            "chunk_shape": written.chunk_shape,
            "chunks": written.chunks,
        }))?
    } else {
        format!(
            "{output}: {}",
            count_noun(written.chunks, "chunk", "chunks")
        )
    };
    Ok(CommandOutcome {
        text,
        warnings,
        ..CommandOutcome::default()
    })
}

/// Returns a line for what the attributes of an array do not hold of its file.
fn unread(input: &Path, memory: MemoryArgs) -> Result<Vec<String>, Box<dyn Error>> {
    let name = input.display();
    Ok(match DenseFormat::of(input)? {
        DenseFormat::Nifti => vec![format!(
            "{name}: the matrix from voxels to coordinates is left out; zvf sample needs --affine for the output"
        )],
        DenseFormat::B2nd => {
            let array = format::b2nd(input, memory)?;
            let attributes = array.attributes();
            let layers = array.metalayers().chain(array.vlmetalayers());
            let unread = layers
                .filter(|(layer, _)| !attributes.contains_key(*layer))
                .map(|(layer, _)| {
                    format!(
                        "{name}: metalayer {layer:?} is left out, because it is not an attribute"
                    )
                });
            unread.collect()
        }
        _ => Vec::new(),
    })
}
