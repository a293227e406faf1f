//! A session that edits a store.

use std::error::Error;

use serde_json::json;
use zvf::{AttributeReport, Dataset, Editor, GeometryKind};
use zvf_files::TableKey;

use super::EditOutput;
use crate::{
    display::{count_noun, group_digits, push_notes},
    hint::{Operation, with_hint},
    outcome::{CommandOutcome, unfinished_warning},
    progress::ProgressLine,
};

/// The store to edit, and the form of the output.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EditTargetArgs {
    /// Store: a folder, or an address that this build supports.
    pub(crate) store: String,
    /// Maximum number of retries after a conflict with a concurrent edit.
    #[arg(
        long,
        value_name = "N",
        help_heading = "Execution",
        default_value_t = 16
    )]
    pub(crate) retries: usize,
    /// Print one JSON object.
    #[arg(long, help_heading = "Execution")]
    json: bool,
    /// Show no progress, and print nothing but warnings and errors.
    #[arg(long, help_heading = "Execution")]
    pub(crate) quiet: bool,
}

/// A store opened for editing.
pub(crate) struct EditSession {
    pub(crate) editor: Editor,
    pub(crate) dataset: Dataset,
    operation: Operation,
    quiet: bool,
}

/// The store does not name its kind of geometry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} does not name its kind of geometry, so nothing can be read for it; run zvf validate")]
pub(crate) struct NoKindError(String);

impl EditSession {
    /// Returns the kind of geometry of the store.
    pub(crate) fn kind(&self) -> Result<GeometryKind, NoKindError> {
        let kind = self.dataset.root().first_kind();
        kind.ok_or_else(|| NoKindError(self.dataset.address().to_owned()))
    }
}

impl EditTargetArgs {
    /// Opens the store for `operation`.
    pub(crate) async fn open(&self, operation: Operation) -> Result<EditSession, Box<dyn Error>> {
        let opened = Editor::open(&self.store).await;
        let editor = opened
            .map_err(|error| with_hint(operation, error))?
            .retries(self.retries);
        let dataset = editor.dataset().await?;
        Ok(EditSession {
            editor,
            dataset,
            operation,
            quiet: self.quiet,
        })
    }

    /// Formats the result.
    pub(crate) fn done(&self, report: &EditOutput) -> Result<CommandOutcome, serde_json::Error> {
        let mut done = CommandOutcome::default();
        done.warnings.extend(report.warning());
        if self.json {
            done.text = serde_json::to_string_pretty(&report.object())?;
        } else if self.quiet {
            done.warnings.extend_from_slice(report.notes());
        } else {
            done.text = report.text();
        }
        Ok(done)
    }
}

impl EditTargetArgs {
    /// Formats the result of writing attributes of a table with this key and number of rows.
    pub(crate) fn attributes_done(
        &self,
        names: &[String],
        key: TableKey,
        rows: u64,
        written: &AttributeReport,
        notes: Vec<String>,
    ) -> Result<CommandOutcome, serde_json::Error> {
        let mut done = CommandOutcome::default();
        let warning = unfinished_warning(written.unfinished.as_ref());
        done.warnings.extend(warning);
        if self.json {
            done.text = serde_json::to_string_pretty(&json!({
                "attributes": names,
                "key": key.name(),
                "rows": rows,
                "chunks": written.chunks,
                "bytes_written": written.bytes,
                "transaction": written.transaction,
                "notes": notes,
            }))?;
        } else if self.quiet {
            done.warnings.extend(notes);
        } else {
            let items = match key {
                TableKey::Row => count_noun(rows, "vertex", "vertices"),
                TableKey::Object => count_noun(rows, "object", "objects"),
                TableKey::Fragment => {
                    format!(
                        "the fragments of {}",
                        count_noun(rows, "vertex", "vertices")
                    )
                }
            };
            let attributes = if names.len() == 1 {
                "attribute"
            } else {
                "attributes"
            };
            let mut lines = vec![
                self.store.clone(),
                format!("  {attributes} {} of {items} written", names.join(", ")),
                format!(
                    "  {} bytes written, transaction {}",
                    group_digits(written.bytes),
                    written.transaction,
                ),
            ];
            push_notes(&mut lines, &notes);
            done.text = lines.join("\n");
        }
        Ok(done)
    }

    /// Formats the result of removing attributes.
    pub(crate) fn attributes_dropped(
        &self,
        names: &[&str],
        written: &AttributeReport,
    ) -> Result<CommandOutcome, serde_json::Error> {
        let mut done = CommandOutcome::default();
        done.warnings
            .extend(unfinished_warning(written.unfinished.as_ref()));
        if self.json {
            done.text = serde_json::to_string_pretty(&json!({
                "dropped": names,
                "transaction": written.transaction,
            }))?;
        } else if !self.quiet {
            done.text = format!(
                "{}\n  {} removed, transaction {}",
                self.store,
                names.join(", "),
                written.transaction,
            );
        }
        Ok(done)
    }
}

impl EditSession {
    /// Runs an edit with a progress line.
    pub(crate) async fn change<T>(
        &self,
        change: impl Future<Output = Result<T, zvf::Error>>,
    ) -> Result<T, Box<dyn Error>> {
        let what = format!("changing {}", self.dataset.address());
        let progress = ProgressLine::for_change(self.dataset.store(), &what, self.quiet);
        let changed = change.await;
        drop(progress);
        changed.map_err(|error| with_hint(self.operation, error))
    }

    /// Notes that row ids were not checked, if the store has changed and their file does not name a
    /// transaction.
    pub(crate) fn unchecked_rows(&self, transaction: Option<u64>) -> Option<String> {
        let is_unchecked = transaction.is_none() && self.dataset.transaction() > 0;
        is_unchecked.then(|| {
            "the file names no transaction, so its row ids were not checked, and may name other \
             vertices since the store changed; give the transaction of the query with --at-transaction"
                .to_owned()
        })
    }

    /// Notes which coarser levels no longer match level 0.
    pub(crate) fn notes(&self) -> Vec<String> {
        let levels = self.dataset.levels().iter();
        let coarser: Vec<String> = levels
            .filter(|level| level.number() > 0)
            .map(ToString::to_string)
            .collect();
        if coarser.is_empty() {
            return Vec::new();
        }
        let note = format!(
            "only level 0 changed; coarser levels ({}) show the previous state",
            coarser.join(", ")
        );
        vec![note]
    }
}
