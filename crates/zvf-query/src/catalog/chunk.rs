//! Reading chunks: fragment indexes first where rows depend on them, then rows.

mod rows;

use core::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use zvf_format::fragment::FragmentIndexError;
use zvf_model::{
    fetch::{AnyArray, FetchError, Fetched, Port, Wanted},
    grid::ChunkCoord,
    key::Key,
};

use crate::{
    catalog::cell_rows::CellRows,
    catalog::chunked_array::ChunkedArray,
    catalog::coordinates::Coordinates,
    catalog::fragments::{FragmentRows, FragmentTable},
    catalog::level::Session,
    catalog::schema::{ChunkAttribute, Schema},
    cores::on_cores,
    diagnostics::Diagnostics,
    error::{Damage, Fault, QueryError},
    selection::{RowRun, RowSelection},
};

use rows::{AttributeRows, attribute_rows, positions, whole_rows};

/// What is wanted of a chunk.
#[derive(Clone, Debug)]
pub(crate) struct ChunkRequest {
    pub(crate) chunk: ChunkCoord,
    /// Whether the fragments are wanted even where rows do not depend on them.
    pub(crate) fragments: bool,
    pub(crate) rows: RequestedRows,
}

/// Which rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestedRows {
    All,
    /// Those of these fragments.
    Fragments(Vec<u32>),
    /// The rows of these bins if the chunk has `of` fragments, which shows that its
    /// fragments are bins; otherwise all rows.
    Bins {
        bins: Vec<u32>,
        of: u64,
    },
    /// These.
    These(Vec<u64>),
}

/// What was read of a chunk.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_field_names,
    reason = "a chunk is named by its coordinates"
)]
pub(crate) struct Chunk {
    pub(crate) chunk: ChunkCoord,
    pub(crate) fragments: Arc<FragmentTable>,
    /// Rows of the chunk's buffer.
    pub(crate) rows: u64,
    /// Rows that are in memory, ascending.
    pub(crate) loaded: RowSelection,
    /// Fragments that were asked for as bins; `None` when all are.
    pub(crate) bins: Option<Vec<u32>>,
    pub(crate) positions: Bytes,
    /// As in the schema; `None` where the chunk has no values.
    pub(crate) vertex: Vec<Option<CellRows>>,
    /// The same, a row for each fragment.
    pub(crate) fragment: Vec<Option<CellRows>>,
}

impl Chunk {
    /// Returns the positions as f64.
    pub(crate) fn coordinates(&self, schema: &Schema) -> Coordinates {
        Coordinates::of(&self.positions, schema.dtype, schema.axes)
    }

    /// Returns the vertices in memory of the requested fragments, by fragment, then in the order
    /// of the fragment.
    pub(crate) fn runs(&self) -> RowSelection {
        let mut runs = RowSelection::default();
        let mut push = |fragment| self.push_fragment(fragment, |run| runs.push(run));
        match &self.bins {
            Some(bins) => bins.iter().copied().for_each(&mut push),
            None => (0..self.fragments.len()).for_each(&mut push),
        }
        runs
    }

    /// Calls `push` for each run of the vertices of a fragment that are in memory.
    pub(crate) fn push_fragment(&self, fragment: u32, mut push: impl FnMut(RowRun)) {
        match self.fragments.rows(fragment) {
            None => {}
            Some(FragmentRows::Range(rows)) => {
                let runs = self.loaded.within(rows);
                runs.for_each(|run| push(RowRun { fragment, ..run }));
            }
            Some(FragmentRows::List(rows)) => {
                for row in rows {
                    if let Some(place) = self.loaded.place(*row) {
                        push(RowRun {
                            row: *row,
                            place,
                            len: 1,
                            fragment,
                            chunk: 0,
                        });
                    }
                }
            }
        }
    }

    /// Returns the vertices of a fragment if they are consecutive and all rows are in memory, so that
    /// rows are places.
    pub(crate) fn range_of(&self, fragment: u32) -> Option<Range<u64>> {
        match self.fragments.rows(fragment)? {
            FragmentRows::Range(rows) => {
                (u64::try_from(self.loaded.len()) == Ok(self.rows)).then_some(rows)
            }
            FragmentRows::List(_) => None,
        }
    }
}

type Answers = Vec<Option<Result<Option<Fetched>, FetchError>>>;

/// Requests of one round and whose they are.
struct Round {
    wanted: Vec<Wanted<AnyArray>>,
}

/// Where the answer to a request will be.
type Slot = usize;

impl Round {
    fn new() -> Self {
        Self { wanted: Vec::new() }
    }

    /// Asks for the cell of a chunk; `None` when it has none.
    fn ask(
        &mut self,
        family: &ChunkedArray,
        chunk: &ChunkCoord,
        part: Option<Range<u64>>,
    ) -> Option<Slot> {
        self.wanted.push(family.wanted(chunk, part)?);
        Some(self.wanted.len().saturating_sub(1))
    }

