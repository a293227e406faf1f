//! Presence lists: the chunks of an array that have a cell.

use core::ops::{Range, RangeInclusive};

use serde_json::Value;
use zvf_format::path::{ChunkCoords, ChunkKey};

use crate::{
    grid::{ChunkCoord, Grid, GridError},
    key::Key,
    metadata::{
        Assumed, Attributes, Excerpt, Fields, JsonField, JsonMembers, MetadataError, MetadataFault,
        Noted, Noter, dialect,
    },
    zarr::Array,
};

/// The attribute that lists the chunks, as text.
const LIST: &str = "nonempty_chunks";
/// The attribute that lists them as runs, in copies of nodes.
const RUNS: &str = "zvf_chunk_runs";
/// The attribute with the first chunk of the grid.
pub(super) const ORIGIN: &str = "chunk_grid_origin";
/// Maximum number of chunks in runs, about as many as the largest list that is read.
const MAX_CHUNKS: u64 = 1 << 22;

/// The chunks of an array of byte strings, and their cells.
///
/// The attribute `nonempty_chunks` is the only list: iteration over the chunks does not find a cell
/// that is stored but not listed. Writers sort it as text; here it is sorted as tuples of integers.
/// Takes sixteen bytes for each run of chunks that are neighbours along the last axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Presence {
    grid: Grid,
    /// Ascending, and not adjacent.
    runs: Box<[Run]>,
    len: usize,
}

/// Consecutive numbers of cells in the order of the grid, last axis fastest. Numbers ascend as the
/// chunks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    first: u64,
    length: u64,
}

impl Run {
    fn end(self) -> u64 {
        self.first.saturating_add(self.length)
    }
}

/// A chunk that is present, and its cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentChunk {
    /// The chunk.
    pub chunk: ChunkCoord,
    /// Index of its element in the array.
    pub cell: Vec<u64>,
}

impl Presence {
    /// Reads array `key`, whose chunk keys have `arity` numbers.
    ///
    /// A missing list means no chunk, and is noted.
    ///
    /// # Errors
    ///
    /// [`MetadataError`] if the list or origin is malformed, a chunk is listed twice, is outside
    /// the array, or the array has a wrong number of dimensions.
    pub fn parse(key: &Key, array: &Array, arity: usize) -> Result<Noted<Self>, MetadataError> {
        let fields = Fields::attributes(key, &array.attributes);
        let mut notes = Noter::default();
        let origin = fields
            .get(ORIGIN)
            .map(|at| at.exactly(arity, JsonField::i64))
            .transpose()?;
        let no_grid = |error: GridError| Fields::beside(key, "shape", error.into());
        if array.rank() != arity {
            let (expected, found) = (arity, array.rank());
            return Err(no_grid(GridError::Axes { expected, found }));
        }
        let grid = Grid::new(origin.as_deref(), &array.shape).map_err(no_grid)?;
        let runs = match fields.get(RUNS).filter(|_| fields.get(LIST).is_none()) {
            Some(at) => read_runs(&at, &grid)?,
            None => match notes.take(fields.require(LIST), Assumed::Nothing) {
                Some(at) => read_list(&at, arity, &grid)?,
                None => Vec::new(),
            },
        };
        let len = runs.iter().map(|run| run.length);
        let value = Self {
            grid,
            len: usize::try_from(len.sum::<u64>()).unwrap_or(usize::MAX),
            runs: runs.into(),
        };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the attributes that declare these chunks of a grid with this first chunk.
    pub fn attributes_of<'c>(
        origin: &[i64],
        chunks: impl IntoIterator<Item = &'c [i64]>,
    ) -> Attributes {
        let mut list = Attributes::new();
        Self::set_list(&mut list, chunks);
        with_origin(list, origin)
    }

