//! `slice`: prints or writes a box of an array.

use std::{error::Error, path::PathBuf};

use serde_json::{Value, json};
use zvf_dense::{DenseArray, Hyperslab};

use super::{BoxArgs, DenseTargetArgs, MemoryArgs, values::numbers, write::write};
use crate::{
    display::{count_noun, extents},
    outcome::CommandOutcome,
};

/// Maximum number of printed values.
const MAX_SHOWN: u64 = 64;

/// Arguments of `slice`.
#[derive(Debug, clap::Args)]
pub(crate) struct SliceArgs {
    #[command(flatten)]
    ranges: BoxArgs,
    /// Write the box to a .npy, .b2nd, .cat, .tet or .zarr.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: DenseTargetArgs,
    #[command(flatten)]
    pub(crate) memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

/// Reads a box of `array`, and writes it or prints its first values.
pub(crate) fn slice(
    array: &dyn DenseArray,
    args: &SliceArgs,
) -> Result<CommandOutcome, Box<dyn Error>> {
    let selection = args.ranges.selection(array.shape())?;
    let plan = array.read_plan(&selection)?;
    let mut warnings = Vec::new();
    let mut values = None;
    match &args.output {
        Some(out) => {
            let written = write(
                array,
                selection.clone(),
                true,
                out,
                &args.target,
                args.quiet,
            )?;
            warnings = written.warnings;
        }
        None => values = first(array, &selection)?,
    }
    let mut object = json!({
        "array": array.name(),
        "dtype": array.dtype().to_string(),
        "shape": selection.shape(),
        "chunks": plan.chunks,
        "blocks": plan.blocks,
        "bytes_read": plan.bytes_read,
        "bytes": plan.bytes,
        "output": args.output.as_ref().map(|out| out.display().to_string()),
    });
    if let (Some(values), Some(object)) = (&values, object.as_object_mut()) {
        object.insert("values".to_owned(), json!(values));
    }
    let text = if args.json {
        serde_json::to_string_pretty(&object)?
    } else {
        let mut text = format!(
            "{} of {}: {}, {}, {} read",
            extents(&selection.shape()),
            array.dtype(),
            count_noun(plan.chunks, "chunk", "chunks"),
            count_noun(plan.blocks, "block", "blocks"),
            count_noun(plan.bytes_read, "byte", "bytes"),
        );
        if let Some(values) = values {
            let shown: Vec<String> = values.iter().map(Value::to_string).collect();
            let all = selection.element_count().unwrap_or(u64::MAX);
            let more = if all > MAX_SHOWN { " …" } else { "" };
            text = format!("{text}\n{}{more}", shown.join(" "));
        }
        text
    };
    Ok(CommandOutcome {
        text,
        warnings,
        ..CommandOutcome::default()
    })
}

/// Returns the first values of a box in row-major order, reading only the rows needed.
fn first(
    array: &dyn DenseArray,
    selection: &Hyperslab,
) -> Result<Option<Vec<Value>>, Box<dyn Error>> {
    let mut wanted = MAX_SHOWN;
    let mut axes = selection.axes().to_vec();
    // Limit each axis, from the last to the first, to the values that are printed.
    for axis in axes.iter_mut().rev() {
        let count = axis.count();
        *axis = axis.portion(0..wanted.max(1).min(count));
        wanted = wanted.div_ceil(count.max(1));
    }
    let bytes = array.slice_within(&axes.into_iter().collect(), array.scratch())?;
    let values = numbers(array.dtype(), &bytes);
    let max = usize::try_from(MAX_SHOWN).unwrap_or(usize::MAX);
    Ok(values.map(|values| values.into_iter().take(max).collect()))
}
