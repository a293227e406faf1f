//! Placement of links in the arrays of the target.

use std::collections::{BTreeMap, HashMap};

use serde_json::{Map, Value, json};
use zvf_format::{
    fragment::{FragmentIndex, FragmentIndexBuilder, FragmentIndexError},
    links::{AxisScales, LinkRowsBuilder, LinkWidth, Permutation, RowForm, duplicates},
    path::{Delta, OffsetCoords},
    ragged::{self, RaggedBlob, RaggedError},
};

use super::{
    MigrationTarget,
    implied_links::{ImpliedLinks, LinkRepair},
    overlaid,
};
use crate::{
    error::BuildError,
    output::{Output, group_metadata, node},
};

/// Form of the links of one delta of a level in the target.
#[derive(Clone, Debug)]
pub struct LinkTarget {
    current: bool,
    level: u32,
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
    /// Numeric type, as metadata names it.
    pub dtype: &'a str,
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
        level: u32,
        delta: Delta,
        width: LinkWidth,
        storage: LinkRecordPolicy,
        scales: Vec<AxisScales>,
    ) -> LinkTarget {
        let current = self.is_current();
        LinkTarget {
            current,
            level,
            delta,
            width,
            directed: storage.directed,
            duplicate: storage.duplicate,
            scales,
        }
    }
}

impl LinkTarget {
    /// Returns the level that stores the links.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Returns whether the target has one array for each chunk offset.
    pub fn is_current(&self) -> bool {
        self.current
    }

    /// Returns the path of an array or family.
    pub fn path(&self, array_key: &LinkArrayKey) -> String {
        let Self { level, delta, .. } = self;
        match array_key {
            LinkArrayKey::Offsets(segment) => format!("{level}/links/{delta}/{segment}"),
            LinkArrayKey::Aligned => format!("{level}/links/{delta}"),
            LinkArrayKey::CrossChunk => format!("{level}/cross_chunk_links/{delta}"),
        }
    }

    /// Returns the path of a link attribute.
    pub fn attribute_path(&self, name: &str, array_key: &LinkArrayKey) -> String {
        let Self { level, delta, .. } = self;
        match array_key {
            LinkArrayKey::Offsets(segment) => {
                format!("{level}/link_attributes/{name}/{delta}/{segment}")
            }
            LinkArrayKey::Aligned => format!("{level}/link_attributes/{name}/{delta}"),
            LinkArrayKey::CrossChunk => {
                format!("{level}/cross_chunk_link_attributes/{name}/{delta}")
            }
        }
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
                let slots = order.slots().iter();
                let slots = slots.map(|slot| record[usize::from(*slot)]);
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
        let beside = beside.into_iter();
        let beside = beside.map(|(chunk, own)| (chunks[chunk as usize].to_vec(), own));
        Ok(Some((placed.finish(), beside.collect())))
    }

