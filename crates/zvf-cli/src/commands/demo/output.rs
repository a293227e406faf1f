//! The report of the demo, as text and as JSON.

use std::{env, path::Path};

use serde_json::{Value, json};

use super::{
    queries::QueryRun,
    stores::{PictureRun, STORES, StoreRun},
};
use crate::{
    display::{count_noun, group_digits},
    text_table,
};

/// The stores, queries and pictures of a demo.
pub(super) struct DemoOutput {
    folder: String,
    pub(super) stores: Vec<StoreRun>,
    pub(super) queries: Vec<QueryRun>,
    pub(super) pictures: Vec<PictureRun>,
    pub(super) seconds: f64,
}

impl DemoOutput {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.display().to_string(),
            stores: Vec::new(),
            queries: Vec::new(),
            pictures: Vec::new(),
            seconds: 0.0,
        }
    }

    pub(super) fn object(&self) -> Value {
        let stores = self.stores.iter().map(|made| {
            json!({
                "file": made.file, "title": made.title, "vertices": made.vertices,
                "bytes": made.bytes, "errors": made.errors, "seconds": made.seconds,
            })
        });
        let queries = self.queries.iter().map(|taken| {
            json!({
                "title": taken.title, "command": taken.command,
                "planned": {
                    "requests": taken.planned_requests, "bytes": taken.planned_bytes,
                    "then": taken.then,
                },
                "requests": taken.requests, "bytes_read": taken.bytes,
                "milliseconds": taken.milliseconds,
                "vertices": taken.vertices, "objects": taken.objects,
            })
        });
        let pictures = self.pictures.iter().map(
            |drawn| json!({ "file": drawn.file, "bytes": drawn.bytes, "seconds": drawn.seconds }),
        );
        json!({
            "folder": self.folder,
            "stores": stores.collect::<Vec<_>>(),
            "queries": queries.collect::<Vec<_>>(),
            "pictures": pictures.collect::<Vec<_>>(),
            "draws": STORES.iter().map(|sample| sample.words(&self.folder)).collect::<Vec<_>>(),
            "next": self.next(),
            "seconds": self.seconds,
        })
    }

    pub(super) fn text(&self) -> String {
        let mut lines = vec![
            format!(
                "{}: four stores, each with coarser levels, each validated",
                self.folder
            ),
            String::new(),
        ];
        let titles = [
            "store",
            "vertices of each level",
            "bytes",
            "validated",
            "seconds",
        ];
        let mut rows = vec![titles.map(str::to_owned).to_vec()];
        rows.extend(self.stores.iter().map(|made| {
            let levels: Vec<String> = made
                .vertices
                .iter()
                .map(|count| group_digits(*count))
                .collect();
            let validated = match made.errors {
                0 => "no error".to_owned(),
                errors => count_noun(errors, "error", "errors"),
            };
            let seconds = format!("{:.1}", made.seconds);
            vec![
                made.file.to_owned(),
                levels.join(" → "),
                group_digits(made.bytes),
                validated,
                seconds,
            ]
        }));
        lines.extend(text_table::align(&rows));
        lines.push(String::new());
        lines.push("Five queries, each on a newly opened store:".to_owned());
        for (taken, number) in self.queries.iter().zip(1_u32..) {
            let planned = count_noun(taken.planned_requests, "request", "requests");
            let bytes = taken.planned_bytes.map_or("?".to_owned(), group_digits);
            let then = if taken.then.is_empty() {
                String::new()
            } else {
                format!("; then {}", taken.then.join("; then "))
            };
            lines.extend([
                String::new(),
                format!("{number}. {}", taken.title),
                format!("   {}", taken.command),
                format!("   plan   metadata, then {planned} of {bytes} bytes{then}"),
                format!(
                    "   took   {}, {} bytes, {:.1} ms: {}, {}",
                    count_noun(taken.requests, "request", "requests"),
                    group_digits(taken.bytes),
                    taken.milliseconds,
                    count_noun(taken.vertices, "vertex", "vertices"),
                    count_noun(taken.objects, "object", "objects"),
                ),
            ]);
        }
        lines.extend([String::new(), "Pictures:".to_owned()]);
        lines.extend(self.pictures.iter().map(|drawn| {
            format!(
                "  {}/{}  {} bytes, {:.1} s",
                self.folder,
                drawn.file,
                group_digits(drawn.bytes),
                drawn.seconds
            )
        }));
        lines.extend([String::new(), format!("Try next{}:", program())]);
        lines.extend(
            self.next()
                .into_iter()
                .map(|command| format!("  {command}")),
        );
        lines.extend([
            String::new(),
            format!("The demo took {:.1} s.", self.seconds),
        ]);
        lines.join("\n")
    }

    /// Returns suggested commands.
    fn next(&self) -> Vec<String> {
        let folder = &self.folder;
        let mut next = vec![format!(
            "zvf info {folder}/tracts.zv --plot {folder}/plot.svg"
        )];
        let quoted = |word: String| {
            if word.contains(' ') {
                format!("\"{word}\"")
            } else {
                word
            }
        };
        let draws = STORES.first().map(|sample| {
            let words = sample.words(folder).into_iter().map(quoted);
            words.collect::<Vec<_>>().join(" ")
        });
        #[cfg(feature = "serve")]
        next.push(format!("zvf view {folder}/tracts.zv"));
        next.extend(draws.map(|draws| format!("zvf {draws}")));
        next.extend([
            format!("zvf render {folder}/tracts.zv -o {folder}/fa.png --color fa --view sagittal"),
            format!("zvf query {folder}/tracts.zv --bbox -10,-30,0,10,20,30 --mode clip -o {folder}/middle.ply"),
            format!("zvf query {folder}/tracts.zv --bbox -10,-30,0,10,20,30 --explain"),
            format!("zvf validate {folder}/neurons.zv"),
            format!("zvf delete {folder}/tracts.zv --where \"object.length < 60\" --dry-run"),
        ]);
        next
    }
}

/// Returns the path of the program if `cargo run` started it: the search path does not have it then.
fn program() -> String {
    let program = env::var_os("CARGO").and_then(|_| env::current_exe().ok());
    program.map_or_else(String::new, |path| format!(" (zvf is {})", path.display()))
}
