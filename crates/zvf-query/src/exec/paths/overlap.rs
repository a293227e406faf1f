//! Tests of partially loaded paths against a region: rejects, confirms, or leaves open until more
//! is loaded.

use zvf_catalog::{Coordinates, ObjectFragment};
use zvf_model::grid::ChunkCoord;

use super::PathWork;
use crate::{
    batch::loaded::LoadedChunks,
    exec::path::{Path, rows_of_piece},
    geometry::{Bbox, MAX_AXES, Mode, Position, Primitive},
    resolve::area::Area,
};

/// The relation of the loaded pieces of a path to the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overlap {
    /// No part of the path can be selected.
    None,
    /// Pieces that are not loaded yet may be selected.
    Possible,
    /// A loaded segment enters the region.
    Confirmed,
}

/// Positions of a piece that is loaded, or the chunk of one that is not.
enum PiecePositions<'l> {
    /// In memory: its positions.
    Read(Coordinates),
    /// Outside the region's chunks.
    Elsewhere(&'l ChunkCoord),
}

fn positions_of<'l>(
    piece: ObjectFragment,
    work: &'l PathWork<'_>,
    loaded: &LoadedChunks,
) -> PiecePositions<'l> {
    match work.objects.chunk(piece.chunk) {
        Some(chunk) if !loaded.knows(piece.chunk) => PiecePositions::Elsewhere(chunk),
        _ => {
            let rows = rows_of_piece(piece, loaded);
            let runs = rows.runs().iter().copied();
            PiecePositions::Read(loaded.positions(runs, work.schema))
        }
    }
}

/// Tests whether a region may select a path. A piece that is not loaded is assumed to have a vertex.
pub(super) fn overlap(
    path: &Path<'_>,
    work: &PathWork<'_>,
    loaded: &LoadedChunks,
    area: &Area,
    mode: Mode,
) -> Overlap {
    let pieces = path
        .pieces
        .iter()
        .map(|piece| positions_of(*piece, work, loaded));
    if mode == Mode::Within && work.filter.splits_paths() {
        // A part that the predicate leaves may lie within the region although the path does not.
        let mut positions = pieces.filter_map(|piece| match piece {
            PiecePositions::Read(positions) => Some(positions),
            PiecePositions::Elsewhere(_) => None,
        });
        let is_inside = |positions: Coordinates| {
            let mut positions = positions.iter();
            positions.any(|position| area.contains(Primitive::Point(position)))
        };
        return if positions.any(is_inside) {
            Overlap::Possible
        } else {
            Overlap::None
        };
    }
    if mode == Mode::Within {
        let mut any = false;
        for piece in pieces {
            if let PiecePositions::Read(positions) = piece {
                any |= !positions.is_empty();
                let inside = |position| area.contains(Primitive::Point(position));
                if !positions.iter().all(inside) {
                    return Overlap::None;
                }
            }
        }
        // Pieces that are not loaded have no vertex inside: they must be empty.
        return if any {
            Overlap::Possible
        } else {
            Overlap::None
        };
    }
    let mut last: Option<PreviousEnd<'_>> = None;
    for piece in pieces {
        let may_touch = match &piece {
            PiecePositions::Read(positions) => {
                if touches(positions, area) {
                    return Overlap::Confirmed;
                }
                match (&last, positions.iter().next()) {
                    (_, None) => continue,
                    (None, Some(first)) => area.touches(Primitive::Point(first)),
                    (Some(PreviousEnd::At(before)), Some(first)) => {
                        if area.touches(Primitive::Segment([before, first])) {
                            return Overlap::Confirmed;
                        }
                        false
                    }
                    (Some(PreviousEnd::In(chunk)), Some(first)) => {
                        area.may_intersect(&[first], &[*chunk])
                    }
                }
            }
            PiecePositions::Elsewhere(chunk) => match &last {
                None => false,
                Some(PreviousEnd::At(before)) => area.may_intersect(&[before], &[*chunk]),
                Some(PreviousEnd::In(before)) => area.may_intersect(&[], &[before, *chunk]),
            },
        };
        if may_touch {
            return Overlap::Possible;
        }
        last = match piece {
            PiecePositions::Read(positions) => {
                let end = positions.len().checked_sub(1);
                end.and_then(|end| Position::new(positions.at(end)).ok())
                    .map(PreviousEnd::At)
            }
            PiecePositions::Elsewhere(chunk) => Some(PreviousEnd::In(chunk)),
        };
    }
    Overlap::None
}

/// Returns the bounding box of positions, ignoring NaN; `None` if there are none.
fn extent(positions: &Coordinates) -> Option<Bbox> {
    let axes = positions.iter().next()?.len();
    let (mut lo, mut hi) = ([f64::INFINITY; MAX_AXES], [f64::NEG_INFINITY; MAX_AXES]);
    for position in positions.iter() {
        for ((lo, hi), value) in lo.iter_mut().zip(&mut hi).zip(position) {
            *lo = lo.min(*value);
            *hi = hi.max(*value);
        }
    }
    Bbox::new(lo.get(..axes)?, hi.get(..axes)?).ok()
}

/// Returns whether a segment of a piece enters the region.
fn touches(positions: &Coordinates, area: &Area) -> bool {
    let is_near = extent(positions).is_some_and(|extent| area.overlaps(&extent));
    let mut pairs = positions.iter().zip(positions.iter().skip(1));
    is_near && pairs.any(|(a, b)| area.touches(Primitive::Segment([a, b])))
}

/// The last vertex of the previous piece, or its chunk if the piece is not loaded.
enum PreviousEnd<'l> {
    At(Position),
    In(&'l ChunkCoord),
}

/// Returns whether a segment between piece `at`, which is not loaded, and the piece before or after
/// it may enter the region.
pub(super) fn may_cross(
    path: &Path<'_>,
    at: usize,
    work: &PathWork<'_>,
    loaded: &LoadedChunks,
    area: &Area,
) -> bool {
    let objects = work.objects;
    let Some(here) = path
        .pieces
        .get(at)
        .and_then(|piece| objects.chunk(piece.chunk))
    else {
        return false;
    };
    let meets = |piece: &ObjectFragment, from_end: bool| match positions_of(*piece, work, loaded) {
        PiecePositions::Elsewhere(chunk) => Some(area.may_intersect(&[], &[here, chunk])),
        PiecePositions::Read(positions) => {
            let end = if from_end {
                positions.iter().next_back()
            } else {
                positions.iter().next()
            };
            end.map(|end| area.may_intersect(&[end], &[here]))
        }
    };
    let before = path.pieces.get(..at).unwrap_or_default().iter().rev();
    let after = path
        .pieces
        .get(at.saturating_add(1)..)
        .unwrap_or_default()
        .iter();
    // Skips pieces without vertices.
    let before = before.clone().find_map(|piece| meets(piece, true));
    let after = after.clone().find_map(|piece| meets(piece, false));
    before.unwrap_or(false) || after.unwrap_or(false)
}
