//! Links of a batch. Their ends are looked up in tables of vertices, and the links are divided
//! among the partitions that store them. This changes the record of a link:
//!
//! ```text
//! before  u64 vertex of the whole input for each end, values of attributes
//! after   u32 chunk, u32 row for each end, values of attributes
//! ```

use std::collections::BTreeMap;

use zvf_format::links::LinkWidth;

use crate::{
    GeometryKind,
    error::BuildError,
    large::linked_rows::{DROPPED, entry},
    large::outline::Outline,
    large::piece::damaged,
    large::splitter::Partitioner,
    link_placement::{CrossChunkPolicy, LinkPlacement, MAX_ENDS, crossing},
};

/// Links of a batch, with the chunk and row of each end that has been found.
#[derive(Debug)]
pub struct LinkBatch {
    width: usize,
    /// Size of a record in bytes.
    size: usize,
    records: Vec<u8>,
    /// Ends in the order of their vertices.
    order: Vec<u32>,
    /// Number of ends that have been found, from the start of `order`.
    found: usize,
    /// Chunk and row of each end.
    places: Vec<(u32, u32)>,
}

/// Links by partition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DividedLinks {
    /// Records of each partition.
    pub parts: BTreeMap<usize, Vec<u8>>,
    /// Number of stored links, without their copies.
    pub placed: u64,
}

impl LinkBatch {
    /// Creates a batch from the links of [`LinkedRows`](super::LinkedRows).
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the bytes are not records of links.
    pub fn new(outline: &Outline, records: Vec<u8>) -> Result<Self, BuildError> {
        let width = outline.link_ends()?.get();
        let size = outline.link_row_size();
        let links = records.len() / size;
        let ends = u32::try_from(links.saturating_mul(width))
            .map_err(|_| BuildError::TooManyVertices(links))?;
        if !records.len().is_multiple_of(size) {
            return Err(damaged());
        }
        let mut batch = Self {
            width,
            size,
            records,
            order: Vec::new(),
            found: 0,
            places: vec![(DROPPED, DROPPED); ends as usize],
        };
        let mut order: Vec<u32> = (0..ends).collect();
        order.sort_unstable_by_key(|end| batch.vertex_of(*end));
        batch.order = order;
        Ok(batch)
    }

    fn vertex_of(&self, end: u32) -> u64 {
        let end = end as usize;
        let start = end / self.width * self.size + end % self.width * 8;
        let bytes = self.records.get(start..).and_then(<[u8]>::first_chunk);
        u64::from_le_bytes(*bytes.unwrap_or(&[0; 8]))
    }

    /// Returns the lowest vertex that has not been found; `None` after the last.
    pub fn vertex(&self) -> Option<u64> {
        self.order.get(self.found).map(|end| self.vertex_of(*end))
    }

    /// Returns the error for the lowest vertex that has not been found, for an input of `vertices`
    /// vertices. The error counts links from the first link of the batch.
    pub fn lost(&self, vertices: u64) -> BuildError {
        let end = self.order.get(self.found).copied().unwrap_or_default();
        BuildError::LinkEndOutOfRange {
            link: end as usize / self.width,
            vertex: self.vertex_of(end) as i64,
            vertices: usize::try_from(vertices).unwrap_or(usize::MAX),
        }
    }

    /// Finds the ends that are vertices of a batch of the input. `first` is the number of its first
    /// vertex, `vertices` is its table, and `runs` is the table of its share.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the lowest vertex is not in the batch, or the tables are damaged.
    pub fn find(&mut self, first: u64, vertices: &[u8], runs: &[u8]) -> Result<(), BuildError> {
        let end = first.saturating_add((vertices.len() / 8) as u64);
        let before = self.found;
        while let Some(vertex) = self.vertex().filter(|vertex| (first..end).contains(vertex)) {
            let (run, position) = entry(vertices, (vertex - first) as usize).ok_or_else(damaged)?;
            if run != DROPPED {
                let (chunk, row) = entry(runs, run as usize).ok_or_else(damaged)?;
                let row = row.checked_add(position).ok_or_else(damaged)?;
                let end = self.order[self.found];
                self.places[end as usize] = (chunk, row);
            }
            self.found += 1;
        }
        if self.found > before {
            Ok(())
        } else {
            Err(damaged())
        }
    }
}

/// Divides links among partitions.
#[derive(Debug)]
pub struct LinkDivider {
    policy: CrossChunkPolicy,
    width: LinkWidth,
    /// `true` if links between consecutive rows of a tree are implied.
    is_tree: bool,
    /// Rank of each chunk in the ascending order of coordinates.
    ranks: Vec<u32>,
    part_of: Vec<usize>,
}

impl LinkDivider {
    /// Creates a divider for the partitions of a partitioner. The partitioner must have the chunks
    /// of all shares.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when the geometry has no links.
    pub fn new(partitioner: &Partitioner) -> Result<Self, BuildError> {
        let outline = &partitioner.outline;
        let chunks = &partitioner.chunks;
        let mut order: Vec<u32> = (0..chunks.len() as u32).collect();
        order.sort_unstable_by_key(|chunk| &chunks[*chunk as usize]);
        let mut ranks = vec![0; chunks.len()];
        for (rank, chunk) in (0..).zip(order) {
            ranks[chunk as usize] = rank;
        }
        let part_of = chunks.iter();
        let part_of = part_of.map(|chunk| outline.part_of(chunk, partitioner.parts));
        Ok(Self {
            policy: outline.policy(),
            width: outline.link_ends()?,
            is_tree: outline.design.kind == GeometryKind::Skeletons,
            ranks,
            part_of: part_of.collect(),
        })
    }

