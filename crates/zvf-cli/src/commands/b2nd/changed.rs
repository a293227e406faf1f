//! Committing changes of an array, and describing the result.

use std::{error::Error, path::Path};

use serde_json::json;
use zvf_dense::{DenseArray, b2nd::B2ndEditor};

use crate::{
    dense::{self, MemoryArgs},
    display::{count_noun, extents},
    outcome::CommandOutcome,
    stop,
};

/// Arguments of commands that change an array.
#[derive(Debug, clap::Args)]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    pub(super) memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// Makes the changes of `editor` visible, and describes the array.
pub(super) fn commit(
    editor: B2ndEditor,
    file: &Path,
    args: &ChangeArgs,
) -> Result<CommandOutcome, Box<dyn Error>> {
    stop::check()?;
    editor.commit()?;
    let array = dense::b2nd(file, args.memory)?;
    let path = file.display().to_string();
    let chunks = array.grid().chunk_count().unwrap_or(u64::MAX);
    let text = if args.json {
        serde_json::to_string_pretty(&json!({
            "path": path,
            "shape": array.shape(),
            "chunks": chunks,
            "stored_bytes": array.facts().cbytes,
        }))?
    } else {
        format!(
            "{path}: {} in {}",
            extents(array.shape()),
            count_noun(chunks, "chunk", "chunks")
        )
    };
    Ok(CommandOutcome::from(text))
}
