//! `zvf b2nd append`: appends elements to an array.

use std::{error::Error, path::PathBuf};

use super::changed::{ChangeArgs, commit};
use crate::{
    dense::{self, ItemTypeArgs},
    outcome::CommandOutcome,
};

/// Append a dense array of any format along an axis, in place
#[derive(Debug, clap::Args)]
pub(crate) struct B2ndAppendArgs {
    /// File or sparse directory to change.
    file: PathBuf,
    /// Elements to append, with equal extents along the other axes.
    input: PathBuf,
    /// Axis along which the array grows.
    #[arg(long, value_name = "N", default_value_t = 0)]
    axis: usize,
    #[command(flatten)]
    item: ItemTypeArgs,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(crate) fn run(args: &B2ndAppendArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let mut editor = dense::b2nd_editor(&args.file, &args.item, args.change.memory)?;
    let input = dense::open(&args.input, None, args.change.memory)?;
    editor.append_from(args.axis, &*input)?;
    commit(editor, &args.file, &args.change)
}
