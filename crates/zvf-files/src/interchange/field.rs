//! Formats of `zvf-files` as input of the commands.

use std::path::PathBuf;

use zvf::GeometryBuilder;
use zvf_tables::{
    FileError, FileFault, GeometryInput, GeometryReadOptions, InputFile, MissingPolicy,
    StoreDescription,
};

use crate::{FileDescription, FileReadOptions, GeometryReader};

/// Opens a file that is read in batches, with the further ones of its pattern.
///
/// # Errors
///
/// [`FileError`] if the file is damaged, or lacks an attribute to rename.
pub fn open_field(
    file: &InputFile,
    mut options: FileReadOptions,
) -> Result<Box<dyn GeometryReader>, FileError> {
    options.with.splice(0..0, file.further().iter().cloned());
    let opened = crate::open(file.path(), &options);
    opened.map_err(|error| match error.fault {
        FileFault::NoAttribute { name, present } => {
            FileFault::Rename { name, present }.of(&error.path)
        }
        fault => FileError { fault, ..error },
    })
}

/// Reads a file as a whole.
pub(crate) fn read(
    file: &InputFile,
    options: &GeometryReadOptions,
) -> Result<GeometryInput, FileError> {
    let reading = FileReadOptions {
        kind: Some(options.kind),
        // The whole is in memory in any case.
        in_memory: u64::MAX,
        nan_for_missing: options.missing == MissingPolicy::Nan,
        axes: options.axes.clone().unwrap_or_default(),
        renames: options.renames.clone(),
        ..FileReadOptions::default()
    };
    let mut reader = open_field(file, reading)?;
    let geometry = crate::read_whole(reader.as_mut())
        .map_err(FileError::of_batch)?
        .into_builder();
    let files = vec![file.path().to_path_buf()];
    Ok(input_of(reader.description(), geometry, files))
}

/// Returns geometry with the description of its file.
pub fn input_of(
    of: &FileDescription,
    geometry: GeometryBuilder,
    files: Vec<PathBuf>,
) -> GeometryInput {
    let mut input = GeometryInput::new(geometry, StoreDescription::from(of));
    input.files = files;
    input.numbers_objects = of.numbers_objects;
    input.notes.clone_from(&of.notes);
    input
}
