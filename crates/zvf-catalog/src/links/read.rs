//! Reads cells of links.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use zvf_format::path::Delta;
use zvf_model::{
    fetch::{
        BoxFuture, CellRef, CellRequest, FetchError, FetchProblem, Fetched, MaybeSend, MaybeSync,
    },
    grid::ChunkCoord,
    key::Key,
    layout::ArrayRole,
};

use super::{LinkCellForm, LinkCellSource, LinkRecords, LinkSet, LinkSource, LinkStorage, decode};
use crate::{
    catalog::Catalog,
    cell_rows::{CellRows, value_rows},
    chunked_array::ChunkedArray,
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    fragments::FragmentTable,
    level::Level,
    sync::lock,
};

/// Bytes of payloads that are decoded at a time: enough for all cores, and little memory.
const DECODE_BATCH_BYTES: usize = 1 << 20;
/// Minimum size of a cell for this limit, in bytes. It bounds the number of cells decoded at a
/// time.
const MIN_CELL_BYTES: usize = 4 << 10;
/// Minimum size of a stream for this limit, because its records may be much larger than the stream.
const MIN_STREAM_BYTES: usize = DECODE_BATCH_BYTES / 16;

type FetchResult = Result<Option<Fetched>, FetchError>;

/// Indices of the fetch results for a cell.
#[derive(Debug)]
struct CellResults<'a> {
    cell: &'a LinkCellSource,
    source: &'a LinkSource,
    links: Option<usize>,
    fragments: Option<usize>,
    values: Vec<Option<usize>>,
}

/// Cells that are fetched but not decoded yet.
#[derive(Debug)]
pub struct FetchedLinks<'s> {
    requested: Vec<CellResults<'s>>,
    fragments: Option<Arc<ChunkedArray>>,
    results: Vec<Mutex<FetchResult>>,
}

impl FetchedLinks<'_> {
    /// Returns the size of the payloads of links in bytes.
    pub fn bytes(&self) -> usize {
        let links = self.requested.iter();
        links.map(|requested| self.bytes_of(requested)).sum()
    }

    /// Returns the size of the payload of a cell in bytes.
    fn bytes_of(&self, requested: &CellResults<'_>) -> usize {
        let result = requested.links.and_then(|slot| self.results.get(slot));
        result.map_or(0, |result| match &*lock(result) {
            Ok(Some(fetched)) => fetched.bytes.len(),
            Ok(None) | Err(_) => 0,
        })
    }

    /// Returns whether a fetch exceeded the memory budget.
    pub fn is_over_budget(&self) -> bool {
        let over = |result: &Mutex<FetchResult>| match &*lock(result) {
            Err(error) => error.problem == FetchProblem::OverBudget,
            Ok(_) => false,
        };
        self.results.iter().any(over)
    }

    /// Decodes the cells on all cores, passes each to `work`, and passes the results to `give` in
    /// order, some at a time. About 1 MiB is decoded at a time.
    ///
    /// # Errors
    ///
    /// Returns the errors of `work` and `give`, and [`CatalogError`] for damage that `diagnostics` does
    /// not skip.
    pub fn each<T: MaybeSend, E: From<CatalogError> + MaybeSend>(
        self,
        diagnostics: &Diagnostics,
        work: impl Fn(LinkRecords) -> Result<T, E> + MaybeSync,
        mut give: impl FnMut(Vec<T>) -> Result<(), E>,
    ) -> Result<(), E> {
        let fragments = self.fragments.as_deref();
        let mut rest = self.requested.as_slice();
        while !rest.is_empty() {
            let mut bytes = 0_usize;
            let count = rest.iter().take_while(|requested| {
                let is_in = bytes < DECODE_BATCH_BYTES;
                let min = match requested.source.form {
                    LinkCellForm::Draco(_) => MIN_STREAM_BYTES,
                    _ => MIN_CELL_BYTES,
                };
                bytes = bytes.saturating_add(self.bytes_of(requested).max(min));
                is_in
            });
            let (some, after) = rest.split_at(count.count());
            rest = after;
            let done = on_cores(some.iter().collect(), bytes, |requested| {
                work(finish(requested, fragments, &self.results, diagnostics)?)
            });
            give(done.into_iter().collect::<Result<_, _>>()?)?;
        }
        Ok(())
    }
}

