//! The state of a layer that is being written: entries that are grouped, and counts.

use serde_json::{Value, json};

use super::{
    BUFFERED, ExportError,
    output::{ExportOutput, ScratchFolder},
};
use crate::spill::Spill;

/// Counts of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LayerCounts {
    /// Batches or groups of objects that are complete.
    pub(super) done: usize,
    /// Values that were written.
    pub(super) values: u64,
    /// Elements that were left out.
    pub(super) dropped: u64,
    /// Objects without anything to draw.
    pub(super) empty: u64,
}

/// The entries and counts of a layer, which an interrupted export to a folder keeps.
pub(super) struct LayerProgress<'a> {
    output: &'a ExportOutput,
    step: String,
    pub(super) spill: Spill,
    pub(super) counts: LayerCounts,
}

impl<'a> LayerProgress<'a> {
    /// Begins a layer, or continues it after the last [`keep`](Self::keep).
    pub(super) fn open(output: &'a ExportOutput, folder: &str) -> Result<Self, ExportError> {
        let step = format!("{folder}: progress");
        let begin = |spill| Self {
            output,
            step: step.clone(),
            spill,
            counts: LayerCounts::default(),
        };
        let scratch = match output.scratch(folder)? {
            ScratchFolder::Temporary(scratch) => return Ok(begin(Spill::new(scratch, BUFFERED))),
            ScratchFolder::Kept(scratch) => scratch,
        };
        let failed = |source| ExportError::File {
            file: scratch.clone(),
            source,
        };
        let restore = |from: Option<&Value>| Spill::restore(scratch.clone(), BUFFERED, from);
        if let Some(kept) = output.step(&step)
            && let Some(spill) = restore(kept.get("spill")).map_err(failed)?
        {
            let count = |name: &str| kept.get(name).and_then(Value::as_u64).unwrap_or(0);
            let mut progress = begin(spill);
            progress.counts = LayerCounts {
                done: usize::try_from(count("done")).unwrap_or(0),
                values: count("values"),
                dropped: count("dropped"),
                empty: count("empty"),
            };
            return Ok(progress);
        }
        let spill = restore(None).map_err(failed)?;
        // Nothing is restored from nothing, so that nothing differs.
        spill.map(begin).ok_or(ExportError::Record)
    }

    /// Counts a value.
    pub(super) fn add_value(&mut self) {
        self.counts.values = self.counts.values.saturating_add(1);
    }

    /// Counts an element that is left out.
    pub(super) fn add_dropped(&mut self) {
        self.counts.dropped = self.counts.dropped.saturating_add(1);
    }

    /// Counts an object without anything to draw.
    pub(super) fn add_empty(&mut self) {
        self.counts.empty = self.counts.empty.saturating_add(1);
    }

    /// Counts a complete group of objects, or a complete pass.
    pub(super) fn add_group(&mut self, dropped: u64) {
        self.counts.done = self.counts.done.saturating_add(1);
        self.counts.dropped = self.counts.dropped.saturating_add(dropped);
    }

    /// Keeps the entries and counts for the same export after an interruption.
    pub(super) fn keep(&mut self) -> Result<(), ExportError> {
        if !self.output.keeps_steps() {
            return Ok(());
        }
        let LayerCounts {
            done,
            values,
            dropped,
            empty,
        } = self.counts;
        let spill = self.spill.checkpoint()?;
        let kept = json!({
            "done": done,
            "values": values,
            "dropped": dropped,
            "empty": empty,
            "spill": spill,
        });
        self.output.add_step(&self.step, kept)
    }
}
