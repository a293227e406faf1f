//! `zvf tet verify`: checks a file.

use std::{error::Error, path::PathBuf};

use serde_json::json;
use zvf_dense::tet::{TetSeverity, verify};

use crate::{
    dense::{self, MemoryArgs},
    display::{count_noun, group_digits},
    outcome::CommandOutcome,
};

/// Check the structure and the payloads of a file; exit with 1 if there is an error
#[derive(Debug, clap::Args)]
pub(crate) struct TetVerifyArgs {
    /// File.
    file: PathBuf,
    /// Decode every payload instead of the first 128.
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    memory: MemoryArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &TetVerifyArgs) -> Result<CommandOutcome, Box<dyn Error>> {
    let source = dense::source(&args.file)?;
    let len = source.len();
    let found = verify(source, args.memory.tet(), args.deep)?;
    let path = args.file.display().to_string();
    let text = if args.json {
        let mut object = found.to_json();
        if let Some(object) = object.as_object_mut() {
            object.insert("path".to_owned(), json!(path));
            object.insert("file_len".to_owned(), json!(len));
        }
        serde_json::to_string_pretty(&object)?
    } else {
        let status = if found.is_ok() { "ok" } else { "failed" };
        let mut lines = vec![
            format!("{path}, {} bytes: {status}", group_digits(len)),
            String::new(),
        ];
        for finding in &found.findings {
            let mark = match finding.severity {
                TetSeverity::Info => "ok",
                TetSeverity::Warning => "warn",
                TetSeverity::Error => "FAIL",
            };
            let detail = finding.detail.as_ref();
            let detail = detail
                .map(|detail| format!("  {detail}"))
                .unwrap_or_default();
            lines.push(format!("  {:22} {mark}{detail}", finding.check));
        }
        if let Some(file) = &found.file {
            let rows = file.superblock().rows();
            lines.push(format!(
                "\n{} of {} decoded",
                group_digits(found.chunks_checked),
                count_noun(rows, "payload", "payloads")
            ));
        }
        lines.join("\n")
    };
    Ok(CommandOutcome {
        text,
        is_negative: !found.is_ok(),
        ..CommandOutcome::default()
    })
}
