//! Reads chunks: fragment indexes first if the requested rows depend on them, then rows.

mod draco;
mod rows;

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use zvf_format::fragment::FragmentIndexError;
use zvf_model::{
    draco::VertexOrder,
    fetch::{BoxFuture, CellRequest, FetchError, Fetched, Port},
    grid::ChunkCoord,
    key::Key,
};

use crate::{
    catalog::Catalog,
    cell_rows::CellRows,
    chunked_array::ChunkedArray,
    coordinates::Coordinates,
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{CatalogError, Damage, Fault},
    fragments::{FragmentRows, FragmentTable},
    row_selection::{RowRun, RowSelection},
    schema::{ChunkAttribute, Schema},
};

use rows::{AttributeRows, attribute_rows, positions, whole_rows};

/// A request for rows of a chunk.
#[derive(Clone, Debug)]
pub struct ChunkRequest {
    /// The chunk.
    pub chunk: ChunkCoord,
    /// Reads the fragment index even if the rows do not depend on it.
    pub fragments: bool,
    /// The rows to read.
    pub rows: RequestedRows,
}

/// The rows of a chunk to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestedRows {
    /// All rows.
    All,
    /// The rows of these fragments.
    Fragments(Vec<u32>),
    /// At least the rows of these fragments. Cells that are read whole stay whole, so that no row is
    /// copied and rows are indices.
    Covering(Vec<u32>),
    /// The rows of these fragments, without fragments that the chunk does not have.
    Present(Vec<u32>),
    /// The rows of these bins if the chunk has `of` fragments, which shows that its
    /// fragments are bins; otherwise all rows.
    Bins {
        /// The bins.
        bins: Vec<u32>,
        /// Number of bins of a chunk.
        of: u64,
    },
    /// The rows with these numbers.
    Rows(Vec<u64>),
}

impl RequestedRows {
    /// Returns whether only the fragment index tells which rows are wanted.
    fn is_by_index(&self) -> bool {
        matches!(
            self,
            Self::Fragments(_) | Self::Covering(_) | Self::Present(_) | Self::Bins { .. }
        )
    }
}

/// The loaded part of a chunk.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// The chunk.
    pub chunk: ChunkCoord,
    /// The rows of each fragment.
    pub fragments: Arc<FragmentTable>,
    /// Rows of the chunk's buffer.
    pub rows: u64,
    /// Rows that are in memory, ascending.
    pub loaded: RowSelection,
    /// The fragments that were requested as bins; `None` if all fragments were.
    pub(crate) bins: Option<Vec<u32>>,
    /// `Lost` if attributes and links between chunks cannot be assigned to the vertices.
    pub order: VertexOrder,
    /// Positions of the rows in memory, as in the array.
    pub positions: Bytes,
    /// Vertex attributes in the order of the schema; `None` if the chunk has no values.
    pub vertex: Vec<Option<CellRows>>,
    /// Fragment attributes in the order of the schema, one row for each fragment.
    pub fragment: Vec<Option<CellRows>>,
}

impl Chunk {
    /// Returns the positions as f64.
    pub fn coordinates(&self, schema: &Schema) -> Coordinates {
        Coordinates::of(&self.positions, schema.dtype, schema.axes)
    }

    /// Returns the vertices in memory of the requested fragments, by fragment, then in the order
    /// of the fragment.
    pub fn runs(&self) -> RowSelection {
        let mut runs = RowSelection::default();
        let mut push = |fragment| self.push_fragment(fragment, |run| runs.push(run));
        match &self.bins {
            Some(bins) => bins.iter().copied().for_each(&mut push),
            None => (0..self.fragments.len()).for_each(&mut push),
        }
        runs
    }

    /// Returns the loaded vertices of these fragments, in the order of the fragments.
    pub fn runs_of(&self, fragments: &[u32]) -> RowSelection {
        let mut runs = RowSelection::default();
        for fragment in fragments {
            self.push_fragment(*fragment, |run| runs.push(run));
        }
        runs
    }

