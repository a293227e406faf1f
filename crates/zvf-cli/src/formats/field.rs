//! Formats of `zvf-files` as input of the commands.

use std::path::PathBuf;

use zvf::Geometry;
use zvf_files::{FileDescription, FileError, FileFault, FileReadOptions, GeometryReader};

use super::{
    GeometryInput, GeometryReadError, GeometryReadOptions, InputFile, MissingPolicy, Rename,
    StoreDescription,
};

/// Opens a file that is read in batches, with the further ones of its pattern.
pub(crate) fn open_field(
    file: &InputFile,
    mut options: FileReadOptions,
) -> Result<Box<dyn GeometryReader>, GeometryReadError> {
    options.with.splice(0..0, file.further().iter().cloned());
    let opened = zvf_files::open(file.path(), &options);
    opened.map_err(|error| match error.fault {
        FileFault::NoAttribute { name, present } => GeometryReadError::Rename {
            path: error.path,
            name,
            names: present,
        },
        fault => FileError { fault, ..error }.into(),
    })
}

/// Reads a file as a whole.
pub(super) fn read(
    file: &InputFile,
    options: &GeometryReadOptions,
) -> Result<GeometryInput, GeometryReadError> {
    let mut reading = FileReadOptions::default();
    reading.kind = Some(options.kind);
    // The whole is in memory in any case.
    reading.in_memory = u64::MAX;
    reading.nan_for_missing = options.missing == MissingPolicy::Nan;
    reading.axes = options.axes.clone().unwrap_or_default();
    reading.renames = options.renames.iter().map(Rename::of_field).collect();
    let mut reader = open_field(file, reading)?;
    let geometry = zvf_files::read_whole(reader.as_mut()).map_err(GeometryReadError::Batch)?;
    let files = vec![file.path().to_path_buf()];
    Ok(input_of(reader.description(), geometry, files))
}

/// Returns the description of a file as that of a store.
pub(crate) fn described(of: &FileDescription) -> StoreDescription {
    let mut description = StoreDescription::new(of.kind.name());
    description.axes.clone_from(&of.axes);
    description.crs.clone_from(&of.crs);
    description.attributes.clone_from(&of.attributes);
    let name = of.format.header_name().to_owned();
    description.headers.insert(name, of.header.clone());
    description
}

/// Returns geometry with the description of its file.
pub(crate) fn input_of(
    of: &FileDescription,
    geometry: Geometry,
    files: Vec<PathBuf>,
) -> GeometryInput {
    let description = described(of);
    GeometryInput {
        geometry,
        group_names: std::collections::BTreeMap::default(),
        axes: description.axis_names(),
        crs: of.crs.clone(),
        row_ids: None,
        description,
        files,
        notes: of.notes.clone(),
    }
}
