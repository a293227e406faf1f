//! Presence lists: the chunks of an array that have a cell.

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
#[derive(Clone, Debug, PartialEq)]
pub struct Presence {
    grid: Grid,
    chunks: Vec<ChunkCoord>,
}

/// A chunk that is present, and its cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PresentChunk<'a> {
    /// The chunk.
    pub chunk: &'a ChunkCoord,
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
        let chunks = match notes.take(fields.require("nonempty_chunks"), Assumed::Nothing) {
            Some(at) => read_chunks(&at, arity, &grid)?,
            None => Vec::new(),
        };
        let value = Self { grid, chunks };
        let notes = notes.finish();
        Ok(Noted { value, notes })
    }

    /// Returns the chunks, ascending as tuples of integers.
    pub fn chunks(&self) -> &[ChunkCoord] {
        &self.chunks
    }

    /// Returns whether `chunk` is present. O(log chunks).
    pub fn contains(&self, chunk: &ChunkCoord) -> bool {
        self.chunks.binary_search(chunk).is_ok()
    }

    /// Returns the box of chunks in the array.
    pub fn grid(&self) -> &Grid {
        &self.grid
    }

    /// Returns the chunks with their elements, ascending.
    pub fn cells(&self) -> impl Iterator<Item = PresentChunk<'_>> {
        // `parse` has verified that every listed chunk has a cell.
        self.chunks.iter().filter_map(|chunk| {
            let cell = self.grid.cell_of(chunk.coords()).ok()?;
            Some(PresentChunk { chunk, cell })
        })
    }
}

fn read_chunks(
    at: &JsonField<'_>,
    arity: usize,
    grid: &Grid,
) -> Result<Vec<ChunkCoord>, MetadataError> {
    let list = at.list()?;
    let mut chunks = Vec::with_capacity(list.len());
    for (index, value) in list.iter().enumerate() {
        // The path is only formatted for errors, because lists have millions of items.
        let place = || at.item(index, value);
        let Some(text) = value.as_str() else {
            return Err(place()
                .text()
                .err()
                .unwrap_or_else(|| at.error(MetadataFault::Missing)));
        };
        let chunk = ChunkCoord::parse(text, arity).map_err(|error| {
            let found = Excerpt::of(text);
            place().error(MetadataFault::Segment { found, error })
        })?;
        grid.cell_of(chunk.coords())
            .map_err(|error| place().error(error.into()))?;
        chunks.push(chunk);
    }
    chunks.sort_unstable();
    let mut pairs = chunks.iter().zip(chunks.iter().skip(1));
    match pairs.find(|(left, right)| left == right) {
        None => Ok(chunks),
        Some((twice, _)) => {
            let twice = Excerpt::of(&twice.to_string());
            Err(at.error(MetadataFault::Twice(twice)))
        }
    }
}