    async fn fetch(self, fetch: Port<'_>) -> Answers {
        if self.wanted.is_empty() {
            return Vec::new();
        }
        let answers = fetch.cells(&self.wanted).await;
        answers.into_iter().map(Some).collect()
    }
}

/// The answer of a slot, with what failed as damage of a chunk. A cell that was
/// listed and is not there is damage too.
fn take(
    answers: &mut Answers,
    slot: Slot,
    key: &Key,
    chunk: &ChunkCoord,
) -> Result<Fetched, Damage> {
    let answer = answers.get_mut(slot).and_then(Option::take);
    match answer {
        Some(Ok(Some(fetched))) => Ok(fetched),
        Some(Ok(None)) | None => Err(Damage::in_chunk(key, chunk, Fault::MissingCell)),
        Some(Err(error)) => Err(Damage::in_chunk(key, chunk, Fault::Fetch(error))),
    }
}

/// A chunk on its way.
struct Open {
    request: ChunkRequest,
    index: Option<Slot>,
    positions: Pieces,
    vertex: Vec<Pieces>,
    fragment: Vec<Option<Slot>>,
    table: Option<Arc<FragmentTable>>,
    /// What came of asking for the rows that the table names, when it was known before.
    named: Option<Result<(), Damage>>,
    loaded: Option<RowSelection>,
    bins: Option<Vec<u32>>,
}

/// How the rows of a family were asked for.
#[derive(Clone, Debug)]
enum Pieces {
    /// Not at all: the chunk has none.
    Absent,
    /// Not yet.
    Later,
    Whole(Slot),
    /// A slot for each run of rows of this many bytes.
    Runs(Vec<Slot>, u64),
}