impl Catalog<'_> {
    /// Reads these cells, in this order, in one round trip. If `diagnostics` skips damage, a
    /// damaged cell has no records and damaged attributes have no values.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] for other damage, or if the links exceed the memory budget.
    pub fn link_cells<'f>(
        &'f self,
        level: &'f Level,
        set: &'f LinkSet,
        cells: &'f [usize],
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Vec<LinkRecords>, CatalogError>> {
        Box::pin(async move {
            let fetched = self.fetch_links(level, set, cells).await?;
            let budget = self.fetch.budget();
            let mut bytes = 0_u64;
            let mut read = Vec::with_capacity(cells.len());
            fetched.each(diagnostics, Ok, |records: Vec<LinkRecords>| {
                let sizes = records.iter().map(LinkRecords::size);
                bytes = sizes.fold(bytes, u64::saturating_add);
                if bytes > budget {
                    return Err(CatalogError::OverBudget {
                        what: "links",
                        bytes,
                        budget,
                    });
                }
                read.extend(records);
                Ok(())
            })?;
            Ok(read)
        })
    }

    /// Fetches these cells without decoding them.
    ///
    /// Links of padded arrays also need the level's fragments of links, which tell how many rows
    /// are in use.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if the fragments of links cannot be opened.
    pub fn fetch_links<'s>(
        &'s self,
        level: &'s Level,
        set: &'s LinkSet,
        cells: &'s [usize],
    ) -> BoxFuture<'s, Result<FetchedLinks<'s>, CatalogError>> {
        Box::pin(async move {
            let padded = set
                .sources
                .iter()
                .clone()
                .any(|source| matches!(source.form, LinkCellForm::Padded(_)));
            let fragments = if padded && set.delta == Delta::INTRA {
                self.chunked_array(level, &ArrayRole::LinkFragments).await?
            } else {
                None
            };
            let mut wanted = Vec::new();
            let mut requested = Vec::with_capacity(cells.len());
            for cell in cells.iter().filter_map(|cell| set.cells.get(*cell)) {
                let Some(source) = set.sources.get(cell.source) else {
                    continue;
                };
                let mut push = |request: Option<CellRequest>| {
                    wanted.push(request?);
                    Some(wanted.len().saturating_sub(1))
                };
                let links = push(cell_request(&source.cells, &cell.at));
                let fragments = match (&source.form, &fragments) {
                    (LinkCellForm::Padded(_), Some(family)) => {
                        push(family.cell_request(&cell.at, None))
                    }
                    _ => None,
                };
                let mut values = Vec::with_capacity(source.attributes.len());
                for attribute in &source.attributes {
                    values.push(match attribute {
                        Some(attribute) => push(cell_request(&attribute.cells, &cell.at)),
                        None => None,
                    });
                }
                requested.push(CellResults {
                    cell,
                    source,
                    links,
                    fragments,
                    values,
                });
            }
            let results = if wanted.is_empty() {
                Vec::new()
            } else {
                self.fetch.cells(&wanted).await
            };
            Ok(FetchedLinks {
                requested,
                fragments,
                results: results.into_iter().map(Mutex::new).collect(),
            })
        })
    }
}

pub(super) fn cell_request(cells: &LinkStorage, at: &ChunkCoord) -> Option<CellRequest> {
    match cells {
        LinkStorage::Each(family) => family.cell_request(at, None),
        LinkStorage::Table(key, _) => Some(CellRequest {
            cell: CellRef::Child(key.clone()),
            part: None,
        }),
        LinkStorage::Pairs(array) => {
            let chunk = at.coords().first().copied()?;
            let cell = vec![u64::try_from(chunk).ok()?, 0];
            Some(CellRequest {
                cell: CellRef::Element(array.clone(), cell),
                part: None,
            })
        }
    }
}

