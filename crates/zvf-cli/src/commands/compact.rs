//! `zvf compact`: rewrites a store in compact form.

use std::error::Error;

use crate::{
    editing::{EditOutput, EditTargetArgs},
    hint::Operation,
    outcome::CommandOutcome,
};

/// Rewrite a store in compact form after many edits
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Removes the remains of deleted objects, merges fragments and links, and sorts objects.

Examples:
  zvf compact tracts.zv"
)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    work: EditTargetArgs,
}

/// Compacts the store.
pub(crate) async fn run(arguments: &CompactArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let work = &arguments.work;
    let opened = work.open(Operation::Compact).await?;
    let changed = opened.change(opened.editor.compact()).await?;
    let report = EditOutput::new(&work.store, Ok(changed));
    Ok(work.done(&report)?)
}
