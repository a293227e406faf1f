//! `zvf b2nd verify`: decodes every chunk of an array.

use std::{error::Error, path::PathBuf};

use serde_json::json;
use zvf_dense::DenseArray;

use crate::{
    dense::{self, MemoryArgs},
    display::count_noun,
    outcome::CommandOutcome,
};

/// Decode every chunk of an array; exit with 1 if one is damaged
#[derive(Debug, clap::Args)]
pub(crate) struct B2ndVerifyArgs {
    /// File or sparse directory.
    file: PathBuf,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &B2ndVerifyArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let array = dense::b2nd(&args.file, args.memory)?;
    let path = args.file.display().to_string();
    let mut broken = Vec::new();
    array.verify(&mut |chunk, error| {
        let mut why = Vec::new();
        let mut cause: Option<&dyn Error> = error.source();
        while let Some(error) = cause {
            // The chunk number is printed separately.
            why.extend(Some(error.to_string()).filter(|text| *text != format!("chunk {chunk}")));
            cause = error.source();
        }
        if why.is_empty() {
            why.push(error.to_string());
        }
        broken.push((chunk, why.join(": ")));
    });
    let chunks = array.grid().chunk_count().unwrap_or(u64::MAX);
    let text = if args.json {
        let list = broken
            .iter()
            .map(|(chunk, why)| json!({"chunk": chunk, "error": why}));
        serde_json::to_string_pretty(&json!({
            "path": path,
            "ok": broken.is_empty(),
            "chunks": chunks,
            "broken": list.collect::<Vec<_>>(),
        }))?
    } else {
        let status = if broken.is_empty() { "ok" } else { "failed" };
        let mut lines = vec![format!(
            "{path}, {}: {status}",
            count_noun(chunks, "chunk", "chunks")
        )];
        lines.extend(
            broken
                .iter()
                .map(|(chunk, why)| format!("  chunk {chunk}: {why}")),
        );
        lines.join("\n")
    };
    Ok(CommandOutcome {
        text,
        is_negative: !broken.is_empty(),
        ..CommandOutcome::default()
    })
}
