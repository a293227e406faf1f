//! Where an answer goes, checked before anything is read.

use std::{
    fmt,
    path::{Path, PathBuf},
};

/// A kind of file that answers are written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Text, a row a line.
    Csv,
    /// Arrays for numpy.
    Npz,
    /// Arrow's IPC file format.
    Arrow,
    /// Parquet.
    Parquet,
    /// Stanford's polygon format, binary.
    Ply,
    /// Wavefront's text format.
    Obj,
}

impl Format {
    /// Every format there is.
    pub const ALL: [Self; 6] = [
        Self::Csv,
        Self::Npz,
        Self::Arrow,
        Self::Parquet,
        Self::Ply,
        Self::Obj,
    ];

    /// What names of such files end in.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Npz => "npz",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Ply => "ply",
            Self::Obj => "obj",
        }
    }

    /// Whether this build writes it.
    pub fn is_built(self) -> bool {
        match self {
            Self::Arrow => cfg!(feature = "arrow"),
            Self::Parquet => cfg!(feature = "parquet"),
            Self::Csv | Self::Npz | Self::Ply | Self::Obj => true,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}

/// A file to write, in a folder that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    path: PathBuf,
    format: Format,
}

impl Target {
    /// Checks that the name says a format this build writes, and that the place
    /// can hold a file. Looks at the disk, and leaves it alone.
    ///
    /// # Errors
    ///
    /// [`TargetError`] says what to change.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, TargetError> {
        let path = path.into();
        let Some(extension) = path.extension() else {
            return Err(TargetError::NoExtension);
        };
        let mut formats = Format::ALL.into_iter();
        let format = formats.find(|format| extension.eq_ignore_ascii_case(format.extension()));
        let Some(format) = format else {
            let extension = extension.to_string_lossy().into_owned();
            return Err(TargetError::Extension(extension));
        };
        if !format.is_built() {
            return Err(TargetError::NotBuilt(format));
        }
        place(&path)?;
        Ok(Self { path, format })
    }

    /// The same from an argument of the command line.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn parse(path: &str) -> Result<Self, TargetError> {
        Self::new(path)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its format.
    pub fn format(&self) -> Format {
        self.format
    }
}

/// The folder a file is in; `.` when its path does not say.
pub(super) fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Checks that a file can be there, before anything is done for it.
pub(crate) fn place(path: &Path) -> Result<(), TargetError> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(TargetError::NoFolder(folder.to_path_buf()));
    }
    // A rename would put a file in the place of a device or pipe.
    if path.exists() && !path.is_file() {
        return Err(TargetError::NoFile);
    }
    Ok(())
}

/// Why a path cannot be written to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The name has no end that says the format.
    #[error("the name has to end in {EXTENSIONS}")]
    NoExtension,
    /// The name ends in something else.
    #[error(".{0} is no format that is written; use {EXTENSIONS}")]
    Extension(String),
    /// This build leaves the format out.
    #[error("this build of zvf writes no {0}; build it with the feature `{0}`")]
    NotBuilt(Format),
    /// The folder is not there.
    #[error("there is no folder {}; create it first", .0.display())]
    NoFolder(PathBuf),
    /// Something else is there.
    #[error("what is there is no file; choose another name")]
    NoFile,
}

const EXTENSIONS: &str = ".csv, .npz, .arrow, .parquet, .ply or .obj";
