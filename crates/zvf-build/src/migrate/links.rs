//! Placement of links in the arrays of the target.

use std::collections::{BTreeMap, HashMap};

use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexBuilder, FragmentIndexError},
    links::{AxisScales, LinkRowsBuilder, LinkWidth, Permutation, RowForm, duplicates},
    numeric::Dtype,
    path::{Delta, OffsetCoords},
    ragged::{self, RaggedBlob, RaggedError},
};

use zvf_model::{
    array::{
        CellAttribute, CellAttributeRole, LinkArray, LinkAttributeFamily, LinkFamily,
        LinkFamilyForm, LinkStore, overlaid,
    },
    key::Key,
    layout::{AddressError, ArrayRole, LevelKeys, LinkOffsets},
    level::LevelId,
    metadata::Attributes,
};

use super::{
    MigrationTarget,
    implied_links::{ImpliedLinks, LinkRepair},
};
use crate::{error::BuildError, output::Output};

/// Form of the links of one delta of a level in the target.
#[derive(Clone, Debug)]
pub struct LinkTarget {
    current: bool,
    keys: LevelKeys,
    /// Level of the other ends minus the level of end 0.
    pub delta: Delta,
    /// Number of ends of a link.
    pub width: LinkWidth,
    /// `true` if the order of ends is significant.
    pub directed: bool,
    /// `true` if every chunk that a link touches has a copy.
    pub duplicate: bool,
    scales: Vec<AxisScales>,
}

/// Storage policy of the links of one delta.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkRecordPolicy {
    /// `true` if the order of ends is significant.
    pub directed: bool,
    /// `true` if every chunk that a link touches has a copy.
    pub duplicate: bool,
}

/// Number of links of a family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkTotals {
    /// Links, each counted once.
    pub links: u64,
    /// Stored records, copies included.
    pub records: u64,
}

impl LinkTotals {
    /// Creates totals of this number of links and records.
    pub fn new(links: u64, records: u64) -> Self {
        Self { links, records }
    }
}

/// Type of the values of a link attribute.
#[derive(Clone, Copy, Debug)]
pub struct LinkAttributeType<'a> {
    /// Name of the attribute.
    pub name: &'a str,
    /// Numeric type.
    pub dtype: Dtype,
    /// Number of values in a row.
    pub columns: usize,
}

/// Link array or family of the target.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LinkArrayKey {
    /// Array of these chunk offsets (0.9).
    Offsets(String),
    /// Links with all ends in chunks of equal coordinates (before 0.9).
    Aligned,
    /// Links between different chunks (before 0.9).
    CrossChunk,
}

/// Links of a cell between chunks.
#[derive(Clone, Debug)]
pub struct PlacedLinkCell {
    rows: LinkRowsBuilder,
    is_record: bool,
    /// Indices of the placed links.
    pub from: Vec<usize>,
}

/// Links with all ends in chunks of equal coordinates, for the cell of that chunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AlignedLinks {
    rows: Vec<u8>,
    /// Indices of the placed links.
    pub from: Vec<usize>,
}

/// Array and coordinates of a cell.
type CellPlace = (LinkArrayKey, Vec<i64>);

/// Placed links: cells between chunks, and links to append to chunks.
pub type PlacedLinks = (
    BTreeMap<(LinkArrayKey, Vec<i64>), PlacedLinkCell>,
    BTreeMap<Vec<i64>, AlignedLinks>,
);

/// Links by their ends.
type ByRecord<'a> = BTreeMap<&'a [(u32, u64)], Vec<usize>>;

impl MigrationTarget {
    /// Returns the form of the links of a delta of a level.
    pub fn links(
        &self,
        level: LevelId,
        delta: Delta,
        width: LinkWidth,
        storage: LinkRecordPolicy,
        scales: Vec<AxisScales>,
    ) -> LinkTarget {
        let current = self.is_current();
        LinkTarget {
            current,
            keys: self.keys(level),
            delta,
            width,
            directed: storage.directed,
            duplicate: storage.duplicate,
            scales,
        }
    }
}

