//! Splitting of text into records and fields.

use std::io::BufRead;

use crate::table::CsvError;

/// Maximum length of a record in bytes.
const MAX_RECORD_BYTES: usize = 1 << 26;

/// Reads records one by one.
pub(super) struct RecordReader<R> {
    source: R,
    /// The byte between fields.
    separator: u8,
    /// Number of lines read.
    lines: u64,
    /// The record as in the file.
    raw: Vec<u8>,
    /// Its fields without quotes, concatenated.
    text: String,
    fields: Vec<FieldSpan>,
}

/// End of a field in the text; it starts at the end of the previous one.
#[derive(Clone, Copy, Debug)]
struct FieldSpan {
    end: usize,
    is_quoted: bool,
}

/// A field.
#[derive(Clone, Copy, Debug)]
pub(super) struct CsvField<'a> {
    pub(super) text: &'a str,
    pub(super) is_quoted: bool,
}

impl CsvField<'_> {
    /// Returns whether there is no value.
    pub(super) fn is_missing(self) -> bool {
        self.text.is_empty() && !self.is_quoted
    }
}

/// The fields of a record.
#[derive(Clone, Copy, Debug)]
pub(super) struct CsvRecord<'a> {
    text: &'a str,
    fields: &'a [FieldSpan],
}

impl<'a> CsvRecord<'a> {
    pub(super) fn fields(self) -> impl ExactSizeIterator<Item = CsvField<'a>> {
        let mut start = 0;
        self.fields.iter().map(move |span| {
            let text = self.text.get(start..span.end).unwrap_or_default();
            start = span.end;
            CsvField {
                text,
                is_quoted: span.is_quoted,
            }
        })
    }
}

impl<R: BufRead> RecordReader<R> {
    pub(super) fn new(source: R, separator: u8) -> Self {
        Self {
            source,
            separator,
            lines: 0,
            raw: Vec::new(),
            text: String::new(),
            fields: Vec::new(),
        }
    }

    /// Reads the next record with the number of its first line; an error has its line.
    pub(super) fn next(&mut self) -> Result<Option<(CsvRecord<'_>, u64)>, (u64, CsvError)> {
        loop {
            self.raw.clear();
            let line = self.lines.saturating_add(1);
            let at_line = |error| (line, error);
            if !self.line().map_err(at_line)? {
                return Ok(None);
            }
            if line == 1 && self.raw.starts_with(b"\xef\xbb\xbf") {
                self.raw.drain(..3);
            }
            if trimmed(&self.raw).is_empty() {
                continue;
            }
            self.cut().map_err(at_line)?;
            let record = CsvRecord {
                text: &self.text,
                fields: &self.fields,
            };
            return Ok(Some((record, line)));
        }
    }

    /// Appends a line to the record; `false` at the end of the file.
    fn line(&mut self) -> Result<bool, CsvError> {
        let left = MAX_RECORD_BYTES.saturating_sub(self.raw.len());
        let max = u64::try_from(left).unwrap_or(u64::MAX);
        let mut source = std::io::Read::take(&mut self.source, max);
        let read = source.read_until(b'\n', &mut self.raw)?;
        if read == left {
            return Err(CsvError::Long);
        }
        self.lines = self.lines.saturating_add(1);
        Ok(read > 0)
    }

