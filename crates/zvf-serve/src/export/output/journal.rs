//! The journal of an export to a folder: a text with a JSON object on each line.
//!
//! | line | members |
//! |---|---|
//! | the first | `export`: what is exported |
//! | for each complete file | `file`: its path, `size`, `crc32` |
//! | for each complete step | `step`: its name, `result` |
//!
//! A line is appended when what it describes is complete. A line that was not written as a whole ends the
//! journal. The files are compared with their checksums when an export is continued, because a power cut
//! may keep a line and lose bytes of a file.

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write},
    path::Path,
};

use serde_json::{Value, json};

/// The name of the journal in its folder.
pub(super) const JOURNAL: &str = ".zvf-export.json";

/// A complete file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileRecord {
    pub(super) size: u64,
    crc32: u32,
}

impl FileRecord {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self {
            size: u64::try_from(bytes.len()).unwrap_or(u64::MAX),
            crc32: crc32fast::hash(bytes),
        }
    }
}

/// The complete files and steps of an export.
#[derive(Debug)]
pub(super) struct Journal {
    /// `None` after the end.
    lines: Option<File>,
    pub(super) files: HashMap<String, FileRecord>,
    pub(super) steps: HashMap<String, Value>,
}

impl Journal {
    /// Creates the journal of a folder.
    pub(super) fn create(folder: &Path, source: &Value) -> io::Result<Self> {
        let mut journal = Self {
            lines: Some(File::create(folder.join(JOURNAL))?),
            files: HashMap::new(),
            steps: HashMap::new(),
        };
        journal.append(&json!({ "export": source }))?;
        Ok(journal)
    }

    /// Opens the journal of a folder; `None` if it is that of another export, or if a file is not as it
    /// was written.
    pub(super) fn open(folder: &Path, source: &Value) -> io::Result<Option<Self>> {
        let path = folder.join(JOURNAL);
        let text = fs::read(&path)?;
        let mut lines = text.split_inclusive(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        if parsed(first)
            .and_then(|line| line.get("export").cloned())
            .as_ref()
            != Some(source)
        {
            return Ok(None);
        }
        let (mut files, mut steps) = (HashMap::new(), HashMap::new());
        let mut length = first.len();
        for line in lines {
            let Some(record) = parsed(line) else { break };
            length = length.saturating_add(line.len());
            let number = |name: &str| record.get(name).and_then(Value::as_u64);
            let text = |name: &str| record.get(name).and_then(Value::as_str);
            let crc32 = number("crc32").and_then(|crc32| u32::try_from(crc32).ok());
            if let (Some(file), Some(size), Some(crc32)) = (text("file"), number("size"), crc32) {
                files.insert(file.to_owned(), FileRecord { size, crc32 });
            } else if let (Some(step), Some(result)) = (text("step"), record.get("result")) {
                steps.insert(step.to_owned(), result.clone());
            }
        }
        for (file, record) in &files {
            match fs::read(folder.join(file)) {
                Ok(bytes) if FileRecord::of(&bytes) == *record => {}
                Ok(_) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        let lines = File::options().append(true).open(&path)?;
        lines.set_len(u64::try_from(length).unwrap_or(0))?;
        Ok(Some(Self {
            lines: Some(lines),
            files,
            steps,
        }))
    }

    fn append(&mut self, line: &Value) -> io::Result<()> {
        let mut text = line.to_string();
        text.push('\n');
        match &mut self.lines {
            Some(lines) => lines.write_all(text.as_bytes()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Closes the file.
    pub(super) fn close(&mut self) {
        self.lines = None;
    }

    /// Notes a complete file.
    pub(super) fn add_file(&mut self, path: &str, record: FileRecord) -> io::Result<()> {
        let FileRecord { size, crc32 } = record;
        self.append(&json!({ "file": path, "size": size, "crc32": crc32 }))?;
        self.files.insert(path.to_owned(), record);
        Ok(())
    }

    /// Notes a complete step.
    pub(super) fn add_step(&mut self, step: &str, result: Value) -> io::Result<()> {
        self.append(&json!({ "step": step, "result": result }))?;
        self.steps.insert(step.to_owned(), result);
        Ok(())
    }
}

/// Returns the object of a whole line.
fn parsed(line: &[u8]) -> Option<Value> {
    serde_json::from_slice(line.strip_suffix(b"\n")?).ok()
}
