//! Formats of `zvf-files` as input of the commands.

use std::path::PathBuf;

use crate::StoreDescription;
use crate::{FileDescription, FileError, FileFault, FileReadOptions, GeometryReader};
use zvf::Geometry;

use crate::table::{
    GeometryInput, GeometryReadError, GeometryReadOptions, InputFile, MissingPolicy, Rename,
};

/// Opens a file that is read in batches, with the further ones of its pattern.
///
/// # Errors
///
/// [`GeometryReadError`] if the file is damaged, or lacks an attribute to rename.
pub fn open_field(
    file: &InputFile,
    mut options: FileReadOptions,
) -> Result<Box<dyn GeometryReader>, GeometryReadError> {
    options.with.splice(0..0, file.further().iter().cloned());
    let opened = crate::open(file.path(), &options);
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
pub(crate) fn read(
    file: &InputFile,
    options: &GeometryReadOptions,
) -> Result<GeometryInput, GeometryReadError> {
    let reading = FileReadOptions {
        kind: Some(options.kind),
        // The whole is in memory in any case.
        in_memory: u64::MAX,
        nan_for_missing: options.missing == MissingPolicy::Nan,
        axes: options.axes.clone().unwrap_or_default(),
        renames: options.renames.iter().map(Rename::of_field).collect(),
        ..FileReadOptions::default()
    };
    let mut reader = open_field(file, reading)?;
    let geometry = crate::read_whole(reader.as_mut()).map_err(GeometryReadError::Batch)?;
    let files = vec![file.path().to_path_buf()];
    Ok(input_of(reader.description(), geometry, files))
}

/// Returns geometry with the description of its file.
pub fn input_of(of: &FileDescription, geometry: Geometry, files: Vec<PathBuf>) -> GeometryInput {
    let description = StoreDescription::from(of);
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
