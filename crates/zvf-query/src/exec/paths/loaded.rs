//! Chunks of paths in memory.

use std::collections::BTreeSet;

use super::{Path, PathVertex, Stretch};
use crate::{
    batch::vertices::Run, catalog::coordinates::Coordinates, catalog::objects::ObjectFragment,
    catalog::schema::Schema, error::QueryError, exec::chunk::Chunk,
};

/// Chunks that were read, by their number among those of the objects.
#[derive(Default)]
pub(crate) struct Loaded {
    chunks: Vec<State>,
    /// Those that were asked for.
    count: usize,
}

/// What is known of a chunk.
#[derive(Default)]
enum State {
    /// It was not asked for.
    #[default]
    Unread,
    /// It could not be read.
    Lost,
    Read(Box<Chunk>),
}

impl Loaded {
    pub(crate) fn get(&self, chunk: u32) -> Option<&Chunk> {
        match self.at(chunk)? {
            State::Read(chunk) => Some(chunk),
            State::Unread | State::Lost => None,
        }
    }

    /// All that were read.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter_map(|state| match state {
            State::Read(chunk) => Some(&**chunk),
            State::Unread | State::Lost => None,
        })
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

    /// Positions of these runs, one after the other.
    pub(super) fn positions(
        &self,
        runs: impl IntoIterator<Item = (u32, Run)>,
        schema: &Schema,
    ) -> Coordinates {
        let mut positions = Coordinates::new(schema.axes);
        let row = usize::try_from(schema.row()).unwrap_or(usize::MAX);
        for (chunk, run) in runs {
            let places = run.places();
            let range = places.start.saturating_mul(row)..places.end.saturating_mul(row);
            let bytes = self.get(chunk).and_then(|chunk| chunk.positions.get(range));
            positions.push(bytes.unwrap_or_default(), schema.dtype);
        }
        positions
    }

    /// The vertices of a piece that are in memory.
    pub(super) fn piece(&self, piece: ObjectFragment) -> Stretch {
        let mut stretch = Stretch::default();
        if let Some(chunk) = self.get(piece.chunk) {
            chunk.push_fragment(piece.fragment, |run| stretch.push(piece.chunk, run));
        }
        stretch
    }

    /// Pieces that many paths share, or one path has many times, are many vertices
    /// of few bytes.
    pub(super) fn check_shared(&self, paths: &[Path<'_>], budget: u64) -> Result<(), QueryError> {
        let pieces = paths.iter().flat_map(|path| path.pieces);
        let rows = pieces.filter_map(|piece| {
            let chunk = self.get(piece.chunk)?;
            chunk.fragments.rows(piece.fragment).map(|rows| rows.len())
        });
        let rows = rows.fold(0, u64::saturating_add);
        let read = self.chunks.iter().map(|state| match state {
            State::Read(chunk) => chunk.rows,
            State::Unread | State::Lost => 0,
        });
        let read = read.fold(0, u64::saturating_add);
        let vertex = u64::try_from(size_of::<PathVertex>()).unwrap_or(u64::MAX);
        let bytes = rows.saturating_mul(vertex);
        if rows <= read.saturating_mul(2) || bytes <= budget {
            return Ok(());
        }
        let what = "vertices that paths share";
        Err(QueryError::OverBudget {
            what,
            bytes,
            budget,
        })
    }

    /// Forgets chunks that are not needed now, when there are too many.
    pub(super) fn keep(&mut self, needed: &BTreeSet<u32>, most: usize) {
        let new = needed.iter().filter(|chunk| !self.knows(**chunk)).count();
        if self.count.saturating_add(new) <= most {
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
