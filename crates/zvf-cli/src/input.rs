//! Geometry out of a file: what [`output`](crate::output) writes, and what people
//! have.
//!
//! The end of the file's name says which format. Of npz, all arrays are in the one
//! file; of csv, arrow and parquet, `NAME.csv` has a row a vertex, and links, objects
//! and groups are read from `NAME.links.csv`, `NAME.objects.csv` and `NAME.groups.csv`
//! where those are. So what `zvf query -o` wrote is read as it is.
//!
//! # Arrays of npz
//!
//! | array | shape | |
//! |---|---|---|
//! | `positions` | (vertices, axes) | |
//! | `object_ids` | (vertices,) | the object of each vertex |
//! | `part_offsets`, `part_objects` | (parts + 1,), (parts,) | of paths: where each starts, and its object |
//! | `links` | (links, ends) | rows of `positions` |
//! | `vertex.NAME`, `link.NAME`, `object.NAME` | a row each | attributes |
//! | `fragment.NAME` | a row a vertex or object | attributes of the pieces objects are stored in |
//! | `objects` | (objects,) | the ids that `object.NAME` has rows of |
//! | `group.NUMBER`, `group.NAME` | (members,) | ids of objects |
//! | `group_attribute.NAME` | a row for each number up to the greatest | attributes of groups |
//! | `….missing` | a bool a row | true where an attribute has no value |
//!
//! # Columns of tables
//!
//! Those of [`output`](crate::output). Axes are the columns x, y, z and w, those the
//! schema names, or those asked for. Of paths, rows one below the other that have one
//! `part` and one `object` (or `object_id`) are a path. A column of another name is an
//! attribute of that name.
//!
//! # What numbers become
//!
//! Arrays and columns keep their type. A column of csv is of bools, of int64 (uint64
//! where needed), of float64, of complex numbers or of text: the first that all its
//! fields are.

mod arrays;
mod assemble;
mod column;
#[cfg(feature = "arrow")]
mod columnar;
mod csv;
mod error;
mod given;
mod npy;
mod npz;
mod source;
mod stream;
mod table;

use std::{collections::BTreeMap, path::PathBuf};

use zvf::build::{Geometry, GeometryKind};

pub use column::{ColumnError, Gaps};
pub use csv::CsvError;
pub use error::ReadError;
pub use given::Given;
pub use npy::NpyError;
pub use source::{Source, SourceError};
pub(crate) use stream::Stream;

use crate::output::Format;

/// How a file is to be read.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reading {
    /// What its vertices are.
    pub kind: GeometryKind,
    /// The columns that are axes, when they have other names than usual.
    pub axes: Option<Vec<String>>,
    /// The table of links, when it is elsewhere.
    pub links: Option<Source>,
    /// What becomes of numbers that are missing.
    pub gaps: Gaps,
}

impl Reading {
    /// Of this kind, with nothing else said.
    pub fn new(kind: GeometryKind) -> Self {
        Self {
            kind,
            axes: None,
            links: None,
            gaps: Gaps::default(),
        }
    }
}

/// What was read.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Input {
    /// The geometry.
    pub geometry: Geometry,
    /// Groups that have a name rather than a number in the file: it is the group
    /// attribute `name` too.
    pub group_names: BTreeMap<u32, String>,
    /// What the file calls the axes, when it does.
    pub axes: Option<Vec<String>>,
    /// The files, the one asked for first.
    pub files: Vec<PathBuf>,
    /// What is stored otherwise than it came, a line each.
    pub notes: Vec<String>,
}

/// Reads a file, and what belongs to it beside it.
///
/// # Errors
///
/// [`ReadError`] names the file, and the line, column or array.
pub fn read(source: &Source, reading: &Reading) -> Result<Input, ReadError> {
    let arrays = match source.format() {
        Format::Npz => npz::read(source, reading)?,
        _ => table::read(source, reading)?,
    };
    assemble::input(arrays, reading)
}
