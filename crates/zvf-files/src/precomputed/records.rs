//! The records of annotations by id, from the index by id or from the spatial index.

use std::{
    fs::File,
    hash::{DefaultHasher, Hasher},
    io::{BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use zvf_precomputed::{AnnotationInfo, AnnotationList, RecordLayout, SpatialLevel};

use super::{
    keyed::{KeyedValues, names, read_member},
    source::PrecomputedSource,
};
use crate::{FileDescription, FileError, FileFault, FilePlace, input::length_of, library};

/// The annotations of a source by ascending id.
#[derive(Debug)]
pub(super) enum AnnotationRecords {
    /// Values of the index by id: a record, and segments of relationships.
    ById(KeyedValues),
    /// Records of the cells of all levels.
    Spatial(SpatialRecords),
}

impl AnnotationRecords {
    /// Chooses an index. The index by id has the relationships; the spatial index has all
    /// annotations in fewer files.
    pub(super) fn open(
        source: &PrecomputedSource,
        info: &AnnotationInfo,
        limit: u64,
        description: &mut FileDescription,
    ) -> Result<Self, FileError> {
        let by_id = || {
            let folder = source.folder_of(&info.by_id)?;
            KeyedValues::open(folder, info.by_id_sharding, "", limit)
        };
        if !info.relationships.is_empty() {
            let values = by_id()?;
            if values.len() > 0 {
                return Ok(Self::ById(values));
            }
        }
        let layout = RecordLayout::of(info);
        let records = SpatialRecords::collect(source, info, &layout, limit)?;
        if records.places.is_empty() {
            return Ok(Self::ById(by_id()?));
        }
        if !info.relationships.is_empty() {
            description.notes.push(
                "relationships are left out: the index by id, which holds them, has no annotations"
                    .to_owned(),
            );
        }
        Ok(Self::Spatial(records))
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::ById(values) => values.len(),
            Self::Spatial(records) => records.places.len(),
        }
    }

    /// Returns the ids, ascending.
    pub(super) fn ids(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            Self::ById(values) => Box::new(values.keys()),
            Self::Spatial(records) => Box::new(records.places.iter().map(|place| place.id)),
        }
    }

    /// Returns whether values have the segments of relationships.
    pub(super) fn has_relationships(&self) -> bool {
        matches!(self, Self::ById(_))
    }

    /// Returns the value of an annotation by number.
    pub(super) fn get(&mut self, at: usize) -> Result<Option<(u64, Vec<u8>)>, FileError> {
        match self {
            Self::ById(values) => values.get(at),
            Self::Spatial(records) => records.get(at),
        }
    }

    /// Adds the file and the id of an annotation to a fault.
    pub(super) fn error(&self, at: usize, fault: FileFault) -> FileError {
        match self {
            Self::ById(values) => values.error(at, fault),
            Self::Spatial(records) => {
                let id = records.places.get(at).map(|place| place.id.to_string());
                fault.at(&records.folder, FilePlace::Member(id.unwrap_or_default()))
            }
        }
    }
}

/// Records of a spatial index, copied to a temporary file.
#[derive(Debug)]
pub(super) struct SpatialRecords {
    folder: PathBuf,
    file: File,
    places: Vec<RecordPlace>,
}

/// The place of a record in the temporary file.
#[derive(Clone, Copy, Debug)]
struct RecordPlace {
    id: u64,
    start: u64,
    size: u64,
    /// Hash of the bytes.
    hash: u64,
}

