//! Ids of the objects that files become.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::{Path, PathBuf},
};

use zvf::{Column, GeometryBuilder};

use crate::{
    FileError, FileFault, FileFormat,
    input::{ByteReader, length_of},
    text::LineReader,
};

/// The fault of ids that are given for other files.
pub(crate) const NO_IDS: &str =
    "ids are given for .swc files and meshes; other formats have ids of their own, or none";

/// Ids of objects, for formats with one file for each object.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileObjectIds {
    /// An id for each file, in the order of the files.
    List(Vec<i64>),
    /// A table with a line for each file: its name, with or without the extension, and the id,
    /// separated by a comma, a tab or blanks. A first line without an id is a line of names.
    Table(PathBuf),
    /// The names of the files, which are different numbers.
    Names,
    /// Numbers from 0, in the order of the files.
    Numbers,
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
            Self::Numbers => return Ok((0..).zip(names).map(|(id, _)| id).collect()),
            Self::Names => {
                let is_number = |name: &String| name.parse().is_ok_and(|id: i64| id >= 0);
                let other = names.iter().find(|name| !is_number(name));
                let found = other.or(names.first());
                let expected =
                    "names that are ids are different numbers; number the objects instead";
                let wrong = || {
                    FileFault::field(
                        "the name of a file",
                        found.map_or("", String::as_str),
                        expected,
                    )
                };
                return numeric_names(names).ok_or_else(|| wrong().of(path));
            }
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

/// Objects of a file in which names introduce them, by their places from 1.
#[derive(Debug, Default)]
pub(crate) struct NamedObjects(BTreeMap<i64, NamedObject>);

/// Id of an object, and its name, if that is not the id.
#[derive(Debug)]
pub(crate) struct NamedObject {
    id: i64,
    name: Option<String>,
}

impl NamedObjects {
    /// Gives each place an id: that of a name `object_ID`, and otherwise the place, or the next number
    /// that no other object has.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = (i64, Option<&'a str>)>) -> Self {
        let names: BTreeMap<i64, Option<&str>> = names.into_iter().collect();
        let ids: BTreeMap<i64, i64> = (names.iter())
            .filter_map(|(place, name)| Some((*place, name.and_then(id_in)?)))
            .collect();
        let mut taken: BTreeSet<i64> = ids.values().copied().collect();
        let mut next = 0;
        let objects = names.into_iter().map(|(place, name)| {
            if let Some(id) = ids.get(&place) {
                let (id, name) = (*id, None);
                return (place, NamedObject { id, name });
            }
            let mut id = place;
            if !taken.insert(id) {
                // Numbers below it are taken: by names, or by places before.
                id = id.max(next);
                while !taken.insert(id) {
                    id = id.saturating_add(1);
                }
                next = id.saturating_add(1);
            }
            let name = name.filter(|name| !name.is_empty()).map(str::to_owned);
            (place, NamedObject { id, name })
        });
        Self(objects.collect())
    }

    /// Returns the id of the object at a place.
    pub(crate) fn id(&self, place: i64) -> i64 {
        self.0.get(&place).map_or(place, |object| object.id)
    }

    /// Adds the table of the objects to a geometry.
    pub(crate) fn add_to(self, geometry: &mut GeometryBuilder) {
        let mut objects: Vec<NamedObject> = self.0.into_values().collect();
        objects.sort_unstable_by_key(|object| object.id);
        geometry.objects = Some(objects.iter().map(|object| object.id).collect());
        if objects.iter().any(|object| object.name.is_some()) {
            let names = objects.into_iter().map(|object| object.name);
            geometry.object.push(Column::text("name", names));
        }
    }
}

/// Returns the id in a name `object_ID`, as the writer of OBJ gives objects without a name.
fn id_in(name: &str) -> Option<i64> {
    let id = name.strip_prefix("object_")?.parse().ok()?;
    // Other spellings of the number are names.
    (name == format!("object_{id}") && id >= 0).then_some(id)
}

/// Returns the name of a file without the extension of its format, and without `.gz`.
pub(crate) fn stem(name: &str) -> String {
    if FileFormat::of_path(Path::new(name)).is_none() {
        return name.to_owned();
    }
    let lower = name.to_ascii_lowercase();
    let packed = lower.strip_suffix(".gz").map_or(name.len(), str::len);
    let unpacked = name.get(..packed).unwrap_or(name);
    let stem = unpacked.rsplit_once('.').map_or(unpacked, |(stem, _)| stem);
    stem.to_owned()
}

/// Returns the ids of objects: the names, if they are different numbers; `None` otherwise.
pub(crate) fn numeric_names(names: &[String]) -> Option<Vec<i64>> {
    let numbers: Option<Vec<i64>> = names.iter().map(|name| name.parse().ok()).collect();
    let numbers = numbers.filter(|ids| ids.iter().all(|id| *id >= 0));
    numbers.filter(|ids| ids.iter().collect::<BTreeSet<_>>().len() == ids.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_different_numbers_are_ids() {
        let ids = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            numeric_names(&names)
        };
        let large = [720_575_940_625_000_000, 17];
        assert_eq!(ids(&["720575940625000000", "17"]), Some(large.to_vec()));
        assert_eq!(ids(&["17", "017"]), None);
        assert_eq!(ids(&["17", "-1"]), None);
        assert_eq!(ids(&["17", "abc"]), None);
    }
}
