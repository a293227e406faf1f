//! The report of a created store as text and as JSON.

use serde_json::{Value, json};
use zvf::GeometryKind;
use zvf_files::GeometryInput;

use super::CreateSummary;
use crate::{
    display::{count_noun, group_digits, push_notes},
    outcome::unfinished_warning,
};

/// Number of files above which shards are suggested.
const MANY_FILES: u64 = 2000;

/// The report of a created store, to be formatted.
#[derive(Clone, Debug)]
pub struct CreateOutput {
    out: String,
    kind: GeometryKind,
    files: Vec<String>,
    notes: Vec<String>,
    warnings: Vec<String>,
    created: CreateSummary,
}

impl CreateOutput {
    /// Creates an empty report for the store at an address.
    pub fn new(out: &str, kind: GeometryKind) -> Self {
        Self {
            out: out.to_owned(),
            kind,
            files: Vec::new(),
            notes: Vec::new(),
            warnings: Vec::new(),
            created: CreateSummary::default(),
        }
    }

    /// Sets the input files and the notes about them.
    pub fn read(&mut self, input: &GeometryInput) {
        let files = input.files.iter();
        self.files = files.map(|file| file.display().to_string()).collect();
        self.notes.clone_from(&input.notes);
    }

    /// Sets the input files and notes.
    pub(super) fn read_files(&mut self, files: Vec<String>, notes: &[String]) {
        self.files = files;
        self.notes = notes.to_vec();
    }

    /// Sets the summary.
    pub fn created(&mut self, created: CreateSummary) {
        self.warn(unfinished_warning(created.unfinished.as_ref()));
        self.created = created;
    }

    /// Adds a note.
    pub(super) fn note(&mut self, note: Option<String>) {
        self.notes.extend(note);
    }

    /// Adds a warning.
    pub fn warn(&mut self, warning: Option<String>) {
        self.warnings.extend(warning);
    }

    /// Returns the warnings.
    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Formats the report as one JSON object.
    pub fn object(&self) -> Value {
        let created = &self.created;
        json!({
            "vertices": created.vertices,
            "objects": created.objects,
            "chunks": created.chunks,
            "bytes_written": created.bytes_written,
            "transaction": created.transaction,
            "chosen": {
                "chunk_shape": created.chunk_shape,
                "bin_shape": created.bin_shape,
                "why": created.why,
            },
            "files": self.files,
            "notes": self.notes,
            "warnings": self.warnings,
        })
    }

    /// Formats the report as text.
    pub fn text(&self) -> String {
        let created = &self.created;
        let mut lines = vec![
            format!("{}, {}", self.out, self.kind.name()),
            format!(
                "  {}, {}, {}",
                count_noun(created.vertices, "vertex", "vertices"),
                count_noun(created.objects, "object", "objects"),
                count_noun(created.chunks, "chunk", "chunks"),
            ),
            format!(
                "  {} bytes written, transaction {}",
                group_digits(created.bytes_written),
                created.transaction
            ),
            format!("  chunk shape {}", shape(&created.chunk_shape)),
        ];
        if let Some(bins) = &created.bin_shape {
            lines.push(format!("  bin shape {}", shape(bins)));
        }
        lines.extend(created.why.iter().map(|why| format!("    {why}")));
        let others = self.files.iter().skip(1);
        lines.extend(others.map(|file| format!("  with {file}")));
        push_notes(&mut lines, &self.notes);
        lines.join("\n")
    }

    /// Suggests shards if very many files were written.
    pub(super) fn of_files(&self) -> Option<String> {
        let files = self.created.files;
        (files > MANY_FILES).then(|| {
            let files = group_digits(files);
            format!("{files} files were written; --shard puts many chunks into one, so that the store is copied, listed and deleted faster")
        })
    }

    /// Returns the differences between the input and the store, one line each.
    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }
}

fn shape(extents: &[f64]) -> String {
    let extents: Vec<String> = extents.iter().map(ToString::to_string).collect();
    extents.join(" × ")
}
