//! Files that appear when all are complete.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;

use super::{WriteError, target::folder_of};

/// What files are written through.
pub(super) type Sink<'a> = BufWriter<&'a mut File>;

/// Files under temporary names beside the ones they are to have. Those that are
/// not [published](Self::publish) are removed.
pub(super) struct Staged {
    target: PathBuf,
    files: Vec<(NamedTempFile, PathBuf)>,
}

impl Staged {
    pub(super) fn new(target: &Path) -> Self {
        Self {
            target: target.to_path_buf(),
            files: Vec::new(),
        }
    }

    /// Writes the file itself.
    pub(super) fn write(
        &mut self,
        fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Fault>,
    ) -> Result<(), WriteError> {
        self.write_to(self.target.clone(), fill)
    }

    /// Writes the file beside it that has `part` before the end of its name.
    pub(super) fn write_beside(
        &mut self,
        part: &str,
        fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Fault>,
    ) -> Result<(), WriteError> {
        let mut extension = OsString::from(part);
        if let Some(end) = self.target.extension() {
            extension.push(".");
            extension.push(end);
        }
        self.write_to(self.target.with_extension(extension), fill)
    }

    fn write_to(
        &mut self,
        path: PathBuf,
        fill: impl FnOnce(&mut Sink<'_>) -> Result<(), Fault>,
    ) -> Result<(), WriteError> {
        let in_file = |source| WriteError::File {
            path: path.clone(),
            source,
        };
        let mut staged = create(folder_of(&path)).map_err(in_file)?;
        let mut sink = BufWriter::with_capacity(1 << 18, staged.as_file_mut());
        let filled = fill(&mut sink).and_then(|()| Ok(sink.flush()?));
        drop(sink);
        match filled {
            Ok(()) => {
                self.files.push((staged, path));
                Ok(())
            }
            Err(Fault::Io(source)) => Err(in_file(source)),
            Err(Fault::Write(error)) => Err(error),
        }
    }

    /// Gives the files their names, the one that was asked for last: when it is
    /// there, all are.
    pub(super) fn publish(self) -> Result<Vec<PathBuf>, WriteError> {
        let mut paths = Vec::new();
        for (file, path) in self.files.into_iter().rev() {
            match file.persist(&path) {
                Ok(_) => paths.push(path),
                Err(error) => {
                    let source = error.error;
                    return Err(WriteError::File { path, source });
                }
            }
        }
        paths.reverse();
        Ok(paths)
    }
}

fn create(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".zvf-").suffix(".part");
    // As any new file, not for one's own eyes as temporary files are.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Why a file was not filled; [`Staged`] knows its name.
pub(super) enum Fault {
    Io(io::Error),
    Write(WriteError),
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        Self::Write(error)
    }
}

#[cfg(feature = "arrow")]
impl From<arrow_schema::ArrowError> for Fault {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, error) => Self::Io(error),
            error => Self::Write(error.into()),
        }
    }
}

#[cfg(feature = "parquet")]
impl From<parquet::errors::ParquetError> for Fault {
    fn from(error: parquet::errors::ParquetError) -> Self {
        use parquet::errors::ParquetError;
        match error {
            ParquetError::External(error) => match error.downcast::<io::Error>() {
                Ok(error) => Self::Io(*error),
                Err(error) => Self::Write(ParquetError::External(error).into()),
            },
            error => Self::Write(error.into()),
        }
    }
}
