//! The result of a migration as text and as JSON.

use serde_json::{Value, json};
use zvf::{MigrateReport, MigrationNote};

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
        let migrated = &self.migrated;
        json!({
            "from": migrated.from.to_string(),
            "to": migrated.to.name(),
            "levels": migrated.levels,
            "vertices": migrated.vertices,
            "links": migrated.links,
            "objects_written": migrated.objects,
            "bytes_written": migrated.bytes,
            "repaired": findings(&migrated.repaired),
            "lost": findings(&migrated.lost),
        })
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
        for (title, found) in [("repaired", &migrated.repaired), ("lost", &migrated.lost)] {
            if !found.is_empty() {
                lines.push(format!("  {title}:"));
            }
            for finding in found {
                let MigrationNote {
                    path, what, count, ..
                } = finding;
                let why = finding.why.as_ref().map(|why| format!(" ({why})"));
                let why = why.unwrap_or_default();
                lines.push(format!("    {path}: {}, {what}{why}", group_digits(*count)));
            }
        }
        lines.join("\n")
    }
}

fn findings(found: &[MigrationNote]) -> Vec<Value> {
    let object = |finding: &MigrationNote| {
        let mut object = json!({
            "path": finding.path, "what": finding.what, "count": finding.count,
        });
        if let Some(why) = &finding.why {
            object["why"] = json!(why);
        }
        object
    };
    found.iter().map(object).collect()
}
