//! Cutting geometry at the border of a box.

use core::ops::Range;

use zvf_format::numeric::Kind;

use crate::{
    exec::paths::{Between, Ends},
    geometry::{Bbox, Primitive},
};

/// The parts of a run of rows that are in a box: rows, and new vertices at their ends.
/// A part of no row is a segment that comes in and leaves between two rows; its
/// range is empty at the second of them.
pub(crate) fn path<'p>(
    bbox: &Bbox,
    rows: Range<usize>,
    at: impl Fn(usize) -> &'p [f64],
) -> Vec<(Range<usize>, Ends)> {
    let inside = |row: usize| bbox.contains(Primitive::Point(at(row)));
    let mut parts: Vec<(Range<usize>, Ends)> = Vec::new();
    // Whether the last part still goes on.
    let mut open = false;
    for row in rows.clone() {
        let before = row.checked_sub(1).filter(|before| *before >= rows.start);
        let part = before.and_then(|before| bbox.clip_segment([at(before), at(row)]));
        let here = inside(row);
        let Some(part) = part else {
            open = here;
            if here {
                parts.push((row..row.saturating_add(1), Ends::default()));
            }
            continue;
        };
        let starts = Between {
            position: part.start.to_vec(),
            t: part.t0,
        };
        let ends = Between {
            position: part.end.to_vec(),
            t: part.t1,
        };
        match (open, here) {
            (true, true) => {
                if let Some((range, _)) = parts.last_mut() {
                    range.end = row.saturating_add(1);
                }
            }
            (true, false) => {
                if let Some((_, last)) = parts.last_mut()
                    && part.t1 > 0.0
                {
                    last.end = Some(ends);
                }
            }
            (false, true) => {
                let start = (part.t0 < 1.0).then_some(starts);
                parts.push((row..row.saturating_add(1), Ends { start, end: None }));
            }
            (false, false) => {
                // A touch in one point is one vertex.
                let end = (part.t0 < part.t1).then_some(ends);
                let start = Some(starts);
                let ends = Ends { start, end };
                parts.push((row..row, ends));
            }
        }
        open = here;
    }
    parts
}

/// A position in the store's type that is still in the box, if any is.
pub(crate) fn rounded(bbox: &Bbox, position: &[f64], kind: Kind) -> Vec<f64> {
    let bounds = bbox.lo().iter().zip(bbox.hi());
    let axes = position.iter().zip(bounds);
    axes.map(|(value, (lo, hi))| match kind {
        Kind::Float32 => {
            let near = single(*value);
            let moved = match f64::from(near) {
                wide if wide > *hi => near.next_down(),
                wide if wide < *lo => near.next_up(),
                _ => near,
            };
            f64::from(moved)
        }
        _ => *value,
    })
    .collect()
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "std rounds an f64 to an f32 in no other way"
)]
fn single(value: f64) -> f32 {
    value as f32
}
