//! Files that are published together once all of them are complete.

use std::{
    collections::HashSet,
    fs,
    hash::BuildHasher,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use tempfile::NamedTempFile;
use zvf_dense::staged;

use super::{
    OutputFile, WrittenFiles,
    output_file::{Cancellation, sidecar},
};
use crate::{FileError, FileFault};

/// The writer of a file.
pub type Sink = BufWriter<CancellableFile>;

/// A file under a temporary name, whose writes fail after a cancellation.
#[derive(Debug)]
pub struct CancellableFile {
    file: NamedTempFile,
    path: PathBuf,
    cancellation: Cancellation,
}

#[cfg(feature = "arrow")]
impl CancellableFile {
    /// Creates a temporary file without a name beside this one.
    pub(crate) fn spool(&self) -> io::Result<fs::File> {
        let folder = self.file.path().parent();
        tempfile::tempfile_in(folder.unwrap_or(Path::new(".")))
    }
}

impl Write for CancellableFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check(&self.cancellation)?;
        self.file.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_file_mut().flush()
    }
}

impl Seek for CancellableFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.as_file_mut().seek(to)
    }
}

fn check(cancellation: &Cancellation) -> io::Result<()> {
    if cancellation.is_cancelled() {
        // `write_all` repeats a call that fails as `Interrupted`.
        return Err(io::Error::other("cancelled"));
    }
    Ok(())
}

/// Files under temporary names in their target folder. Dropping the value removes files that were
/// not [published](Self::publish).
#[derive(Debug)]
pub struct Staged {
    target: PathBuf,
    files: Vec<(NamedTempFile, PathBuf)>,
    /// Files that the result does not have; those of an earlier result are removed.
    absent: Vec<PathBuf>,
    cancellation: Cancellation,
}

impl Staged {
    /// Stages the files of a result that was requested as `target`.
    pub fn new(target: &Path) -> Self {
        Self {
            target: target.to_path_buf(),
            files: Vec::new(),
            absent: Vec::new(),
            cancellation: Cancellation::default(),
        }
    }

    /// Files that can be cancelled.
    pub fn of_output(file: &OutputFile) -> Self {
        Self {
            cancellation: file.cancellation().clone(),
            ..Self::new(file.path())
        }
    }

    /// Writes the requested file.
    ///
    /// # Errors
    ///
    /// [`FileError`] of `fill`, or if the file cannot be created or written.
    pub fn write(
        &mut self,
        fill: impl FnOnce(&mut Sink) -> Result<(), FileFault>,
    ) -> Result<(), FileError> {
        self.write_to(self.target.clone(), fill)
    }

    /// Removes the file with `part` before the extension on publication: it belongs to an earlier result
    /// and would be read as a part of this one.
    pub(crate) fn omit_sidecar(&mut self, part: &str) {
        self.absent.push(self.sidecar(part));
    }

    /// Writes a file beside the requested one, with another extension.
    pub(crate) fn write_beside(
        &mut self,
        extension: &str,
        fill: impl FnOnce(&mut Sink) -> Result<(), FileFault>,
    ) -> Result<(), FileError> {
        self.write_to(self.target.with_extension(extension), fill)
    }

    /// Removes the file that [`write_beside`](Self::write_beside) would write, on publication.
    pub(crate) fn omit_beside(&mut self, extension: &str) {
        self.absent.push(self.target.with_extension(extension));
    }

    /// Keeps files that would be removed on publication.
    pub(crate) fn keep(&mut self, paths: &HashSet<PathBuf, impl BuildHasher>) {
        self.absent.retain(|path| !paths.contains(path));
    }

    fn sidecar(&self, part: &str) -> PathBuf {
        sidecar(&self.target, part)
    }

    fn write_to(
        &mut self,
        path: PathBuf,
        fill: impl FnOnce(&mut Sink) -> Result<(), FileFault>,
    ) -> Result<(), FileError> {
        let mut sink = self.create(path)?;
        if let Err(fault) = fill(&mut sink) {
            return Err(fault.of_target(&sink.get_ref().path));
        }
        self.add(sink)
    }

    /// Creates a file, which is not a part of the result before it is [added](Self::add).
    pub(crate) fn create(&self, path: PathBuf) -> Result<Sink, FileError> {
        let file = staged::create(&path).map_err(|source| FileFault::Write(source).of(&path))?;
        let file = CancellableFile {
            file,
            path,
            cancellation: self.cancellation.clone(),
        };
        Ok(BufWriter::with_capacity(1 << 18, file))
    }

    /// Adds a complete file.
    pub(crate) fn add(&mut self, mut sink: Sink) -> Result<(), FileError> {
        let written = sink.flush();
        // The buffer is empty.
        let (CancellableFile { file, path, .. }, _) = sink.into_parts();
        written.map_err(|source| FileFault::Write(source).of(&path))?;
        self.files.push((file, path));
        Ok(())
    }

    /// Returns the path of the requested file, or with `part` before the extension.
    pub(crate) fn path_of(&self, part: Option<&str>) -> PathBuf {
        part.map_or_else(|| self.target.clone(), |part| self.sidecar(part))
    }

    /// Removes the files of an earlier result that this one does not have, and gives the files
    /// their names, the requested one last: if it exists, all of them do.
    ///
    /// # Errors
    ///
    /// [`FileError`] if a file cannot be removed or renamed, or after a cancellation.
    pub fn publish(self) -> Result<WrittenFiles, FileError> {
        check(&self.cancellation).map_err(|source| FileFault::Write(source).of(&self.target))?;
        remove(&self.absent)?;
        let mut paths = Vec::new();
        for (file, path) in self.files.into_iter().rev() {
            match file.persist(&path) {
                Ok(_) => paths.push(path),
                Err(error) => {
                    let source = error.error;
                    return Err(FileFault::Write(source).of(&path));
                }
            }
        }
        paths.reverse();
        Ok(WrittenFiles {
            files: paths,
            absent: self.absent,
            ..WrittenFiles::default()
        })
    }
}

/// Removes files, where they exist.
pub(crate) fn remove(paths: &[PathBuf]) -> Result<(), FileError> {
    // A folder of that name is not read.
    for path in paths.iter().filter(|path| path.is_file()) {
        match fs::remove_file(path) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                return Err(FileFault::Write(source).of(path));
            }
            _ => {}
        }
    }
    Ok(())
}
