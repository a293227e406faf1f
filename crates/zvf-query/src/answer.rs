//! What a query found.

use std::sync::Arc;

use zvf_format::numeric::{ByteOrder, Dtype, Kind, NumericRows};
use zvf_model::{key::Key, level::LevelId};

/// No object: in [`Answer::object_ids`], of a vertex that none has.
pub const NO_OBJECT: i64 = -1;
/// Of a vertex that several objects have.
pub const SEVERAL_OBJECTS: i64 = -2;

/// What a query found, as columns. Rows are in a stated order that does not
/// depend on how things were read:
///
/// * vertices of paths in the order of the paths, those in the order of objects;
/// * other vertices by chunk, in ascending order of its coordinates, then by
///   fragment, then as the fragment has them;
/// * links by array, cell and row as stored, those implied by fragments first.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// The level.
    pub level: LevelId,
    /// Names of the axes.
    pub axes: Vec<String>,
    /// Vertices: a row of coordinates each.
    pub positions: Rows,
    /// The object of each vertex; `None` when the store has no objects or they
    /// were not asked for, and for paths, which have [`parts`](Self::parts).
    pub object_ids: Option<Vec<i64>>,
    /// How vertices make paths; `None` for other geometry.
    pub parts: Option<Parts>,
    /// How vertices are linked; `None` for points and paths.
    pub links: Option<Links>,
    /// Attributes of vertices: as many rows as there are vertices.
    pub vertex: Vec<Column>,
    /// Attributes of the fragment of each vertex: likewise.
    pub fragment: Vec<Column>,
    /// Attributes of links: as many rows as there are links.
    pub link: Vec<Column>,
    /// Objects that have something in the answer, ascending, or as asked for.
    pub objects: Vec<i64>,
    /// Attributes of objects: as many rows as there are `objects`.
    pub object: Vec<Column>,
    /// The groups that were asked for.
    pub groups: Vec<Group>,
    /// What could not be read. Empty unless the query keeps going.
    pub missing: Vec<Missing>,
    /// Known defects of the store that the answer got around.
    pub notes: Vec<String>,
}

/// Rows of numbers, little-endian.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    /// What a number is.
    pub kind: Kind,
    /// Numbers of a row, at least one.
    pub columns: u32,
    /// The numbers, row by row.
    pub bytes: Vec<u8>,
}

impl Default for Rows {
    fn default() -> Self {
        Self::new(Kind::Float32, 1)
    }
}

impl Rows {
    /// No rows.
    pub fn new(kind: Kind, columns: u32) -> Self {
        let columns = columns.max(1);
        let bytes = Vec::new();
        Self {
            kind,
            columns,
            bytes,
        }
    }

    /// Bytes of a row.
    pub fn row_size(&self) -> usize {
        let columns = usize::try_from(self.columns).unwrap_or(usize::MAX);
        self.kind.size().saturating_mul(columns)
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.bytes.len().checked_div(self.row_size()).unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The rows as numbers.
    pub fn view(&self) -> Option<NumericRows<'_>> {
        let dtype = Dtype::new(self.kind, ByteOrder::Little);
        NumericRows::parse(&self.bytes, dtype, self.columns.try_into().ok()?).ok()
    }
}

/// Paths: runs of rows of [`Answer::positions`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Part p is rows `offsets[p]..offsets[p + 1]`; one more than there are
    /// parts.
    pub offsets: Vec<u64>,
    /// The object of each part.
    pub objects: Vec<i64>,
}

/// Edges or faces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    /// Ends of each.
    pub width: u32,
    /// Rows of [`Answer::positions`], in the order the ends were given when
    /// they were written: of skeletons child and parent, of faces the winding.
    pub ends: Vec<u64>,
}

impl Links {
    /// Number of links.
    pub fn len(&self) -> usize {
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        self.ends.len().checked_div(width).unwrap_or(0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// A named attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: Values,
    /// Rows that have no value, one bool each; `None` when all have one. What
    /// stands in the values there has no meaning.
    pub missing: Option<Vec<bool>>,
}

/// Values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Numbers, one or more a row.
    Numbers(Rows),
    /// Words of a dictionary, by their numbers.
    Words {
        /// For each row the number of its word.
        codes: Vec<u32>,
        /// The words.
        words: Arc<[String]>,
    },
}

impl Values {
    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Self::Numbers(rows) => rows.len(),
            Self::Words { codes, .. } => codes.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Column {
    /// Whether a row has no value.
    pub fn is_missing(&self, row: usize) -> bool {
        let missing = self.missing.as_ref().and_then(|rows| rows.get(row));
        missing.copied().unwrap_or(false)
    }
}

/// A group of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its number.
    pub id: u64,
    /// Its members, as stored.
    pub members: Vec<i64>,
}

/// Something that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Where it is.
    pub key: Key,
    /// What is wrong with it.
    pub reason: String,
}