    /// Calls `push` for each run of the vertices of a fragment that are in memory.
    pub fn push_fragment(&self, fragment: u32, mut push: impl FnMut(RowRun)) {
        match self.fragments.rows(fragment) {
            None => {}
            Some(FragmentRows::Range(rows)) => {
                let runs = self.loaded.within(rows);
                runs.for_each(|run| push(RowRun { fragment, ..run }));
            }
            Some(FragmentRows::List(rows)) => {
                for row in rows {
                    if let Some(index) = self.loaded.index_of(*row) {
                        push(RowRun {
                            row: *row,
                            index,
                            len: 1,
                            fragment,
                            chunk: 0,
                        });
                    }
                }
            }
        }
    }

    /// Returns whether the chunk has a fragment and all of its vertices are in memory.
    pub fn holds(&self, fragment: u32) -> bool {
        let Some(rows) = self.fragments.rows(fragment) else {
            return false;
        };
        if self.is_whole() {
            return true;
        }
        let mut held = 0_usize;
        self.push_fragment(fragment, |run| held = held.saturating_add(run.len));
        u64::try_from(held) == Ok(rows.len())
    }

    /// Returns whether all vertices are in memory.
    #[inline]
    fn is_whole(&self) -> bool {
        u64::try_from(self.loaded.len()) == Ok(self.rows)
    }

    /// Copies the rows out of the cells that were read, which can then be freed. Returns their size
    /// in bytes.
    pub fn detach(&mut self) -> usize {
        let cells = self
            .vertex
            .iter_mut()
            .chain(&mut self.fragment)
            .flatten()
            .map(|cell| &mut cell.bytes);
        let mut size = 0_usize;
        for bytes in core::iter::once(&mut self.positions).chain(cells) {
            *bytes = Bytes::copy_from_slice(bytes);
            size = size.saturating_add(bytes.len());
        }
        size
    }

    /// Returns start and end of each fragment if all are ranges, and all rows are in memory, so that
    /// rows are indices.
    #[inline]
    pub fn ranges(&self) -> Option<&[[u32; 2]]> {
        self.fragments.ranges().filter(|_| self.is_whole())
    }
}

type Responses = Vec<Option<Result<Option<Fetched>, FetchError>>>;

/// Requests that are made together, in one round trip.
struct RoundTrip {
    wanted: Vec<CellRequest>,
}

/// The index of a response.
type Slot = usize;

impl RoundTrip {
    fn new() -> Self {
        Self { wanted: Vec::new() }
    }

    /// Requests the cell of a chunk, or a byte range of it. Returns `None` if the chunk has no cell.
    fn push(
        &mut self,
        array: &ChunkedArray,
        chunk: &ChunkCoord,
        part: Option<Range<u64>>,
    ) -> Option<Slot> {
        self.wanted.push(array.cell_request(chunk, part)?);
        Some(self.wanted.len().saturating_sub(1))
    }

    async fn fetch(self, fetch: Port<'_>) -> Responses {
        if self.wanted.is_empty() {
            return Vec::new();
        }
        let responses = fetch.cells(&self.wanted).await;
        responses.into_iter().map(Some).collect()
    }
}

/// Takes the response in a slot. A failed request is damage of the chunk, and so is the absence of a
/// cell that is listed.
fn take(
    responses: &mut Responses,
    slot: Slot,
    key: &Key,
    chunk: &ChunkCoord,
) -> Result<Fetched, Damage> {
    let response = responses.get_mut(slot).and_then(Option::take);
    match response {
        Some(Ok(Some(fetched))) => Ok(fetched),
        Some(Ok(None)) | None => Err(Damage::in_chunk(key, chunk, Fault::MissingCell)),
        Some(Err(error)) => Err(Damage::in_chunk(key, chunk, Fault::Fetch(error))),
    }
}

