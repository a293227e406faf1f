//! `zvf compact`.

use std::error::Error;

use crate::{
    advice::Verb,
    change::{Report, Work},
    command::Done,
};

/// Tidies a store up after many changes
#[derive(Debug, clap::Args)]
#[command(
    after_help = "What objects that went left behind goes, fragments and links are written in one piece, and objects are sorted.

Examples:
  zvf compact tracts.zv"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    work: Work,
}

/// Tidies a store up.
pub(crate) async fn run(arguments: &Arguments) -> Result<Done, Box<dyn Error>> {
    let work = &arguments.work;
    let opened = work.open(Verb::Compact).await?;
    let changed = opened.change(opened.editor.compact()).await?;
    let report = Report::new(&work.store, Ok(changed));
    Ok(work.done(&report)?)
}