impl LinkTarget {
    /// Returns the nodes of the level that stores the links.
    pub fn keys(&self) -> &LevelKeys {
        &self.keys
    }

    /// Returns whether the target has one array for each chunk offset.
    pub fn is_current(&self) -> bool {
        self.current
    }

    /// Returns the key of an array or family.
    ///
    /// # Errors
    ///
    /// [`AddressError`] if the key becomes too long.
    pub fn key(&self, array_key: &LinkArrayKey) -> Result<Key, AddressError> {
        self.keys.node(&match array_key {
            LinkArrayKey::Offsets(segment) => {
                ArrayRole::Links(self.delta, LinkOffsets::Segment(segment))
            }
            LinkArrayKey::Aligned => ArrayRole::LinkFamily(self.delta),
            LinkArrayKey::CrossChunk => ArrayRole::CrossChunkLinks(self.delta),
        })
    }

    /// Returns the key of a link attribute.
    ///
    /// # Errors
    ///
    /// [`AddressError`] if the key becomes too long.
    pub fn attribute_key(&self, name: &str, array_key: &LinkArrayKey) -> Result<Key, AddressError> {
        let delta = self.delta;
        self.keys.node(&match array_key {
            LinkArrayKey::Offsets(segment) => {
                ArrayRole::LinkAttribute(name, delta, LinkOffsets::Segment(segment))
            }
            LinkArrayKey::Aligned => ArrayRole::LinkAttributeFamily(name, delta),
            LinkArrayKey::CrossChunk => ArrayRole::CrossChunkLinkAttribute(name, delta),
        })
    }

    /// Returns the array of links with all ends in chunks of these coordinates; `None` if an offset
    /// overflows.
    pub fn aligned(&self, chunk: &[i64]) -> Option<LinkArrayKey> {
        if self.current {
            self.offsets(&vec![chunk; self.width.get()])
        } else {
            Some(LinkArrayKey::Aligned)
        }
    }

    fn offsets(&self, chunks: &[&[i64]]) -> Option<LinkArrayKey> {
        let (source, others) = chunks.split_first()?;
        let offset = |chunk: &&[i64]| -> Option<Vec<i64>> {
            let axes = source.iter().zip(*chunk).zip(&self.scales);
            axes.map(|((source, chunk), scale)| scale.offset(*source, *chunk))
                .collect()
        };
        let offsets: Option<Vec<Vec<i64>>> = others.iter().map(offset).collect();
        Some(LinkArrayKey::Offsets(OffsetCoords(&offsets?).to_string()))
    }

    /// Places links. Chunks ascend; an end is an index of a chunk and a row. `None` if an offset
    /// overflows.
    ///
    /// # Errors
    ///
    /// [`BuildError::PartialLink`] for rows that the format cannot store.
    pub fn file(
        &self,
        chunks: &[&[i64]],
        ends: &[(u32, u64)],
        links: &[usize],
    ) -> Result<Option<PlacedLinks>, BuildError> {
        let width = self.width.get();
        let mut placed = Cells::default();
        let mut beside: BTreeMap<u32, AlignedLinks> = BTreeMap::new();
        let mut orders = Vec::new();
        let (mut end_chunks, mut rows) = (Vec::new(), Vec::new());
        for &link in links {
            let record = &ends[link * width..(link + 1) * width];
            let first = record[0].0;
            // Before 0.9 such links have cells of their own.
            if self.current && record.iter().all(|(chunk, _)| *chunk == first) {
                let own = beside.entry(first).or_default();
                own.from.push(link);
                own.rows
                    .extend(record.iter().flat_map(|(_, row)| row.to_le_bytes()));
                continue;
            }
            self.orders(record, &mut orders)?;
            for order in &orders {
                let slots = order.slots().iter().map(|slot| record[usize::from(*slot)]);
                end_chunks.clear();
                rows.clear();
                for (chunk, row) in slots {
                    end_chunks.push(chunk);
                    rows.push(row);
                }
                let Some(cell) = placed.of(&end_chunks, || self.cell(chunks, &end_chunks)) else {
                    return Ok(None);
                };
                cell.rows
                    .push(*order, &rows)
                    .map_err(|_| self.no_ends(width))?;
                cell.from.push(link);
            }
        }
        let beside = beside
            .into_iter()
            .map(|(chunk, own)| (chunks[chunk as usize].to_vec(), own));
        Ok(Some((placed.finish(), beside.collect())))
    }

