//! Splitting of paths, segments and faces at the border of the region.

use core::ops::Range;

use zvf_catalog::{RowSelection, Schema};
use zvf_format::numeric::Kind;

use super::{
    filter::ranges,
    links::{LinkBuilder, LinkGraph, LinkVertices, SelectedEnd, SelectedLinks},
    operator::{Details, Operator},
};
use crate::{
    batch::loaded::LoadedChunks,
    error::QueryError,
    geometry::{Bbox, Primitive},
    query,
    resolve::{area::Area, query::LevelQuery},
};

/// The operator that splits or drops what crosses the border of the region.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClipOperator;

impl Operator for ClipOperator {
    const NAME: &'static str = "Clip";

    fn details(&self, query: &LevelQuery<'_>, details: &mut Details) {
        let by = format!("{:?}", query.query.border_clip()).to_lowercase();
        details.add("by", by);
    }
}

/// A [`ClipOperator`] of one execution.
///
/// Its input are parts of paths, or links with their gathered vertices; its output are the parts
/// inside.
pub(crate) struct BorderClip<'c> {
    schema: &'c Schema,
    area: &'c Area,
    /// The box to split at; `None` if what crosses the border is dropped.
    bbox: Option<Bbox>,
}

/// A part of a segment of a path: rows, and new vertices at their ends.
#[derive(Clone, Debug)]
pub(crate) struct PathPart {
    /// Rows of the segment. If it is empty, both ends are between the row before it and its start.
    pub(crate) rows: Range<usize>,
    pub(crate) ends: PartEnds,
}

impl PathPart {
    /// Creates a part without new vertices.
    pub(crate) fn whole(rows: Range<usize>) -> Self {
        let ends = PartEnds::default();
        Self { rows, ends }
    }
}

impl<'c> BorderClip<'c> {
    /// Opens the clip of a query; `None` if the plan has none.
    ///
    /// # Errors
    ///
    /// [`QueryError::Unsupported`] if the region or the type of positions cannot be split.
    pub(crate) fn open(
        clip: Option<ClipOperator>,
        query: &'c LevelQuery<'_>,
        schema: &'c Schema,
    ) -> Result<Option<Self>, QueryError> {
        let Some(area) = query.area.as_ref().filter(|_| clip.is_some()) else {
            return Ok(None);
        };
        let bbox = match query.query.border_clip() {
            query::Clip::Drop => None,
            query::Clip::Split => {
                check_splittable(schema)?;
                Some(*area.bbox().ok_or(UNSPLITTABLE_REGION)?)
            }
        };
        Ok(Some(Self { schema, area, bbox }))
    }

    /// Returns whether what crosses the border is split, which creates vertices.
    pub(crate) fn splits(&self) -> bool {
        self.bbox.is_some()
    }

    /// Clips ranges of a segment of a path.
    pub(crate) fn path(
        &self,
        selected: Vec<Range<usize>>,
        segment: &RowSelection,
        loaded: &LoadedChunks,
    ) -> Vec<PathPart> {
        let positions = loaded.positions(segment.runs().iter().copied(), self.schema);
        let at = |row: usize| positions.at(row);
        let mut parts = Vec::new();
        for rows in selected {
            if let Some(bbox) = &self.bbox {
                parts.extend(path(bbox, rows, at));
            } else {
                let is_in = |row: usize| self.area.contains(Primitive::Point(at(row)));
                parts.extend(ranges(rows, is_in).into_iter().map(PathPart::whole));
            }
        }
        parts
    }

    /// Returns the position of a new vertex, in the type of the store and inside the box.
    pub(crate) fn position(&self, between: &InterpolatedVertex) -> Vec<f64> {
        let kind = self.schema.dtype.kind();
        match &self.bbox {
            Some(bbox) => rounded(bbox, &between.position, kind),
            None => between.position.clone(),
        }
    }

    /// Splits links at the box into `builder`, and drops vertices outside. Without a box to split
    /// at, links pass unchanged: the join has dropped links that cross the border.
    pub(crate) fn links(
        &self,
        graph: &LinkGraph,
        links: &SelectedLinks,
        vertices: &mut LinkVertices,
        builder: &mut LinkBuilder,
    ) {
        let Some(bbox) = &self.bbox else {
            vertices.push_links(links, builder);
            return;
        };
        if builder.width > 2 {
            // Parts of faces are triangles.
            builder.width = 3;
        }
        let mut corners = Vec::new();
        for (ends, record) in links.iter() {
            corners.clear();
            corners.extend(ends.iter().filter_map(|end| vertices.row(*end)));
            let at = |end: &SelectedEnd| graph.position(*end);
            let positions: Vec<&[f64]> = ends.iter().filter_map(at).collect();
            if is_untouched(bbox, &positions) {
                builder.push_rows(&corners, record);
                continue;
            }
            for part in self.link(bbox, &corners, &positions, vertices) {
                builder.push_rows(&part, record);
            }
        }
        vertices.keep_inside(builder);
    }

