//! Tables: columns, the arrays that they form, and the geometry of the arrays. The formats of tables
//! are modules beside this one.

pub(crate) mod arrays;
pub(crate) mod column;
pub(crate) mod consistency;
pub(crate) mod contained;
pub(crate) mod input_file;
pub(crate) mod input_table;
pub(crate) mod output_file;
pub(crate) mod output_table;
pub(crate) mod rename;
pub(crate) mod staged;

use std::{collections::BTreeMap, path::PathBuf};

use zvf::{GeometryBuilder, GeometryKind, LevelUse, QueryResult, Scope};

pub use crate::table_error::{ColumnError, CsvError, NpyReadError};
pub use column::MissingPolicy;
pub use input_file::{InputFile, InputFileError};
pub use output_file::{Cancellation, OutputFile, OutputFileError};
pub use output_table::{OutputColumn, OutputTable};

use crate::{AttributeRename, FileFormat, StoreDescription};
use column::NullPolicy;

/// Options for reading a file of geometry.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct GeometryReadOptions {
    /// Kind of the geometry.
    pub kind: GeometryKind,
    /// Columns that are axes, if they differ from x, y, z and w.
    pub axes: Option<Vec<String>>,
    /// Table of links, if it is not beside the file.
    pub links: Option<InputFile>,
    /// Treatment of missing numbers.
    pub missing: MissingPolicy,
    /// New names for attributes.
    pub renames: Vec<AttributeRename>,
    /// Treatment of row ids.
    pub row_ids: RowIdPolicy,
    /// Attributes of fragments that differ within an object have a value for each fragment, which all of
    /// its vertices have; otherwise they become attributes of vertices.
    pub fragment_rows: bool,
    /// Maximum size in bytes of an Arrow or Parquet table in memory. Such a file may be much smaller
    /// than the table.
    pub memory: Option<u64>,
}

/// Treatment of the addresses of vertices in a file, which belong to one transaction of one store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowIdPolicy {
    /// Leave them out, with a note.
    #[default]
    LeaveOut,
    /// Read them.
    Read,
}

impl GeometryReadOptions {
    /// Creates the default options for geometry of `kind`.
    pub fn new(kind: GeometryKind) -> Self {
        Self {
            kind,
            axes: None,
            links: None,
            missing: MissingPolicy::default(),
            renames: Vec::new(),
            row_ids: RowIdPolicy::default(),
            fragment_rows: false,
            memory: None,
        }
    }
}

/// Options for reading one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableReadOptions {
    pub(crate) nulls: NullPolicy,
    #[cfg_attr(
        not(feature = "arrow"),
        expect(dead_code, reason = "only tables of Arrow are limited")
    )]
    pub(crate) memory: Option<u64>,
}

/// Geometry read from a file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GeometryInput {
    /// The geometry, whose columns may disagree.
    pub geometry: GeometryBuilder,
    /// Names of the groups that the file identifies by name; also the group attribute `name`.
    pub group_names: BTreeMap<u32, String>,
    /// Names of the axes, if the file has them.
    pub axes: Option<Vec<String>>,
    /// Coordinate reference system, if the file has one.
    pub crs: Option<serde_json::Value>,
    /// Address of each vertex in the store that the file comes from, if they were requested.
    pub row_ids: Option<Vec<u64>>,
    /// True if the file has no ids of objects, so that its reader numbered them from 0.
    pub numbers_objects: bool,
    /// Description of the store that the file comes from; empty if the file has none.
    pub description: StoreDescription,
    /// Files read, the requested one first.
    pub files: Vec<PathBuf>,
    /// Differences between the file and the geometry, one line each.
    pub notes: Vec<String>,
}

impl GeometryInput {
    /// Creates geometry with the description of the store that its file describes.
    pub fn new(geometry: GeometryBuilder, description: StoreDescription) -> Self {
        Self {
            geometry,
            group_names: BTreeMap::new(),
            axes: description.axis_names(),
            crs: description.crs.clone(),
            row_ids: None,
            numbers_objects: false,
            description,
            files: Vec::new(),
            notes: Vec::new(),
        }
    }
}

/// Files written by [`write()`](crate::write()).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenFiles {
    /// Paths, the requested one first.
    pub files: Vec<PathBuf>,
    /// Columns that the format cannot hold, one line each.
    pub left_out: Vec<String>,
    /// Remarks for readers of the files, one line each.
    pub notes: Vec<String>,
    /// Files that a result of this format may have and this one does not.
    pub absent: Vec<PathBuf>,
}

/// Returns whether the name of a column says what it is an attribute of, as `vertex.fa` does.
pub(crate) fn has_scope(name: &str) -> bool {
    let scope = name.split_once('.').map(|(scope, _)| scope);
    scope.is_some_and(|scope| Scope::parse(scope).is_some() || scope == "group_attribute")
}

/// Returns the level of a result, or all its levels in the order of their rows.
pub(crate) fn level_names(result: &QueryResult) -> String {
    match result.levels.as_slice() {
        [] => result.level.to_string(),
        levels => level_list(levels),
    }
}

/// Returns the levels of a result in the order of their rows, as text.
pub fn level_list(levels: &[LevelUse]) -> String {
    let mut levels: Vec<_> = levels.iter().map(|used| used.level).collect();
    // A level may be read in one region, and sampled in another.
    levels.dedup();
    let levels = levels.iter().map(ToString::to_string);
    levels.collect::<Vec<_>>().join(",")
}

/// Lists the object attributes and groups of a result, which rendering formats cannot hold.
pub fn object_data_left_out(
    result: &QueryResult,
    format: FileFormat,
) -> impl Iterator<Item = String> + '_ {
    let attributes = result
        .object
        .iter()
        .map(move |column| format!("object.{}: not supported by {format}", column.name));
    let groups = result.groups.iter();
    attributes
        .chain(groups.map(move |group| format!("group.{}: not supported by {format}", group.id)))
}
