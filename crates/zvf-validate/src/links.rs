//! Links of a level, in the form of every generation.
//!
//! | stored as | a part is | its cells |
//! |---|---|---|
//! | 0.9 | an array per offset | one element per chunk |
//! | up to 0.8.1, inside chunks | `links/<delta>` | one per chunk |
//! | 0.8, between chunks | `cross_chunk_links/<delta>` | one per tuple of chunks |
//! | 0.6, 0.7, between chunks | `cross_chunk_links/<delta>/data` | one table |
//! | 0.8-padded, between chunks of paths | `cross_chunk_links` | the chunks of one array |

mod open;
mod read;
mod records;

use std::collections::BTreeSet;

use zvf_format::{
    links::{AxisScales, LinkWidth, RowForm},
    numeric::{Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::{LinkFamily, LinkStore, VertexNumbering, VertexPairs},
    fetch::{AnyArray, CellRef, CellRequest},
    grid::ChunkCoord,
    key::Key,
};

use crate::{
    chunked_part::ChunkedPart,
    store::{LevelNode, StoreMetadata},
};

pub(crate) use open::open;
pub(crate) use read::{each_link, each_link_except};
pub(crate) use records::{LinkRecord, each_record};

/// Links of one delta in one storage form.
#[derive(Debug)]
pub(crate) struct LinkPart {
    /// The node that describes the links.
    pub(crate) key: Key,
    /// The node with the policy.
    pub(crate) family_key: Key,
    pub(crate) family: LinkFamily,
    /// All ends of every link are in one chunk of one level.
    pub(crate) is_inside: bool,
    /// The last path segment, in 0.9.
    pub(crate) segment: Option<String>,
    pub(crate) cells: LinkStorage,
    form: LinkEncoding,
    ends: EndChunks,
}

/// Location of the cells.
#[derive(Debug)]
pub(crate) enum LinkStorage {
    /// One cell per chunk or tuple of chunks.
    Each(ChunkedPart),
    /// One array with all links.
    Table(Key),
    /// One numeric array of pairs of vertices.
    Pairs(AnyArray),
}

/// Encoding of the payload of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkEncoding {
    /// Rows.
    Flat(Dtype),
    /// Rows, or rows in groups if the cell starts with a header of groups, in a level without
    /// fragments of links.
    MaybeGroups,
    /// Rows in groups.
    Groups(Dtype, RowForm),
    /// One permuted row per group.
    Records,
    /// Records that name their chunks.
    Table,
    /// Rows of a padded array, followed by padding.
    Padded(Kind),
    /// Pairs of numbers of vertices.
    Pairs(VertexPairs),
}

/// Chunks that contain the ends of a link.
#[derive(Debug)]
enum EndChunks {
    /// The chunk of the cell, and chunks at offsets from it.
    Offsets(Vec<Vec<i64>>, Vec<AxisScales>),
    /// The chunk of the cell for all ends.
    Same,
    /// The chunks in the key of the cell, each with this number of coordinates.
    Keyed(usize),
    /// The chunks that each record names, each with this number of coordinates.
    Named(usize),
    /// The chunks of the vertices that each record numbers.
    Numbered(VertexNumbering),
}

/// The parts of one delta.
#[derive(Debug)]
pub(crate) struct LinkParts {
    /// The nodes with policies, and the policies.
    pub(crate) families: Vec<(Key, LinkFamily)>,
    pub(crate) parts: Vec<LinkPart>,
    /// All parts could be opened. Otherwise a fault is reported.
    pub(crate) is_whole: bool,
}

impl LinkPart {
    /// Returns the number of ends of a link.
    pub(crate) fn width(&self) -> LinkWidth {
        self.family.width
    }

    pub(crate) fn delta(&self) -> Delta {
        self.family.delta
    }

    /// Returns the number of coordinates in the key of a cell, if chunk keys have `arity`.
    pub(crate) fn key_arity(&self, arity: usize) -> usize {
        match self.ends {
            EndChunks::Keyed(arity) => arity.saturating_mul(self.width().get()),
            _ => arity,
        }
    }

    /// Returns whether rows start with the original order of their ends.
    pub(crate) fn is_permuted(&self) -> bool {
        matches!(
            self.form,
            LinkEncoding::Records | LinkEncoding::Groups(_, RowForm::Permuted)
        )
    }

    /// Returns whether this cell holds the first copies of its links. Copies in other cells are not
    /// counted as links.
    pub(crate) fn is_leading(&self, cell: &ChunkCoord) -> bool {
        if self.family.store == LinkStore::Canonical || self.delta() != Delta::INTRA {
            return true;
        }
        let slots = self.slots(cell).unwrap_or_default();
        slots.iter().all(|chunk| slots.first() <= Some(chunk))
    }

    /// Returns whether a cell belongs to a tuple of chunks or to all chunks.
    pub(crate) fn is_between(&self) -> bool {
        !matches!(self.ends, EndChunks::Offsets(..) | EndChunks::Same)
    }

    /// Returns whether only link fragments show the number of used rows.
    pub(crate) fn is_padded(&self) -> bool {
        matches!(self.form, LinkEncoding::Padded(_))
    }

    /// Returns the requests for the chunks of an array of pairs, with their numbers as coordinates.
    pub(crate) fn pair_requests(&self, array: &AnyArray) -> Vec<(ChunkCoord, CellRequest)> {
        let LinkEncoding::Pairs(pairs) = self.form else {
            return Vec::new();
        };
        let chunks = (0..pairs.chunks()).filter_map(|chunk| {
            let at = ChunkCoord::new([i64::try_from(chunk).ok()?]);
            let cell = CellRef::Element(array.clone(), vec![chunk, 0]);
            Some((at, CellRequest { cell, part: None }))
        });
        chunks.collect()
    }

    /// Returns the chunk of each stored end of the links in a cell. Returns `None` for tables, and
    /// for chunks beyond 64-bit coordinates.
    pub(crate) fn slots(&self, cell: &ChunkCoord) -> Option<Vec<ChunkCoord>> {
        match &self.ends {
            EndChunks::Offsets(offsets, scales) => {
                let mut chunks = vec![cell.clone()];
                for offset in offsets {
                    let axes = cell.coords().iter().zip(offset).zip(scales);
                    let coords =
                        axes.map(|((source, offset), scale)| scale.resolve(*source, *offset));
                    chunks.push(ChunkCoord::new(coords.collect::<Option<Vec<i64>>>()?));
                }
                Some(chunks)
            }
            EndChunks::Same => Some(vec![cell.clone(); self.width().get()]),
            EndChunks::Keyed(arity) => {
                let chunks = cell.coords().chunks((*arity).max(1));
                Some(chunks.map(ChunkCoord::new).collect())
            }
            EndChunks::Named(_) | EndChunks::Numbered(_) => None,
        }
    }
}

/// Returns the deltas of the links of a level.
pub(crate) fn deltas(store: &StoreMetadata, level: &LevelNode) -> BTreeSet<Delta> {
    let links = store.names(level, "links");
    let crossing = store.names(level, "cross_chunk_links");
    let names = links.into_iter().chain(crossing);
    let mut deltas: BTreeSet<Delta> = names.filter_map(|name| Delta::parse(name).ok()).collect();
    if open::pairs(store, level).is_some() {
        deltas.insert(Delta::INTRA);
    }
    deltas
}
