//! Objects of a level: their ids, and which fragments they are made of.

use zvf_model::grid::ChunkCoord;

/// All objects of a level. Rows of the object index are in the order stored.
#[derive(Debug, Default)]
pub(crate) struct Objects {
    /// Chunks that manifests name, in no order.
    chunks: Vec<ChunkCoord>,
    /// The id of each row, ascending or not.
    ids: Vec<i64>,
    /// Where the pieces of each row start; one more than there are rows.
    starts: Vec<usize>,
    pieces: Vec<Piece>,
}

/// A fragment of a chunk: a piece of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Piece {
    /// A number of [`Objects::chunk`].
    pub(crate) chunk: u32,
    pub(crate) fragment: u32,
}

impl Objects {
    /// The chunk of a number that a piece has.
    pub(crate) fn chunk(&self, number: u32) -> Option<&ChunkCoord> {
        self.chunks.get(usize::try_from(number).ok()?)
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.ids.len()
    }

    /// The id of a row.
    pub(crate) fn id(&self, row: usize) -> Option<i64> {
        self.ids.get(row).copied()
    }

    /// The pieces of a row, in the order of its manifest.
    pub(crate) fn pieces(&self, row: usize) -> &[Piece] {
        let range = self
            .starts
            .get(row)
            .zip(self.starts.get(row.saturating_add(1)));
        range
            .and_then(|(start, end)| self.pieces.get(*start..*end))
            .unwrap_or_default()
    }
}