impl SpatialRecords {
    /// Copies the records of all cells, and keeps each annotation once: lines are in all cells that
    /// they touch.
    fn collect(
        source: &PrecomputedSource,
        info: &AnnotationInfo,
        layout: &RecordLayout,
        limit: u64,
    ) -> Result<Self, FileError> {
        let io = |error| FileFault::Io(error).of(&source.folder);
        let mut sink = RecordSink {
            file: BufWriter::new(tempfile::tempfile().map_err(io)?),
            at: 0,
            places: Vec::new(),
        };
        for level in &info.spatial {
            let folder = source.folder_of(&level.key)?;
            match level.sharding {
                Some(_) => {
                    let mut cells = KeyedValues::open(folder, level.sharding, "", limit)?;
                    for at in 0..cells.len() {
                        let Some((_, cell)) = cells.get(at)? else {
                            break;
                        };
                        let added = sink.add(&cell, layout);
                        added.map_err(|fault| cells.error(at, fault))?;
                    }
                }
                None => add_files(&folder, level, layout, limit, &mut sink)?,
            }
        }
        let file = sink
            .file
            .into_inner()
            .map_err(|error| io(error.into_error()))?;
        let mut places = sink.places;
        // The sort is stable, so that the first of several records is kept.
        places.sort_by_key(|place| place.id);
        let differs = places.windows(2).find_map(|pair| match pair {
            [one, next] if one.id == next.id && one.hash != next.hash => Some(next.id.to_string()),
            _ => None,
        });
        if let Some(id) = differs {
            let member = FilePlace::Member(id.clone());
            return Err(FileFault::Twice(id).at(&source.folder, member));
        }
        places.dedup_by_key(|place| place.id);
        Ok(Self {
            folder: source.folder.clone(),
            file,
            places,
        })
    }

    fn get(&mut self, at: usize) -> Result<Option<(u64, Vec<u8>)>, FileError> {
        let Some(place) = self.places.get(at) else {
            return Ok(None);
        };
        let io = |error| FileFault::Io(error).of(&self.folder);
        let mut bytes = vec![0; usize::try_from(place.size).unwrap_or(usize::MAX)];
        self.file.seek(SeekFrom::Start(place.start)).map_err(io)?;
        self.file.read_exact(&mut bytes).map_err(io)?;
        Ok(Some((place.id, bytes)))
    }
}

/// Adds the cells of a level that are files, named by their place in the grid.
fn add_files(
    folder: &Path,
    level: &SpatialLevel,
    layout: &RecordLayout,
    limit: u64,
    sink: &mut RecordSink,
) -> Result<(), FileError> {
    let mut before = String::new();
    for name in names(folder)? {
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        // A file and its compressed form are one cell.
        if !is_cell(name, &level.grid_shape) || name == before {
            continue;
        }
        name.clone_into(&mut before);
        let cell = read_member(folder, name, limit)?;
        let added = sink.add(&cell, layout);
        added.map_err(|fault| fault.of(&folder.join(name)))?;
    }
    Ok(())
}

/// Returns whether a name is that of a cell of a grid.
fn is_cell(name: &str, shape: &[u64]) -> bool {
    let mut parts = name.split('_');
    let is_along = |extent: &u64| {
        let along: Option<u64> = parts.next().and_then(|part| part.parse().ok());
        along.is_some_and(|along| along < *extent)
    };
    shape.iter().all(is_along) && parts.next().is_none()
}

/// The temporary file while it is written.
struct RecordSink {
    file: BufWriter<File>,
    at: u64,
    places: Vec<RecordPlace>,
}

impl RecordSink {
    fn add(&mut self, cell: &[u8], layout: &RecordLayout) -> Result<(), FileFault> {
        for record in AnnotationList::split(cell, layout).map_err(library::precomputed)? {
            self.file.write_all(record.bytes)?;
            let size = length_of(record.bytes);
            let mut hasher = DefaultHasher::new();
            hasher.write(record.bytes);
            self.places.push(RecordPlace {
                id: record.id,
                start: self.at,
                size,
                hash: hasher.finish(),
            });
            self.at = self.at.saturating_add(size);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cells_are_places_in_the_grid() {
        let shape = [3, 1, 4];
        for name in ["0_0_0", "2_0_3"] {
            assert!(is_cell(name, &shape), "{name}");
        }
        for name in ["", "info", "3_0_0", "0_0", "0_0_0_0", "0_-1_0", "0_0_x"] {
            assert!(!is_cell(name, &shape), "{name}");
        }
    }
}
