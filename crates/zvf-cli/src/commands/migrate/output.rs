//! The result of a migration as text and as JSON.

use serde_json::Value;
use zvf::MigrateReport;

use crate::display::{count_noun, group_digits};

/// The result of a migration, to be formatted.
#[derive(Clone, Debug)]
pub struct MigrateOutput {
    out: String,
    migrated: MigrateReport,
}

impl MigrateOutput {
    /// Creates the output for the new store at `out`.
    pub fn new(out: &str, migrated: MigrateReport) -> Self {
        Self {
            out: out.to_owned(),
            migrated,
        }
    }

    /// Returns one JSON object.
    pub fn object(&self) -> Value {
        self.migrated.to_json().into()
    }

    /// Returns text.
    pub fn text(&self) -> String {
        let migrated = &self.migrated;
        let mut lines = vec![
            format!(
                "{}, from {} to {}",
                self.out,
                migrated.from,
                migrated.to.name()
            ),
            format!(
                "  {}, {}, {}",
                count_noun(migrated.levels, "level", "levels"),
                count_noun(migrated.vertices, "vertex", "vertices"),
                count_noun(migrated.links, "link", "links"),
            ),
            format!(
                "  {} bytes written in {}",
                group_digits(migrated.bytes),
                count_noun(migrated.objects, "file", "files"),
            ),
        ];
        lines.extend(notes(&self.object()));
        lines.join("\n")
    }
}

/// Returns the lines of the repairs and losses in a report.
pub(crate) fn notes(report: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for title in ["repaired", "lost"] {
        let found: Vec<String> = report[title]
            .as_array()
            .into_iter()
            .flatten()
            .map(|note| {
                let text = |member: &str| note[member].as_str();
                let count = group_digits(note["count"].as_u64().unwrap_or(0));
                let (path, what) = (text("path"), text("what"));
                let (path, what) = (path.unwrap_or_default(), what.unwrap_or_default());
                let why = text("why").map(|why| format!(" ({why})"));
                format!("    {path}: {count}, {what}{}", why.unwrap_or_default())
            })
            .collect();
        if !found.is_empty() {
            lines.push(format!("  {title}:"));
        }
        lines.extend(found);
    }
    lines
}
