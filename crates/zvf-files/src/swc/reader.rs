//! Reads one file, or all files of a folder.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use zvf::{Column, Geometry, GeometryKind, NumericColumn, numeric::Kind};

use super::sample::{SwcFile, parse};
use crate::{
    FileDescription, FileError, FileFault, FileFormat, FilePlace, FileReadOptions,
    description::MAX_HEADER_TEXT, input::ByteReader, object_ids::stem, text::NO_LINE_END,
    values::narrow, whole::WholeReader,
};

/// Opens SWC files.
#[derive(Debug)]
pub struct SwcReader;

impl SwcReader {
    /// Reads a file, or the `.swc` files of a folder by name, and further files.
    ///
    /// # Errors
    ///
    /// [`FileError`] for the first file that is damaged.
    pub fn open(path: &Path, options: &FileReadOptions) -> Result<WholeReader, FileError> {
        let mut paths = if path.is_dir() {
            files_of(path)?
        } else {
            vec![path.to_path_buf()]
        };
        paths.extend(options.with.iter().cloned());
        let mut description =
            FileDescription::new(FileFormat::Swc, GeometryKind::Skeletons).axes_xyz(None);
        let mut files = Vec::with_capacity(paths.len());
        let mut cut = Vec::new();
        for path in &paths {
            let mut reader = ByteReader::open(path, options.unpacked)?;
            let length = reader.length();
            let mut bytes = Vec::new();
            reader.take(&mut bytes, length, "the file")?;
            let text = String::from_utf8_lossy(&bytes);
            if !text.ends_with('\n') {
                cut.push(name_of(path));
            }
            let file =
                parse(&text).map_err(|(line, fault)| fault.at(path, FilePlace::Line(line)))?;
            if file.samples.is_empty() {
                return Err(FileFault::Empty.of(path));
            }
            files.push(file);
        }
        let names: Vec<String> = paths.iter().map(|path| name_of(path)).collect();
        let numbers = match &options.ids {
            Some(ids) => Some(ids.of(&names, path, options.unpacked)?),
            None => numeric_names(&names),
        };
        if numbers.is_none() && names.iter().any(|name| name.parse::<i64>().is_ok()) {
            let note = "objects are numbered in the order of the file names, because these are not \
                        all different numbers; object.name has the names";
            description.notes.push(note.to_owned());
        }
        let ids = numbers.unwrap_or_else(|| crate::reader::ids_of(&names));
        match cut.as_slice() {
            [] => {}
            [_] if paths.len() == 1 => description.notes.push(NO_LINE_END.to_owned()),
            [name, ..] => {
                let count = cut.len();
                let note = format!("in {count} files, such as {name}.swc, {NO_LINE_END}");
                description.notes.push(note);
            }
        }
        let geometry = joined(&files, &ids, &names, &paths)?;
        keep_comments(&files, &ids, &mut description);
        if files.iter().any(|file| file.has_more_columns) {
            let note = "columns after the seventh and comments after samples are left out";
            description.notes.push(note.to_owned());
        }
        Ok(WholeReader::new(geometry, description))
    }
}

