//! `zvf compact`.

use std::error::Error;

use crate::{
    editing::{EditOutput, EditTargetArgs},
    hint::Operation,
    outcome::CommandOutcome,
};

/// Tidies a store up after many changes
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What objects that went left behind goes, fragments and links are written in one piece, and objects are sorted.

Examples:
  zvf compact tracts.zv"
)]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    work: EditTargetArgs,
}

/// Tidies a store up.
pub(crate) async fn run(arguments: &CompactArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let work = &arguments.work;
    let opened = work.open(Operation::Compact).await?;
    let changed = opened.change(opened.editor.compact()).await?;
    let report = EditOutput::new(&work.store, Ok(changed));
    Ok(work.done(&report)?)
}
