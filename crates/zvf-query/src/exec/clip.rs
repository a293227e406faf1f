//! Splitting of paths, segments and faces at the border of a box.

use core::ops::Range;

use zvf_format::numeric::Kind;

use crate::{
    batch::vertices::VertexBuilder,
    catalog::schema::Schema,
    error::QueryError,
    geometry::{Bbox, Primitive},
};

/// The error of a region that splits nothing.
pub(crate) const UNSPLITTABLE_REGION: QueryError = QueryError::Unsupported(
    "a sphere does not cut: clip by a box, or drop what crosses the border",
);

/// Checks that positions have a type that new vertices can have.
pub(crate) fn check_splittable(schema: &Schema) -> Result<(), QueryError> {
    match schema.dtype.kind() {
        Kind::Float32 | Kind::Float64 => Ok(()),
        _ => Err(QueryError::Unsupported(
            "positions that are no float32 or float64 are not cut: drop what crosses the border",
        )),
    }
}

/// Returns the parts of a run of rows that are in a box: rows, and new vertices at their ends.
///
/// A part without rows is a segment that enters and leaves the box between two rows; its range
/// is empty at the second of them.
pub(crate) fn path<'p>(
    bbox: &Bbox,
    rows: Range<usize>,
    at: impl Fn(usize) -> &'p [f64],
) -> Vec<(Range<usize>, Ends)> {
    let inside = |row: usize| bbox.contains(Primitive::Point(at(row)));
    let mut parts: Vec<(Range<usize>, Ends)> = Vec::new();
    // Whether the last part continues at the next row.
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

/// Rounds a position to the type of the store, towards the inside of the box.
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

/// New vertices at the ends of a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    /// Before the first row.
    pub(crate) start: Option<Between>,
    /// After the last row.
    pub(crate) end: Option<Between>,
}

/// A new vertex between two others.
#[derive(Clone, Debug)]
pub(crate) struct Between {
    pub(crate) position: Vec<f64>,
    /// Fraction of the way from the first to the second.
    pub(crate) t: f64,
}

/// Returns whether splitting leaves a segment or triangle unchanged: it is in the box, and its
/// corners are distinct.
pub(crate) fn is_untouched(bbox: &Bbox, corners: &[&[f64]]) -> bool {
    let are_apart = match corners {
        [a, b] => a != b,
        [a, b, c] => a != b && b != c && c != a,
        _ => false,
    };
    are_apart && bbox.contains(Primitive::Polygon(corners))
}

/// Splits a link at a box and appends the new vertices to `vertices` and `keep`. Returns the
/// rows of the corners of each part.
pub(crate) fn link(
    bbox: &Bbox,
    corners: &[usize],
    positions: &[&[f64]],
    schema: &Schema,
    vertices: &mut VertexBuilder,
    keep: &mut Vec<usize>,
) -> Vec<Vec<usize>> {
    let kind = schema.dtype.kind();
    let mut new = |position: &[f64], weights: &[(usize, f64)]| {
        // A corner needs no new vertex.
        if let [(row, _)] = weights
            .iter()
            .filter(|(_, w)| *w != 0.0)
            .collect::<Vec<_>>()[..]
        {
            return *row;
        }
        let row = vertices.rows();
        vertices.blend(&rounded(bbox, position, kind), weights);
        keep.push(row);
        row
    };
    match (corners, positions) {
        ([corner], _) => vec![vec![*corner]],
        ([a, b], [at_a, at_b]) => {
            let Some(part) = bbox.clip_segment([at_a, at_b]) else {
                return Vec::new();
            };
            let start = new(&part.start, &[(*a, 1.0 - part.t0), (*b, part.t0)]);
            let end = new(&part.end, &[(*a, 1.0 - part.t1), (*b, part.t1)]);
            vec![vec![start, end]]
        }
        _ => {
            let mut parts = Vec::new();
            for triangle in bbox.clip_polygon(positions) {
                let rows: Vec<usize> = triangle
                    .vertices
                    .iter()
                    .map(|vertex| {
                        let weights = triangle.corners.iter().zip(vertex.weights);
                        let weights = weights
                            .filter_map(|(at, weight)| Some((*corners.get(*at)?, weight)))
                            .collect::<Vec<_>>();
                        new(&vertex.position, &weights)
                    })
                    .collect();
                // A fan of triangles; a point or segment repeats a corner.
                match rows.as_slice() {
                    [] => {}
                    [one] => parts.push(vec![*one; 3]),
                    [one, two] => parts.push(vec![*one, *two, *two]),
                    [first, rest @ ..] => {
                        for pair in rest.windows(2) {
                            let [second, third] = pair else { continue };
                            parts.push(vec![*first, *second, *third]);
                        }
                    }
                }
            }
            parts
        }
    }
}