    /// Encodes links of two ends from one chunk to another, given as pairs of rows, which must not be
    /// duplicated. Before 0.9, ends of links that are not directed are sorted by chunk. Returns the
    /// array, the coordinates and the payload of the cell; `None` if an offset overflows.
    ///
    /// # Errors
    ///
    /// [`BuildError::PartialLink`] for rows that the format cannot store.
    pub fn file_pairs(
        &self,
        chunks: [&[i64]; 2],
        pairs: &[(u64, u64)],
    ) -> Result<Option<(CellPlace, Vec<u8>)>, BuildError> {
        let order = if self.current || self.directed {
            Permutation::identity(self.width)
        } else {
            Permutation::sorting(&chunks).map_err(|_| self.no_ends(2))?
        };
        let ends: Vec<u32> = order.slots().iter().map(|slot| (*slot).into()).collect();
        let Some((place, mut cell)) = self.cell(&chunks, &ends) else {
            return Ok(None);
        };
        let is_turned = !order.is_identity();
        cell.rows.reserve(pairs.len());
        for (from, to) in pairs {
            let stored = if is_turned {
                [*to, *from]
            } else {
                [*from, *to]
            };
            let pushed = cell.rows.push(order, &stored);
            pushed.map_err(|_| self.no_ends(2))?;
        }
        Ok(Some((place, cell.payload())))
    }

    /// Creates an empty cell for links between these chunks, with its location.
    fn cell(&self, chunks: &[&[i64]], end_chunks: &[u32]) -> Option<(CellPlace, PlacedLinkCell)> {
        let of: Vec<&[i64]> = end_chunks.iter().map(|at| chunks[*at as usize]).collect();
        let (array_key, at) = if self.current {
            (self.offsets(&of)?, of.first()?.to_vec())
        } else {
            (LinkArrayKey::CrossChunk, of.concat())
        };
        let cell = PlacedLinkCell {
            rows: LinkRowsBuilder::new(self.width, self.row_form(&array_key)),
            is_record: !self.current,
            from: Vec::new(),
        };
        Some(((array_key, at), cell))
    }

    fn no_ends(&self, ends: usize) -> BuildError {
        BuildError::PartialLink {
            ends,
            width: self.width.get(),
        }
    }

    /// Returns the end orders of the stored copies of a link between chunks.
    fn orders(
        &self,
        record: &[(u32, u64)],
        orders: &mut Vec<Permutation>,
    ) -> Result<(), BuildError> {
        let wide = |_| self.no_ends(record.len());
        let identity = self.directed || (self.current && self.delta != Delta::INTRA);
        // From 0.9 on, links between levels are not duplicated.
        let copies = self.duplicate && !(self.current && self.delta != Delta::INTRA);
        orders.clear();
        match (copies, identity) {
            (true, _) => orders.extend(duplicates(record).map_err(wide)?),
            (false, true) => orders.push(Permutation::identity(self.width)),
            (false, false) => orders.push(Permutation::sorting(record).map_err(wide)?),
        }
        Ok(())
    }

    fn row_form(&self, array_key: &LinkArrayKey) -> RowForm {
        let permuted = match array_key {
            LinkArrayKey::Aligned => false,
            LinkArrayKey::CrossChunk => true,
            LinkArrayKey::Offsets(segment) => {
                let crosses = segment != "self" && segment.split(['.', '_']).any(|at| at != "0");
                crosses && self.delta == Delta::INTRA && (self.duplicate || !self.directed)
            }
        };
        if permuted {
            RowForm::Permuted
        } else {
            RowForm::Plain
        }
    }

