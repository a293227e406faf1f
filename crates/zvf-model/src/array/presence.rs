//! Presence lists: the chunks of an array that have a cell.

use core::ops::RangeInclusive;

use zvf_format::path::ChunkKey;

use crate::{
    grid::{ChunkCoord, Grid, GridError},
    key::Key,
    metadata::{Assumed, Excerpt, Fields, JsonField, MetadataError, MetadataFault, Noted, Noter},
    zarr::Array,
};

/// The chunks of an array of byte strings, and their cells.
///
/// The attribute `nonempty_chunks` is the only list: iteration over the chunks does not find a cell
/// that is stored but not listed. Writers sort it as text; here it is sorted as tuples of integers.
/// Takes eight bytes for each chunk.
#[derive(Clone, Debug, PartialEq)]
pub struct Presence {
    grid: Grid,
    /// Numbers of the cells in the order of the grid, last axis fastest. They ascend as the chunks
    /// do.
    numbers: Box<[u64]>,
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
        let origin = fields.get("chunk_grid_origin");
        let origin = origin
            .map(|at| at.exactly(arity, JsonField::i64))
            .transpose()?;
        let no_grid = |error: GridError| Fields::beside(key, "shape", error.into());
        if array.rank() != arity {
            let (expected, found) = (arity, array.rank());
            return Err(no_grid(GridError::Axes { expected, found }));
        }
        let grid = Grid::new(origin.as_deref(), &array.shape).map_err(no_grid)?;
        let numbers = match notes.take(fields.require("nonempty_chunks"), Assumed::Nothing) {
            Some(at) => read_numbers(&at, arity, &grid)?,
            None => Box::default(),
        };
        let value = Self { grid, numbers };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether no chunk is present.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns the chunks, ascending as tuples of integers.
    pub fn chunks(&self) -> impl ExactSizeIterator<Item = ChunkCoord> {
        self.numbers.iter().map(|number| {
            let mut chunk = ChunkCoord::new(self.grid.origin());
            self.grid.move_to(*number, &mut chunk);
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
        let start = self
            .numbers
            .partition_point(|number| *number < numbers.start);
        let end = self.numbers.partition_point(|number| *number < numbers.end);
        let numbers = self.numbers.get(start..end).unwrap_or_default();
        let mut found = Vec::new();
        // Most chunks are not wanted, so all are looked at in one place.
        let mut chunk = ChunkCoord::new(self.grid.origin());
        for number in numbers {
            self.grid.move_to(*number, &mut chunk);
            if is_wanted(&chunk) {
                found.push(chunk.clone());
            }
        }
        found
    }

    /// Returns whether `chunk` is present. O(log chunks).
    pub fn contains(&self, chunk: &ChunkCoord) -> bool {
        let number = self.grid.number_of(chunk.coords().iter().copied());
        number.is_ok_and(|number| self.numbers.binary_search(&number).is_ok())
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

fn read_numbers(
    at: &JsonField<'_>,
    arity: usize,
    grid: &Grid,
) -> Result<Box<[u64]>, MetadataError> {
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
        None => Ok(numbers.into()),
        Some((twice, _)) => {
            let mut chunk = ChunkCoord::new(grid.origin());
            grid.move_to(*twice, &mut chunk);
            let twice = Excerpt::of(&chunk.to_string());
            Err(at.error(MetadataFault::Twice(twice)))
        }
    }
}
