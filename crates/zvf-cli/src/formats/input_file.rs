//! Input files, checked before anything is read.

use std::path::{Path, PathBuf};

use zvf_files::FileFormat;

use super::Format;

/// An existing file in a format that this build reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    path: PathBuf,
    format: Format,
}

impl InputFile {
    /// Checks that the extension names a format that this build reads, and that the file exists.
    ///
    /// # Errors
    ///
    /// Returns [`InputFileError`], which says what to change.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, InputFileError> {
        let path = path.into();
        let of_name = Format::of_path(&path).filter(|format| format.is_readable());
        // A folder can be read that has no extension.
        let found = of_name.or_else(|| FileFormat::of_input(&path).map(Format::Field));
        let found = found.filter(|format| format.is_readable());
        if path.is_dir() && !matches!(found, Some(Format::Field(_))) {
            return Err(InputFileError::Folder);
        }
        let Some(format) = found else {
            let extension = path.extension().ok_or(InputFileError::NoExtension)?;
            let extension = extension.to_string_lossy().into_owned();
            return Err(InputFileError::Extension(extension));
        };
        if !format.is_built() {
            return Err(InputFileError::NotBuilt(format));
        }
        // A TRX file, a collection of SWC files and precomputed data may be folders.
        let is_folder = matches!(format, Format::Field(_)) && path.is_dir();
        if !path.is_file() && !is_folder {
            return Err(InputFileError::NoFile);
        }
        Ok(Self { path, format })
    }

    /// Checks an argument of the command line as [`new`](Self::new) does.
    ///
    /// # Errors
    ///
    /// Returns [`InputFileError`], which says what to change.
    pub fn parse(path: &str) -> Result<Self, InputFileError> {
        Self::new(path)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the format.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Returns the file `NAME.part.EXTENSION` beside this one, if it exists.
    pub(super) fn sidecar(&self, part: &str) -> Option<Self> {
        let mut name = self.path.file_stem()?.to_owned();
        name.push(".");
        name.push(part);
        name.push(".");
        name.push(self.path.extension()?);
        let path = self.path.with_file_name(name);
        let format = self.format;
        path.is_file().then_some(Self { path, format })
    }
}

/// A path that cannot be read from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputFileError {
    /// The name has no extension.
    #[error("the file name has no extension; it must end in {EXTENSIONS}")]
    NoExtension,
    /// The extension names no format.
    #[error(".{0} files cannot be read; use {EXTENSIONS}")]
    Extension(String),
    /// This build lacks the format.
    #[error("this build of zvf cannot read {0}; rebuild it with the feature `{0}`")]
    NotBuilt(Format),
    /// The file does not exist.
    #[error("the file does not exist")]
    NoFile,
    /// A folder whose files are not read together.
    #[error(
        "the folder holds neither .swc files nor precomputed data; create a store from one file, \
         and add each further one with zvf append"
    )]
    Folder,
}

const EXTENSIONS: &str = ".csv, .npz, .arrow, .parquet, .trk, .tck, .trx, .swc, .ply, .obj, .stl, .las, .laz, \
     .gii or .pial, or name a folder of precomputed data";
