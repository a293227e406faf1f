//! Reads links a second time, for checks that compare all links of a level.

use std::collections::BTreeSet;

use zvf_format::{fragment::FragmentIndex, path::Delta};
use zvf_model::{
    fetch::{CellRef, CellRequest},
    grid::ChunkCoord,
    layout::ArrayRole,
};

use super::{LinkPart, LinkRecord, LinkStorage, each_record, open};
use crate::{
    batch::{self, CellPayload},
    chunked_part::{ChunkedPart, open_part},
    context::Context,
    store::LevelScope,
};

/// Calls `each` once per link of a delta, cell by cell. The links were checked before, so `context`
/// should discard findings. Returns whether every link could be read.
pub(crate) async fn each_link<T: Copy + Send>(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    delta: Delta,
    resolve: impl FnMut(&[i64], bool) -> T + Send,
    each: impl FnMut(&LinkPart, LinkRecord<'_, T>) + Send,
) -> bool {
    each_link_except(context, scope, delta, &BTreeSet::new(), resolve, each).await
}

/// Calls `each` as [`each_link`], except for the links in the cells of some chunks, which are not
/// read.
pub(crate) async fn each_link_except<T: Copy + Send>(
    context: &Context<'_>,
    scope: LevelScope<'_>,
    delta: Delta,
    except: &BTreeSet<ChunkCoord>,
    mut resolve: impl FnMut(&[i64], bool) -> T + Send,
    mut each: impl FnMut(&LinkPart, LinkRecord<'_, T>) + Send,
) -> bool {
    let found = open(context, scope, delta).await;
    let mut is_whole = found.is_whole;
    for part in &found.parts {
        let mut take = |at: &ChunkCoord, cell: &CellPayload, used: Option<u64>| match cell {
            CellPayload::Bytes(bytes) if part.is_leading(at) => {
                let each = |record: LinkRecord<'_, T>| each(part, record);
                let read = each_record(part, at, bytes, used, &mut resolve, each);
                is_whole &= read.is_ok();
            }
            CellPayload::Unreadable => is_whole = false,
            _ => {}
        };
        match &part.cells {
            LinkStorage::Each(cells) => {
                // Only link fragments show the number of used rows of a padded array.
                let groups = if part.is_padded() {
                    open_part(context, scope, &ArrayRole::LinkFragments)
                } else {
                    None
                };
                let parts: Vec<&ChunkedPart> = [cells].into_iter().chain(&groups).collect();
                let mut chunks = match &groups {
                    Some(groups) => groups.chunks(),
                    None => cells.chunks(),
                };
                chunks.retain(|chunk| !except.contains(chunk));
                batch::each_chunk(context, &parts, &chunks, |chunk, cells| {
                    let used = cells
                        .get(1)
                        .and_then(|cell| cell.bytes())
                        .and_then(|bytes| FragmentIndex::parse(bytes).ok())
                        .map(|index| index.extent());
                    take(chunk, cells.first().unwrap_or(&CellPayload::Absent), used);
                })
                .await;
            }
            LinkStorage::Table(key) if scope.store.tree.exists(key) => {
                let cell = CellRef::Child(key.clone());
                let wanted = CellRequest { cell, part: None };
                let cell = match context.fetch.cells(&[wanted]).await.pop() {
                    Some(Ok(Some(found))) => CellPayload::Bytes(found.bytes),
                    _ => CellPayload::Unreadable,
                };
                take(&ChunkCoord::new([]), &cell, None);
            }
            LinkStorage::Table(_) => {}
            LinkStorage::Pairs(array) => {
                for (at, wanted) in part.pair_requests(array) {
                    let cell = match context.fetch.cells(&[wanted]).await.pop() {
                        Some(Ok(Some(found))) => CellPayload::Bytes(found.bytes),
                        // An absent chunk consists of fill values.
                        Some(Ok(None)) => CellPayload::Absent,
                        _ => CellPayload::Unreadable,
                    };
                    take(&at, &cell, None);
                }
            }
        }
    }
    is_whole
}
