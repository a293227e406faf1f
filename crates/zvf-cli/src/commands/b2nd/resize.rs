//! `zvf b2nd resize`: changes the shape of an array.

use std::{error::Error, path::PathBuf};

use super::changed::{ChangeArgs, commit};
use crate::{
    dense::{self, ItemTypeArgs},
    outcome::CommandOutcome,
};

/// Change the shape of an array in place; new elements are 0
#[derive(Debug, clap::Args)]
pub(crate) struct B2ndResizeArgs {
    /// File or sparse directory to change.
    file: PathBuf,
    /// New extent along each axis. Elements outside are lost.
    #[arg(long, value_name = "I,J,K", value_delimiter = ',', required = true)]
    shape: Vec<u64>,
    #[command(flatten)]
    change: ChangeArgs,
}

pub(crate) fn run(args: &B2ndResizeArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let item = ItemTypeArgs::default();
    let mut editor = dense::b2nd_editor(&args.file, &item, args.change.memory)?;
    editor.resize(&args.shape)?;
    commit(editor, &args.file, &args.change)
}
