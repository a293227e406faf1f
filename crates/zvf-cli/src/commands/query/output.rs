//! The result of a query as text and as JSON.

use serde_json::{Map, Value, json};
use zvf::{LevelId, LevelUse, Links, NearestObject, QueryResult, Skipped};
use zvf_files::WrittenFiles;

use crate::display::{count_noun, group_digits, len_u64};

/// Numbers of items that a query finds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResultCounts {
    /// The level, if known.
    pub level: Option<u32>,
    /// Number of vertices.
    pub vertices: u64,
    /// Number of objects with data in the result.
    pub objects: u64,
    /// Number of links.
    pub links: u64,
    /// Number of paths; `None` for other kinds of geometry.
    pub parts: Option<u64>,
}

/// The report of a query, to be formatted.
#[derive(Clone, Debug, Default)]
pub struct QueryOutput {
    address: String,
    counts: ResultCounts,
    levels: Vec<LevelUse>,
    requests: u64,
    bytes_read: u64,
    missing: Vec<Skipped>,
    notes: Vec<String>,
    distances: Option<Vec<f64>>,
    rows: String,
    written: Option<WrittenFiles>,
}

impl QueryOutput {
    /// Creates an empty report for the store at an address.
    pub fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            ..Self::default()
        }
    }

    /// Sets the counts, the skipped data and the notes.
    pub fn count(&mut self, counts: ResultCounts, missing: Vec<Skipped>, notes: Vec<String>) {
        self.counts = counts;
        self.missing = missing;
        self.notes = notes;
    }

    /// Sets everything from a query result except the rows.
    pub fn result(&mut self, result: &QueryResult) {
        self.counts = ResultCounts {
            level: Some(result.level.number()),
            vertices: len_u64(result.positions.len()),
            objects: len_u64(result.objects.len()),
            links: len_u64(result.links.as_ref().map_or(0, Links::len)),
            parts: result
                .parts
                .as_ref()
                .map(|parts| len_u64(parts.objects.len())),
        };
        self.levels(&result.levels);
        self.distances.clone_from(&result.distances);
        self.missing.clone_from(&result.skipped);
        self.notes.clone_from(&result.notes);
    }

    /// Sets the contribution of each level.
    pub fn levels(&mut self, levels: &[LevelUse]) {
        self.levels = levels.to_vec();
    }

    /// Sets the text of the first rows.
    pub fn rows(&mut self, rows: String) {
        self.rows = rows;
    }

    /// Sets the files written.
    pub fn written(&mut self, written: WrittenFiles) {
        self.written = Some(written);
    }

    /// Sets the number of requests and of bytes read.
    pub fn cost(&mut self, requests: u64, bytes_read: u64) {
        self.requests = requests;
        self.bytes_read = bytes_read;
    }

    /// Returns the levels that were read.
    pub(super) fn levels_read(&self) -> Vec<LevelId> {
        match self.levels.as_slice() {
            [] => self.counts.level.map(LevelId::new).into_iter().collect(),
            levels => {
                let mut read: Vec<LevelId> = levels.iter().map(|level| level.level).collect();
                // A level may be read in one region, and sampled in another.
                read.dedup();
                read
            }
        }
    }

    /// Adds a note.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Lists the distances of objects that were searched by their position.
    pub(super) fn nearest_objects(&mut self, objects: &[NearestObject]) {
        let line = |object: &NearestObject| {
            format!("object {} at a distance of {}", object.id, object.distance)
        };
        self.notes.extend(objects.iter().map(line));
    }

    /// Says what to do about a result with more vertices than `--vertices` allows. The levels that
    /// were read store `stored` vertices.
    pub(super) fn note_vertices(&mut self, max: u64, stored: u64) {
        if stored > max {
            let note =
                "zvf pyramid makes coarser levels, and --budget fails if none is small enough";
            self.notes.push(note.to_owned());
        } else if self.counts.vertices > max {
            self.notes.push(format!(
                "--vertices {max} chose the level by the vertices that it stores; paths share some, \
                 and the result repeats them for each path; --budget {max} limits the result"
            ));
        }
    }

    /// Returns whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.counts.vertices == 0 && self.counts.links == 0
    }

    /// Formats the report as one JSON object.
    pub fn object(&self) -> Value {
        let missing = self
            .missing
            .iter()
            .map(|missing| json!({ "key": missing.key.as_str(), "reason": missing.reason }));
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("level", self.counts.level.into());
        put("vertices", self.counts.vertices.into());
        put("objects", self.counts.objects.into());
        put("links", self.counts.links.into());
        if let Some(parts) = self.counts.parts {
            put("parts", parts.into());
        }
        if !self.levels.is_empty() {
            let levels = self.levels.iter().map(|level| {
                json!({
                    "level": level.level.number(), "vertices": level.vertices,
                    "chunks": level.chunks.len(),
                })
            });
            put("levels", levels.collect());
        }
        if let Some(distances) = &self.distances {
            put("distances", distances.clone().into());
        }
        put("requests", self.requests.into());
        put("bytes_read", self.bytes_read.into());
        put("missing", missing.collect());
        put("notes", self.notes.clone().into());
        if let Some(written) = &self.written {
            let files: Vec<Value> = written
                .files
                .iter()
                .map(|file| file.to_string_lossy().into())
                .collect();
            put("output", files.first().cloned().unwrap_or_default());
            put("files", files.into());
            put("left_out", written.left_out.clone().into());
        }
        object.into()
    }

    /// Formats the report as text.
    pub fn text(&self) -> String {
        let counts = &self.counts;
        let mut found = vec![count_noun(counts.vertices, "vertex", "vertices")];
        found.extend(counts.parts.map(|parts| count_noun(parts, "path", "paths")));
        found.push(count_noun(counts.objects, "object", "objects"));
        if counts.parts.is_none() {
            found.push(count_noun(counts.links, "link", "links"));
        }
        let level = match self.levels.as_slice() {
            [] | [_] => counts.level.map(|level| format!(", level {level}")),
            levels => {
                let levels = levels.iter().map(|level| level.level.to_string());
                Some(format!(
                    ", levels {}",
                    levels.collect::<Vec<_>>().join(", ")
                ))
            }
        };
        let mut lines = vec![
            format!("{}{}", self.address, level.unwrap_or_default()),
            format!("  {}", found.join(", ")),
        ];
        if self.levels.len() > 1 {
            let levels = self.levels.iter();
            lines.extend(
                levels.map(|level| format!("    {}: {}", named(level), contribution(level))),
            );
        }
        lines.push(format!(
            "  {}, {} bytes read",
            count_noun(self.requests, "request", "requests"),
            group_digits(self.bytes_read)
        ));
        if !self.rows.is_empty() {
            lines.push(String::new());
            lines.push(self.rows.clone());
        }
        let mut remarks = Vec::new();
        if let Some(written) = &self.written {
            let files = written.files.iter();
            remarks.extend(files.map(|file| format!("written: {}", file.display())));
        }
        remarks.extend(self.damage_lines());
        remarks.extend(self.notes.iter().map(|note| format!("note: {note}")));
        if !remarks.is_empty() {
            lines.push(String::new());
            lines.append(&mut remarks);
        }
        lines.join("\n")
    }

    /// Returns one line for each part that could not be read or written.
    pub(super) fn damage_lines(&self) -> Vec<String> {
        let missing = self
            .missing
            .iter()
            .map(|it| format!("missing: {}: {}", it.key, it.reason));
        let left_out = self.written.iter().flat_map(|written| &written.left_out);
        missing
            .chain(left_out.map(|line| format!("left out: {line}")))
            .collect()
    }
}

/// Names a level by its number.
pub(super) fn named(level: &LevelUse) -> String {
    format!("level {}", level.level)
}

/// Describes the contribution of a level: vertices and chunks.
pub(super) fn contribution(level: &LevelUse) -> String {
    let vertices = count_noun(level.vertices, "vertex", "vertices");
    match level.chunks.len() {
        0 => vertices,
        chunks => format!(
            "{vertices} in {}",
            count_noun(len_u64(chunks), "chunk", "chunks")
        ),
    }
}
