//! Whether a region may select a path that is read in part.

use zvf_model::grid::ChunkCoord;

use super::{Path, loaded::Loaded};
use crate::{
    area::Area,
    geometry::{Mode, Primitive},
    objects::{Objects, Piece},
};

/// What is known of a path before all of it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Nothing of it is selected.
    Out,
    /// It may be.
    Maybe,
}

/// A piece as far as it is known.
enum Known<'l> {
    /// In memory: its vertices.
    Read(Vec<&'l [f64]>),
    /// Outside the region's chunks.
    Elsewhere(&'l ChunkCoord),
}

fn known<'l>(piece: Piece, objects: &'l Objects, loaded: &'l Loaded) -> Known<'l> {
    if !loaded.knows(piece.chunk)
        && let Some(chunk) = objects.chunk(piece.chunk)
    {
        return Known::Elsewhere(chunk);
    }
    let Some((chunk, coordinates)) = loaded.get(piece.chunk) else {
        return Known::Read(Vec::new());
    };
    let mut entries = Vec::new();
    chunk.push_fragment(piece.fragment, &mut entries);
    let positions = entries.iter().map(|entry| coordinates.at(entry.place));
    Known::Read(positions.collect())
}

/// Whether a region may select a path. A piece that is not read is taken to have
/// a vertex.
pub(super) fn fate(
    path: &Path,
    objects: &Objects,
    loaded: &Loaded,
    area: &Area,
    mode: Mode,
) -> Fate {
    let pieces: Vec<Known<'_>> = path
        .pieces
        .iter()
        .map(|piece| known(*piece, objects, loaded))
        .collect();
    if mode == Mode::Within {
        let mut any = false;
        for piece in &pieces {
            if let Known::Read(positions) = piece {
                any |= !positions.is_empty();
                let inside = |position: &&[f64]| area.contains(Primitive::Point(position));
                if !positions.iter().all(inside) {
                    return Fate::Out;
                }
            }
        }
        // Vertices elsewhere are outside; only a piece without any may be there.
        return if any { Fate::Maybe } else { Fate::Out };
    }
    let mut vertices = 0_usize;
    let mut last: Option<Last<'_>> = None;
    for piece in &pieces {
        match piece {
            Known::Read(positions) => {
                for position in positions {
                    let touched = match last {
                        None => area.touches(Primitive::Point(position)),
                        Some(Last::At(before)) => {
                            area.touches(Primitive::Segment([before, position]))
                                || vertices == 1 && area.touches(Primitive::Point(before))
                        }
                        Some(Last::In(chunk)) => area.may_meet(&[position], [chunk]),
                    };
                    if touched {
                        return Fate::Maybe;
                    }
                    vertices = vertices.saturating_add(1);
                    last = Some(Last::At(position));
                }
            }
            Known::Elsewhere(chunk) => {
                let touched = match last {
                    None => false,
                    Some(Last::At(before)) => area.may_meet(&[before], [*chunk]),
                    Some(Last::In(before)) => area.may_meet(&[], [before, *chunk]),
                };
                if touched {
                    return Fate::Maybe;
                }
                vertices = vertices.saturating_add(2);
                last = Some(Last::In(chunk));
            }
        }
    }
    Fate::Out
}

/// What comes before.
#[derive(Clone, Copy)]
enum Last<'l> {
    At(&'l [f64]),
    In(&'l ChunkCoord),
}

/// Whether a segment between piece `at`, which is elsewhere, and the one before
/// or after it may come into the region.
pub(super) fn may_cross(
    path: &Path,
    at: usize,
    objects: &Objects,
    loaded: &Loaded,
    area: &Area,
) -> bool {
    let Some(here) = path
        .pieces
        .get(at)
        .and_then(|piece| objects.chunk(piece.chunk))
    else {
        return false;
    };
    let meets = |piece: &Piece, from_end: bool| match known(*piece, objects, loaded) {
        Known::Elsewhere(chunk) => Some(area.may_meet(&[], [here, chunk])),
        Known::Read(positions) => {
            let end = match from_end {
                true => positions.last(),
                false => positions.first(),
            };
            end.map(|end| area.may_meet(&[end], [here]))
        }
    };
    let before = path.pieces.get(..at).unwrap_or_default().iter().rev();
    let after = path
        .pieces
        .get(at.saturating_add(1)..)
        .unwrap_or_default()
        .iter();
    // Past pieces without a vertex.
    let before = before.clone().find_map(|piece| meets(piece, true));
    let after = after.clone().find_map(|piece| meets(piece, false));
    before.unwrap_or(false) || after.unwrap_or(false)
}