    /// Divides the links of a batch whose ends have all been found. Omits links with a dropped end,
    /// and links that consecutive rows of a tree imply.
    ///
    /// # Errors
    ///
    /// [`BuildError`] when an end was not found.
    pub fn divide(&self, batch: &LinkBatch) -> Result<DividedLinks, BuildError> {
        if batch.vertex().is_some() || batch.width != self.width.get() {
            return Err(damaged());
        }
        let mut divided = DividedLinks::default();
        let mut ranked = [(0u32, 0u64); MAX_ENDS];
        let records = batch.records.chunks_exact(batch.size);
        for (places, record) in batch.places.chunks_exact(batch.width).zip(records) {
            if places.contains(&(DROPPED, DROPPED)) || self.is_implied(places) {
                continue;
            }
            divided.placed += 1;
            let ranked = &mut ranked[..batch.width];
            for (end, (chunk, row)) in ranked.iter_mut().zip(places) {
                let rank = self.ranks.get(*chunk as usize).ok_or_else(damaged)?;
                *end = (*rank, u64::from(*row));
            }
            let mut parts = [usize::MAX; MAX_ENDS];
            let mut put = |part: usize| {
                // The copies of a link are in at most one partition for each of its ends.
                let free = parts
                    .iter_mut()
                    .find(|one| **one == part || **one == usize::MAX);
                if let Some(slot) = free.filter(|slot| **slot == usize::MAX) {
                    *slot = part;
                    let bytes = divided.parts.entry(part).or_default();
                    for (chunk, row) in places {
                        bytes.extend(chunk.to_le_bytes());
                        bytes.extend(row.to_le_bytes());
                    }
                    bytes.extend_from_slice(&record[batch.width * 8..]);
                }
            };
            let part_of = |end: usize| self.part_of[places[end].0 as usize];
            if places.iter().all(|(chunk, _)| *chunk == places[0].0) {
                put(part_of(0));
                continue;
            }
            crossing(self.width, self.policy, ranked, |order| {
                if let Some(slot) = order.slots().first() {
                    put(part_of(usize::from(*slot)));
                }
            })?;
        }
        Ok(divided)
    }

    /// Returns whether the child is in the row after its parent, so that the fragment implies the
    /// link.
    fn is_implied(&self, places: &[(u32, u32)]) -> bool {
        match places {
            [(chunk, child), (other, parent)] => {
                self.is_tree && chunk == other && *child == parent.wrapping_add(1)
            }
            _ => false,
        }
    }
}

impl Outline {
    pub(super) fn policy(&self) -> CrossChunkPolicy {
        CrossChunkPolicy::of(&self.design)
    }

    /// Places the divided links of a partition, in cells of chunks for which `own` returns true.
    /// `number` returns the number of a chunk in the partition.
    pub(super) fn placed(
        &self,
        links: &[u8],
        number: impl Fn(u32) -> Option<u32>,
        own: impl Fn(u32) -> bool,
    ) -> Result<LinkPlacement, BuildError> {
        let width = self.link_ends()?;
        let mut placed = LinkPlacement::none(width);
        let size = self.link_row_size();
        if !links.len().is_multiple_of(size) {
            return Err(damaged());
        }
        let mut record = [(0u32, 0u64); MAX_ENDS];
        let record = &mut record[..width.get()];
        for (link, bytes) in (0..).zip(links.chunks_exact(size)) {
            for (at, end) in record.iter_mut().enumerate() {
                let (chunk, row) = entry(bytes, at).ok_or_else(damaged)?;
                *end = (number(chunk).ok_or_else(damaged)?, u64::from(row));
            }
            placed.place(link, record, self.policy(), &own)?;
        }
        Ok(placed)
    }

    /// Returns the chunks of the ends of divided links.
    pub(super) fn chunks_of<'a>(&self, links: &'a [u8]) -> impl Iterator<Item = u32> + use<'a> {
        let (size, width) = (self.link_row_size(), self.link_width);
        let links = links.chunks_exact(size);
        links.flat_map(move |record| (0..width).filter_map(|at| Some(entry(record, at)?.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(records: &[[u64; 2]]) -> LinkBatch {
        let records: Vec<u8> = records
            .iter()
            .flatten()
            .flat_map(|end| end.to_le_bytes())
            .collect();
        LinkBatch {
            width: 2,
            size: 16,
            places: vec![(DROPPED, DROPPED); records.len() / 8],
            order: vec![1, 2, 0, 3],
            found: 0,
            records,
        }
    }

    #[test]
    fn ends_are_found_in_batches_in_ascending_order() {
        let mut links = batch(&[[5, 0], [2, 7]]);
        let table = |rows: &[[u32; 2]]| -> Vec<u8> {
            let numbers = rows.iter().flatten();
            numbers.flat_map(|number| number.to_le_bytes()).collect()
        };
        let runs = table(&[[3, 10], [4, 0]]);
        assert_eq!(links.vertex(), Some(0));
        let three = table(&[[0, 0], [0, 1], [1, 0]]);
        links.find(0, &three, &runs).unwrap();
        assert_eq!(links.vertex(), Some(5));
        // A batch without the next vertex, and a table that ends early.
        assert!(links.find(6, &three, &runs).is_err());
        assert!(links.find(0, &three, &runs).is_err());
        let more = table(&[[1, 6], [0, 9], [DROPPED, DROPPED]]);
        assert!(
            batch(&[[5, 0], [2, 7]])
                .find(0, &three, &runs[..8])
                .is_err()
        );
        links.find(5, &more, &runs).unwrap();
        assert_eq!(links.vertex(), None);
        let dropped = (DROPPED, DROPPED);
        assert_eq!(links.places, [(4, 6), (3, 10), (4, 0), dropped]);
    }
}
