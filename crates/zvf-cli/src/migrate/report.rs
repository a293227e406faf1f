//! What a migration came to, for people and for programs.

use serde_json::{Value, json};
use zvf::{MigrateReport, build::migrate::MigrationNote};

use crate::number::{counted, grouped};

/// What is said of a store that was migrated.
#[derive(Clone, Debug)]
pub struct Report {
    out: String,
    migrated: MigrateReport,
}

impl Report {
    /// Of the new store at this address.
    pub fn new(out: &str, migrated: MigrateReport) -> Self {
        Self {
            out: out.to_owned(),
            migrated,
        }
    }

    /// As one JSON object.
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

    /// As text.
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
                counted(migrated.levels, ["level", "levels"]),
                counted(migrated.vertices, ["vertex", "vertices"]),
                counted(migrated.links, ["link", "links"]),
            ),
            format!(
                "  {} bytes written in {}",
                grouped(migrated.bytes),
                counted(migrated.objects, ["file", "files"]),
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
                lines.push(format!("    {path}: {}, {what}{why}", grouped(*count)));
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
