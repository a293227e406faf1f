//! Output files, checked before anything is read.

use std::{
    collections::HashSet,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crate::{FileFormat, FileHeader, ObjectFiles, length::LengthUnit};

/// Parts of the file names of the tables beside that of the vertices.
pub(crate) const SIDECARS: [&str; 4] = ["links", "objects", "groups", "group_attributes"];

/// Parts of the names of GIFTI files with the values of a surface.
const SURFACE_VALUES: [&str; 3] = ["func", "label", "shape"];

/// Returns the file of values beside a surface that has its geometry alone, which is all that Connectome
/// Workbench opens as a surface: `NAME.shape.gii` for `NAME.surf.gii` and the part `shape`. `None` for
/// other names, whose files have the values, too.
pub fn values_beside(surface: &Path, part: &str) -> Option<PathBuf> {
    let stem = surface.file_name()?.to_str()?.strip_suffix(".surf.gii")?;
    Some(surface.with_file_name(format!("{stem}.{part}.gii")))
}

/// A file to write, in an existing folder.
#[derive(Clone, Debug)]
pub struct OutputFile {
    path: PathBuf,
    format: FileFormat,
    /// The folder to which the complete file is moved, if it is written elsewhere.
    destination: Option<PathBuf>,
    cancellation: Cancellation,
    unit: Option<LengthUnit>,
    grid: Option<FileHeader>,
}

/// Ends the writing of a file from another thread. Clones share one state.
#[derive(Clone, Debug, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Ends the writing with an error at its next block, unless the file is complete.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl OutputFile {
    /// Checks that the extension names a format that this build writes, that a file can exist at
    /// the path, and that no table beside it belongs to something else. Reads the file system, and
    /// changes nothing.
    ///
    /// # Errors
    ///
    /// Returns [`OutputFileError`], which says what to change.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, OutputFileError> {
        let path = path.into();
        let Some(extension) = path.extension() else {
            return Err(OutputFileError::NoExtension);
        };
        let Some(format) = FileFormat::of_path(&path) else {
            let extension = extension.to_string_lossy().into_owned();
            return Err(OutputFileError::Extension(extension));
        };
        if !format.is_built() {
            return Err(OutputFileError::NotBuilt(format));
        }
        if let Some(word) = unknown_placeholder(&path) {
            return Err(OutputFileError::Placeholder(word));
        }
        check_writable(&path)?;
        let file = Self {
            path,
            format,
            destination: None,
            cancellation: Cancellation::default(),
            unit: None,
            grid: None,
        };
        file.check_sidecars(&HashSet::new())?;
        Ok(file)
    }

    /// Checks that the files beside this one that a result replaces or removes belong to an earlier
    /// result: there are none unless this file exists. `siblings` may exist in any case.
    ///
    /// # Errors
    ///
    /// [`OutputFileError::Sidecar`] if one of them belongs to something else.
    pub fn check_sidecars(&self, siblings: &HashSet<PathBuf>) -> Result<(), OutputFileError> {
        let target = self.published();
        let tables = SIDECARS
            .into_iter()
            .filter(|_| self.format.is_table())
            .map(|part| sidecar(&target, part));
        let description =
            (self.format == FileFormat::Csv).then(|| target.with_extension("metadata.json"));
        let values = SURFACE_VALUES
            .into_iter()
            .filter_map(|part| values_beside(&target, part));
        let mut found = tables
            .chain(description)
            .chain(values)
            .filter(|path| path.is_file());
        match found.find(|path| !siblings.contains(path)) {
            Some(found) if !target.exists() => Err(OutputFileError::Sidecar { target, found }),
            _ => Ok(()),
        }
    }

    /// Returns the path of the complete file.
    pub fn published(&self) -> PathBuf {
        match &self.destination {
            Some(folder) => folder.join(self.path.file_name().unwrap_or_default()),
            None => self.path.clone(),
        }
    }

    /// Returns the names of the files of objects, if the name has a placeholder. Writers of swc
    /// divide objects by themselves.
    pub fn of_objects(&self) -> Option<ObjectFiles> {
        let is_divided = self.format != FileFormat::Swc;
        ObjectFiles::parse(&self.path).filter(|_| is_divided)
    }

    /// Returns a file of the same format at another path.
    #[must_use]
    pub fn at(&self, path: PathBuf) -> Self {
        Self {
            path,
            ..self.clone()
        }
    }

    /// Sets the unit in which coordinates are written.
    #[must_use]
    pub fn in_unit(self, unit: Option<LengthUnit>) -> Self {
        Self { unit, ..self }
    }

    /// Returns the unit in which coordinates are written, if it is not that of the store or of the
    /// format.
    pub fn unit(&self) -> Option<LengthUnit> {
        self.unit
    }

    /// Sets the voxel grid of the file, as [`FileHeader`] of a format with grids.
    ///
    /// # Errors
    ///
    /// [`OutputFileError::NoGrid`] if the format has none.
    pub fn in_grid(self, grid: Option<FileHeader>) -> Result<Self, OutputFileError> {
        match self.format {
            FileFormat::Trk | FileFormat::Trx => Ok(Self { grid, ..self }),
            format if grid.is_some() => Err(OutputFileError::NoGrid(format)),
            _ => Ok(self),
        }
    }

    /// Returns the voxel grid of the file, if it is not that of the store.
    pub fn grid(&self) -> Option<&FileHeader> {
        self.grid.as_ref()
    }

    /// Returns what ends the writing of this file, and of its clones.
    pub fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// Checks an argument of the command line as [`new`](Self::new) does.
    ///
    /// # Errors
    ///
    /// Returns [`OutputFileError`], which says what to change.
    pub fn parse(path: &str) -> Result<Self, OutputFileError> {
        Self::new(path)
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the format.
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns the folder; `.` if the path has none.
    pub(crate) fn folder(&self) -> &Path {
        folder_of(&self.path)
    }

    /// Returns a file of the same name in another folder, from which it is moved to its own.
    pub(crate) fn inside(&self, folder: &Path) -> Self {
        Self {
            path: folder.join(self.path.file_name().unwrap_or_default()),
            destination: Some(self.folder().to_path_buf()),
            ..self.clone()
        }
    }
}