/// A chunk whose requests are not complete.
struct PendingChunk {
    request: ChunkRequest,
    index: Option<Slot>,
    positions: RowRequest,
    vertex: Vec<RowRequest>,
    fragment: Vec<Option<Slot>>,
    table: Option<Arc<FragmentTable>>,
    /// The result of requesting the rows of the fragments, if the table was cached.
    fragment_rows: Option<Result<(), Damage>>,
    loaded: Option<RowSelection>,
    bins: Option<Vec<u32>>,
    order: VertexOrder,
}

/// The requests for the rows of an array.
#[derive(Clone, Debug)]
enum RowRequest {
    /// The chunk has no rows in this array.
    Absent,
    /// Requested once the fragment index is known.
    Deferred,
    Whole(Slot),
    /// A slot for each run of rows, and the bytes of a row.
    Runs(Vec<Slot>, u64),
}

impl Catalog<'_> {
    /// Reads chunks, in the order of the requests. A damaged chunk is `None` if the diagnostics allow
    /// skipping it.
    ///
    /// Takes at most two round trips: cells that are read whole come with the fragment indexes, parts
    /// of cells after them. An attribute that is wider than declared takes a third.
    ///
    /// # Errors
    ///
    /// Returns [`CatalogError`] if a chunk is damaged and the diagnostics do not skip damage, or if the
    /// chunks exceed the memory budget.
    pub fn chunks<'f>(
        &'f self,
        schema: &'f Schema,
        requests: Vec<ChunkRequest>,
        diagnostics: &'f Diagnostics,
    ) -> BoxFuture<'f, Result<Vec<Option<Chunk>>, CatalogError>> {
        Box::pin(async move {
            let mut round = RoundTrip::new();
            let start = |request: ChunkRequest| Self::start(schema, request, &mut round);
            let mut pending: Vec<PendingChunk> = requests.into_iter().map(start).collect();
            let mut responses = round.fetch(self.fetch).await;
            let mut round = RoundTrip::new();
            let mut alive: Vec<bool> = Vec::with_capacity(pending.len());
            let offset = responses.len();
            let tables = fragment_tables(&pending, &responses);
            for (chunk, table) in pending.iter_mut().zip(tables) {
                let done = request_rows(schema, chunk, table, &mut responses, offset, &mut round);
                alive.push(skip_damaged(done, diagnostics)?.is_some());
            }
            responses.extend(round.fetch(self.fetch).await);
            if schema.vertices.is_draco() {
                let budget = self.fetch.budget();
                for (kept, decoded) in alive.iter_mut().zip(draco::decode(
                    schema,
                    &mut pending,
                    &mut responses,
                    budget,
                )) {
                    *kept = *kept && skip_damaged(decoded, diagnostics)?.is_some();
                }
            }
            let mut chunks = Vec::with_capacity(pending.len());
            for (chunk, alive) in pending.into_iter().zip(alive) {
                chunks.push(if alive {
                    self.finish(schema, chunk, &mut responses, diagnostics)
                        .await?
                } else {
                    None
                });
            }
            Ok(chunks)
        })
    }

    /// Requests the fragment index and the rows that do not depend on it.
    fn start(schema: &Schema, request: ChunkRequest, round: &mut RoundTrip) -> PendingChunk {
        let padded = schema.vertices.padded().is_some();
        let by_index = request.rows.is_by_index();
        let needed = schema
            .fragments
            .as_ref()
            .filter(|_| request.fragments || by_index || padded);
        let table = needed.and_then(|fragments| fragments.fragment_tables.get(&request.chunk));
        let index = match (needed, &table) {
            (Some(fragments), None) => round.push(fragments, &request.chunk, None),
            _ => None,
        };
        let chunk = &request.chunk;
        // Cells that cannot be read in parts do not wait for the fragment index.
        let mut row_request = |array: &ChunkedArray| {
            if request.rows == RequestedRows::All || !array.has_parts() {
                let slot = round.push(array, chunk, None);
                return slot.map_or(RowRequest::Absent, RowRequest::Whole);
            }
            if array.has(chunk) {
                if index.is_some() && array.is_in_blocks() {
                    // Locates the rows beside the fragment index, instead of after it.
                    round.push(array, chunk, Some(0..0));
                }
                RowRequest::Deferred
            } else {
                RowRequest::Absent
            }
        };
        let positions = row_request(&schema.vertices);
        let vertex = schema
            .vertex
            .iter()
            .map(|attribute| row_request(&attribute.array))
            .collect();
        let fragment = schema
            .fragment
            .iter()
            .map(|attribute| round.push(&attribute.array, chunk, None))
            .collect();
        let mut pending = PendingChunk {
            request,
            index,
            positions,
            vertex,
            fragment,
            fragment_rows: None,
            table,
            loaded: None,
            bins: None,
            order: VertexOrder::Kept,
        };
        if let RequestedRows::Rows(rows) = &pending.request.rows {
            let runs = rows.iter().map(|row| *row..row.saturating_add(1));
            pending.loaded = Some(RowSelection::ascending(runs));
            request_loaded_rows(schema, &mut pending, 0, round);
        }
        if let (Some(fragments), Some(table)) = (needed, pending.table.clone()) {
            pending.fragment_rows = Some(request_fragment_rows(
                schema,
                fragments,
                &table,
                &mut pending,
                0,
                round,
            ));
        }
        pending
    }

    /// Checks the memory for vertices that fragments share: a few bytes can be many vertices.
    fn check_shared(&self, fragments: &FragmentTable, rows: u64) -> Result<(), CatalogError> {
        let (budget, total) = (self.fetch.budget(), fragments.total());
        let entry = u64::try_from(size_of::<RowRun>()).unwrap_or(u64::MAX);
        let bytes = total.saturating_mul(entry);
        if total <= rows || bytes <= budget {
            return Ok(());
        }
        let what = "vertices that fragments share";
        Err(CatalogError::OverBudget {
            what,
            bytes,
            budget,
        })
    }

    /// Builds the chunk from the responses.
    async fn finish(
        &self,
        schema: &Schema,
        pending: PendingChunk,
        responses: &mut Responses,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Chunk>, CatalogError> {
        let chunk = &pending.request.chunk;
        let positions = positions(schema, &pending, responses);
        let Some((rows, loaded, positions)) = skip_damaged(positions, diagnostics)? else {
            return Ok(None);
        };
        let fragments = match pending.table {
            Some(table) => table,
            None => Arc::new(FragmentTable::whole(rows)),
        };
        self.check_shared(&fragments, rows)?;
        let mut vertex = Vec::with_capacity(schema.vertex.len());
        for (attribute, row_request) in schema.vertex.iter().zip(&pending.vertex) {
            if pending.order == VertexOrder::Lost && !matches!(row_request, RowRequest::Absent) {
                let node = &attribute.array.node;
                skip_damaged(
                    Err::<(), _>(Damage::in_chunk(node, chunk, Fault::OrderLost)),
                    diagnostics,
                )?;
                vertex.push(None);
                continue;
            }
            let cell = attribute_rows(attribute, chunk, row_request, rows, &loaded, responses);
            let cell = match cell {
                Ok(AttributeRows::Wider) => {
                    let mut round = RoundTrip::new();
                    let slot = round.push(&attribute.array, chunk, None);
                    let mut responses = round.fetch(self.fetch).await;
                    let whole = slot.map_or(RowRequest::Absent, RowRequest::Whole);
                    attribute_rows(attribute, chunk, &whole, rows, &loaded, &mut responses)
                }
                other => other,
            };
            vertex.push(match skip_damaged(cell, diagnostics)? {
                Some(AttributeRows::Rows(cell)) if cell.columns > 0 => Some(cell),
                _ => None,
            });
        }
        let mut fragment = Vec::with_capacity(schema.fragment.len());
        for (attribute, slot) in schema.fragment.iter().zip(&pending.fragment) {
            let Some(slot) = slot else {
                fragment.push(None);
                continue;
            };
            let key = &attribute.array.node;
            let cell = take(responses, *slot, key, chunk)
                .and_then(|cell| whole_rows(attribute, chunk, cell.bytes, fragments.len().into()));
            fragment.push(skip_damaged(cell, diagnostics)?);
        }
        Ok(Some(Chunk {
            chunk: pending.request.chunk,
            fragments,
            rows,
            loaded,
            bins: pending.bins,
            order: pending.order,
            positions,
            vertex,
            fragment,
        }))
    }
}

