//! Cross-chunk links in independent units: a unit is all links between the same chunks, in any
//! order, so that no other unit contributes to its output.

use std::collections::{BTreeMap, HashMap};

use zvf_build::migrate::{AlignedLinks, LinkTarget};
use zvf_catalog::{CellLinks, LinkCells};
use zvf_format::numeric::Kind;
use zvf_model::{array::CellAttribute, grid::ChunkCoord};

/// Cells of a unit, or links of a table.
#[derive(Clone, Debug, Default)]
pub(super) struct Unit {
    pub(super) cells: Vec<usize>,
}

/// Groups cells into units by their chunks.
pub(super) fn units(links: &LinkCells, cells: &[usize]) -> BTreeMap<Vec<ChunkCoord>, Unit> {
    let mut units: BTreeMap<Vec<ChunkCoord>, Unit> = BTreeMap::new();
    for cell in cells {
        if let Some(chunks) = links.chunks(*cell) {
            let mut chunks = chunks.to_vec();
            chunks.sort_unstable();
            units.entry(chunks).or_default().cells.push(*cell);
        }
    }
    units
}

/// Links of a unit in one list.
#[derive(Debug, Default)]
pub(super) struct UnitLinks {
    /// Chunks in ascending order.
    pub(super) chunks: Vec<ChunkCoord>,
    /// For each end, an index into `chunks` and a row.
    pub(super) ends: Vec<(u32, u64)>,
    /// For each link, the chunk of its cell.
    pub(super) leaders: Vec<u32>,
    /// For each attribute, the values of all links.
    pub(super) values: Vec<LinkValues>,
}

/// Values of an attribute for links.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkValues {
    /// Bytes of a row; 0 while unknown.
    pub(super) row: usize,
    bytes: Vec<u8>,
    /// Number of links before the first value.
    waiting: usize,
    /// Number of rows with fill values because only other links have values.
    pub(super) filled_rows: u64,
    has: bool,
    fill: Vec<u8>,
}

impl LinkValues {
    /// Creates an attribute without values.
    pub(super) fn new(metadata: Option<&CellAttribute>) -> Self {
        let kind = metadata.map_or(Kind::UInt8, |metadata| metadata.dtype.kind());
        let code = metadata.and_then(|metadata| metadata.dictionary.as_ref()?.fill);
        // The fill value is the code of missing values, or NaN if the type has it.
        let fill = match (code, kind.nan()) {
            (Some(code), _) => code.to_le_bytes().into_iter().take(kind.size()).collect(),
            (None, Some(nan)) => nan.to_vec(),
            (None, None) => vec![0; kind.size()],
        };
        Self {
            fill,
            ..Self::default()
        }
    }

    /// Adds the values of this many links, if they have any.
    pub(super) fn push(&mut self, links: usize, values: Option<&[u8]>) {
        let row = values.map_or(0, |values| values.len().checked_div(links).unwrap_or(0));
        match values {
            Some(values) if links > 0 && row > 0 => {
                if self.row == 0 {
                    self.row = row;
                    self.fill_rows(self.waiting);
                    self.waiting = 0;
                }
                self.has = true;
                self.bytes.extend_from_slice(values);
            }
            _ if self.row == 0 => self.waiting += links,
            _ => self.fill_rows(links),
        }
    }

    fn fill_rows(&mut self, links: usize) {
        self.filled_rows += links as u64;
        let row: Vec<u8> = self.fill.iter().copied().cycle().take(self.row).collect();
        self.bytes.extend(row.repeat(links));
    }

    /// Returns the values of some links; `None` if none has any.
    pub(super) fn of(&self, links: &[usize]) -> Option<Vec<u8>> {
        if !self.has {
            return None;
        }
        let mut bytes = Vec::with_capacity(links.len() * self.row);
        for link in links {
            let row = self.bytes.get(link * self.row..(link + 1) * self.row);
            bytes.extend_from_slice(row.unwrap_or_default());
        }
        Some(bytes)
    }

