//! The report of a change, as text and as JSON.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use zvf::ChangeSummary;
use zvf_files::GeometryInput;

use crate::{
    display::{count_noun, group_digits, len_u64, push_notes},
    outcome::unfinished_warning,
};

/// Maximum number of objects listed in text.
const MAX_SHOWN: usize = 10;

/// The report of a change.
#[derive(Clone, Debug)]
pub(crate) struct EditOutput {
    store: String,
    objects: Vec<i64>,
    files: Vec<String>,
    notes: Vec<String>,
    /// The summary, or the reason that nothing changed.
    changed: Result<ChangeSummary, NoChange>,
}

/// Reason that nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoChange {
    /// There was nothing to change.
    Nothing,
    /// Dry run: this many vertices would be removed.
    DryRun(u64),
}

impl EditOutput {
    /// Creates the report of a store at this address.
    pub(crate) fn new(store: &str, changed: Result<ChangeSummary, NoChange>) -> Self {
        Self {
            store: store.to_owned(),
            objects: Vec::new(),
            files: Vec::new(),
            notes: Vec::new(),
            changed,
        }
    }

    /// Sets the affected objects.
    pub(crate) fn objects(mut self, ids: impl IntoIterator<Item = i64>) -> Self {
        let ids: BTreeSet<i64> = ids.into_iter().collect();
        self.objects = ids.into_iter().collect();
        self
    }

    /// Sets the input.
    pub(crate) fn read(mut self, input: &GeometryInput) -> Self {
        let files = input.files.iter();
        self.files = files.map(|file| file.display().to_string()).collect();
        self.notes.extend_from_slice(&input.notes);
        self
    }

    /// Adds notes, one per line.
    pub(crate) fn noted(mut self, notes: Vec<String>) -> Self {
        self.notes.extend(notes);
        self
    }

    /// Returns one JSON object.
    pub(crate) fn object(&self) -> Value {
        let mut object = match &self.changed {
            Ok(changed) => json!({
                "vertices": changed.added,
                "removed": changed.removed,
                "chunks": changed.chunks,
                "bytes_written": changed.bytes,
                "transaction": changed.transaction,
                "links": changed.links,
                "severed": changed.severed,
            }),
            Err(why) => json!({
                "vertices": 0,
                "removed": why.removed(),
                "chunks": 0,
                "bytes_written": 0,
                "transaction": null,
                "links": 0,
                "severed": 0,
            }),
        };
        if let Some(members) = object.as_object_mut() {
            members.insert("objects".to_owned(), self.objects.len().into());
            members.insert("object_ids".to_owned(), self.objects.clone().into());
            members.insert("files".to_owned(), self.files.clone().into());
            members.insert("notes".to_owned(), self.notes.clone().into());
        }
        object
    }

    /// Formats the report as text.
    pub(crate) fn text(&self) -> String {
        let mut lines = vec![self.store.clone()];
        match &self.changed {
            Ok(changed) => {
                if !self.objects.is_empty() || changed.added > 0 || changed.removed > 0 {
                    lines.push(format!("  {}", self.counts(changed.added, changed.removed)));
                }
                lines.extend(self.named());
                if self.objects.is_empty() && changed.links > 0 {
                    let links = count_noun(changed.links, "link", "links");
                    lines.push(format!("  {links} with a removed end also removed"));
                } else if changed.severed > 0 {
                    let links = count_noun(changed.severed, "link", "links");
                    lines.push(format!("  {links} to other objects also removed"));
                }
                lines.push(format!(
                    "  {} changed, {} bytes written, transaction {}",
                    count_noun(changed.chunks, "chunk", "chunks"),
                    group_digits(changed.bytes),
                    changed.transaction,
                ));
            }
            Err(NoChange::Nothing) => lines.push("  nothing to do, nothing changed".to_owned()),
            Err(NoChange::DryRun(removed)) => {
                lines.push(format!("  would go: {}", self.counts(0, *removed)));
                lines.extend(self.named());
                lines.push("  nothing changed".to_owned());
            }
        }
        let others = self.files.iter().skip(1);
        lines.extend(others.map(|file| format!("  with {file}")));
        push_notes(&mut lines, &self.notes);
        lines.join("\n")
    }

    /// Returns the warning about a change that could not be finished.
    pub(crate) fn warning(&self) -> Option<String> {
        unfinished_warning(self.changed.as_ref().ok()?.unfinished.as_ref())
    }

    /// Returns notes about differences between input and store, and about follow-up steps, one per
    /// line.
    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    fn counts(&self, added: u64, removed: u64) -> String {
        let vertices = |n| count_noun(n, "vertex", "vertices");
        let mut parts = Vec::new();
        if self.changed.is_err() {
            parts.push(vertices(removed));
        } else {
            if added > 0 || removed == 0 {
                parts.push(format!("{} added", vertices(added)));
            }
            if removed > 0 {
                parts.push(format!("{} removed", vertices(removed)));
            }
        }
        if !self.objects.is_empty() {
            parts.push(count_noun(len_u64(self.objects.len()), "object", "objects"));
        }
        parts.join(", ")
    }

    /// Lists the first objects.
    fn named(&self) -> Option<String> {
        let ids: Vec<String> = self
            .objects
            .iter()
            .take(MAX_SHOWN)
            .map(ToString::to_string)
            .collect();
        let more = self.objects.len().saturating_sub(MAX_SHOWN);
        let more = (more > 0).then(|| format!(" and {} more", group_digits(len_u64(more))));
        let title = if self.objects.len() == 1 {
            "object"
        } else {
            "objects"
        };
        (!ids.is_empty())
            .then(|| format!("  {title} {}{}", ids.join(", "), more.unwrap_or_default()))
    }
}

impl NoChange {
    fn removed(self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::DryRun(removed) => removed,
        }
    }
}
