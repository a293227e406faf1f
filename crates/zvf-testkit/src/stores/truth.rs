//! What is in a store that was made.

use std::ops::Range;

use zvf_format::numeric::Kind as Number;

use super::Recipe;

/// All that a store holds, without chunks: what queries are asked against.
#[derive(Clone, Debug)]
pub struct ExpectedStore {
    /// What it was made of.
    pub recipe: Recipe,
    /// Names of the axes in space.
    pub axes: Vec<String>,
    /// Extent of a chunk.
    pub chunk_shape: Vec<f64>,
    /// How many bins a chunk has along each axis.
    pub bins_per_chunk: Vec<u32>,
    /// The attribute that chunks are divided by, and its values.
    pub chunked_by: Option<(String, Vec<i64>)>,
    /// By chunk, then fragment, then as the fragment has them.
    pub vertices: Vec<Vertex>,
    /// By chunk and number.
    pub fragments: Vec<ExpectedFragment>,
    /// By row of the object index; `None` without one.
    pub objects: Option<Vec<Object>>,
    /// In the order they were given. Those of lines and polylines are their
    /// steps from one chunk to another.
    pub links: Vec<Link>,
    /// Numbers of [`links`](Self::links) that are stored, in the order of arrays,
    /// cells and rows. A link that is stored more than once is where its least
    /// chunk leads.
    pub link_order: Vec<usize>,
    /// By number, the members in stored order; `None` without groups.
    pub groups: Option<Vec<Vec<i64>>>,
    /// Rows are vertices.
    pub vertex_attributes: Vec<ExpectedAttribute>,
    /// Rows are fragments.
    pub fragment_attributes: Vec<ExpectedAttribute>,
    /// Rows are links; those that are not stored have no value.
    pub link_attributes: Vec<ExpectedAttribute>,
    /// Rows are objects.
    pub object_attributes: Vec<ExpectedAttribute>,
    /// Rows are groups.
    pub group_attributes: Vec<ExpectedAttribute>,
}

/// A vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct Vertex {
    /// Its position, as stored but promoted to float64.
    pub position: Vec<f64>,
    /// Its chunk.
    pub chunk: Vec<i64>,
    /// Its fragment, by its place in [`ExpectedStore::fragments`].
    pub fragment: usize,
    /// Its row in the cell.
    pub row: u64,
    /// The object it belongs to.
    pub object: Option<i64>,
}

/// A fragment of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectedFragment {
    /// The chunk.
    pub chunk: Vec<i64>,
    /// Its number in the chunk.
    pub number: u32,
    /// Its vertices, by their places in [`ExpectedStore::vertices`].
    pub vertices: Range<usize>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its id.
    pub id: i64,
    /// What it consists of, by places in [`ExpectedStore::fragments`].
    pub fragments: Vec<usize>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its ends, by their places in [`ExpectedStore::vertices`], as given: of skeletons
    /// child and parent.
    pub ends: Vec<usize>,
    /// Whether it is stored, rather than implied by a fragment.
    pub stored: bool,
}

/// A named attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedAttribute {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: ExpectedValues,
    /// For each row whether it has no value.
    pub missing: Vec<bool>,
}

/// Values of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedValues {
    /// Numbers, row by row, little-endian.
    Numbers {
        /// What a number is.
        kind: Number,
        /// Numbers of a row.
        columns: u32,
        /// Their bytes.
        bytes: Vec<u8>,
    },
    /// Words of a dictionary by their numbers.
    Words {
        /// One for each row.
        codes: Vec<u32>,
        /// The dictionary, ascending.
        words: Vec<String>,
    },
}

impl ExpectedStore {
    /// The vertices of an object in its order.
    pub fn vertices_of<'a>(&'a self, object: &'a Object) -> impl Iterator<Item = usize> + 'a {
        let fragments = object.fragments.iter();
        fragments.flat_map(|fragment| self.fragments[*fragment].vertices.clone())
    }

    /// The chunks that have vertices, ascending.
    pub fn chunks(&self) -> Vec<&[i64]> {
        let mut chunks: Vec<&[i64]> = self.vertices.iter().map(|v| v.chunk.as_slice()).collect();
        chunks.dedup();
        chunks
    }
}

impl ExpectedAttribute {
    /// The bytes of one row of numbers.
    pub fn row(&self, row: usize) -> &[u8] {
        match &self.values {
            ExpectedValues::Numbers {
                kind,
                columns,
                bytes,
            } => {
                let size = kind.size() * usize::try_from(*columns).unwrap_or(0);
                &bytes[row * size..(row + 1) * size]
            }
            ExpectedValues::Words { .. } => &[],
        }
    }
}