/// Lists the `.swc` files of a folder by name.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>, FileError> {
    let in_folder = |source| FileFault::Io(source).of(folder);
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(in_folder)? {
        let path = entry.map_err(in_folder)?.path();
        if FileFormat::of_path(&path) == Some(FileFormat::Swc) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns the name of a file without `.swc` and `.swc.gz`.
fn name_of(path: &Path) -> String {
    stem(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// Returns the ids of objects: the names, if they are different numbers; `None` otherwise.
fn numeric_names(names: &[String]) -> Option<Vec<i64>> {
    let numbers: Option<Vec<i64>> = names.iter().map(|name| name.parse().ok()).collect();
    let numbers = numbers.filter(|ids| ids.iter().all(|id| *id >= 0));
    numbers.filter(|ids| ids.iter().collect::<BTreeSet<_>>().len() == ids.len())
}

/// Joins the samples of all files.
fn joined(
    files: &[SwcFile],
    ids: &[i64],
    names: &[String],
    paths: &[PathBuf],
) -> Result<Geometry, FileError> {
    let is_wide = files.iter().any(|file| file.needs_float64);
    let kind = if is_wide {
        Kind::Float64
    } else {
        Kind::Float32
    };
    let mut positions = NumericColumn::new(kind, 3);
    let mut radii = NumericColumn::new(kind, 1);
    let (mut sample_ids, mut kinds, mut rows) = (Vec::new(), Vec::new(), Vec::new());
    let mut links = Vec::new();
    let mut owners = Vec::new();
    let mut first = 0_i64;
    for ((file, object), path) in files.iter().zip(ids).zip(paths) {
        let parents = file.parents();
        let parents = parents.map_err(|(line, fault)| fault.at(path, FilePlace::Line(line)))?;
        for ((row, sample), parent) in (0_u32..).zip(&file.samples).zip(parents) {
            let [x, y, z, radius] = sample.numbers;
            for (number, target) in [(x, 0), (y, 0), (z, 0), (radius, 1)] {
                let target = if target == 0 {
                    &mut positions.bytes
                } else {
                    &mut radii.bytes
                };
                match is_wide {
                    true => target.extend_from_slice(&number.to_le_bytes()),
                    false => target.extend_from_slice(&narrow(number).to_le_bytes()),
                }
            }
            sample_ids.push(sample.id);
            kinds.push(sample.kind);
            rows.push(row);
            owners.push(*object);
            if let Some(parent) = parent.and_then(|parent| i64::try_from(parent).ok()) {
                links.push(first.saturating_add(row.into()));
                links.push(first.saturating_add(parent));
            }
        }
        first = first.saturating_add(i64::try_from(file.samples.len()).unwrap_or(i64::MAX));
    }
    let mut geometry = Geometry::new(positions);
    geometry.links = links;
    geometry.object_ids = Some(owners);
    let is_sorted = files
        .iter()
        .all(|file| file.samples.is_sorted_by_key(|sample| sample.id));
    let mut vertex = vec![
        ("radius", radii),
        ("swc_id", sample_ids.into_iter().collect()),
    ];
    vertex.push(("type", narrowest(kinds)));
    if !is_sorted {
        vertex.push(("source_row", rows.into_iter().collect()));
    }
    let vertex = vertex
        .into_iter()
        .map(|(name, numbers)| Column::new(name.to_owned(), numbers));
    geometry.vertex = vertex.collect();
    geometry.objects = Some(ids.to_vec());
    let names = names.iter().map(|name| Some(name.clone()));
    geometry.object.push(Column::text("name", names));
    Ok(geometry)
}

/// Returns a column of int8, if it holds all values.
fn narrowest(values: Vec<i32>) -> NumericColumn {
    let bytes: Result<Vec<i8>, _> = values.iter().map(|value| i8::try_from(*value)).collect();
    match bytes {
        Ok(bytes) => bytes.into_iter().collect(),
        Err(_) => values.into_iter().collect(),
    }
}

/// Keeps comments by object, if they are short.
fn keep_comments(files: &[SwcFile], ids: &[i64], description: &mut FileDescription) {
    let lines = files.iter().flat_map(|file| &file.comments);
    let size = lines
        .map(|(_, text)| text.len().saturating_add(16))
        .fold(0, usize::saturating_add);
    if size > MAX_HEADER_TEXT {
        let note = "the comments of the files are longer than 8 MiB and are not kept";
        description.notes.push(note.to_owned());
        return;
    }
    let of = |file: &SwcFile| -> Value {
        file.comments
            .iter()
            .map(|(line, text)| json!([line, text]))
            .collect()
    };
    let files = files
        .iter()
        .zip(ids)
        .filter(|(file, _)| !file.comments.is_empty());
    let comments: serde_json::Map<String, Value> =
        files.map(|(file, id)| (id.to_string(), of(file))).collect();
    if !comments.is_empty() {
        description
            .header
            .insert("comments".to_owned(), comments.into());
    }
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