    /// Splits a link at a box and appends the new vertices. Returns the rows of the corners of each
    /// part.
    fn link(
        &self,
        bbox: &Bbox,
        corners: &[usize],
        positions: &[&[f64]],
        vertices: &mut LinkVertices,
    ) -> Vec<Vec<usize>> {
        let kind = self.schema.dtype.kind();
        let mut new = |position: &[f64], weights: &[(usize, f64)]| {
            // A corner needs no new vertex.
            if let [(row, _)] = weights
                .iter()
                .filter(|(_, w)| *w != 0.0)
                .collect::<Vec<_>>()[..]
            {
                return *row;
            }
            vertices.blend(&rounded(bbox, position, kind), weights)
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
                            let weights = triangle
                                .corners
                                .iter()
                                .zip(vertex.weights)
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
}

/// The error of a region that splits nothing.
const UNSPLITTABLE_REGION: QueryError =
    QueryError::Unsupported("a sphere cannot clip: clip by a box, or drop what crosses the border");

/// Checks that positions have a type that new vertices can have.
fn check_splittable(schema: &Schema) -> Result<(), QueryError> {
    match schema.dtype.kind() {
        Kind::Float32 | Kind::Float64 => Ok(()),
        _ => Err(QueryError::Unsupported(
            "only positions of type float32 or float64 can be clipped: drop what crosses the border",
        )),
    }
}

/// New vertices at the ends of a part.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartEnds {
    /// Before the first row.
    pub(crate) start: Option<InterpolatedVertex>,
    /// After the last row.
    pub(crate) end: Option<InterpolatedVertex>,
}

/// A new vertex between two others.
#[derive(Clone, Debug)]
pub(crate) struct InterpolatedVertex {
    pub(crate) position: Vec<f64>,
    /// Fraction of the way from the first to the second.
    pub(crate) t: f64,
}

/// Returns the parts of a run of rows that are in a box: rows, and new vertices at their ends.
///
/// A part without rows is a segment that enters and leaves the box between two rows; its range
/// is empty at the second of them.
fn path<'p>(bbox: &Bbox, rows: Range<usize>, at: impl Fn(usize) -> &'p [f64]) -> Vec<PathPart> {
    let inside = |row: usize| bbox.contains(Primitive::Point(at(row)));
    let mut parts: Vec<PathPart> = Vec::new();
    // True if the last part continues at the next row.
    let mut open = false;
    for row in rows.clone() {
        let before = row.checked_sub(1).filter(|before| *before >= rows.start);
        let part = before.and_then(|before| bbox.clip_segment([at(before), at(row)]));
        let here = inside(row);
        let Some(part) = part else {
            open = here;
            if here {
                parts.push(PathPart::whole(row..row.saturating_add(1)));
            }
            continue;
        };
        let starts = InterpolatedVertex {
            position: part.start.to_vec(),
            t: part.t0,
        };
        let ends = InterpolatedVertex {
            position: part.end.to_vec(),
            t: part.t1,
        };
        match (open, here) {
            (true, true) => {
                if let Some(part) = parts.last_mut() {
                    part.rows.end = row.saturating_add(1);
                }
            }
            (true, false) => {
                if let Some(last) = parts.last_mut()
                    && part.t1 > 0.0
                {
                    last.ends.end = Some(ends);
                }
            }
            (false, true) => {
                let start = (part.t0 < 1.0).then_some(starts);
                parts.push(PathPart {
                    rows: row..row.saturating_add(1),
                    ends: PartEnds { start, end: None },
                });
            }
            (false, false) => {
                // A touch in one point is one vertex.
                let end = (part.t0 < part.t1).then_some(ends);
                let start = Some(starts);
                let ends = PartEnds { start, end };
                parts.push(PathPart {
                    rows: row..row,
                    ends,
                });
            }
        }
        open = here;
    }
    parts
}

/// Rounds a position to the type of the store, towards the inside of the box.
fn rounded(bbox: &Bbox, position: &[f64], kind: Kind) -> Vec<f64> {
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

/// Returns whether splitting leaves a segment or triangle unchanged: it is in the box, and its
/// corners are distinct.
fn is_untouched(bbox: &Bbox, corners: &[&[f64]]) -> bool {
    let are_apart = match corners {
        [a, b] => a != b,
        [a, b, c] => a != b && b != c && c != a,
        _ => false,
    };
    are_apart && bbox.contains(Primitive::Polygon(corners))
}
