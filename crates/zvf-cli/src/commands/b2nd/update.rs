//! `zvf b2nd update`: replaces elements of an array.

use std::{error::Error, path::PathBuf};

use zvf_dense::{AxisRange, DenseArray};

use super::changed::{ChangeArgs, commit};
use crate::{
    dense::{self, ItemTypeArgs},
    outcome::CommandOutcome,
};

/// Replace a box of an array by a dense array of any format, in place
#[derive(Debug, clap::Args)]
pub(crate) struct B2ndUpdateArgs {
    /// File or sparse directory to change.
    file: PathBuf,
    /// New elements.
    input: PathBuf,
    /// First element of the box along each axis; the default is 0.
    #[arg(long, value_name = "I,J,K", value_delimiter = ',')]
    start: Option<Vec<u64>>,
    /// Step along each axis; the default is 1.
    #[arg(long, value_name = "I,J,K", value_delimiter = ',')]
    step: Option<Vec<u64>>,
    #[command(flatten)]
    item: ItemTypeArgs,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(crate) fn run(args: &B2ndUpdateArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut editor = dense::b2nd_editor(&args.file, &args.item, args.change.memory)?;
    let input = dense::open(&args.input, None, args.change.memory)?;
    let axes = input.shape().len();
    let start = args.start.clone().unwrap_or_else(|| vec![0; axes]);
    let step = args.step.clone().unwrap_or_else(|| vec![1; axes]);
    let rank = editor.array().shape().len();
    for (name, found) in [
        (args.input.display().to_string(), axes),
        ("--start".to_owned(), start.len()),
        ("--step".to_owned(), step.len()),
    ] {
        if found != rank {
            return Err(format!("{name} has {found} axes, but the array has {rank}").into());
        }
    }
    let ranges = start.iter().zip(&step).zip(input.shape());
    let selection = ranges
        .map(|((start, step), count)| {
            let len = count.saturating_sub(1).saturating_mul(*step);
            let stop = start.saturating_add(len).saturating_add((*count).min(1));
            AxisRange::new(*start, stop, *step)
        })
        .collect::<Result<_, _>>()?;
    editor.update_from(&selection, &*input)?;
    commit(editor, &args.file, &args.change)
}
