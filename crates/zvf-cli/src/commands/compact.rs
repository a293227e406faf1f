//! `zvf compact`: rewrites a store in compact form.

use std::error::Error;

use crate::{
    editing::{EditOutput, EditTargetArgs, NoChange},
    hint::Operation,
    outcome::CommandOutcome,
};

/// Rewrite a store in compact form after many edits
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Removes the remains of deleted objects, merges fragmented links, and sorts objects. A store that is \
compact already is not changed.

Also removes vertices that no fragment lists, as other programs leave them. Coarser levels are then out of date in
their chunks.

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
    let is_changed = changed.chunks > 0 || changed.bytes > 0 || changed.unfinished.is_some();
    let notes = match changed.removed {
        0 => Vec::new(),
        _ => opened.notes(),
    };
    let changed = is_changed.then_some(changed).ok_or(NoChange::Nothing);
    let report = EditOutput::new(&work.store, changed).noted(notes);
    Ok(work.done(&report)?)
}
