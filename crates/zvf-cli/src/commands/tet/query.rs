//! `zvf tet query`: reductions that a document describes.

use std::{
    error::Error,
    fs::File,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use serde_json::Value;
use zvf_dense::tet::TetQuery;

use crate::{
    dense::{self, MemoryArgs},
    outcome::CommandOutcome,
};

/// Bytes that are read of a query, more than it may have.
const MAX_READ: u64 = (1 << 20) + 1;

/// Reduce values of a dataset as a query document of Tetration describes it: of a selection, with a
/// filter, in groups or windows
#[derive(Debug, clap::Args)]
pub(crate) struct TetQueryArgs {
    /// File.
    file: PathBuf,
    /// The query: JSON, a file with JSON, or `-` for standard input.
    query: String,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn text(query: &str) -> Result<String, Box<dyn Error>> {
    if query.trim_start().starts_with('{') {
        return Ok(query.to_owned());
    }
    let mut text = String::new();
    if query == "-" {
        io::stdin().take(MAX_READ).read_to_string(&mut text)?;
    } else {
        let failed = |error: io::Error| format!("{}: {error}", Path::new(query).display());
        let file = File::open(query).map_err(failed)?;
        file.take(MAX_READ)
            .read_to_string(&mut text)
            .map_err(failed)?;
    }
    Ok(text)
}

pub(crate) fn run(args: &TetQueryArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let query = TetQuery::parse(&text(&args.query)?)?;
    let response = query.run(&dense::tet(&args.file, args.memory)?)?;
    let text = if args.json {
        serde_json::to_string_pretty(&response)?
    } else {
        let parts = response.get("execution").and_then(Value::as_object);
        let lines = parts
            .into_iter()
            .flatten()
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}: {text}"),
                value => format!("{name}: {value}"),
            });
        lines.collect::<Vec<_>>().join("\n")
    };
    Ok(CommandOutcome {
        text,
        ..CommandOutcome::default()
    })
}