impl Session<'_> {
    /// Reads chunks, in the order asked for; `None` for one that is damaged, if
    /// the diagnostics lets it pass. At most two round trips: what is read whole comes
    /// with the fragment indexes, what is read in part after them. A third where
    /// an attribute turns out to be wider than it says.
    pub(crate) async fn chunks(
        &self,
        schema: &Schema,
        requests: Vec<ChunkRequest>,
        diagnostics: &Diagnostics,
    ) -> Result<Vec<Option<Chunk>>, QueryError> {
        let mut round = Round::new();
        let first = |request: ChunkRequest| Self::first(schema, request, &mut round);
        let mut open: Vec<Open> = requests.into_iter().map(first).collect();
        let mut answers = round.fetch(self.fetch).await;
        let mut round = Round::new();
        let mut alive: Vec<bool> = Vec::with_capacity(open.len());
        let offset = answers.len();
        let tables = fragment_tables(&open, &answers);
        for (chunk, table) in open.iter_mut().zip(tables) {
            let done = second(schema, chunk, table, &mut answers, offset, &mut round);
            alive.push(keep(done, diagnostics)?.is_some());
        }
        answers.extend(round.fetch(self.fetch).await);
        let mut chunks = Vec::with_capacity(open.len());
        for (chunk, alive) in open.into_iter().zip(alive) {
            chunks.push(match alive {
                true => {
                    self.finish(schema, chunk, &mut answers, diagnostics)
                        .await?
                }
                false => None,
            });
        }
        Ok(chunks)
    }

    /// Asks for what is known to be needed.
    fn first(schema: &Schema, request: ChunkRequest, round: &mut Round) -> Open {
        let padded = schema.vertices.padded().is_some();
        let by_index = matches!(
            request.rows,
            RequestedRows::Fragments(_) | RequestedRows::Bins { .. }
        );
        let needed = schema.fragments.as_ref();
        let needed = needed.filter(|_| request.fragments || by_index || padded);
        let table = needed.and_then(|fragments| fragments.fragment_tables.get(&request.chunk));
        let index = match (needed, &table) {
            (Some(fragments), None) => round.ask(fragments, &request.chunk, None),
            _ => None,
        };
        let chunk = &request.chunk;
        // What is only there as a whole is read as a whole, and at once.
        let mut pieces = |family: &ChunkedArray| {
            if !family.has(chunk) {
                return Pieces::Absent;
            }
            if request.rows == RequestedRows::All || !family.is_plain() {
                let slot = round.ask(family, chunk, None);
                return slot.map_or(Pieces::Absent, Pieces::Whole);
            }
            Pieces::Later
        };
        let positions = pieces(&schema.vertices);
        let vertex = schema.vertex.iter();
        let vertex = vertex.map(|attribute| pieces(&attribute.array)).collect();
        let fragment = schema.fragment.iter();
        let fragment = fragment.map(|attribute| round.ask(&attribute.array, chunk, None));
        let fragment = fragment.collect();
        let mut open = Open {
            request,
            index,
            positions,
            vertex,
            fragment,
            named: None,
            table,
            loaded: None,
            bins: None,
        };
        if let RequestedRows::These(rows) = &open.request.rows {
            let runs = rows.iter().map(|row| *row..row.saturating_add(1));
            open.loaded = Some(RowSelection::ascending(runs));
            parts(schema, &mut open, 0, round);
        }
        if let (Some(fragments), Some(table)) = (needed, open.table.clone()) {
            open.named = Some(ask_named(schema, fragments, &table, &mut open, 0, round));
        }
        open
    }

    /// Rows that many fragments share are many vertices of few bytes.
    fn check_shared(&self, fragments: &FragmentTable, rows: u64) -> Result<(), QueryError> {
        let (budget, total) = (self.fetch.budget(), fragments.total());
        let entry = u64::try_from(size_of::<RowRun>()).unwrap_or(u64::MAX);
        let bytes = total.saturating_mul(entry);
        if total <= rows || bytes <= budget {
            return Ok(());
        }
        let what = "vertices that fragments share";
        Err(QueryError::OverBudget {
            what,
            bytes,
            budget,
        })
    }

    /// Takes the rows out of the answers.
    async fn finish(
        &self,
        schema: &Schema,
        open: Open,
        answers: &mut Answers,
        diagnostics: &Diagnostics,
    ) -> Result<Option<Chunk>, QueryError> {
        let chunk = &open.request.chunk;
        let positions = positions(schema, &open, answers);
        let Some((rows, loaded, positions)) = keep(positions, diagnostics)? else {
            return Ok(None);
        };
        let fragments = match open.table {
            Some(table) => table,
            None => Arc::new(FragmentTable::whole(rows)),
        };
        self.check_shared(&fragments, rows)?;
        let mut vertex = Vec::with_capacity(schema.vertex.len());
        for (attribute, pieces) in schema.vertex.iter().zip(&open.vertex) {
            let cell = attribute_rows(attribute, chunk, pieces, rows, &loaded, answers);
            let cell = match cell {
                Ok(AttributeRows::Wider) => {
                    let mut round = Round::new();
                    let slot = round.ask(&attribute.array, chunk, None);
                    let mut answers = round.fetch(self.fetch).await;
                    let whole = slot.map_or(Pieces::Absent, Pieces::Whole);
                    attribute_rows(attribute, chunk, &whole, rows, &loaded, &mut answers)
                }
                other => other,
            };
            vertex.push(match keep(cell, diagnostics)? {
                Some(AttributeRows::Rows(cell)) if cell.columns > 0 => Some(cell),
                _ => None,
            });
        }
        let mut fragment = Vec::with_capacity(schema.fragment.len());
        for (attribute, slot) in schema.fragment.iter().zip(&open.fragment) {
            let Some(slot) = slot else {
                fragment.push(None);
                continue;
            };
            let key = &attribute.array.node;
            let cell = take(answers, *slot, key, chunk)
                .and_then(|cell| whole_rows(attribute, chunk, cell.bytes, fragments.len().into()));
            fragment.push(keep(cell, diagnostics)?);
        }
        Ok(Some(Chunk {
            chunk: open.request.chunk,
            fragments,
            rows,
            loaded,
            bins: open.bins,
            positions,
            vertex,
            fragment,
        }))
    }
}

/// What is damaged stops the query or is left out.
fn keep<T>(result: Result<T, Damage>, diagnostics: &Diagnostics) -> Result<Option<T>, QueryError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(damage) => diagnostics.skip(damage).map(|()| None),
    }
}

/// Parses the fragment indexes of chunks on all cores; `None` for a chunk without one.
fn fragment_tables(
    open: &[Open],
    answers: &Answers,
) -> Vec<Option<Result<FragmentTable, FragmentIndexError>>> {
    let blobs = open.iter().map(|chunk| match answers.get(chunk.index?) {
        Some(Some(Ok(Some(blob)))) => Some(&*blob.bytes),
        _ => None,
    });
    let blobs: Vec<Option<&[u8]>> = blobs.collect();
    let bytes = blobs.iter().flatten().map(|blob| blob.len()).sum();
    on_cores(blobs, bytes, |blob| blob.map(FragmentTable::parse))
}

