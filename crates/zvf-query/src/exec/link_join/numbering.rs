//! Translation of the ends of links from rows of chunks to rows of the result.

use zvf_catalog::{Damage, Diagnostics, LinkRecords};
use zvf_model::grid::ChunkCoord;

use super::row_map::{ChunkRows, MappedRow, RowMap};
use crate::{error::QueryError, exec::links::NumberedLinks, resolve::query::ChunkRestriction};

/// The inputs of numbering the links of a whole level.
pub(super) struct Numbering<'a> {
    pub(super) map: &'a RowMap,
    pub(super) allowed: &'a ChunkRestriction,
    /// The chunks of the level, in order.
    pub(super) chunks: &'a [ChunkCoord],
    /// Reports the first ends of all links.
    pub(super) implied: bool,
    pub(super) diagnostics: &'a Diagnostics,
}

impl Numbering<'_> {
    pub(super) fn number(&self, records: &LinkRecords) -> Result<NumberedLinks, QueryError> {
        let of_cell = self.map.chunks_of(records);
        let is_out = |chunk: &ChunkCoord| !self.allowed.allows(chunk);
        let is_out: Vec<bool> = records.chunks.iter().map(is_out).collect();
        let width = records.width.max(1);
        let mut numbered = NumberedLinks {
            ends: Vec::with_capacity(records.ends.len()),
            records: None,
            children: Vec::new(),
        };
        // Nearly all ends have a row.
        let chunks: Vec<Option<&ChunkRows>> = of_cell
            .iter()
            .zip(&is_out)
            .map(|(chunk, is_out)| chunk.filter(|_| !is_out))
            .collect();
        let row_of = |end: &(u32, u64)| {
            let chunk = chunks.get(usize::try_from(end.0).ok()?)?;
            (*chunk)?.row(end.1, records)
        };
        for (at, ends) in records.ends.chunks(width).enumerate() {
            let before = numbered.ends.len();
            numbered.ends.extend(ends.iter().map_while(row_of));
            if numbered.ends.len().saturating_sub(before) == records.width {
                if self.implied {
                    numbered.children.extend(numbered.ends.get(before).copied());
                }
                if let Some(kept) = &mut numbered.records {
                    kept.push(at);
                }
                continue;
            }
            numbered.ends.truncate(before);
            if self.implied
                && let Some(child) = ends.first()
                && let MappedRow::Row(row) = RowMap::find(&of_cell, records, *child)
            {
                numbered.children.push(row);
            }
            for end in ends {
                let number = usize::try_from(end.0).unwrap_or(usize::MAX);
                if is_out.get(number) == Some(&true) {
                    break;
                }
                match RowMap::find(&of_cell, records, *end) {
                    MappedRow::Row(row) => numbered.ends.push(row),
                    MappedRow::Excluded => break,
                    MappedRow::Absent(fault) => {
                        // The damaged chunk was reported when it was read.
                        let is_damaged = |chunk: &ChunkCoord| {
                            !self.map.has(chunk) && self.chunks.binary_search(chunk).is_ok()
                        };
                        let chunk = records.chunk_of(*end);
                        if !(self.diagnostics.keeps_going() && chunk.is_some_and(is_damaged)) {
                            let damage = Damage::new(&records.node, fault);
                            self.diagnostics.skip(damage)?;
                        }
                        break;
                    }
                }
            }
            let is_whole = numbered.ends.len().saturating_sub(before) == records.width;
            match &mut numbered.records {
                Some(kept) if is_whole => kept.push(at),
                None if is_whole => {}
                kept => {
                    numbered.ends.truncate(before);
                    kept.get_or_insert_with(|| (0..at).collect());
                }
            }
        }
        Ok(numbered)
    }
}
