//! The built levels as text and as JSON.

use serde_json::{Value, json};
use zvf::PyramidReport;

use crate::{
    display::{count_noun, group_digits},
    outcome::unfinished_warning,
};

/// The built levels, to be formatted.
#[derive(Clone, Debug)]
pub struct PyramidOutput {
    store: String,
    made: PyramidReport,
    is_refresh: bool,
}

impl PyramidOutput {
    /// Creates the output for the store at this address.
    pub fn new(store: &str, made: PyramidReport, is_refresh: bool) -> Self {
        Self {
            store: store.to_owned(),
            made,
            is_refresh,
        }
    }

    /// Returns one JSON object.
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
                "dropped_pieces": level.dropped_pieces,
                "seconds": level.seconds,
                "transaction": level.transaction,
            })
        });
        json!({"store": self.store, "existing": self.made.existing, "levels": levels.collect::<Vec<Value>>()})
    }

    /// Returns the warning about a level that could not be finished.
    pub(super) fn warning(&self) -> Option<String> {
        let mut levels = self.made.levels.iter().rev();
        unfinished_warning(levels.find_map(|level| level.unfinished.as_ref()))
    }

    /// Returns text.
    pub fn text(&self) -> String {
        if self.made.levels.is_empty() {
            let why = match (self.is_refresh, self.made.existing) {
                (true, _) => "no level is out of date",
                (false, 0) => {
                    "no level was built, because level 0 has fewer than 100 000 vertices or a \
                     single chunk; --levels N builds levels in spite of that"
                }
                (false, _) => "its levels already exist, built with these options",
            };
            return format!("{}: {why}", self.store);
        }
        let mut lines = vec![self.store.clone()];
        for level in &self.made.levels {
            let mut parts = vec![format!(
                "{} in {}",
                count_noun(level.vertices, "vertex", "vertices"),
                count_noun(level.chunks, "chunk", "chunks"),
            )];
            if let Some(named) = level.named.filter(|named| *named > level.vertices) {
                parts.push(format!("{} returned by queries", group_digits(named)));
            }
            parts.extend(
                level
                    .objects
                    .map(|count| count_noun(count, "object", "objects")),
            );
            if level.links > 0 {
                parts.push(count_noun(level.links, "link", "links"));
            }
            parts.extend(
                level
                    .error
                    .map(|error| format!("moved by {error:.4} at most")),
            );
            if level.dropped_pieces > 0 {
                let pieces = count_noun(level.dropped_pieces, "small piece", "small pieces");
                parts.push(format!("{pieces} left out"));
            }
            lines.push(format!(
                "  level {}, {}: {}; {} bytes in {:.2} s",
                level.level,
                level.method,
                parts.join(", "),
                group_digits(level.bytes),
                level.seconds
            ));
        }
        lines.join("\n")
    }
}
