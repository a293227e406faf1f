//! Input files, checked before anything is read.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{FileFormat, format::extensions};

/// An existing file in a format that this build reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    path: PathBuf,
    format: FileFormat,
    /// Files that are read together with the first one, from a pattern of names.
    further: Vec<PathBuf>,
}

impl InputFile {
    /// Checks that the extension names a format that this build reads, and that the file exists.
    ///
    /// # Errors
    ///
    /// Returns [`InputFileError`], which says what to change.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, InputFileError> {
        let mut files = matching(path.into())?.into_iter();
        let path = files.next().ok_or(InputFileError::NoFile)?;
        let further: Vec<PathBuf> = files.collect();
        // A folder can be read that has no extension.
        let named = FileFormat::of_input(&path);
        // Most writers name tables with geometry like other tables.
        #[cfg(feature = "geoparquet")]
        let named = match named {
            Some(FileFormat::Parquet) if is_geoparquet(&path) => Some(FileFormat::GeoParquet),
            other => other,
        };
        if path.is_dir() && named.is_none_or(FileFormat::is_interchange) {
            return Err(InputFileError::Folder);
        }
        let Some(format) = named else {
            let extension = path
                .extension()
                .ok_or(InputFileError::NoExtension)?
                .to_string_lossy()
                .into_owned();
            return Err(InputFileError::Extension(extension));
        };
        if !format.is_built() {
            return Err(InputFileError::NotBuilt(format));
        }
        // A TRX file, a collection of SWC files and precomputed data may be folders.
        let is_folder = !format.is_interchange() && path.is_dir();
        if !path.is_file() && !is_folder {
            return Err(InputFileError::NoFile);
        }
        if !further.is_empty() && !format.is_object() {
            return Err(InputFileError::Several(further.len().saturating_add(1)));
        }
        Ok(Self {
            path,
            format,
            further,
        })
    }

    /// Adds files that are read together with this one.
    ///
    /// # Errors
    ///
    /// Returns [`InputFileError`] if a file cannot be read, or the format has one file only.
    pub fn and(mut self, further: &[PathBuf]) -> Result<Self, InputFileError> {
        for path in further {
            let more = Self::new(path)
                .map_err(|error| InputFileError::Further(path.clone(), error.into()))?;
            self.further.push(more.path);
            self.further.extend(more.further);
        }
        if !further.is_empty() && !self.format.is_object() {
            return Err(InputFileError::Several(
                self.further.len().saturating_add(1),
            ));
        }
        Ok(self)
    }

    /// Returns all paths.
    pub fn paths(&self) -> impl Iterator<Item = PathBuf> {
        std::iter::once(&self.path).chain(&self.further).cloned()
    }

    /// Returns the files that are read together with [`path`](Self::path).
    pub fn further(&self) -> &[PathBuf] {
        &self.further
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
    pub fn format(&self) -> FileFormat {
        self.format
    }

    /// Returns the file `NAME.part.EXTENSION` beside this one, if it exists.
    pub(crate) fn sidecar(&self, part: &str) -> Option<Self> {
        let name = self.path.file_name()?.to_str()?;
        // Before both extensions of a compressed table.
        let packed = name.len().saturating_sub(".gz".len());
        let ending = name
            .get(packed..)
            .filter(|ending| ending.eq_ignore_ascii_case(".gz"));
        let unpacked = name
            .get(..packed)
            .filter(|_| ending.is_some())
            .unwrap_or(name);
        let (stem, extension) = unpacked.rsplit_once('.')?;
        let name = format!("{stem}.{part}.{extension}{}", ending.unwrap_or_default());
        let path = self.path.with_file_name(name);
        let format = self.format;
        path.is_file().then_some(Self {
            path,
            format,
            further: Vec::new(),
        })
    }
}

