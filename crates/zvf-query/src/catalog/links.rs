//! Links of a level, whatever generation wrote them.
//!
//! | stored as | a cell is | its chunks |
//! |---|---|---|
//! | 0.9: an array for each offsets | an element | the element's chunk, and its anchor plus each offset |
//! | 0.8: links inside chunks, an array for each tuple of chunks | an array | the chunk; the cell key |
//! | 0.6, 0.7: links inside chunks, one table | an array; the table | the chunk; in the records |
//!
//! A [`LinkSet`] is all cells there are of one delta, known without reading one.
//! Its cells are in the order in which the format enumerates them: links of 0.9 by
//! array and cell, both as text; of older generations those inside chunks, by
//! chunk, before the others, which come by cell key as text. Rows inside a cell
//! are as stored.
//!
//! Records come in the order their ends were given when they were written.
//! Whether the rows they name are there, whoever has the vertices sees.

mod cells;
mod decode;
mod legacy;
mod open;
mod read;
mod stored;
#[cfg(test)]
mod tests;
mod unlisted;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
};

use futures_util::future::try_join;
use zvf_format::{
    links::{LinkWidth, RowForm},
    numeric::{Dtype, Kind},
    path::Delta,
};
use zvf_model::{
    array::CellAttribute,
    generation::Generation,
    grid::ChunkCoord,
    key::Key,
    layout::{CrossChunkForm, LinkForm},
    root::{GeometryKind, LinksConvention},
};

use crate::{
    catalog::cell_rows::CellRows,
    catalog::chunked_array::{ChunkedArray, child},
    catalog::level::{Level, Session},
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
};

pub use cells::{CellLinks, LinkBlobs, LinkCells};
pub use stored::{StoredLinkFamily, StoredLinks};

/// Which records of a family are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkView {
    /// Each link once, with known defects of writers undone.
    Logical,
    /// Every row as it is stored, all copies of a link included.
    Stored,
}

/// The links inside a level, with the attributes last requested.
#[derive(Debug, Default)]
pub(crate) struct LinkSetCache(pub(crate) Mutex<Option<CachedLinks>>);

/// Names of attributes and the links opened with them; `None` for a level without links.
pub(crate) type CachedLinks = (Vec<String>, Option<Arc<LinkSet>>);

/// All links of one delta: where they are, without the records.
#[derive(Debug)]
pub(crate) struct LinkSet {
    /// Level of the other ends minus that of end 0.
    pub(crate) delta: Delta,
    /// The attributes asked for, in their order.
    pub(crate) attributes: Vec<LinkAttribute>,
    /// Whether rows in crossing records are those of vertices. Writers of paths
    /// left others.
    pub(crate) rows_are_known: bool,
    /// Whether rows of links are wrong where a chunk has several fragments:
    /// writers regrouped the vertices and left the links as they were.
    pub(crate) may_be_shuffled: bool,
    /// In the order of the format.
    pub(crate) cells: Vec<LinkCell>,
    sources: Vec<LinkSource>,
}

/// An attribute of links.
#[derive(Clone, Debug)]
pub(crate) struct LinkAttribute {
    pub(crate) name: String,
    /// What its values are; `None` where no link has one.
    pub(crate) metadata: Option<Arc<CellAttribute>>,
}

/// One cell of a set.
#[derive(Clone, Debug)]
pub(crate) struct LinkCell {
    /// The chunk of each end in stored order; for a delta that is not 0, one of
    /// the stored ends is in the level, the others in its target. `None` for a
    /// table, whose records name their chunks.
    pub(crate) chunks: Option<Vec<ChunkCoord>>,
    /// Whether all ends are in one chunk of one level.
    pub(crate) is_inside: bool,
    /// Which source.
    source: usize,
    /// Its place there: the chunk, or all numbers of a cell key.
    at: ChunkCoord,
}

/// Links of a cell, each end in the place it was given when it was written.
#[derive(Clone, Debug)]
pub(crate) struct LinkRecords {
    /// The node that describes them.
    pub(crate) node: Key,
    /// Ends of a record.
    pub(crate) width: usize,
    /// Chunks that ends are in.
    pub(crate) chunks: Vec<ChunkCoord>,
    /// For each end a number in `chunks`, and a row. For a delta that is not 0,
    /// end 0 is in a chunk of the level, the others are in chunks of its target.
    pub(crate) ends: Vec<(u32, u64)>,
    /// For each attribute a row for each record; `None` where there are no
    /// values.
    pub(crate) attributes: Vec<Option<CellRows>>,
    /// Whether there are records that could not be read: any ends they have are
    /// in `chunks`, anywhere when that is empty.
    pub(crate) is_lost: bool,
}

impl LinkRecords {
    /// The chunk of an end.
    pub(crate) fn chunk_of(&self, end: (u32, u64)) -> Option<&ChunkCoord> {
        self.chunks.get(usize::try_from(end.0).ok()?)
    }