    /// Encodes an aligned cell: its existing payload and more links.
    ///
    /// # Errors
    ///
    /// [`RaggedError`] when the existing payload is not grouped as required.
    pub fn aligned_payload(&self, own: &[u8], more: &AlignedLinks) -> Result<Vec<u8>, RaggedError> {
        if self.delta == Delta::INTRA {
            return Ok([own, &more.rows].concat());
        }
        if more.rows.is_empty() {
            return Ok(own.to_vec());
        }
        // Fewer than 8 bytes cannot hold a group count.
        let blob = match own.len() {
            0..8 => None,
            _ => Some(RaggedBlob::parse(own)?),
        };
        let groups: Vec<&[u8]> = blob
            .iter()
            .flat_map(RaggedBlob::iter)
            .chain([more.rows.as_slice()])
            .collect();
        Ok(ragged::encode(&groups))
    }

    /// Returns the number of links in an aligned payload.
    pub fn count(&self, payload: &[u8]) -> u64 {
        let row = self.width.get() * 8;
        let bytes = match (self.delta == Delta::INTRA, payload.len()) {
            (true, bytes) => bytes,
            (false, 0..8) => 0,
            (false, _) => RaggedBlob::parse(payload).map_or(0, |blob| blob.data().len()),
        };
        (bytes / row) as u64
    }

    /// Returns the metadata of the family.
    fn described(&self, arity: usize, totals: Option<LinkTotals>) -> LinkFamily {
        LinkFamily {
            delta: self.delta,
            width: self.width,
            directed: self.directed,
            store: if self.duplicate {
                LinkStore::Duplicate
            } else {
                LinkStore::Canonical
            },
            sid_ndim: Some(arity),
            num_links: totals.map(|totals| totals.links),
            num_physical_records: totals.map(|totals| totals.records),
        }
    }

    /// Returns the node of the family.
    ///
    /// # Errors
    ///
    /// [`AddressError`] if the key becomes too long.
    pub fn family(
        &self,
        array_key: &LinkArrayKey,
        old: &Attributes,
        arity: usize,
        totals: LinkTotals,
    ) -> Result<Output, AddressError> {
        let (form, part) = match array_key {
            LinkArrayKey::Offsets(_) => (LinkFamilyForm::Merged, ArrayRole::LinkFamily(self.delta)),
            LinkArrayKey::Aligned => (LinkFamilyForm::InChunks, ArrayRole::LinkFamily(self.delta)),
            LinkArrayKey::CrossChunk => (
                LinkFamilyForm::BetweenChunks(self.keys.layout.generation),
                ArrayRole::CrossChunkLinks(self.delta),
            ),
        };
        let family = self.described(arity, Some(totals));
        let mut attributes = overlaid(old, family.to_attributes(form));
        let is_default = !self.directed && !self.duplicate && !self.current;
        LinkFamily::remove_foreign(&mut attributes, form, is_default);
        Ok(Output::group(self.keys.node(&part)?, attributes))
    }

    /// Returns the attributes of an array, without the list of chunks.
    pub fn array(&self, array_key: &LinkArrayKey, arity: usize) -> Attributes {
        let LinkArrayKey::Offsets(segment) = array_key else {
            return Attributes::new();
        };
        let family = self.described(arity, None);
        LinkArray::new(&family, &family.offsets(segment)).to_attributes(&family)
    }