    /// Splits the record into fields, reading further lines inside quotes.
    fn cut(&mut self) -> Result<(), CsvError> {
        self.fields.clear();
        let mut text = std::mem::take(&mut self.text).into_bytes();
        text.clear();
        let mut at = 0;
        loop {
            let is_quoted = self.raw.get(at) == Some(&b'"');
            if is_quoted {
                at = self.quoted(at.saturating_add(1), &mut text)?;
            } else {
                let rest = trimmed(self.raw.get(at..).unwrap_or_default());
                let length = rest.iter().position(|byte| *byte == self.separator);
                let field = rest.get(..length.unwrap_or(rest.len())).unwrap_or_default();
                text.extend_from_slice(field);
                at = at.saturating_add(field.len());
            }
            let end = text.len();
            self.fields.push(FieldSpan { end, is_quoted });
            match trimmed(self.raw.get(at..).unwrap_or_default()).first() {
                Some(byte) if *byte == self.separator => at = at.saturating_add(1),
                Some(_) => return Err(CsvError::Behind),
                None => break,
            }
        }
        self.text = String::from_utf8(text).map_err(|_| CsvError::Encoding)?;
        // A field must not end inside a multi-byte character.
        let mut ends = self.fields.iter();
        if ends.all(|span| self.text.is_char_boundary(span.end)) {
            Ok(())
        } else {
            Err(CsvError::Encoding)
        }
    }

    /// Reads a field after its opening quote; returns the position after the closing quote.
    fn quoted(&mut self, mut at: usize, text: &mut Vec<u8>) -> Result<usize, CsvError> {
        loop {
            let rest = self.raw.get(at..).unwrap_or_default();
            let Some(length) = rest.iter().position(|byte| *byte == b'"') else {
                text.extend_from_slice(rest);
                at = self.raw.len();
                if !self.line()? {
                    return Err(CsvError::Unclosed);
                }
                continue;
            };
            text.extend_from_slice(rest.get(..length).unwrap_or_default());
            at = at.saturating_add(length).saturating_add(1);
            if self.raw.get(at) != Some(&b'"') {
                return Ok(at);
            }
            text.push(b'"');
            at = at.saturating_add(1);
        }
    }
}

/// Strips the line ending.
fn trimmed(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Found = Vec<(u64, Vec<String>)>;

    /// Returns the fields of all records with their lines; quoted fields in brackets.
    fn read(text: &str) -> Result<Found, (u64, String)> {
        let mut records = RecordReader::new(text.as_bytes(), b',');
        let mut found = Vec::new();
        loop {
            let record = records
                .next()
                .map_err(|(line, error)| (line, error.to_string()))?;
            let Some((record, line)) = record else {
                return Ok(found);
            };
            let fields = record.fields().map(|field| {
                if field.is_quoted {
                    format!("[{}]", field.text)
                } else {
                    field.text.to_owned()
                }
            });
            found.push((line, fields.collect()));
        }
    }

    #[track_caller]
    fn check(text: &str, expected: &[(u64, &[&str])]) {
        let expected = expected.iter().map(|(line, fields)| {
            let fields = fields.iter().map(|field| (*field).to_owned());
            (*line, fields.collect())
        });
        assert_eq!(read(text), Ok(expected.collect()));
    }

    #[test]
    fn fields_are_separated_by_commas() {
        check(
            "a,b\n1,\n,\n",
            &[(1, &["a", "b"]), (2, &["1", ""]), (3, &["", ""])],
        );
        check("a,b\r\n1,2", &[(1, &["a", "b"]), (2, &["1", "2"])]);
        check("\u{feff}a\n\n\r\n1\n", &[(1, &["a"]), (4, &["1"])]);
        check("a \"b\",c\n", &[(1, &["a \"b\"", "c"])]);
        check("", &[]);
    }

    #[test]
    fn quoted_fields_may_contain_commas_quotes_and_lines() {
        check("\"\",\"a,\"\"b\"\"\"\n", &[(1, &["[]", "[a,\"b\"]"])]);
        check(
            "\"a\nb\",c\n1,2\n",
            &[(1, &["[a\nb]", "c"]), (3, &["1", "2"])],
        );
        check("\"a\"\r\n\"b\"", &[(1, &["[a]"]), (2, &["[b]"])]);
    }

    #[test]
    fn misplaced_quotes_are_located() {
        let unclosed = (2, CsvError::Unclosed.to_string());
        assert_eq!(read("a\n\"b\nc"), Err(unclosed));
        assert_eq!(read("\"a\"b\n"), Err((1, CsvError::Behind.to_string())));
    }
}