    /// Number of records.
    pub(crate) fn len(&self) -> usize {
        self.ends.len().checked_div(self.width).unwrap_or(0)
    }

    /// Bytes held.
    pub(crate) fn size(&self) -> u64 {
        let ends = size_of_val(self.ends.as_slice());
        let values = self.attributes.iter().flatten();
        let values = values.map(|values| values.bytes.len()).sum::<usize>();
        u64::try_from(ends.saturating_add(values)).unwrap_or(u64::MAX)
    }
}

/// Cells that are stored alike.
#[derive(Debug)]
struct LinkSource {
    /// The node that describes them.
    node: Key,
    /// The node that describes all of the family.
    family_node: Key,
    cells: LinkStorage,
    form: LinkCellForm,
    width: LinkWidth,
    directed: bool,
    /// Whether ends are to be turned round.
    is_reversed: bool,
    /// Which family of the delta: arrays of 0.9 are all of one.
    family: usize,
    /// Records that the family says its cells have, when it does.
    records: Option<u64>,
    /// As in the set.
    attributes: Vec<Option<AttributeCells>>,
}

#[derive(Debug)]
enum LinkStorage {
    Each(Arc<ChunkedArray>),
    /// The array of a table, which may be missing where there are no records.
    Table(Key, bool),
}

/// Values of an attribute for the cells of a source.
#[derive(Debug)]
struct AttributeCells {
    metadata: Arc<CellAttribute>,
    cells: LinkStorage,
}

/// How the payload of a cell is made up.
#[derive(Debug)]
enum LinkCellForm {
    /// Rows.
    Flat(Dtype),
    /// Rows in groups.
    Groups(Dtype, RowForm),
    /// One permuted row a group.
    Records,
    /// Records with chunk coordinates of so many numbers.
    Table(usize),
    /// Rows of a padded array, and fill.
    Padded(Kind),
}

impl LinkSet {
    /// Ends of a link.
    pub(crate) fn width(&self) -> Result<Option<LinkWidth>, Damage> {
        let mut sources = self.sources.iter();
        let Some(first) = sources.next() else {
            return Ok(None);
        };
        match sources.find(|source| source.width != first.width) {
            None => Ok(Some(first.width)),
            Some(other) => {
                let (found, expected) = (other.width.get(), first.width.get());
                Err(Damage::new(&other.node, Fault::Width { found, expected }))
            }
        }
    }

    /// Compares how many records all cells were found to have with what is
    /// declared, which alone tells a cell that was cut between two records.
    pub(crate) fn note_counts(&self, read: &[LinkRecords], diagnostics: &Diagnostics) {
        let mut families = BTreeMap::new();
        for source in &self.sources {
            families.entry(source.family).or_insert((source, 0_u64));
        }
        for (cell, records) in self.cells.iter().zip(read) {
            let source = self.sources.get(cell.source);
            let family = source.and_then(|source| families.get_mut(&source.family));
            if let Some((_, held)) = family {
                *held = held.saturating_add(u64::try_from(records.len()).unwrap_or(u64::MAX));
            }
        }
        for (source, held) in families.into_values() {
            let declared = source.records.unwrap_or(held);
            if declared != held {
                diagnostics.note(format!(
                    "{}: {held} links, where {declared} are declared",
                    source.family_node
                ));
            }
        }
    }

    /// Writes down that links in chunks of several fragments may be wrong. For
    /// whoever maps records and knows the fragments.
    pub(crate) fn note_fragments(
        &self,
        chunk: &ChunkCoord,
        fragments: u32,
        diagnostics: &Diagnostics,
    ) {
        if self.may_be_shuffled && fragments > 1 {
            diagnostics.note(format!(
                "chunk {chunk} has several fragments: links written up to 0.8.0 may name \
                 other vertices there"
            ));
        }
    }
}