/// Returns the files whose names match a path with `*` or `?` in its last part, in the order of
/// their names; the path itself if it has neither or exists.
fn matching(path: PathBuf) -> Result<Vec<PathBuf>, InputFileError> {
    let pattern = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.contains(['*', '?']) && !path.exists());
    let Some(pattern) = pattern else {
        return Ok(vec![path]);
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new(".")))
        .map_err(|_| InputFileError::NoFile)?
        .flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name())
        .filter(|name| matches(&pattern, &name.to_string_lossy()))
        .collect();
    names.sort();
    Ok(names.iter().map(|name| path.with_file_name(name)).collect())
}

/// Returns whether a name matches a pattern, in which `*` is any text and `?` any letter.
fn matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    let (mut at, mut in_name) = (0_usize, 0_usize);
    // The position after the last `*`, and where its text ends.
    let mut star: Option<(usize, usize)> = None;
    while let Some(letter) = name.get(in_name) {
        match pattern.get(at) {
            Some('*') => {
                at = at.saturating_add(1);
                star = Some((at, in_name));
            }
            Some(expected) if *expected == '?' || expected == letter => {
                at = at.saturating_add(1);
                in_name = in_name.saturating_add(1);
            }
            _ => match &mut star {
                Some((after, end)) => {
                    *end = end.saturating_add(1);
                    (at, in_name) = (*after, *end);
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(at).all(|letter| *letter == '*')
}

/// Returns whether a Parquet file has a column of geometry. Reads the end of the file.
#[cfg(feature = "geoparquet")]
pub fn is_geoparquet(path: &Path) -> bool {
    let read = || {
        let file = fs::File::open(path).ok()?;
        let metadata = parquet::file::metadata::ParquetMetaDataReader::new()
            .parse_and_finish(&file)
            .ok()?;
        let pairs = metadata.file_metadata().key_value_metadata()?;
        pairs.iter().any(|pair| pair.key == "geo").then_some(())
    };
    std::panic::catch_unwind(read).ok().flatten().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        for (pattern, name, expected) in [
            ("*.swc", "a.swc", true),
            ("*.swc", "a.swc.gz", false),
            ("n?_*.swc", "n1_x_y.swc", true),
            ("n?_*.swc", "n12_x.swc", false),
            ("*a*b", "xaab", true),
            ("*a*b", "xbba", false),
            ("**", "", true),
        ] {
            assert_eq!(matches(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn patterns_name_files_in_order() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.swc", "a.swc", "c.txt", "d.trk", "e.trk"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let found = InputFile::new(folder.path().join("*.swc"));
        let files = found.map(|found| (found.path.clone(), found.further.clone()));
        let expected = ["a.swc", "b.swc"].map(|name| folder.path().join(name));
        assert_eq!(files, Ok((expected[0].clone(), vec![expected[1].clone()])));
        let several = InputFile::new(folder.path().join("*.trk"));
        assert_eq!(several, Err(InputFileError::Several(2)));
        let none = InputFile::new(folder.path().join("*.tck"));
        assert_eq!(none, Err(InputFileError::NoFile));
    }
}

/// A path that cannot be read from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InputFileError {
    /// The name has no extension.
    #[error("the file name has no extension; it must end in {}", readable())]
    NoExtension,
    /// The extension names no format.
    #[error(".{0} files cannot be read; use {names}", names = readable())]
    Extension(String),
    /// This build lacks the format.
    #[error("this build of zvf cannot read {0}; rebuild it with the feature `{0}`")]
    NotBuilt(FileFormat),
    /// The file does not exist.
    #[error("the file does not exist")]
    NoFile,
    /// A further file cannot be read.
    #[error("{}: {}", .0.display(), .1)]
    Further(PathBuf, Box<Self>),
    /// Several files that are not read together.
    #[error(
        "these are {0} files, and only .swc files and meshes are read together; create a store from one \
         file, and add each further one with zvf append"
    )]
    Several(usize),
    /// A folder whose files are not read together.
    #[error(
        "the folder holds neither .swc files nor meshes nor a geff graph nor precomputed data; create a \
         store from one file, and add each further one with zvf append"
    )]
    Folder,
}

/// Lists what can be read.
fn readable() -> String {
    let names = extensions(|_| true);
    format!("{names}, or name a folder of precomputed data")
}
