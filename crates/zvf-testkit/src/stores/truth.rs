//! Content of a generated store.

use std::ops::Range;

use zvf_format::numeric::Kind as Number;

use super::Recipe;

/// The content of a store independent of its chunks, which query results are compared with.
#[derive(Clone, Debug)]
pub struct ExpectedStore {
    /// Its recipe.
    pub recipe: Recipe,
    /// Names of the axes in space.
    pub axes: Vec<String>,
    /// Extent of a chunk.
    pub chunk_shape: Vec<f64>,
    /// Number of bins of a chunk along each axis.
    pub bins_per_chunk: Vec<u32>,
    /// The chunking attribute and its values.
    pub chunked_by: Option<(String, Vec<i64>)>,
    /// Ordered by chunk, then fragment, then within the fragment.
    pub vertices: Vec<Vertex>,
    /// Ordered by chunk and number.
    pub fragments: Vec<ExpectedFragment>,
    /// Ordered by row of the object index; `None` without one.
    pub objects: Option<Vec<Object>>,
    /// In input order. Links of lines and polylines are the steps between chunks.
    pub links: Vec<Link>,
    /// Numbers of [`links`](Self::links) that are stored, in the order of arrays, cells and rows. A
    /// link that is stored several times is at the position of the copy in its least chunk.
    pub link_order: Vec<usize>,
    /// By number, the members in stored order; `None` without groups.
    pub groups: Option<Vec<Vec<i64>>>,
    /// Rows are vertices.
    pub vertex_attributes: Vec<ExpectedAttribute>,
    /// Rows are fragments.
    pub fragment_attributes: Vec<ExpectedAttribute>,
    /// Rows are links; links that are not stored have no value.
    pub link_attributes: Vec<ExpectedAttribute>,
    /// Rows are objects.
    pub object_attributes: Vec<ExpectedAttribute>,
    /// Rows are groups.
    pub group_attributes: Vec<ExpectedAttribute>,
}

/// A vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct Vertex {
    /// Its stored position, promoted to float64.
    pub position: Vec<f64>,
    /// Its chunk.
    pub chunk: Vec<i64>,
    /// Its fragment, by index in [`ExpectedStore::fragments`].
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
    /// Its vertices, by index in [`ExpectedStore::vertices`].
    pub vertices: Range<usize>,
}

/// An object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Its id.
    pub id: i64,
    /// Its fragments, by index in [`ExpectedStore::fragments`].
    pub fragments: Vec<usize>,
}

/// A link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its ends in input order, by index in [`ExpectedStore::vertices`]: child and parent for
    /// skeletons.
    pub ends: Vec<usize>,
    /// `true` if it is stored, rather than implied by a fragment.
    pub stored: bool,
}

/// A named attribute.
#[derive(Clone, Debug, PartialEq)]
pub struct ExpectedAttribute {
    /// Its name.
    pub name: String,
    /// Its values.
    pub values: ExpectedValues,
    /// `true` for each row without a value.
    pub missing: Vec<bool>,
}

/// Values of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedValues {
    /// Numbers, row by row, little-endian.
    Numbers {
        /// Type of a number.
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
    /// Returns the vertices of an object in its order.
    pub fn vertices_of<'a>(&'a self, object: &'a Object) -> impl Iterator<Item = usize> + 'a {
        let fragments = object.fragments.iter();
        fragments.flat_map(|fragment| self.fragments[*fragment].vertices.clone())
    }

    /// Returns the chunks that have vertices, ascending.
    pub fn chunks(&self) -> Vec<&[i64]> {
        let mut chunks: Vec<&[i64]> = self.vertices.iter().map(|v| v.chunk.as_slice()).collect();
        chunks.dedup();
        chunks
    }
}

impl ExpectedAttribute {
    /// Returns the bytes of one row of numbers.
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