impl Session<'_> {
    /// Deltas there are at a level, ascending. One round trip when nothing of it
    /// is known; without a listing, the deltas to all levels the root names are
    /// tried.
    pub(crate) async fn link_deltas(&self, level: &Level) -> Result<Vec<Delta>, QueryError> {
        let node = Self::node_of(level)?;
        let (links, crossing) = (child(&node, "links")?, child(&node, "cross_chunk_links")?);
        let old = self.layout.cross_chunk != CrossChunkForm::Links;
        let crossing = async {
            if old {
                return self.children(level, &crossing).await;
            }
            Ok(Arc::default())
        };
        let listed = try_join(self.children(level, &links), crossing).await;
        let (links, crossing) = match listed {
            Err(error) if unlisted::is_unlistable(&error) => {
                return self.probe_deltas(level, old).await;
            }
            listed => listed?,
        };
        let names = links.iter().chain(crossing.iter());
        let deltas: BTreeSet<Delta> = names.filter_map(|name| Delta::parse(name).ok()).collect();
        Ok(deltas.into_iter().collect())
    }

    /// Where all links of a delta are, inside chunks and between; `None` when
    /// there are none. `target` is the level at the other ends.
    ///
    /// Two round trips when nothing of it is open yet: node and listing of the
    /// family, then its arrays and attributes.
    pub(crate) async fn links(
        &self,
        level: &Level,
        target: Option<&Level>,
        delta: Delta,
        attributes: &[String],
        view: LinkView,
        diagnostics: &Diagnostics,
    ) -> Result<Option<LinkSet>, QueryError> {
        let opened = match self.layout.links {
            LinkForm::PerOffsets => {
                let arrays = self.link_arrays(level, target, delta, attributes, view);
                let old = self.has_legacy_links(level.id(), delta);
                let (arrays, has_old) = try_join(arrays, old).await?;
                if has_old {
                    return Err(QueryError::LegacyLinks(Self::node_of(level)?));
                }
                arrays
            }
            LinkForm::PerDelta => self.legacy_links(level, delta, attributes, view).await?,
        };
        if opened.sources.is_empty() {
            return Ok(None);
        }
        self.link_set(delta, attributes, opened, diagnostics)
            .map(Some)
    }

    fn link_set(
        &self,
        delta: Delta,
        names: &[String],
        opened: OpenedLinks,
        diagnostics: &Diagnostics,
    ) -> Result<LinkSet, QueryError> {
        let OpenedLinks { sources, cells } = opened;
        let mut attributes = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            attributes.push(attribute(&sources, &cells, at, name, diagnostics)?);
        }
        let crossing = cells.iter().any(|cell| !cell.is_inside);
        let rows_are_known = delta != Delta::INTRA || !crossing || self.crossing_rows_are_known();
        if !rows_are_known {
            diagnostics.note(
                "rows in links between chunks are not those of vertices, as always where this \
                 kind of store was written",
            );
        }
        if sources.iter().any(|source| source.is_reversed) {
            diagnostics.note(
                "links between chunks name the parent first where links inside chunks name the \
                 child first: they were turned round",
            );
        }
        Ok(LinkSet {
            delta,
            attributes,
            rows_are_known,
            may_be_shuffled: delta == Delta::INTRA && self.links_may_be_shuffled(),
            cells,
            sources,
        })
    }

    /// Not in paths of 0.6 and 0.7, nor in lines of any generation.
    fn crossing_rows_are_known(&self) -> bool {
        let old = matches!(self.layout.generation, Generation::V0_6 | Generation::V0_7);
        let convention = self.root.links_convention.clone().unwrap_or_default();
        let is_wrong = |kind: &GeometryKind| match kind {
            GeometryKind::Line => true,
            GeometryKind::Polyline | GeometryKind::Streamline => old,
            _ => false,
        };
        convention != LinksConvention::ImplicitSequential
            || !self.root.geometry_kinds.iter().any(is_wrong)
    }

    fn links_may_be_shuffled(&self) -> bool {
        let old = matches!(
            self.layout.generation,
            Generation::V0_6 | Generation::V0_7 | Generation::V0_8_0
        );
        let kinds = &self.root.geometry_kinds;
        let regrouped =
            |kind: &GeometryKind| matches!(kind, GeometryKind::Graph | GeometryKind::Skeleton);
        old && kinds.iter().any(regrouped)
    }
}

/// Sources and cells of a set.
#[derive(Debug, Default)]
struct OpenedLinks {
    sources: Vec<LinkSource>,
    cells: Vec<LinkCell>,
}

/// What an attribute is: the same in all sources that have it.
fn attribute(
    sources: &[LinkSource],
    cells: &[LinkCell],
    at: usize,
    name: &str,
    diagnostics: &Diagnostics,
) -> Result<LinkAttribute, QueryError> {
    let mut metadata: Option<&Arc<CellAttribute>> = None;
    let mut is_partial = false;
    for (number, source) in sources.iter().enumerate() {
        let Some(Some(values)) = source.attributes.get(at) else {
            is_partial |= cells.iter().any(|cell| cell.source == number);
            continue;
        };
        let first = *metadata.get_or_insert(&values.metadata);
        let same =
            first.dtype == values.metadata.dtype && first.dictionary == values.metadata.dictionary;
        if !same {
            let node = match &values.cells {
                LinkStorage::Each(family) => &family.node,
                LinkStorage::Table(key, _) => key,
            };
            return Err(Damage::new(node, Fault::Values).into());
        }
    }
    if is_partial && metadata.is_some() {
        diagnostics.note(format!("some links have no value of {name}"));
    }
    Ok(LinkAttribute {
        name: name.to_owned(),
        metadata: metadata.cloned(),
    })
}
