//! Chunks in memory for paths that go through several of them.

use std::{collections::BTreeSet, sync::Arc};

use zvf_catalog::{
    CatalogError, Chunk, Coordinates, Damage, Diagnostics, Fault, ObjectFragment, RowRun, Schema,
};
use zvf_model::key::Key;

/// Chunks in memory, by their number among the chunks of the objects.
#[derive(Default)]
pub(crate) struct LoadedChunks {
    chunks: Vec<State>,
    /// Number of chunks that were requested.
    count: usize,
}

/// The state of a chunk.
#[derive(Default)]
enum State {
    /// It was not requested.
    #[default]
    Unread,
    /// It could not be read.
    Lost,
    Read(Box<Chunk>),
}

impl LoadedChunks {
    pub(crate) fn get(&self, chunk: u32) -> Option<&Chunk> {
        match self.at(chunk)? {
            State::Read(chunk) => Some(chunk),
            State::Unread | State::Lost => None,
        }
    }

    /// Returns all chunks that were read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter_map(|state| match state {
            State::Read(chunk) => Some(&**chunk),
            State::Unread | State::Lost => None,
        })
    }

    /// Returns bytes of each chunk by its number; none for a chunk that was not read.
    pub(crate) fn each<'c>(&'c self, bytes: impl Fn(&'c Chunk) -> &'c [u8]) -> Arc<[&'c [u8]]> {
        let each = self.chunks.iter().map(|state| match state {
            State::Read(chunk) => bytes(chunk),
            State::Unread | State::Lost => &[],
        });
        each.collect()
    }

    /// Returns start and end of each fragment, by the number of its chunk. The list is empty for a
    /// chunk that is not loaded whole, and for a chunk with a fragment that is not a range.
    pub(crate) fn ranges(&self) -> Vec<&[[u32; 2]]> {
        let ranges = self.chunks.iter().map(|state| match state {
            State::Read(chunk) => chunk.ranges().unwrap_or_default(),
            State::Unread | State::Lost => &[],
        });
        ranges.collect()
    }

    pub(crate) fn knows(&self, chunk: u32) -> bool {
        !matches!(self.at(chunk), None | Some(State::Unread))
    }

    fn at(&self, chunk: u32) -> Option<&State> {
        self.chunks.get(usize::try_from(chunk).ok()?)
    }

    pub(crate) fn add(&mut self, number: u32, chunk: Option<Chunk>) {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        if self.chunks.len() <= at {
            self.chunks
                .resize_with(at.saturating_add(1), State::default);
        }
        if let Some(state) = self.chunks.get_mut(at) {
            let is_new = matches!(state, State::Unread);
            self.count = self.count.saturating_add(usize::from(is_new));
            *state = chunk.map_or(State::Lost, |chunk| State::Read(Box::new(chunk)));
        }
    }

    /// Returns the positions of runs, one after the other.
    pub(crate) fn positions(
        &self,
        runs: impl IntoIterator<Item = RowRun>,
        schema: &Schema,
    ) -> Coordinates {
        let mut positions = Coordinates::new(schema.axes);
        let row = usize::try_from(schema.row()).unwrap_or(usize::MAX);
        for run in runs {
            let indices = run.indices();
            let range = indices.start.saturating_mul(row)..indices.end.saturating_mul(row);
            let bytes = self
                .get(run.chunk)
                .and_then(|chunk| chunk.positions.get(range));
            positions.push(bytes.unwrap_or_default(), schema.dtype);
        }
        positions
    }

    /// Returns the number of vertices of a piece; 0 if it is not loaded.
    pub(crate) fn rows_of(&self, piece: ObjectFragment) -> u64 {
        let chunk = self.get(piece.chunk);
        let rows = chunk.and_then(|chunk| chunk.fragments.rows(piece.fragment));
        rows.map_or(0, |rows| rows.len())
    }

    /// Checks that this many vertices fit into the budget, if they are more than were read.
    pub(crate) fn check_rows(&self, rows: u64, budget: u64) -> Result<(), CatalogError> {
        let read = self
            .chunks
            .iter()
            .map(|state| match state {
                State::Read(chunk) => chunk.rows,
                State::Unread | State::Lost => 0,
            })
            .fold(0, u64::saturating_add);
        let vertex = u64::try_from(size_of::<RowRun>()).unwrap_or(u64::MAX);
        let bytes = rows.saturating_mul(vertex);
        if rows <= read.saturating_mul(2) || bytes <= budget {
            return Ok(());
        }
        let what = "vertices that paths share";
        Err(CatalogError::OverBudget {
            what,
            bytes,
            budget,
        })
    }

    /// Reports a piece that its chunk lacks.
    pub(crate) fn skip_absent(
        &self,
        piece: ObjectFragment,
        manifests: &Key,
        diagnostics: &Diagnostics,
    ) -> Result<(), CatalogError> {
        let Some(chunk) = self.get(piece.chunk) else {
            return Ok(());
        };
        let fault = Fault::NoFragment {
            fragment: piece.fragment,
            fragments: chunk.fragments.len(),
        };
        diagnostics.skip(Damage::in_chunk(manifests, &chunk.chunk, fault))
    }

    /// Copies the rows of a chunk out of the cells that were read. Returns their size in bytes.
    pub(crate) fn detach(&mut self, chunk: u32) -> usize {
        let at = usize::try_from(chunk).unwrap_or(usize::MAX);
        match self.chunks.get_mut(at) {
            Some(State::Read(chunk)) => chunk.detach(),
            _ => 0,
        }
    }

    /// Evicts chunks that are not needed now, if more than `max` would be held.
    pub(crate) fn evict_except(&mut self, needed: &BTreeSet<u32>, max: usize) {
        let new = needed.iter().filter(|chunk| !self.knows(**chunk)).count();
        if self.count.saturating_add(new) <= max {
            return;
        }
        for (number, state) in (0_u32..).zip(&mut self.chunks) {
            if !matches!(state, State::Unread) && !needed.contains(&number) {
                *state = State::Unread;
                self.count = self.count.saturating_sub(1);
            }
        }
    }
}
