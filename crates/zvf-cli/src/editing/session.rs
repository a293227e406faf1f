//! A store that is being changed.

use std::error::Error;

use zvf::{ChangeSummary, Dataset, Editor};

use super::EditOutput;
use crate::{
    hint::{Operation, with_hint},
    outcome::CommandOutcome,
    progress::Progress,
};

/// Which store is changed, and how that is shown.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EditTargetArgs {
    /// The store: a folder, or an address of a kind this build knows.
    pub(crate) store: String,
    /// How often to try again when others change the same at the same time.
    #[arg(long, value_name = "N", help_heading = "Work", default_value_t = 16)]
    retries: usize,
    /// Prints one JSON object.
    #[arg(long, help_heading = "Work")]
    json: bool,
    /// Shows no progress, and prints nothing but what is wrong.
    #[arg(long, help_heading = "Work")]
    pub(crate) quiet: bool,
}

/// A store that is open.
pub(crate) struct EditSession {
    pub(crate) editor: Editor,
    pub(crate) dataset: Dataset,
    operation: Operation,
    quiet: bool,
}

impl EditTargetArgs {
    /// Opens the store to do this.
    pub(crate) async fn open(&self, operation: Operation) -> Result<EditSession, Box<dyn Error>> {
        let opened = Editor::open(&self.store).await;
        let editor = opened.map_err(|error| with_hint(operation, error))?;
        let editor = editor.retries(self.retries);
        let dataset = editor.dataset().await?;
        Ok(EditSession {
            editor,
            dataset,
            operation,
            quiet: self.quiet,
        })
    }

    /// What is to be printed.
    pub(crate) fn done(&self, report: &EditOutput) -> Result<CommandOutcome, serde_json::Error> {
        let mut done = CommandOutcome::default();
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

impl EditSession {
    /// Waits for a change.
    pub(crate) async fn change(
        &self,
        change: impl Future<Output = Result<ChangeSummary, zvf::Error>>,
    ) -> Result<ChangeSummary, Box<dyn Error>> {
        let what = format!("changing {}", self.dataset.address());
        let progress = Progress::for_change(self.dataset.store(), &what, self.quiet);
        let changed = change.await;
        drop(progress);
        changed.map_err(|error| with_hint(self.operation, error))
    }

    /// Levels that a change of the finest one leaves as they are.
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
            "only level 0 changed; coarser ones ({}) show what was there before",
            coarser.join(", ")
        );
        vec![note]
    }
}
