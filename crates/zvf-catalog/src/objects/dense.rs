//! Reads dense object indexes, a draft of the format after 0.9.2.
//!
//! | array | row |
//! |---|---|
//! | `manifest_spans` | for each object, the first of its blocks and their number |
//! | `manifest_blocks` | for each block, the coordinates of a chunk and a fragment |
//! | `object_ids` | the id of each object |

use core::ops::Range;

use zvf_format::manifest::ObjectManifestBuilder;
use zvf_model::fetch::CellRequest;

use super::{
    ObjectIdTable, ObjectSet, ObjectTable,
    builder::{ManifestFault, ObjectsBuilder},
    read::{push_unreadable, read_ids},
};
use crate::{
    catalog::Catalog,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    tables::{RowArray, RowRequest},
};

/// Maximum number of damaged rows reported one by one.
const MAX_REPORTED_ROWS: u64 = 8;

/// The decoded arrays of a dense index.
pub(super) struct DenseIndex {
    spans: Vec<u8>,
    blocks: Vec<u8>,
    /// Size of a block in bytes.
    block: usize,
    pub(super) ids: ObjectIdTable,
}

impl DenseIndex {
    /// Returns the blocks of each object, in row order.
    pub(super) fn rows(&self) -> impl Iterator<Item = Result<&[u8], Fault>> {
        let (spans, _) = self.spans.as_chunks::<16>();
        spans.iter().map(|span| {
            let range = self.range(span).ok_or(Fault::Range)?;
            self.blocks.get(range).ok_or(Fault::Range)
        })
    }

    /// Returns the bytes of the blocks of a span.
    fn range(&self, span: &[u8; 16]) -> Option<Range<usize>> {
        let range = blocks_of(span)?;
        let at = |block: u64| usize::try_from(block).ok()?.checked_mul(self.block);
        Some(at(range.start)?..at(range.end)?)
    }
}

/// Returns the blocks of a span; `None` if a number is out of range. The start of an empty span has
/// no meaning.
pub(super) fn blocks_of(span: &[u8; 16]) -> Option<Range<u64>> {
    let (start, count) = span.split_first_chunk::<8>()?;
    let count = u64::try_from(i64::from_le_bytes(*count.first_chunk::<8>()?)).ok()?;
    if count == 0 {
        return Some(0..0);
    }
    let start = u64::try_from(i64::from_le_bytes(*start)).ok()?;
    Some(start..start.checked_add(count)?)
}

