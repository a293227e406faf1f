//! Where geometry comes from, checked before anything is read.

use std::path::{Path, PathBuf};

use crate::output::Format;

/// A file that is there, of a format that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    path: PathBuf,
    format: Format,
}

impl Source {
    /// Checks that the name says a format this build reads, and that a file is
    /// there.
    ///
    /// # Errors
    ///
    /// [`SourceError`] says what to change.
    pub fn new(path: impl Into<PathBuf>) -> Result<Self, SourceError> {
        let path = path.into();
        let Some(extension) = path.extension() else {
            return Err(SourceError::NoExtension);
        };
        let formats = [Format::Csv, Format::Npz, Format::Arrow, Format::Parquet];
        let mut formats = formats.into_iter();
        let format = formats.find(|format| extension.eq_ignore_ascii_case(format.extension()));
        let Some(format) = format else {
            let extension = extension.to_string_lossy().into_owned();
            return Err(SourceError::Extension(extension));
        };
        if !format.is_built() {
            return Err(SourceError::NotBuilt(format));
        }
        if !path.is_file() {
            return Err(SourceError::NoFile);
        }
        Ok(Self { path, format })
    }

    /// The same from an argument of the command line.
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn parse(path: &str) -> Result<Self, SourceError> {
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

    /// The file beside it that has `part` before the end of its name, if it is
    /// there.
    pub(super) fn beside(&self, part: &str) -> Option<Self> {
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

/// Why a path cannot be read from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// The name has no end that says the format.
    #[error("the name has to end in {EXTENSIONS}")]
    NoExtension,
    /// The name ends in something else.
    #[error(".{} is no format that is read; use {EXTENSIONS}{}", .0, instead(.0))]
    Extension(String),
    /// This build leaves the format out.
    #[error("this build of zvf reads no {0}; build it with the feature `{0}`")]
    NotBuilt(Format),
    /// No file is there.
    #[error("there is no such file")]
    NoFile,
}

const EXTENSIONS: &str = ".csv, .npz, .arrow or .parquet";

/// How files that many have become one of those.
fn instead(extension: &str) -> &'static str {
    match extension.to_ascii_lowercase().as_str() {
        "trk" | "tck" | "trx" => {
            "; nibabel reads tractograms and numpy writes .npz: docs/faq.md has the lines"
        }
        _ => "",
    }
}