    /// Encodes links of two ends from one chunk to another, given as pairs of rows. The order of
    /// the ends is kept, so the links must be directed and not duplicated. Returns the array, the
    /// coordinates and the payload of the cell; `None` if an offset overflows.
    ///
    /// # Errors
    ///
    /// [`BuildError::PartialLink`] for rows that the format cannot store.
    pub fn file_pairs(
        &self,
        chunks: [&[i64]; 2],
        pairs: &[(u64, u64)],
    ) -> Result<Option<(CellPlace, Vec<u8>)>, BuildError> {
        let Some((place, mut cell)) = self.cell(&chunks, &[0, 1]) else {
            return Ok(None);
        };
        let order = Permutation::identity(self.width);
        cell.rows.reserve(pairs.len());
        for (from, to) in pairs {
            let pushed = cell.rows.push(order, &[*from, *to]);
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
        let groups = blob.iter().flat_map(RaggedBlob::iter);
        let groups: Vec<&[u8]> = groups.chain([more.rows.as_slice()]).collect();
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

    /// Returns the node of the family.
    pub fn family(
        &self,
        array_key: &LinkArrayKey,
        old: &Map<String, Value>,
        arity: usize,
        totals: LinkTotals,
    ) -> Output {
        let store = if self.duplicate {
            "duplicate"
        } else {
            "canonical"
        };
        let mut attributes = json!({
            "level_delta": self.delta.levels(),
            "link_width": self.width.get(),
        });
        let mut set = |key: &str, value: Value| attributes[key] = value;
        let path = match array_key {
            LinkArrayKey::Offsets(_) => {
                set("zv_array", json!("links_family"));
                set("directed", json!(self.directed));
                set("store", json!(store));
                set("sid_ndim", json!(arity));
                set("num_links", json!(totals.links));
                set("num_physical_records", json!(totals.records));
                format!("{}/links/{}", self.level, self.delta)
            }
            LinkArrayKey::Aligned => {
                set("zv_array", json!("links"));
                set("dtype", json!("int64"));
                self.path(array_key)
            }
            LinkArrayKey::CrossChunk => {
                set("zv_array", json!("cross_chunk_links"));
                set("sid_ndim", json!(arity));
                set("num_links", json!(totals.links));
                // Keys of 0.8.1 are written only where they differ from the defaults of 0.8.0.
                if self.directed || self.duplicate {
                    set("directed", json!(self.directed));
                    set("store", json!(store));
                    set("num_physical_records", json!(totals.records));
                }
                self.path(array_key)
            }
        };
        let mut attributes = overlaid(old, attributes);
        if *array_key == LinkArrayKey::Aligned {
            // Families with this number declare how many links they have.
            attributes.remove("sid_ndim");
        }
        if !self.directed && !self.duplicate && !self.current {
            attributes.remove("directed");
            attributes.remove("store");
        }
        node(path, group_metadata(&attributes))
    }

    /// Returns the attributes of an array, without the list of chunks.
    pub fn array(&self, array_key: &LinkArrayKey, arity: usize) -> Value {
        match array_key {
            LinkArrayKey::Offsets(segment) => json!({
                "zv_array": "links",
                "dtype": "int64",
                "offsets": numbers(segment, arity),
                "has_perm": self.row_form(array_key) == RowForm::Permuted,
                "link_width": self.width.get(),
                "level_delta": self.delta.levels(),
            }),
            LinkArrayKey::Aligned | LinkArrayKey::CrossChunk => json!({}),
        }
    }

    /// Returns the attributes of a link attribute.
    pub fn attribute(
        &self,
        array_key: &LinkArrayKey,
        attribute: LinkAttributeType<'_>,
        arity: usize,
        logical: u64,
    ) -> Value {
        let LinkAttributeType {
            name,
            dtype,
            columns,
        } = attribute;
        let shape: Vec<usize> = (columns > 1).then_some(columns).into_iter().collect();
        let delta = self.delta.levels();
        match array_key {
            LinkArrayKey::Offsets(segment) => json!({
                "zv_array": "link_attribute", "name": name, "dtype": dtype,
                "offsets": numbers(segment, arity), "level_delta": delta, "row_shape": shape,
            }),
            LinkArrayKey::Aligned => json!({
                "zv_array": "link_attribute", "name": name, "dtype": dtype, "level_delta": delta,
            }),
            LinkArrayKey::CrossChunk => json!({
                "zv_array": "cross_chunk_link_attribute", "name": name, "dtype": dtype,
                "level_delta": delta, "num_links": logical, "row_shape": shape,
            }),
        }
    }

    /// Returns the group node of a link attribute over all arrays of the delta.
    pub fn attribute_family(&self, name: &str, logical: u64) -> Output {
        let attributes = json!({
            "zv_array": "link_attribute_family", "name": name,
            "level_delta": self.delta.levels(), "num_links": logical,
        });
        let path = format!("{}/link_attributes/{name}/{}", self.level, self.delta);
        crate::output::group(path, attributes)
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

/// Parses the offsets of a segment.
fn numbers(segment: &str, arity: usize) -> Vec<Vec<i64>> {
    if segment == "self" {
        return Vec::new();
    }
    let numbers = segment.split(['.', '_']);
    let numbers: Vec<i64> = numbers.filter_map(|number| number.parse().ok()).collect();
    numbers.chunks(arity.max(1)).map(<[i64]>::to_vec).collect()
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
            return Ok(crate::link_placement::single_group(rows + more));
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
