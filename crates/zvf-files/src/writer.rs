//! Writing: the trait of all writers, and what they share.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, BufWriter, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use tempfile::{NamedTempFile, SpooledTempFile, spooled_tempfile_in};
use zvf::{Column, ObjectIds, Owner, Parts, QueryResult, Scope};

use crate::{FileError, FileFault, GroupTables};

/// A writer of a query result, which comes in batches.
///
/// The file appears under its name when [`finish`](Self::finish) succeeds. A writer that is
/// dropped leaves no file, except for those of objects that have [ended](Self::end_objects).
pub trait ResultWriter: Send {
    /// Writes the next batch.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the format cannot hold the batch, or the file cannot be written.
    fn write(&mut self, batch: &QueryResult) -> Result<(), FileError>;

    /// Tells that no later batch has vertices or links of the objects of earlier batches. A writer of
    /// a file for each object then need not keep them.
    ///
    /// # Errors
    ///
    /// [`FileError`] if a file cannot be written.
    fn end_objects(&mut self) -> Result<(), FileError> {
        Ok(())
    }

    /// Writes what follows the batches, and gives the file its name.
    ///
    /// # Errors
    ///
    /// [`FileError`] if the file cannot be written.
    fn finish(self: Box<Self>, tables: &GroupTables) -> Result<WrittenResult, FileError>;
}

/// Files written, and what they lack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenResult {
    /// Paths, the requested one first.
    pub files: Vec<PathBuf>,
    /// Data that the format cannot hold, one line each.
    pub left_out: Vec<String>,
    /// Remarks for readers of the files, one line each.
    pub notes: Vec<String>,
}

/// A file under a temporary name beside its target.
#[derive(Debug)]
pub(crate) struct OutputSink {
    path: PathBuf,
    file: BufWriter<NamedTempFile>,
}

impl OutputSink {
    pub(crate) fn create(path: &Path) -> Result<Self, FileError> {
        let folder = folder_of(path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".zvf-");
        // The permissions of a new file, instead of those of a private one.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder
            .tempfile_in(folder)
            .map_err(|source| FileFault::Io(source).of(path))?;
        Ok(Self {
            path: path.to_path_buf(),
            file: BufWriter::with_capacity(1 << 18, file),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), FileError> {
        let done = self.file.write_all(bytes);
        done.map_err(|source| self.error(source))
    }

    pub(crate) fn error(&self, source: io::Error) -> FileError {
        FileFault::Io(source).of(&self.path)
    }

    /// Gives the file its name, after `patch` has changed what it has to.
    pub(crate) fn publish(
        self,
        patch: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> Result<PathBuf, FileError> {
        let path = self.path;
        let in_file = |source| FileFault::Io(source).of(&path);
        let mut file = self
            .file
            .into_inner()
            .map_err(|error| in_file(error.into_error()))?;
        patch(file.as_file_mut()).map_err(in_file)?;
        file.persist(&path).map_err(|error| in_file(error.error))?;
        Ok(path)
    }
}

impl Write for OutputSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for OutputSink {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Returns the folder of a file; `.` if the path has none.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

/// Creates a temporary file beside a target, for content whose place in the target is not yet known.
/// Up to 1 MiB stays in memory.
pub(crate) fn spool(target: &Path) -> SpooledTempFile {
    spooled_tempfile_in(1 << 20, folder_of(target))
}

/// A path of a batch: its rows and its object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathRows {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) object: i64,
}

/// Returns the paths of a batch, whose rows count from the start of the batch.
///
/// # Errors
///
/// [`FileFault::Result`] if the batch has no paths, [`FileFault::Broken`] if they do not fit its
/// rows.
pub(crate) fn paths(batch: &QueryResult, format: &'static str) -> Result<Vec<PathRows>, FileFault> {
    let Some(Parts { offsets, objects }) = &batch.parts else {
        return Err(FileFault::Result {
            format,
            holds: "paths",
            remedy: "write csv, npz, ply or obj",
        });
    };
    let rows = batch.positions.len();
    let row = |offset: u64| usize::try_from(offset.checked_sub(batch.first_row)?).ok();
    let spans = offsets.iter().zip(offsets.iter().skip(1)).zip(objects);
    let paths: Option<Vec<PathRows>> = spans
        .map(|((start, end), object)| {
            let (start, end) = (row(*start)?, row(*end)?);
            (start <= end && end <= rows).then_some(PathRows {
                start,
                end,
                object: *object,
            })
        })
        .collect();
    paths.ok_or(FileFault::Broken(
        "paths do not fit the rows of their vertices",
    ))
}

/// Lists the columns of a batch that a format cannot hold.
pub(crate) fn left_out<'a>(
    batch: &'a QueryResult,
    format: &'a str,
    holds: impl Fn(Scope, &Column) -> bool + 'a,
) -> impl Iterator<Item = String> + 'a {
    let scopes = Scope::ALL.into_iter();
    let columns = scopes.flat_map(|scope| batch.columns(scope).iter().map(move |own| (scope, own)));
    columns
        .filter(move |(scope, column)| !holds(*scope, column))
        .map(move |(scope, column)| {
            format!(
                "{}.{}: not supported by {format}",
                scope.name(),
                column.name
            )
        })
}

/// Adds the lines about columns of a batch that a format cannot hold, each once: batches of vertices and
/// of links have different columns.
pub(crate) fn list_left_out(
    lines: &mut Vec<String>,
    batch: &QueryResult,
    format: &str,
    holds: impl Fn(Scope, &Column) -> bool,
) {
    let mut listed: HashSet<String> = lines.iter().cloned().collect();
    let new = left_out(batch, format, holds);
    lines.extend(new.filter(|line| listed.insert(line.clone())));
}

/// Lists that a format of triangles divides the faces of a batch.
pub(crate) fn list_divided_faces(lines: &mut Vec<String>, batch: &QueryResult, format: &str) {
    let width = batch.links.as_ref().map_or(0, |links| links.width);
    let line = format!("faces of {width} corners: divided into triangles, which {format} holds");
    if width > 3 && !lines.contains(&line) {
        lines.push(line);
    }
}

/// Returns the line about object ids that a format cannot hold.
pub(crate) fn object_ids_left_out(format: &str) -> String {
    format!("object_id: not supported by {format}")
}

/// Objects of a file of paths, whose reader numbers them from 0.
#[derive(Debug, Default)]
pub(crate) struct ObjectNumbers {
    next: i64,
    are_other_ids: bool,
}

impl ObjectNumbers {
    /// Adds the object of the next path.
    pub(crate) fn push(&mut self, object: i64) {
        self.are_other_ids |= object != self.next;
        self.next = self.next.saturating_add(1);
    }

    /// Lists the ids if they are not the numbers of the paths.
    pub(crate) fn left_out(&self, format: &str) -> Option<String> {
        self.are_other_ids.then(|| object_ids_left_out(format))
    }
}

/// Returns whether a batch has objects that a file of one object, 0, does not tell apart.
pub(crate) fn has_object_ids(batch: &QueryResult) -> bool {
    let mut of_paths = batch.parts.iter().flat_map(|parts| &parts.objects);
    let mut of_vertices = batch.object_ids.iter().flat_map(ObjectIds::iter);
    of_paths.any(|object| *object != 0)
        || of_vertices.any(|owner| !matches!(owner, Owner::None | Owner::Object(0)))
}

/// Lists the groups that a format cannot hold.
pub(crate) fn groups_left_out(tables: &GroupTables, format: &str) -> Option<String> {
    let count = tables.groups.len();
    (count > 0).then(|| format!("{count} groups: not supported by {format}"))
}