    /// Returns the attributes of a link attribute.
    pub fn attribute(
        &self,
        array_key: &LinkArrayKey,
        attribute: LinkAttributeType<'_>,
        arity: usize,
        logical: u64,
    ) -> Attributes {
        let columns = attribute.columns as u64;
        let shape = (columns > 1).then_some(columns).into_iter().collect();
        let own = CellAttribute {
            level_delta: Some(self.delta.levels().into()),
            ..CellAttribute::new(CellAttributeRole::Link, attribute.name, attribute.dtype)
        };
        let own = match array_key {
            LinkArrayKey::Offsets(segment) => CellAttribute {
                offsets: Some(self.described(arity, None).offsets(segment)),
                row_shape: Some(shape),
                ..own
            },
            LinkArrayKey::Aligned => own,
            LinkArrayKey::CrossChunk => CellAttribute {
                role: CellAttributeRole::CrossChunkLink,
                num_links: Some(logical),
                row_shape: Some(shape),
                ..own
            },
        };
        own.to_attributes()
    }

    /// Returns the group node of a link attribute over all arrays of the delta.
    ///
    /// # Errors
    ///
    /// [`AddressError`] if the key becomes too long.
    pub fn attribute_family(&self, name: &str, logical: u64) -> Result<Output, AddressError> {
        let family = LinkAttributeFamily {
            name: name.to_owned(),
            delta: self.delta,
            num_links: logical,
        };
        let key = self
            .keys
            .node(&ArrayRole::LinkAttributeFamily(name, self.delta))?;
        Ok(Output::group(key, family.to_attributes()))
    }

    /// Corrects the rows of links between runs of paths. Returns the numbers of corrected and of
    /// unexplained links.
    pub fn repair(
        &self,
        bridges: &ImpliedLinks,
        chunks: &[&[i64]],
        ends: &mut [(u32, u64)],
    ) -> (u64, u64) {
        if self.width != LinkWidth::EDGE || self.delta != Delta::INTRA || self.duplicate {
            return (0, 0);
        }
        let mut end_chunks: BTreeMap<(u32, u32), Vec<usize>> = BTreeMap::new();
        for (link, record) in ends.chunks_exact(2).enumerate() {
            if record[0].0 != record[1].0 {
                end_chunks
                    .entry((record[0].0, record[1].0))
                    .or_default()
                    .push(link);
            }
        }
        let (mut wrong, mut unexplained) = (0, 0);
        for ((from, to), links) in end_chunks {
            let row = |link: &usize| (ends[link * 2].1, ends[link * 2 + 1].1);
            let mut rows: Vec<(u64, u64)> = links.iter().map(row).collect();
            match bridges.repair(chunks[from as usize], chunks[to as usize], &mut rows) {
                LinkRepair::Unexplained(count) => unexplained += count,
                LinkRepair::Rows(count) => {
                    wrong += count;
                    for (link, (first, last)) in links.into_iter().zip(rows) {
                        ends[link * 2].1 = first;
                        ends[link * 2 + 1].1 = last;
                    }
                }
            }
        }
        (wrong, unexplained)
    }

    /// Removes duplicate copies of links. Returns the remaining links and the number of missing
    /// copies. `leaders` are the chunks that hold the copies.
    pub fn without_copies(&self, ends: &[(u32, u64)], leaders: &[u32]) -> (Vec<usize>, u64) {
        let mut by_leader: BTreeMap<u32, ByRecord<'_>> = BTreeMap::new();
        let records = ends.chunks_exact(self.width.get());
        for ((link, record), leader) in records.enumerate().zip(leaders) {
            let own = by_leader.entry(*leader).or_default();
            own.entry(record).or_default().push(link);
        }
        let mut all = ByRecord::new();
        for own in by_leader.values() {
            for (record, links) in own {
                let known = all.entry(record).or_default();
                let more = links.get(known.len()..).unwrap_or_default();
                known.extend_from_slice(more);
            }
        }
        let mut missing = 0;
        for (record, links) in &all {
            let mut touched: Vec<u32> = record.iter().map(|(chunk, _)| *chunk).collect();
            touched.sort_unstable();
            touched.dedup();
            for chunk in touched {
                let present = by_leader.get(&chunk).and_then(|own| own.get(record));
                missing += (links.len() - present.map_or(0, Vec::len)) as u64;
            }
        }
        let mut kept: Vec<usize> = all.into_values().flatten().collect();
        kept.sort_unstable();
        (kept, missing)
    }
}

