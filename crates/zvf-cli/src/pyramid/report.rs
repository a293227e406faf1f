//! What levels came to, for people and for programs.

use serde_json::{Value, json};
use zvf::PyramidReport;

use crate::number::{counted, grouped};

/// What is said of the levels of a store.
#[derive(Clone, Debug)]
pub struct Report {
    store: String,
    made: PyramidReport,
    is_refresh: bool,
}

impl Report {
    /// Of the store at this address.
    pub fn new(store: &str, made: PyramidReport, is_refresh: bool) -> Self {
        Self {
            store: store.to_owned(),
            made,
            is_refresh,
        }
    }

    /// As one JSON object.
    pub fn object(&self) -> Value {
        let levels = self.made.levels.iter().map(|level| {
            json!({
                "level": level.level.number(),
                "method": level.method,
                "vertices": level.vertices,
                "named": level.named,
                "chunks": level.chunks,
                "objects": level.objects,
                "links": level.links,
                "bytes": level.bytes,
                "error": level.error,
                "seconds": level.seconds,
                "transaction": level.transaction,
            })
        });
        json!({"store": self.store, "there": self.made.there, "levels": levels.collect::<Vec<Value>>()})
    }

    /// As text.
    pub fn text(&self) -> String {
        if self.made.levels.is_empty() {
            let why = match (self.is_refresh, self.made.there) {
                (true, _) => "no level is behind",
                (false, 0) => "it is small as it is, and no level was made",
                (false, _) => "its levels are there already, made in this way",
            };
            return format!("{}: {why}", self.store);
        }
        let mut lines = vec![self.store.clone()];
        for level in &self.made.levels {
            let mut parts = vec![format!(
                "{} in {}",
                counted(level.vertices, ["vertex", "vertices"]),
                counted(level.chunks, ["chunk", "chunks"]),
            )];
            if level.named > level.vertices {
                parts.push(format!("named {} times", grouped(level.named)));
            }
            parts.extend(
                level
                    .objects
                    .map(|count| counted(count, ["object", "objects"])),
            );
            if level.links > 0 {
                parts.push(counted(level.links, ["link", "links"]));
            }
            parts.extend(
                level
                    .error
                    .map(|error| format!("moved by {error:.4} at most")),
            );
            lines.push(format!(
                "  level {}, {}: {}; {} bytes in {:.2} s",
                level.level,
                level.method,
                parts.join(", "),
                grouped(level.bytes),
                level.seconds
            ));
        }
        lines.join("\n")
    }
}