/// Returns the value; `None` if it is damaged and the diagnostics allow skipping it.
fn skip_damaged<T>(
    result: Result<T, Damage>,
    diagnostics: &Diagnostics,
) -> Result<Option<T>, CatalogError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(damage) => diagnostics.skip(damage).map(|()| None),
    }
}

/// Parses the fragment indexes of chunks on all cores; `None` for a chunk without one.
fn fragment_tables(
    pending: &[PendingChunk],
    responses: &Responses,
) -> Vec<Option<Result<FragmentTable, FragmentIndexError>>> {
    let blobs: Vec<Option<&[u8]>> = pending
        .iter()
        .map(|chunk| match responses.get(chunk.index?) {
            Some(Some(Ok(Some(blob)))) => Some(&*blob.bytes),
            _ => None,
        })
        .collect();
    let bytes = blobs.iter().flatten().map(|blob| blob.len()).sum();
    on_cores(blobs, bytes, |blob| blob.map(FragmentTable::parse))
}

/// Parses the fragment index in the responses and requests the rows that depend on it.
fn request_rows(
    schema: &Schema,
    pending: &mut PendingChunk,
    table: Option<Result<FragmentTable, FragmentIndexError>>,
    responses: &mut Responses,
    offset: usize,
    round: &mut RoundTrip,
) -> Result<(), Damage> {
    let Some(array) = &schema.fragments else {
        return match pending.request.rows {
            RequestedRows::All | RequestedRows::Rows(_) => Ok(()),
            // A chunk without an index is one fragment.
            _ => {
                let unneeded = RequestedRows::All;
                pending.request.rows = unneeded;
                if matches!(pending.positions, RowRequest::Deferred) {
                    request_all_rows(schema, pending, offset, round);
                }
                Ok(())
            }
        };
    };
    let wanted = pending.request.fragments
        || pending.request.rows.is_by_index()
        || schema.vertices.padded().is_some();
    if !wanted {
        return Ok(());
    }
    if let Some(requested) = pending.fragment_rows.take() {
        return requested;
    }
    let chunk = &pending.request.chunk;
    let Some(slot) = pending.index else {
        return Err(Damage::in_chunk(&array.node, chunk, Fault::Missing));
    };
    let blob = take(responses, slot, &array.node, chunk)?;
    let table = table
        .unwrap_or_else(|| FragmentTable::parse(&blob.bytes))
        .map_err(|error| Damage::in_chunk(&array.node, chunk, error))?;
    let table = array.fragment_tables.insert(chunk, table);
    request_fragment_rows(schema, array, &table, pending, offset, round)?;
    pending.table = Some(table);
    Ok(())
}

