//! Lines and numbers of text files.

use crate::{FileError, FileFault, FilePlace, input::ByteReader};

/// Lines of a file, with their numbers for messages.
#[derive(Debug)]
pub(crate) struct LineReader {
    file: ByteReader,
    buffer: Vec<u8>,
    text: String,
    line: u64,
    is_cut: bool,
}

/// Note about a file whose last line has no line end.
pub(crate) const NO_LINE_END: &str = "the last line has no line end; the file may be cut off";

impl LineReader {
    pub(crate) fn new(file: ByteReader) -> Self {
        Self::after(file, 0)
    }

    /// Continues behind a number of lines.
    pub(crate) fn after(file: ByteReader, line: u64) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            text: String::new(),
            line,
            is_cut: false,
        }
    }

    /// Returns the next line without its end; `None` after the last. Bytes that are no UTF-8 are
    /// replaced.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, FileError> {
        self.file.line(&mut self.buffer)?;
        if self.buffer.is_empty() {
            return Ok(None);
        }
        self.line = self.line.saturating_add(1);
        self.is_cut = !self.buffer.ends_with(b"\n");
        self.text.clear();
        match std::str::from_utf8(&self.buffer) {
            Ok(text) => self.text.push_str(text.trim_end_matches(['\n', '\r'])),
            Err(_) => self
                .text
                .push_str(String::from_utf8_lossy(&self.buffer).trim_end_matches(['\n', '\r'])),
        }
        Ok(Some(&self.text))
    }

    /// Returns whether the last line has no line end.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Adds the file and the line to a fault.
    pub(crate) fn error(&self, fault: FileFault) -> FileError {
        fault.at(self.file.path(), FilePlace::Line(self.line))
    }
}

/// Parses a finite number.
pub(crate) fn number(text: Option<&str>, what: &'static str) -> Result<f64, FileFault> {
    let text = text.unwrap_or_default();
    let parsed: Result<f64, _> = text.parse();
    let number = parsed.map_err(|_| FileFault::Number {
        what,
        text: text.chars().take(24).collect(),
    })?;
    if number.is_finite() {
        Ok(number)
    } else {
        Err(FileFault::NotFinite(number))
    }
}