/// Returns a word in braces that is not a placeholder for an object.
fn unknown_placeholder(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    let words = name
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}').map(|(word, _)| word));
    let is_word = |word: &&str| {
        let mut letters = word.chars();
        !word.is_empty() && letters.all(|c| c.is_alphanumeric() || "_.".contains(c))
    };
    let mut unknown = words
        .filter(is_word)
        .filter(|word| !["object", "name"].contains(word));
    unknown.next().map(str::to_owned)
}

/// Returns the path beside `target` with `part` before the extension.
pub(crate) fn sidecar(target: &Path, part: &str) -> PathBuf {
    let mut extension = OsString::from(part);
    if let Some(end) = target.extension() {
        extension.push(".");
        extension.push(end);
    }
    target.with_extension(extension)
}

/// Returns the folder of a file; `.` if the path has none.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Checks that a file can exist at `path`.
///
/// # Errors
///
/// [`OutputFileError`] if the folder does not exist, or the path is not a file.
pub fn check_writable(path: &Path) -> Result<(), OutputFileError> {
    let folder = folder_of(path);
    if !folder.is_dir() {
        return Err(OutputFileError::NoFolder(folder.to_path_buf()));
    }
    // A rename would replace a device or a pipe with a file.
    if path.exists() && !path.is_file() {
        return Err(OutputFileError::NotAFile);
    }
    Ok(())
}

/// A path that cannot be written to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OutputFileError {
    /// The format has no voxel grid.
    #[error("{0} files have no voxel grid; leave out the reference image, or write .trk or .trx")]
    NoGrid(FileFormat),
    /// The name has no extension.
    #[error("the file name has no extension; it must end in {EXTENSIONS}")]
    NoExtension,
    /// The extension names no format.
    #[error(".{0} files cannot be written; use {EXTENSIONS}")]
    Extension(String),
    /// This build lacks the format.
    #[error("this build of zvf cannot write {0}; rebuild it with the feature `{0}`")]
    NotBuilt(FileFormat),
    /// A word in braces that is not a placeholder.
    #[error(
        "{{{0}}} is not a placeholder; in the name of a file, {{object}} stands for the id of an object and {{name}} for its attribute name"
    )]
    Placeholder(String),
    /// The folder does not exist.
    #[error("the folder {} does not exist; create it first", .0.display())]
    NoFolder(PathBuf),
    /// A table of the name of a result exists without the result.
    #[error(
        "{} exists, and {} does not, so it is not part of an earlier result; move it, or choose another name",
        found.display(),
        target.display()
    )]
    Sidecar {
        /// The file to write.
        target: PathBuf,
        /// The table, which the result would replace or remove.
        found: PathBuf,
    },
    /// The path is a folder, a device or a pipe.
    #[error("the path exists and is not a file; choose another name")]
    NotAFile,
}

const EXTENSIONS: &str = ".csv, .npz, .arrow, .parquet, .ply, .obj, .trk, .tck, .trx, .swc, .stl, .las, .laz, .gii, .glb or .geoparquet";