    /// Sets the list in the attributes of an array.
    pub fn set_list<'c>(attributes: &mut Attributes, chunks: impl IntoIterator<Item = &'c [i64]>) {
        let chunks = chunks.into_iter();
        let mut keys: Vec<String> = chunks.map(|at| ChunkCoords(at).to_string()).collect();
        keys.sort_unstable();
        attributes.insert(LIST.to_owned(), keys.into());
    }

    /// Sets the first chunk of the grid in the attributes of an array. That of all zeros need not be
    /// declared.
    pub fn set_origin(attributes: &mut Attributes, origin: &[i64]) {
        if attributes.contains_key(ORIGIN) || origin.iter().any(|at| *at != 0) {
            attributes.insert(ORIGIN.to_owned(), origin.to_vec().into());
        }
    }

    /// Returns the attributes that declare the chunks.
    pub fn to_attributes(&self) -> Attributes {
        let chunks: Vec<ChunkCoord> = self.chunks().collect();
        Self::attributes_of(self.grid.origin(), chunks.iter().map(ChunkCoord::coords))
    }

    /// Returns the first chunk that the attributes of an array declare for its grid, followed by zeros.
    pub fn origin_of(attributes: &Attributes) -> impl Iterator<Item = i64> {
        let origin = attributes
            .get(ORIGIN)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_i64);
        origin.chain(core::iter::repeat(0))
    }

    /// Returns whether the attributes of an array list its chunks.
    pub fn is_listed(attributes: &Attributes) -> bool {
        attributes.contains_key(LIST)
    }

    /// Returns whether readers take the chunks of an array from the store: an array of 0.10 without a list.
    pub fn is_deferred(attributes: &Attributes) -> bool {
        let is_listed = attributes.contains_key(LIST) || attributes.contains_key(RUNS);
        !is_listed && dialect::is_marked(attributes)
    }

    /// Removes the list and the origin of the grid from the attributes of an array.
    pub fn remove(attributes: &mut Attributes) {
        Self::remove_list(attributes);
        attributes.remove(ORIGIN);
    }

    /// Removes the list from the attributes of an array, in either form. As text, a list of a
    /// million chunks takes 70 MB.
    pub fn remove_list(attributes: &mut Attributes) {
        attributes.remove(LIST);
        attributes.remove(RUNS);
    }

    /// Replaces the list in the attributes of an array of `shape` by the same list as runs, which
    /// [`parse`](Self::parse) reads too: pairs of the number of absent chunks before a run, and of
    /// the chunks in it. A list that is not sorted as text, or has other faults, stays.
    pub(crate) fn shorten_list(attributes: &mut Attributes, shape: &[u64]) {
        let runs = attributes
            .get(LIST)
            .filter(|_| !attributes.contains_key(RUNS))
            .and_then(|list| runs_of(list.as_array()?, attributes.get(ORIGIN), shape));
        if let Some(runs) = runs {
            attributes.remove(LIST);
            attributes.insert(RUNS.to_owned(), runs);
        }
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether no chunk is present.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the chunks, ascending as tuples of integers.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = ChunkCoord> {
        let numbers = Numbers {
            runs: self.runs.iter(),
            run: 0..0,
            left: self.len,
        };
        numbers.map(|number| {
            let mut chunk = ChunkCoord::new(self.grid.origin());
            self.grid.move_to(number, &mut chunk);
            chunk
        })
    }

    /// Returns the chunks with a first coordinate in `first` that satisfy `is_wanted`, ascending.
    /// Other chunks take no time.
    pub fn chunks_where(
        &self,
        first: &RangeInclusive<i64>,
        is_wanted: impl Fn(&ChunkCoord) -> bool,
    ) -> Vec<ChunkCoord> {
        let numbers = self.grid.numbers_within(first);
        let start = self.runs.partition_point(|run| run.end() <= numbers.start);
        let runs = self
            .runs
            .get(start..)
            .unwrap_or_default()
            .iter()
            .take_while(|run| run.first < numbers.end);
        let mut found = Vec::new();
        // Most chunks are not wanted, so all are looked at in one place.
        let mut chunk = ChunkCoord::new(self.grid.origin());
        for run in runs {
            for number in run.first.max(numbers.start)..run.end().min(numbers.end) {
                self.grid.move_to(number, &mut chunk);
                if is_wanted(&chunk) {
                    found.push(chunk.clone());
                }
            }
        }
        found
    }

    /// Returns whether `chunk` is present. O(log runs).
    pub fn contains(&self, chunk: &ChunkCoord) -> bool {
        let number = self.grid.number_of(chunk.coords().iter().copied());
        number.is_ok_and(|number| {
            let at = self.runs.partition_point(|run| run.end() <= number);
            self.runs.get(at).is_some_and(|run| run.first <= number)
        })
    }

    /// Returns the box of chunks in the array.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns the chunks with their elements, ascending.
    pub fn cells(&self) -> impl Iterator<Item = PresentChunk> {
        // `parse` has verified that every listed chunk has a cell.
        self.chunks().filter_map(|chunk| {
            let cell = self.grid.cell_of(chunk.coords()).ok()?;
            Some(PresentChunk { chunk, cell })
        })
    }
}

/// Adds the first chunk of a grid to the attributes of an array, if it is not that of all zeros.
pub(super) fn with_origin(attributes: Attributes, origin: &[i64]) -> Attributes {
    let moved = origin.iter().any(|at| *at != 0);
    JsonMembers::of(attributes)
        .with_some(ORIGIN, moved.then(|| origin.to_vec()))
        .finish()
}

/// The numbers in runs, ascending.
struct Numbers<'r> {
    runs: core::slice::Iter<'r, Run>,
    run: Range<u64>,
    left: usize,
}