/// Requests the rows of the requested fragments of a chunk.
fn request_fragment_rows(
    schema: &Schema,
    array: &ChunkedArray,
    table: &FragmentTable,
    pending: &mut PendingChunk,
    offset: usize,
    round: &mut RoundTrip,
) -> Result<(), Damage> {
    let chunk = &pending.request.chunk;
    let fragments = match &pending.request.rows {
        RequestedRows::Fragments(fragments) | RequestedRows::Covering(fragments) => {
            Some(fragments.clone())
        }
        RequestedRows::Present(fragments) => {
            let present = fragments.iter().copied();
            Some(present.filter(|fragment| *fragment < table.len()).collect())
        }
        RequestedRows::Bins { bins, of } if u64::from(table.len()) == *of => Some(bins.clone()),
        RequestedRows::All | RequestedRows::Rows(_) | RequestedRows::Bins { .. } => None,
    };
    if let Some(fragments) = fragments {
        if let Some(fragment) = fragments.iter().find(|fragment| **fragment >= table.len()) {
            let (fragment, fragments) = (*fragment, table.len());
            let fault = Fault::NoFragment {
                fragment,
                fragments,
            };
            return Err(Damage::in_chunk(&array.node, chunk, fault));
        }
        let is_deferred = core::iter::once(&pending.positions)
            .chain(&pending.vertex)
            .any(|rows| matches!(rows, RowRequest::Deferred));
        if matches!(pending.request.rows, RequestedRows::Covering(_)) && !is_deferred {
            return Ok(());
        }
        let mut runs = Vec::with_capacity(fragments.len());
        for rows in fragments
            .iter()
            .filter_map(|fragment| table.rows(*fragment))
        {
            match rows {
                FragmentRows::Range(rows) => runs.push(rows),
                FragmentRows::List(rows) => {
                    runs.extend(rows.iter().map(|row| *row..row.saturating_add(1)));
                }
            }
        }
        pending.loaded = Some(RowSelection::ascending(runs));
        if matches!(pending.request.rows, RequestedRows::Bins { .. }) {
            pending.bins = Some(fragments);
        }
        request_loaded_rows(schema, pending, offset, round);
    } else if matches!(pending.request.rows, RequestedRows::Bins { .. }) {
        request_all_rows(schema, pending, offset, round);
    }
    Ok(())
}

