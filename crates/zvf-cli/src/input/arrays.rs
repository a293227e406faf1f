//! What a file of any format comes down to: the interchange arrays.

use std::{path::PathBuf, sync::Arc};

use zvf::build::Numbers;

use super::{ReadError, column::Column, column::Named};

/// Arrays by their meaning; whether they fit together is seen later.
#[derive(Debug)]
pub(super) struct Arrays {
    pub(super) files: Vec<PathBuf>,
    pub(super) axes: Option<Vec<String>>,
    pub(super) positions: Numbers,
    pub(super) object_ids: Option<Vec<i64>>,
    pub(super) part_offsets: Option<Vec<u64>>,
    pub(super) part_objects: Option<Vec<i64>>,
    pub(super) links: Option<Links>,
    pub(super) objects: Option<Vec<i64>>,
    pub(super) vertex: Vec<Named>,
    pub(super) link: Vec<Named>,
    pub(super) object: Vec<Named>,
    /// A row a vertex or a row an object.
    pub(super) fragment: Vec<Named>,
    pub(super) groups: Vec<Group>,
    pub(super) group: Vec<Named>,
}

/// Links, some ends each.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) width: usize,
    pub(super) ends: Vec<i64>,
}

/// Members of a group, by its name or number.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) members: Vec<i64>,
    /// Where it is said.
    pub(super) column: Arc<Column>,
}

impl Arrays {
    pub(super) fn new(positions: Numbers) -> Self {
        Self {
            files: Vec::new(),
            axes: None,
            positions,
            object_ids: None,
            part_offsets: None,
            part_objects: None,
            links: None,
            objects: None,
            vertex: Vec::new(),
            link: Vec::new(),
            object: Vec::new(),
            fragment: Vec::new(),
            groups: Vec::new(),
            group: Vec::new(),
        }
    }
}

impl Links {
    /// A row a link.
    pub(super) fn of(column: &Column) -> Result<Self, ReadError> {
        Ok(Self {
            width: column.numbers()?.columns,
            ends: column.integers()?,
        })
    }
}