impl Iterator for Numbers<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some(number) = self.run.next() {
                self.left = self.left.saturating_sub(1);
                return Some(number);
            }
            let run = self.runs.next()?;
            self.run = run.first..run.end();
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Numbers<'_> {}

/// Reads a list of chunk keys.
fn read_list(at: &JsonField<'_>, arity: usize, grid: &Grid) -> Result<Vec<Run>, MetadataError> {
    let list = at.list()?;
    let mut numbers = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        // The path is only formatted for errors, because lists have millions of items.
        let place = || at.item(index, value);
        let Some(text) = value.as_str() else {
            return Err(place()
                .text()
                .err()
                .unwrap_or_else(|| at.error(MetadataFault::Missing)));
        };
        let chunk = ChunkKey::parse(text, arity).map_err(|error| {
            let found = Excerpt::of(text);
            place().error(MetadataFault::Segment { found, error })
        })?;
        let number = grid.number_of(chunk.coords());
        numbers.push(number.map_err(|error| place().error(error.into()))?);
    }
    numbers.sort_unstable();
    let mut pairs = numbers.iter().zip(numbers.iter().skip(1));
    match pairs.find(|(left, right)| left == right) {
        None => Ok(join(&numbers)),
        Some((twice, _)) => {
            let mut chunk = ChunkCoord::new(grid.origin());
            grid.move_to(*twice, &mut chunk);
            let twice = Excerpt::of(&chunk.to_string());
            Err(at.error(MetadataFault::Twice(twice)))
        }
    }
}

/// Joins ascending numbers to runs.
fn join(numbers: &[u64]) -> Vec<Run> {
    let runs = numbers.chunk_by(|left, right| left.checked_add(1) == Some(*right));
    let run = |numbers: &[u64]| {
        let length = u64::try_from(numbers.len()).ok()?;
        let first = *numbers.first()?;
        Some(Run { first, length })
    };
    runs.filter_map(run).collect()
}

/// Reads runs, as [`Presence::shorten_list`] writes them.
fn read_runs(at: &JsonField<'_>, grid: &Grid) -> Result<Vec<Run>, MetadataError> {
    let list = at.list()?;
    let cells = grid
        .shape()
        .iter()
        .try_fold(1_u64, |cells, extent| cells.checked_mul(*extent));
    let max = cells.unwrap_or(u64::MAX);
    let mut runs = Vec::with_capacity(list.len().div_ceil(2));
    let (mut end, mut chunks) = (0_u64, 0_u64);
    for (index, pair) in list.chunks(2).enumerate() {
        let index = index.saturating_mul(2);
        let [gap, length] = pair else {
            let (expected, found) = (index.saturating_add(2), list.len());
            return Err(at.error(MetadataFault::Length { expected, found }));
        };
        let gap = at.item(index, gap);
        // The runs of a list are neither empty nor adjacent.
        let gap = gap.unsigned(u64::from(index > 0), max.saturating_sub(end))?;
        let first = end.saturating_add(gap);
        let length = at.item(index.saturating_add(1), length);
        let most = max
            .saturating_sub(first)
            .min(MAX_CHUNKS.saturating_sub(chunks));
        let length = length.unsigned(1, most)?;
        let run = Run { first, length };
        (end, chunks) = (run.end(), chunks.saturating_add(length));
        runs.push(run);
    }
    Ok(runs)
}

/// Returns the runs of a list of chunk keys that ascend as text, and that are chunks of the grid;
/// `None` for other lists, which could not be restored.
fn runs_of(list: &[Value], origin: Option<&Value>, shape: &[u64]) -> Option<Value> {
    let origin = match origin {
        None | Some(Value::Null) => None,
        Some(origin) => {
            let numbers = origin.as_array()?.iter().map(Value::as_i64);
            Some(numbers.collect::<Option<Vec<i64>>>()?)
        }
    };
    let grid = Grid::new(origin.as_deref(), shape).ok()?;
    let mut numbers = Vec::with_capacity(list.len());
    let mut last = None;
    for item in list {
        let text = item.as_str()?;
        let chunk = ChunkKey::parse(text, shape.len()).ok()?;
        numbers.push(grid.number_of(chunk.coords()).ok()?);
        if last.replace(text).is_some_and(|last| last >= text) {
            return None;
        }
    }
    if u64::try_from(numbers.len()).ok()? > MAX_CHUNKS {
        return None;
    }
    numbers.sort_unstable();
    let mut end = 0_u64;
    let pairs = join(&numbers).into_iter().flat_map(|run| {
        let gap = run.first.saturating_sub(end);
        end = run.end();
        [gap, run.length]
    });
    Some(pairs.collect())
}