/// Link cells under construction. The location of a cell is computed once for each tuple of chunks,
/// because millions of links share one.
#[derive(Debug, Default)]
struct Cells {
    all: Vec<PlacedLinkCell>,
    by_place: BTreeMap<CellPlace, usize>,
    /// Cells by chunk numbers in stored order.
    by_end_chunks: HashMap<Vec<u32>, usize>,
    /// Cell of the last link: consecutive links often share one.
    last: Option<(Vec<u32>, usize)>,
}

impl Cells {
    /// Returns the cell of links between these chunks, created by `make` if new; `None` if it has
    /// no location.
    fn of(
        &mut self,
        end_chunks: &[u32],
        make: impl FnOnce() -> Option<(CellPlace, PlacedLinkCell)>,
    ) -> Option<&mut PlacedLinkCell> {
        let at = match &self.last {
            Some((last, at)) if last == end_chunks => *at,
            _ => {
                let at = match self.by_end_chunks.get(end_chunks) {
                    Some(at) => *at,
                    None => {
                        let (place, cell) = make()?;
                        self.open(end_chunks, place, cell)
                    }
                };
                self.last = Some((end_chunks.to_vec(), at));
                at
            }
        };
        self.all.get_mut(at)
    }

    fn open(&mut self, end_chunks: &[u32], place: CellPlace, cell: PlacedLinkCell) -> usize {
        let next = self.all.len();
        let at = *self.by_place.entry(place).or_insert(next);
        if at == next {
            self.all.push(cell);
        }
        self.by_end_chunks.insert(end_chunks.to_vec(), at);
        at
    }

    fn finish(self) -> BTreeMap<CellPlace, PlacedLinkCell> {
        let mut places: Vec<(CellPlace, usize)> = self.by_place.into_iter().collect();
        places.sort_unstable_by_key(|(_, at)| *at);
        let places = places.into_iter().map(|(place, _)| place);
        places.zip(self.all).collect()
    }
}

impl PlacedLinkCell {
    /// Encodes the cell.
    pub fn payload(&self) -> Vec<u8> {
        if self.is_record {
            self.rows.finish_cell()
        } else {
            self.rows.finish_ragged()
        }
    }
}

impl AlignedLinks {
    /// Creates links from their rows.
    pub fn new(rows: impl IntoIterator<Item = u64>, from: Vec<usize>) -> Self {
        let rows = rows.into_iter().flat_map(u64::to_le_bytes).collect();
        Self { rows, from }
    }

    /// Appends other links, whose indices are offset by `before`.
    pub fn extend(&mut self, other: &Self, before: usize) {
        self.rows.extend_from_slice(&other.rows);
        self.from
            .extend(other.from.iter().map(|link| link + before));
    }

    /// Returns whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Encodes the link groups of a chunk: the existing ones of `rows` links, and one for these.
    ///
    /// # Errors
    ///
    /// [`FragmentIndexError`] when the existing groups are invalid.
    pub fn groups(&self, own: Option<&[u8]>, rows: u64) -> Result<Vec<u8>, FragmentIndexError> {
        let more = self.from.len() as u64;
        let Some(own) = own.filter(|own| !own.is_empty()) else {
            return Ok(crate::link_placement::ranges([rows + more]));
        };
        let index = FragmentIndex::parse(own)?;
        if more == 0 {
            return Ok(own.to_vec());
        }
        let mut builder = FragmentIndexBuilder::default();
        // A valid index has room for another group below 2^32.
        let room = |_| FragmentIndexError::Truncated(zvf_format::fragment::Section::Header);
        for group in &index {
            builder.push(&group).map_err(room)?;
        }
        builder.push_range(rows..rows + more).map_err(room)?;
        Ok(builder.finish())
    }
}

#[cfg(test)]
mod tests;
