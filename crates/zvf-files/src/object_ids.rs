//! Ids of the objects that files become.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use crate::{
    FileError, FileFault,
    input::{ByteReader, length_of},
    text::LineReader,
};

/// Ids of objects, for formats with one file for each object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileObjectIds {
    /// An id for each file, in the order of the files.
    List(Vec<i64>),
    /// A table with a line for each file: its name, with or without `.swc`, and the id, separated by a
    /// comma, a tab or blanks. A first line without an id is a line of names.
    Table(PathBuf),
}

impl FileObjectIds {
    /// Returns the id of each file.
    ///
    /// # Errors
    ///
    /// [`FileError`] of `path` if a list has another number of ids, or an id occurs twice; of the
    /// table if it is damaged, or lacks a name.
    pub(crate) fn of(
        &self,
        names: &[String],
        path: &Path,
        limit: u64,
    ) -> Result<Vec<i64>, FileError> {
        let (ids, path) = match self {
            Self::List(ids) => (ids.clone(), path),
            Self::Table(table) => {
                let ids = read(table, limit)?;
                let id = |name: &String| {
                    let expected = "the table of ids has no line for this file";
                    let missing = || FileFault::field("the name", name, expected).of(table);
                    ids.get(name).copied().ok_or_else(missing)
                };
                let ids = names.iter().map(id).collect::<Result<Vec<_>, _>>()?;
                (ids, table.as_path())
            }
        };
        check(&ids, names).map_err(|fault| fault.of(path))?;
        Ok(ids)
    }
}

fn check(ids: &[i64], names: &[String]) -> Result<(), FileFault> {
    if ids.len() != names.len() {
        let [ids, files] = [length_of(ids), length_of(names)];
        let found = format!("{ids} for {files} files");
        let expected = "give an id for each file, or a table of names and ids";
        return Err(FileFault::field("the number of ids", found, expected));
    }
    if let Some(id) = ids.iter().find(|id| **id < 0) {
        return Err(FileFault::field("an id", id, "ids are not negative"));
    }
    let mut seen = BTreeSet::new();
    match ids.iter().find(|id| !seen.insert(**id)) {
        None => Ok(()),
        Some(id) => {
            let expected = "it occurs twice, but each file is a separate object";
            Err(FileFault::field("an id", id, expected))
        }
    }
}

/// Reads a table of names and ids.
fn read(path: &Path, limit: u64) -> Result<HashMap<String, i64>, FileError> {
    let mut lines = LineReader::new(ByteReader::open(path, limit)?);
    let mut ids = HashMap::new();
    let mut is_first = true;
    while let Some(line) = lines.next()? {
        let line = line.trim_start_matches('\u{feff}').trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let may_be_names = std::mem::take(&mut is_first);
        let (name, id) = line
            .rsplit_once([',', ';', '\t', ' '])
            .unwrap_or(("", line));
        let Ok(number) = id.trim().trim_matches('"').parse::<i64>() else {
            if may_be_names {
                continue;
            }
            let fault = FileFault::Number {
                what: "the id of a file",
                text: id.chars().take(24).collect(),
            };
            return Err(lines.error(fault));
        };
        let name = name.trim_end_matches([',', ';', '\t', ' ']);
        let name = stem(name.trim_matches('"'));
        if let Some(_other) = ids.insert(name.clone(), number) {
            return Err(lines.error(FileFault::Twice(name)));
        }
    }
    Ok(ids)
}

/// Returns the name of a file without `.swc` and `.swc.gz`.
pub(crate) fn stem(name: &str) -> String {
    let end = name.to_ascii_lowercase().rfind(".swc");
    let stem = end.and_then(|end| name.get(..end));
    stem.unwrap_or(name).to_owned()
}
