//! Links of a level, whatever generation wrote them.
//!
//! | stored as | a part is | its cells |
//! |---|---|---|
//! | 0.9 | an array for each offsets | an element for each chunk |
//! | up to 0.8.1, inside chunks | `links/<delta>` | one for each chunk |
//! | 0.8, between chunks | `cross_chunk_links/<delta>` | one for each tuple of chunks |
//! | 0.6, 0.7, between chunks | `cross_chunk_links/<delta>/data` | one table |

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
    array::{LinkFamily, LinkStore},
    grid::ChunkCoord,
    key::Key,
};

use crate::{
    cells::Cells,
    store::{Level, Store},
};

pub(crate) use open::open;
pub(crate) use read::each_link;
pub(crate) use records::{Record, each_record};

/// Links of one delta that are stored alike.
#[derive(Debug)]
pub(crate) struct LinkPart {
    /// The node that describes them.
    pub(crate) key: Key,
    /// The node with the policy.
    pub(crate) family_key: Key,
    pub(crate) family: LinkFamily,
    /// Whether all ends of every link are in one chunk of one level.
    pub(crate) is_inside: bool,
    /// The last name of the path, of 0.9.
    pub(crate) segment: Option<String>,
    pub(crate) cells: LinkCells,
    form: CellForm,
    ends: Ends,
}

/// Where the cells are.
#[derive(Debug)]
pub(crate) enum LinkCells {
    /// One for each chunk or tuple of chunks.
    Each(Cells),
    /// One array with everything.
    Table(Key),
}

/// How the payload of a cell is made up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CellForm {
    /// Rows.
    Flat(Dtype),
    /// Rows in groups.
    Groups(Dtype, RowForm),
    /// One permuted row a group.
    Records,
    /// Records with their chunks.
    Table,
    /// Rows of a padded array, and fill.
    Padded(Kind),
}

/// Which chunks the ends of a link are in.
#[derive(Debug)]
enum Ends {
    /// The cell's, and those at offsets from it.
    Offsets(Vec<Vec<i64>>, Vec<AxisScales>),
    /// The cell's for all.
    Same,
    /// Those that the key of the cell names, of so many numbers each.
    Keyed(usize),
    /// Those that each record names, of so many numbers.
    Named(usize),
}

/// The parts of one delta.
#[derive(Debug)]
pub(crate) struct LinkParts {
    /// The nodes with policies, and what they say.
    pub(crate) families: Vec<(Key, LinkFamily)>,
    pub(crate) parts: Vec<LinkPart>,
    /// Whether these are all there are: what cannot be opened was found.
    pub(crate) is_whole: bool,
}

impl LinkPart {
    /// Ends of a link.
    pub(crate) fn width(&self) -> LinkWidth {
        self.family.width
    }

    pub(crate) fn delta(&self) -> Delta {
        self.family.delta
    }

    /// Numbers in the key of a cell, of chunks with `arity`.
    pub(crate) fn key_arity(&self, arity: usize) -> usize {
        match self.ends {
            Ends::Keyed(arity) => arity.saturating_mul(self.width().get()),
            _ => arity,
        }
    }

    /// Whether rows start with an order.
    pub(crate) fn is_permuted(&self) -> bool {
        matches!(
            self.form,
            CellForm::Records | CellForm::Groups(_, RowForm::Permuted)
        )
    }

    /// Whether no other cell has copies of the links in this one that come first.
    pub(crate) fn leads(&self, cell: &ChunkCoord) -> bool {
        if self.family.store == LinkStore::Canonical || self.delta() != Delta::INTRA {
            return true;
        }
        let slots = self.slots(cell).unwrap_or_default();
        slots.iter().all(|chunk| slots.first() <= Some(chunk))
    }

    /// Whether a cell is of a tuple of chunks, or of all.
    pub(crate) fn is_between(&self) -> bool {
        matches!(self.ends, Ends::Keyed(_) | Ends::Named(_))
    }

    /// Whether only fragments of links tell how many rows are in use.
    pub(crate) fn is_padded(&self) -> bool {
        matches!(self.form, CellForm::Padded(_))
    }

    /// The chunk of each stored end of the links of a cell; `None` in tables, and
    /// where 64 bits do not hold them.
    pub(crate) fn slots(&self, cell: &ChunkCoord) -> Option<Vec<ChunkCoord>> {
        match &self.ends {
            Ends::Offsets(offsets, scales) => {
                let mut chunks = vec![cell.clone()];
                for offset in offsets {
                    let axes = cell.coords().iter().zip(offset).zip(scales);
                    let coords =
                        axes.map(|((source, offset), scale)| scale.resolve(*source, *offset));
                    chunks.push(ChunkCoord::new(coords.collect::<Option<Vec<i64>>>()?));
                }
                Some(chunks)
            }
            Ends::Same => Some(vec![cell.clone(); self.width().get()]),
            Ends::Keyed(arity) => {
                let chunks = cell.coords().chunks((*arity).max(1));
                Some(chunks.map(ChunkCoord::new).collect())
            }
            Ends::Named(_) => None,
        }
    }
}

/// Deltas there are at a level.
pub(crate) fn deltas(store: &Store, level: &Level) -> BTreeSet<Delta> {
    let links = store.names(level, "links");
    let crossing = store.names(level, "cross_chunk_links");
    let names = links.into_iter().chain(crossing);
    names.filter_map(|name| Delta::parse(name).ok()).collect()
}
