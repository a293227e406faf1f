//! The file formats by name.

use std::{fmt, path::Path};

use crate::FileFormat;
use serde_json::Value;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// Comma-separated text, one line per row.
    Csv,
    /// A zip file of NumPy arrays.
    Npz,
    /// Arrow's IPC file format.
    Arrow,
    /// Parquet.
    Parquet,
    /// Stanford's polygon format, binary.
    Ply,
    /// Wavefront's text format.
    Obj,
    /// A format of `zvf-files`.
    Field(FileFormat),
}

impl Format {
    /// All formats except those of `zvf-files`.
    pub const ALL: [Self; 6] = [
        Self::Csv,
        Self::Npz,
        Self::Arrow,
        Self::Parquet,
        Self::Ply,
        Self::Obj,
    ];

    /// Returns the format that the extension of `path` names.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let extension = path.extension()?;
        let mut formats = Self::ALL.into_iter();
        let found = formats.find(|format| extension.eq_ignore_ascii_case(format.extension()));
        found.or_else(|| FileFormat::of_path(path).map(Self::Field))
    }

    /// Returns the extension of file names.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Npz => "npz",
            Self::Arrow => "arrow",
            Self::Parquet => "parquet",
            Self::Ply => "ply",
            Self::Obj => "obj",
            Self::Field(format) => format.extension(),
        }
    }

    /// Returns whether this build supports the format.
    pub fn is_built(self) -> bool {
        match self {
            Self::Arrow => cfg!(feature = "arrow"),
            Self::Parquet => cfg!(feature = "parquet"),
            Self::Field(format) => format.is_built(),
            Self::Csv | Self::Npz | Self::Ply | Self::Obj => true,
        }
    }

    /// Returns whether the format holds everything that a query returns.
    pub fn is_interchange(self) -> bool {
        !matches!(self, Self::Ply | Self::Obj | Self::Field(_))
    }

    /// Returns the line that reports that the format does not hold a coordinate reference system.
    /// Frames that formats imply, as that of tractograms, are no loss.
    pub(crate) fn crs_left_out(self, crs: Option<&Value>) -> Option<String> {
        let is_held = matches!(
            self,
            Self::Field(FileFormat::Las | FileFormat::Laz | FileFormat::GeoParquet)
        );
        let crs = crs.filter(|crs| crs.get("frame").is_none())?;
        let is_lost = !self.is_interchange() && !is_held && !crs.is_null();
        is_lost.then(|| format!("coordinate reference system: not supported by {self}"))
    }

    /// Returns whether files of the format are written in batches.
    pub fn is_in_batches(self) -> bool {
        matches!(self, Self::Ply | Self::Field(_))
    }

    /// Returns whether the format holds a header of the store.
    pub fn has_header(self) -> bool {
        self == Self::Ply || self.is_readable()
    }

    /// Returns whether geometry can be read from the format.
    pub fn is_readable(self) -> bool {
        match self {
            Self::Ply | Self::Obj => false,
            Self::Field(format) => format.is_readable(),
            _ => true,
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.extension())
    }
}
