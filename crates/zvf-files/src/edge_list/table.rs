//! Tables of nodes: comma- or tab-separated text with a line of names.

use std::{collections::HashMap, path::Path};

use zvf::Column;

use crate::{FileError, FileFault, cell_column::CellColumn, input::ByteReader, text::LineReader};

/// Names of the column with the ids of nodes.
const IDS: [&str; 3] = ["id", "node_id", "node"];

/// The text between fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    Character(char),
    /// Any number of blanks.
    Blanks,
}

impl Separator {
    /// Returns the separator of a line.
    pub(super) fn of(line: &str) -> Self {
        let found = ['\t', ',', ';'].into_iter().find(|it| line.contains(*it));
        found.map_or(Self::Blanks, Self::Character)
    }

    /// Returns the fields of a line. A field may be in double quotes, in which `""` is a quote.
    pub(super) fn fields(self, line: &str) -> Result<Vec<String>, FileFault> {
        let Self::Character(separator) = self else {
            return Ok(line.split_whitespace().map(str::to_owned).collect());
        };
        let mut fields = Vec::new();
        let mut field = String::new();
        let mut is_quoted = false;
        let mut characters = line.chars().peekable();
        while let Some(character) = characters.next() {
            match character {
                '"' if is_quoted && characters.peek() == Some(&'"') => {
                    characters.next();
                    field.push('"');
                }
                '"' if is_quoted => is_quoted = false,
                '"' if field.trim().is_empty() => {
                    field.clear();
                    is_quoted = true;
                }
                other if other == separator && !is_quoted => {
                    fields.push(field.trim().to_owned());
                    field.clear();
                }
                other => field.push(other),
            }
        }
        if is_quoted {
            let why =
                "a quote is not closed in its line; fields of several lines are not supported";
            return Err(FileFault::Unsupported(why));
        }
        fields.push(field.trim().to_owned());
        Ok(fields)
    }
}

/// A table of nodes.
#[derive(Debug, Default)]
pub(super) struct NodeTable {
    ids: CellColumn,
    rows: usize,
    columns: Vec<(String, CellColumn)>,
}

impl NodeTable {
    pub(super) fn read(path: &Path, limit: u64) -> Result<Self, FileError> {
        let mut lines = LineReader::new(ByteReader::open(path, limit)?);
        let mut table = Self::default();
        let mut header: Option<(Separator, usize)> = None;
        while let Some(line) = lines.next()? {
            // The mark of UTF-8 that spreadsheets write.
            let line = line.trim_start_matches('\u{feff}').trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let done = match header {
                None => table.header(line).map(|found| header = Some(found)),
                Some((separator, id)) => table.add(line, separator, id),
            };
            done.map_err(|fault| lines.error(fault))?;
        }
        Ok(table)
    }

    /// Reads the line of names; returns the separator and the place of the ids.
    fn header(&mut self, line: &str) -> Result<(Separator, usize), FileFault> {
        let separator = Separator::of(line);
        let names = separator.fields(line)?;
        let is_id = |name: &String| IDS.iter().any(|id| name.eq_ignore_ascii_case(id));
        let id = names.iter().position(is_id).unwrap_or(0);
        for (at, name) in names.iter().enumerate() {
            if names.iter().take(at).any(|other| other == name) {
                return Err(FileFault::Twice(name.chars().take(64).collect()));
            }
        }
        let columns = names.into_iter().map(|name| (name, CellColumn::default()));
        self.columns = columns.collect();
        Ok((separator, id))
    }

    fn add(&mut self, line: &str, separator: Separator, id: usize) -> Result<(), FileFault> {
        let fields = separator.fields(line)?;
        if fields.len() != self.columns.len() {
            let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
            return Err(FileFault::Count {
                what: "fields",
                found: count(fields.len()),
                expected: count(self.columns.len()),
            });
        }
        let row = self.rows;
        if u32::try_from(row).is_err() {
            return Err(FileFault::Unsupported(
                "a store has fewer than 2^32 vertices",
            ));
        }
        for (at, (field, (_, column))) in fields.iter().zip(&mut self.columns).enumerate() {
            if at == id {
                self.ids.set(row, field);
            } else if !field.is_empty() {
                column.set(row, field);
            }
        }
        self.rows = row.saturating_add(1);
        Ok(())
    }

    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Returns the id of the node in a row.
    pub(super) fn id(&self, row: usize) -> String {
        self.ids.get(row).unwrap_or_default().to_owned()
    }

    /// Returns the row of each id.
    pub(super) fn rows(&self) -> Result<HashMap<&str, usize>, FileFault> {
        let mut rows = HashMap::new();
        for row in 0..self.rows {
            let id = self.ids.get(row).unwrap_or_default();
            if rows.insert(id, row).is_some() {
                return Err(FileFault::Twice(id.chars().take(64).collect()));
            }
        }
        Ok(rows)
    }

    /// Returns the attributes of nodes, `node_id` first.
    pub(super) fn columns(&self) -> Vec<Column> {
        let ids = self.ids.ids("node_id", self.rows);
        let named = self.columns.iter().filter(|(_, cells)| !cells.is_empty());
        let columns = named.map(|(name, cells)| cells.column(name, self.rows, None));
        std::iter::once(ids).chain(columns).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_divided_by_their_separator() {
        let fields = |line: &str| Separator::of(line).fields(line).unwrap();
        assert_eq!(
            fields(r#"a, "b ""c"", d",,1"#),
            ["a", r#"b "c", d"#, "", "1"]
        );
        assert_eq!(fields("a\tb c\t"), ["a", "b c", ""]);
        assert_eq!(fields(" a  b "), ["a", "b"]);
        assert!(Separator::Character(',').fields(r#"a,"b"#).is_err());
    }
}