/// Requests all rows of the deferred arrays.
fn request_all_rows(
    schema: &Schema,
    pending: &mut PendingChunk,
    offset: usize,
    round: &mut RoundTrip,
) {
    let chunk = &pending.request.chunk;
    let arrays = schema.vertex.iter().map(|attribute| &attribute.array);
    let arrays = core::iter::once(&schema.vertices).chain(arrays);
    let row_request = core::iter::once(&mut pending.positions).chain(&mut pending.vertex);
    for (array, row_request) in arrays.zip(row_request) {
        if matches!(row_request, RowRequest::Deferred) {
            let slot = round.push(array, chunk, None);
            let slot = slot.map(|slot| slot.saturating_add(offset));
            *row_request = slot.map_or(RowRequest::Absent, RowRequest::Whole);
        }
    }
}

/// Requests the loaded rows of the deferred arrays.
fn request_loaded_rows(
    schema: &Schema,
    pending: &mut PendingChunk,
    offset: usize,
    round: &mut RoundTrip,
) {
    let Some(loaded) = &pending.loaded else {
        return;
    };
    let chunk = &pending.request.chunk;
    let mut request = |array: &ChunkedArray, row: u64| {
        let mut slots = Vec::new();
        for run in loaded.runs() {
            let rows = run.rows();
            let part = rows.start.saturating_mul(row)..rows.end.saturating_mul(row);
            if let Some(slot) = round.push(array, chunk, Some(part)) {
                slots.push(slot.saturating_add(offset));
            }
        }
        RowRequest::Runs(slots, row)
    };
    if matches!(pending.positions, RowRequest::Deferred) {
        pending.positions = request(&schema.vertices, schema.row());
    }
    for (attribute, row_request) in schema.vertex.iter().zip(&mut pending.vertex) {
        if matches!(row_request, RowRequest::Deferred) {
            *row_request = request(&attribute.array, declared_row(attribute));
        }
    }
}

/// Returns the bytes of a row of the declared width.
fn declared_row(attribute: &ChunkAttribute) -> u64 {
    let columns = match attribute.array.padded() {
        Some(padded) => padded.columns,
        None => attribute.metadata.declared_columns().unwrap_or(1),
    };
    let size = u64::try_from(attribute.metadata.dtype.size()).unwrap_or(1);
    columns.saturating_mul(size).max(1)
}
