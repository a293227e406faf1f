//! `convert`: writes a dense array in another format.

use std::{
    error::Error,
    path::{Path, PathBuf},
};

use serde_json::json;
use zvf_dense::{DenseArray, Hyperslab};

use super::{
    DenseTargetArgs, ItemTypeArgs, MemoryArgs,
    format::{self, DenseFormat, has_chunks, open_typed},
    write::write,
};
use crate::{display::count_noun, outcome::CommandOutcome};

/// Convert a dense array between .tet, .npy, .zarr, .b2nd and .cat, chunk by chunk
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
    item: ItemTypeArgs,
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
            "{output} does not end in .b2nd or .cat; write other formats with zvf b2nd convert"
        )
        .into());
    }
    convert(args)
}

pub(crate) fn convert(args: &ConvertArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let dataset = args.dataset.as_deref();
    let array = open_typed(&args.input, dataset, &args.item, args.memory)?;
    let whole = Hyperslab::whole(array.shape());
    let has_chunks = has_chunks(&args.input)?;
    let mut target = args.target.clone();
    let is_b2nd = DenseFormat::of(&args.output)? == DenseFormat::B2nd;
    if is_b2nd && DenseFormat::of(&args.input)? == DenseFormat::B2nd {
        target.keep_metalayers(&format::b2nd(&args.input, args.memory)?);
    }
    let written = write(
        &*array,
        whole,
        has_chunks,
        &args.output,
        &target,
        args.quiet,
    )?;
    let mut warnings = unread(&args.input, args.memory, is_b2nd)?;
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
fn unread(
    input: &Path,
    memory: MemoryArgs,
    keeps_metalayers: bool,
) -> Result<Vec<String>, Box<dyn Error>> {
    let name = input.display();
    Ok(match DenseFormat::of(input)? {
        DenseFormat::Nifti => vec![format!(
            "{name}: the matrix from voxels to coordinates is left out; zvf sample needs --affine for the output"
        )],
        DenseFormat::B2nd => {
            let array = format::b2nd(input, memory)?;
            let attributes = array.attributes();
            let fixed = array.metalayers().filter(|_| !keeps_metalayers);
            let layers = fixed.chain(array.vlmetalayers());
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
