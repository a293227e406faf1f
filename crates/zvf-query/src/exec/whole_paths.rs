//! Gather of whole paths.

use zvf_catalog::{Diagnostics, ObjectFragment, ObjectSet, Schema, on_cores};
use zvf_model::{key::Key, object_ids::Owner};

use super::{
    limit::Limit,
    path::{BYTES_PER_PIECE, Path},
};
use crate::{
    batch::{
        loaded::LoadedChunks,
        vertices::{PieceBlock, PieceSpan, VertexBuilder},
    },
    error::QueryError,
    result::Parts,
};

/// Pieces of a block: waking another core takes longer than copying fewer.
const PIECES_PER_BLOCK: usize = 1 << 12;

/// The gather of whole paths, in the order of the paths.
///
/// It visits the pieces twice, each time on all cores. The first pass looks up their vertices, and
/// prefix sums of their numbers are the positions of blocks of paths in the result. The second
/// copies the blocks there.
pub(crate) struct WholePathGather<'g> {
    pub(crate) schema: &'g Schema,
    pub(crate) objects: &'g ObjectSet,
    pub(crate) loaded: &'g LoadedChunks,
    /// The node of the object index.
    pub(crate) manifests: &'g Key,
    pub(crate) budget: u64,
}

/// Consecutive paths, and how their vertices are divided.
struct Block<'p, 'o> {
    paths: &'p [Path<'o>],
    /// Parts with vertices, in order.
    parts: Vec<BlockPart>,
    /// Pieces that their chunks lack, in order.
    absent: Vec<AbsentPiece>,
    /// The vertices of each piece.
    spans: Vec<PieceSpan>,
    /// Number of vertices.
    rows: usize,
}

/// A part of a path.
struct BlockPart {
    /// Index of the path in the block.
    path: usize,
    /// Number of vertices of the block up to its end.
    end: usize,
}

/// A piece that the chunk in its manifest lacks.
struct AbsentPiece {
    /// Index of the path in the block.
    path: usize,
    piece: ObjectFragment,
}

impl WholePathGather<'_> {
    /// Copies paths into `builder` as far as the limit goes, and returns their parts. An
    /// unreadable piece ends a part; parts without vertices are left out. `listed` receives the
    /// index of the object of each part.
    pub(crate) fn copy(
        &self,
        paths: &[Path<'_>],
        limit: &mut Limit,
        builder: &mut VertexBuilder,
        mut listed: impl FnMut(usize),
        diagnostics: &Diagnostics,
    ) -> Result<Parts, QueryError> {
        let pieces = paths.iter().map(|path| path.pieces.len());
        let bytes = pieces.sum::<usize>().saturating_mul(BYTES_PER_PIECE);
        let ranges = self.loaded.ranges();
        let blocks = on_cores(blocks(paths).collect(), bytes, |paths| {
            self.divide(paths, &ranges)
        });
        let rows = blocks.iter().map(|block| block.rows);
        let rows = u64::try_from(rows.fold(0, usize::saturating_add)).unwrap_or(u64::MAX);
        self.loaded.check_rows(rows, self.budget)?;
        let mut parts = Parts {
            offsets: vec![0],
            objects: Vec::with_capacity(paths.len()),
        };
        let mut copies = Vec::with_capacity(blocks.len());
        let mut before = 0_usize;
        for block in blocks {
            if limit.is_reached() {
                break;
            }
            let (mut rows, mut last) = (0, usize::MAX);
            for part in &block.parts {
                if limit.take(1) == 0 {
                    break;
                }
                rows = part.end;
                if limit.is_reached() {
                    last = part.path;
                }
                let path = block.paths.get(part.path);
                let index = path.map_or(usize::MAX, |path| path.index);
                listed(index);
                let end = before.saturating_add(rows);
                parts
                    .objects
                    .push(self.objects.id(index).unwrap_or(Owner::NONE));
                parts.offsets.push(u64::try_from(end).unwrap_or(u64::MAX));
            }
            // Paths after the limit are not tested.
            for absent in block.absent.iter().take_while(|absent| absent.path <= last) {
                self.loaded
                    .skip_absent(absent.piece, self.manifests, diagnostics)?;
            }
            before = before.saturating_add(rows);
            let pieces = block.paths.iter().flat_map(|path| path.pieces);
            let spans = block.spans;
            copies.push(PieceBlock {
                pieces,
                spans,
                rows,
            });
        }
        builder.take_pieces(self.schema, copies, self.loaded, diagnostics)?;
        Ok(parts)
    }

    /// Counts the vertices of a block and divides them into parts. `ranges` are those of fragments,
    /// by the number of their chunk.
    fn divide<'p, 'o>(&self, paths: &'p [Path<'o>], ranges: &[&[[u32; 2]]]) -> Block<'p, 'o> {
        let range_of = |piece: &ObjectFragment| {
            let ranges = ranges.get(usize::try_from(piece.chunk).ok()?)?;
            PieceSpan::range(*ranges.get(usize::try_from(piece.fragment).ok()?)?)
        };
        let mut block = Block {
            paths,
            parts: Vec::with_capacity(paths.len()),
            absent: Vec::new(),
            spans: Vec::with_capacity(paths.iter().map(|path| path.pieces.len()).sum()),
            rows: 0,
        };
        let mut end = 0_usize;
        for (path, pieces) in paths.iter().map(|path| path.pieces).enumerate() {
            for piece in pieces {
                if let Some((span, rows)) = range_of(piece) {
                    block.spans.push(span);
                    block.rows = block.rows.saturating_add(rows);
                    continue;
                }
                let chunk = self.loaded.get(piece.chunk);
                let found = chunk.filter(|chunk| piece.fragment < chunk.fragments.len());
                if let Some(chunk) = found {
                    let (span, rows) = PieceSpan::listed(chunk, piece.fragment);
                    block.spans.push(span);
                    block.rows = block.rows.saturating_add(rows);
                    continue;
                }
                block.spans.push(PieceSpan::NONE);
                if chunk.is_some() {
                    let piece = *piece;
                    block.absent.push(AbsentPiece { path, piece });
                }
                block.end_part(path, &mut end);
            }
            block.end_part(path, &mut end);
        }
        block
    }
}

impl Block<'_, '_> {
    /// Ends the part that starts at `last`, if it has vertices.
    fn end_part(&mut self, path: usize, last: &mut usize) {
        if self.rows > *last {
            let end = self.rows;
            *last = end;
            self.parts.push(BlockPart { path, end });
        }
    }
}

/// Splits paths into blocks of about [`PIECES_PER_BLOCK`].
fn blocks<'p, 'o>(paths: &'p [Path<'o>]) -> impl Iterator<Item = &'p [Path<'o>]> {
    let mut rest = paths;
    core::iter::from_fn(move || {
        let mut pieces = 0_usize;
        let count = rest.iter().take_while(|path| {
            let is_first = pieces < PIECES_PER_BLOCK;
            pieces = pieces.saturating_add(path.pieces.len().max(1));
            is_first
        });
        let (now, later) = rest.split_at_checked(count.count())?;
        rest = later;
        (!now.is_empty()).then_some(now)
    })
}