/// Takes the fragment index out of the answers and asks for the rows that it
/// names.
fn second(
    schema: &Schema,
    open: &mut Open,
    table: Option<Result<FragmentTable, FragmentIndexError>>,
    answers: &mut Answers,
    offset: usize,
    round: &mut Round,
) -> Result<(), Damage> {
    let Some(family) = &schema.fragments else {
        return match open.request.rows {
            RequestedRows::All | RequestedRows::These(_) => Ok(()),
            // Without an index a chunk is one fragment.
            _ => {
                let unneeded = RequestedRows::All;
                open.request.rows = unneeded;
                if matches!(open.positions, Pieces::Later) {
                    whole(schema, open, offset, round);
                }
                Ok(())
            }
        };
    };
    let wanted = open.request.fragments
        || matches!(
            open.request.rows,
            RequestedRows::Fragments(_) | RequestedRows::Bins { .. }
        )
        || schema.vertices.padded().is_some();
    if !wanted {
        return Ok(());
    }
    if let Some(named) = open.named.take() {
        return named;
    }
    let chunk = &open.request.chunk;
    let Some(slot) = open.index else {
        return Err(Damage::in_chunk(&family.node, chunk, Fault::Missing));
    };
    let blob = take(answers, slot, &family.node, chunk)?;
    let table = table.unwrap_or_else(|| FragmentTable::parse(&blob.bytes));
    let table = table.map_err(|error| Damage::in_chunk(&family.node, chunk, error))?;
    let table = family.fragment_tables.insert(chunk, table);
    ask_named(schema, family, &table, open, offset, round)?;
    open.table = Some(table);
    Ok(())
}

/// Asks for the rows that the fragments of a chunk name.
fn ask_named(
    schema: &Schema,
    family: &ChunkedArray,
    table: &FragmentTable,
    open: &mut Open,
    offset: usize,
    round: &mut Round,
) -> Result<(), Damage> {
    let chunk = &open.request.chunk;
    let fragments = match &open.request.rows {
        RequestedRows::Fragments(fragments) => Some(fragments.clone()),
        RequestedRows::Bins { bins, of } if u64::from(table.len()) == *of => Some(bins.clone()),
        RequestedRows::All | RequestedRows::These(_) | RequestedRows::Bins { .. } => None,
    };
    if let Some(fragments) = fragments {
        let mut runs = Vec::with_capacity(fragments.len());
        for fragment in &fragments {
            let Some(rows) = table.rows(*fragment) else {
                let (fragment, fragments) = (*fragment, table.len());
                let fault = Fault::NoFragment {
                    fragment,
                    fragments,
                };
                return Err(Damage::in_chunk(&family.node, chunk, fault));
            };
            match rows {
                FragmentRows::Range(rows) => runs.push(rows),
                FragmentRows::List(rows) => {
                    runs.extend(rows.iter().map(|row| *row..row.saturating_add(1)));
                }
            }
        }
        open.loaded = Some(RowSelection::ascending(runs));
        if matches!(open.request.rows, RequestedRows::Bins { .. }) {
            open.bins = Some(fragments);
        }
        parts(schema, open, offset, round);
    } else if matches!(open.request.rows, RequestedRows::Bins { .. }) {
        whole(schema, open, offset, round);
    }
    Ok(())
}

/// Asks for all rows of what was put off.
fn whole(schema: &Schema, open: &mut Open, offset: usize, round: &mut Round) {
    let chunk = &open.request.chunk;
    let families = schema.vertex.iter().map(|attribute| &attribute.array);
    let families = core::iter::once(&schema.vertices).chain(families);
    let pieces = core::iter::once(&mut open.positions).chain(&mut open.vertex);
    for (family, pieces) in families.zip(pieces) {
        if matches!(pieces, Pieces::Later) {
            let slot = round.ask(family, chunk, None);
            let slot = slot.map(|slot| slot.saturating_add(offset));
            *pieces = slot.map_or(Pieces::Absent, Pieces::Whole);
        }
    }
}

/// Asks for the held rows of what was put off.
fn parts(schema: &Schema, open: &mut Open, offset: usize, round: &mut Round) {
    let Some(loaded) = &open.loaded else {
        return;
    };
    let chunk = &open.request.chunk;
    let mut ask = |family: &ChunkedArray, row: u64| {
        let mut slots = Vec::new();
        for run in loaded.runs() {
            let rows = run.rows();
            let part = rows.start.saturating_mul(row)..rows.end.saturating_mul(row);
            if let Some(slot) = round.ask(family, chunk, Some(part)) {
                slots.push(slot.saturating_add(offset));
            }
        }
        Pieces::Runs(slots, row)
    };
    if matches!(open.positions, Pieces::Later) {
        open.positions = ask(&schema.vertices, schema.row());
    }
    for (attribute, pieces) in schema.vertex.iter().zip(&mut open.vertex) {
        if matches!(pieces, Pieces::Later) {
            *pieces = ask(&attribute.array, declared_row(attribute));
        }
    }
}

/// Bytes of a row as the attribute declares it.
fn declared_row(attribute: &ChunkAttribute) -> u64 {
    let columns = match attribute.array.padded() {
        Some(padded) => padded.columns,
        None => attribute.metadata.declared_columns().unwrap_or(1),
    };
    let size = u64::try_from(attribute.metadata.dtype.size()).unwrap_or(1);
    columns.saturating_mul(size).max(1)
}