impl Catalog<'_> {
    /// Reads the arrays of a dense index in one round trip.
    pub(super) async fn dense_index(
        &self,
        table: &ObjectTable,
        spans: &RowArray,
        blocks: &RowArray,
    ) -> Result<Result<DenseIndex, Damage>, CatalogError> {
        let Some(ids) = &table.ids else {
            return Err(Damage::new(&table.node, Fault::Missing).into());
        };
        let sizes = [spans, blocks, ids].map(|array| array.size(None));
        self.check_budget(sizes.into_iter().fold(0, u64::saturating_add))?;
        let requests: [RowRequest; 3] = [spans, blocks, ids].map(|array| array.request(None));
        let wanted: Vec<CellRequest> = requests
            .iter()
            .flat_map(|request| &request.wanted)
            .cloned()
            .collect();
        let mut results = self.fetch.bypass_cache().cells(&wanted).await.into_iter();
        let [of_spans, of_blocks, of_ids] = requests;
        let mut next = |request: &RowRequest| -> Vec<_> {
            results.by_ref().take(request.wanted.len()).collect()
        };
        let span_data = spans.finish(&of_spans, next(&of_spans));
        let block_data = blocks.finish(&of_blocks, next(&of_blocks));
        let id_results = next(&of_ids);
        let mut damaged = span_data.damaged.into_iter().chain(block_data.damaged);
        if let Some((_, damage)) = damaged.next() {
            return Ok(Err(damage));
        }
        let ids = match read_ids(ids, &of_ids, id_results, table.index.ids_sorted) {
            Ok(ids) => ids,
            Err(damage) => return Ok(Err(damage)),
        };
        Ok(Ok(DenseIndex {
            spans: span_data.bytes,
            blocks: block_data.bytes,
            block: table.index.sid_ndim.saturating_add(1).saturating_mul(8),
            ids,
        }))
    }

    /// Reads objects whose manifests are dense.
    pub(super) async fn dense_objects(
        &self,
        table: &ObjectTable,
        spans: &RowArray,
        blocks: &RowArray,
        diagnostics: &Diagnostics,
    ) -> Result<ObjectSet, CatalogError> {
        let (sid_ndim, budget) = (table.index.sid_ndim, self.fetch.budget());
        let index = match self.dense_index(table, spans, blocks).await? {
            Ok(index) => index,
            Err(damage) => {
                diagnostics.skip(damage)?;
                // Without all arrays no manifest can be assigned to an object.
                let mut none = ObjectsBuilder::new(sid_ndim, 0, budget);
                none.mark_incomplete();
                return Ok(none.finish(ObjectIdTable::default()));
            }
        };
        let mut builder = ObjectsBuilder::new(sid_ndim, index.ids.size(), budget);
        let mut damaged = 0_u64;
        for (row, blocks) in (0_u64..).zip(index.rows()) {
            let pushed = match blocks {
                Ok(blocks) => builder.push_blocks(row, blocks),
                Err(fault) => Err(ManifestFault::Fault(Fault::Row {
                    row,
                    source: Box::new(fault),
                })),
            };
            match pushed {
                Ok(()) => {}
                Err(ManifestFault::OverBudget(bytes)) => return Err(builder.over_budget(bytes)),
                Err(ManifestFault::Fault(fault)) => {
                    damaged = damaged.saturating_add(1);
                    let damage = Damage::new(spans.node(), fault);
                    if damaged <= MAX_REPORTED_ROWS {
                        diagnostics.skip(damage)?;
                    }
                    push_unreadable(&mut builder, row, spans.node())?;
                }
            }
        }
        if let Some(more @ 1..) = damaged.checked_sub(MAX_REPORTED_ROWS) {
            diagnostics.skip(Damage::new(spans.node(), Fault::MoreRows(more)))?;
        }
        Ok(builder.finish(index.ids))
    }

    /// Reads a dense index and encodes its manifests in the form of other layouts: all of them, the
    /// byte range of each, and the ids.
    pub(super) async fn dense_manifests(
        &self,
        table: &ObjectTable,
        spans: &RowArray,
        blocks: &RowArray,
    ) -> Result<(Vec<u8>, Vec<Range<usize>>, ObjectIdTable), CatalogError> {
        let index = self.dense_index(table, spans, blocks).await??;
        let mut bytes = Vec::new();
        let mut ranges = Vec::new();
        for (row, blocks) in (0_u64..).zip(index.rows()) {
            let fault = |fault| {
                let source = Box::new(fault);
                Damage::new(spans.node(), Fault::Row { row, source })
            };
            let mut manifest = ObjectManifestBuilder::new(table.index.sid_ndim);
            for block in blocks.map_err(fault)?.chunks(index.block.max(8)) {
                let (words, _) = block.as_chunks::<8>();
                let words: Vec<i64> = words.iter().map(|word| i64::from_le_bytes(*word)).collect();
                let split = words.split_last();
                let (fragment, chunk) = split.ok_or_else(|| fault(Fault::Range))?;
                let fragment = u32::try_from(*fragment).map_err(|_| fault(Fault::Range))?;
                let pushed = manifest.push_single(chunk, fragment);
                pushed.map_err(|_| fault(Fault::Range))?;
            }
            let start = bytes.len();
            bytes.extend(manifest.finish());
            // Spans may share blocks, so that the manifests may be larger than the arrays.
            self.check_budget(u64::try_from(bytes.len()).unwrap_or(u64::MAX))?;
            ranges.push(start..bytes.len());
        }
        Ok((bytes, ranges, index.ids))
    }
}