    /// Returns the fill values of links without values.
    pub(super) fn filled(metadata: &CellAttribute, row: usize, links: usize) -> Vec<u8> {
        let mut values = Self {
            row,
            ..Self::new(Some(metadata))
        };
        values.fill_rows(links);
        values.bytes
    }

    /// Returns all values; `None` if there are none.
    pub(super) fn all(&self) -> Option<&[u8]> {
        self.has.then_some(&self.bytes)
    }
}

impl UnitLinks {
    /// Collects the links of some cells.
    pub(super) fn of(links: &LinkCells, read: &[CellLinks]) -> Self {
        let mut chunks: Vec<ChunkCoord> = read.iter().flat_map(|own| own.chunks.clone()).collect();
        chunks.sort_unstable();
        chunks.dedup();
        let mut unit = Self {
            values: links
                .attributes()
                .map(|(_, attributes)| LinkValues::new(attributes))
                .collect(),
            ..Self::default()
        };
        for own in read {
            let numbers: Vec<u32> = own
                .chunks
                .iter()
                .map(|chunk| number(&chunks, chunk))
                .collect();
            let ends = own
                .ends
                .iter()
                .map(|(chunk, row)| (numbers[*chunk as usize], *row));
            unit.ends.extend(ends);
            let count = own.ends.len() / own.width.get();
            let leader = own.chunks.first().map_or(0, |chunk| number(&chunks, chunk));
            unit.leaders.resize(unit.leaders.len() + count, leader);
            for (all, values) in unit.values.iter_mut().zip(&own.values) {
                all.push(count, values.as_deref());
            }
        }
        unit.chunks = chunks;
        unit
    }

    /// Keeps the links for which `kept` is `true`.
    pub(super) fn retain(&mut self, kept: &[bool]) {
        let all = 0..kept.len();
        let links: Vec<usize> = all.filter(|link| kept[*link]).collect();
        if links.len() == kept.len() {
            return;
        }
        let width = self.ends.len() / kept.len();
        let ends = links
            .iter()
            .flat_map(|link| &self.ends[link * width..(link + 1) * width]);
        self.ends = ends.copied().collect();
        self.leaders = links.iter().map(|link| self.leaders[*link]).collect();
        for values in &mut self.values {
            match values.of(&links) {
                Some(bytes) => values.bytes = bytes,
                None => values.waiting = links.len(),
            }
        }
    }

    /// Reverses the ends of links of two ends between different chunks.
    pub(super) fn put_children_first(&mut self) {
        for record in self.ends.chunks_exact_mut(2) {
            if let [parent, child] = record
                && parent.0 != child.0
            {
                core::mem::swap(parent, child);
            }
        }
    }

    /// Splits links by their chunks, each with the links before it in the same order.
    pub(super) fn split_by_chunks(&self, form: &LinkTarget) -> Vec<Vec<usize>> {
        let mut by_chunks: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
        for (link, record) in self.ends.chunks_exact(form.width.get()).enumerate() {
            let mut of: Vec<u32> = record.iter().map(|(chunk, _)| *chunk).collect();
            of.sort_unstable();
            by_chunks.entry(of).or_default().push(link);
        }
        let mut by_chunks: Vec<(Vec<u32>, Vec<usize>)> = by_chunks.into_iter().collect();
        by_chunks.sort_unstable();
        by_chunks.into_iter().map(|(_, links)| links).collect()
    }
}

fn number(chunks: &[ChunkCoord], chunk: &ChunkCoord) -> u32 {
    let at = chunks.binary_search(chunk).unwrap_or(0);
    u32::try_from(at).unwrap_or(u32::MAX)
}

/// Links added to others of a chunk, with their values.
#[derive(Clone, Debug, Default)]
pub(super) struct AddedLinks {
    pub(super) links: AlignedLinks,
    /// Values for each attribute.
    pub(super) values: Vec<Option<Vec<u8>>>,
}