/// Decodes one cell from the fetch results.
fn finish(
    requested: &CellResults<'_>,
    fragments: Option<&ChunkedArray>,
    results: &[Mutex<FetchResult>],
    diagnostics: &Diagnostics,
) -> Result<LinkRecords, CatalogError> {
    let (source, cell) = (requested.source, requested.cell);
    let records = links(requested, fragments, results);
    let mut records = match records {
        Ok(records) => records,
        Err(damage) => {
            diagnostics.skip(damage)?;
            let mut unreadable = decode::empty(source.width);
            unreadable.chunks = cell.chunks.clone().unwrap_or_default();
            unreadable.is_unreadable = true;
            unreadable
        }
    };
    records.node = source.cells.node().clone();
    let rows = u64::try_from(records.len()).unwrap_or(u64::MAX);
    for (attribute, slot) in source.attributes.iter().zip(&requested.values) {
        let (Some(attribute), Some(slot)) = (attribute, slot) else {
            records.attributes.push(None);
            continue;
        };
        let node = attribute.cells.node();
        let payload = take(
            results,
            *slot,
            node,
            &cell.at,
            is_optional(&attribute.cells),
        );
        let values = payload.and_then(|payload| match payload {
            Some(bytes) => value_rows(&attribute.metadata, node, &cell.at, bytes, rows).map(Some),
            None => Ok(None::<CellRows>),
        });
        records.attributes.push(match values {
            Ok(values) => values,
            Err(damage) => {
                diagnostics.skip(damage)?;
                None
            }
        });
    }
    Ok(records)
}

fn links(
    requested: &CellResults<'_>,
    fragments: Option<&ChunkedArray>,
    results: &[Mutex<FetchResult>],
) -> Result<LinkRecords, Damage> {
    let (source, cell) = (requested.source, requested.cell);
    let node = source.cells.node();
    let damage = |fault| match &source.cells {
        LinkStorage::Each(_) => Damage::in_chunk(node, &cell.at, fault),
        LinkStorage::Table(..) | LinkStorage::Pairs(_) => Damage::new(node, fault),
    };
    let slot = requested.links.ok_or_else(|| damage(Fault::MissingCell))?;
    // An absent chunk of a padded array consists of fill values.
    let is_padded = matches!(source.form, LinkCellForm::Padded(_));
    let optional = is_padded || is_optional(&source.cells);
    let used = match (fragments, requested.fragments) {
        (Some(family), Some(slot)) => {
            let blob = take(results, slot, &family.node, &cell.at, false)?.unwrap_or_default();
            let table = FragmentTable::parse(&blob)
                .map_err(|error| Damage::in_chunk(&family.node, &cell.at, error))?;
            Some(table.extent())
        }
        _ => None,
    };
    let payload = take(results, slot, node, &cell.at, optional)?;
    let Some(payload) = payload else {
        return match used {
            None | Some(0) => Ok(decode::empty(source.width)),
            Some(_) => Err(damage(Fault::MissingCell)),
        };
    };
    let records = decode::records(source, cell, &payload, used).map_err(damage)?;
    if let (LinkStorage::Table(..), Some(expected)) = (&source.cells, source.records) {
        let found = u64::try_from(records.len()).unwrap_or(u64::MAX);
        if found != expected {
            return Err(damage(Fault::Count { found, expected }));
        }
    }
    Ok(records)
}

/// Takes a fetch result out of its slot; `None` if the cell is optional and absent.
fn take(
    results: &[Mutex<FetchResult>],
    slot: usize,
    key: &Key,
    at: &ChunkCoord,
    optional: bool,
) -> Result<Option<Bytes>, Damage> {
    // Each slot is taken once.
    let result = results
        .get(slot)
        .map(|result| core::mem::replace(&mut *lock(result), Ok(None)));
    let fault = match result {
        Some(Ok(Some(fetched))) => return Ok(Some(fetched.bytes)),
        Some(Ok(None)) if optional => return Ok(None),
        Some(Ok(None)) | None => Fault::MissingCell,
        Some(Err(error)) => Fault::Fetch(error),
    };
    match at.coords() {
        [] => Err(Damage::new(key, fault)),
        _ => Err(Damage::in_chunk(key, at, fault)),
    }
}

fn is_optional(cells: &LinkStorage) -> bool {
    // An absent chunk of an array consists of fill values.
    matches!(cells, LinkStorage::Table(_, true) | LinkStorage::Pairs(_))
}
