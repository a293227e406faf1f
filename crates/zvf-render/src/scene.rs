//! Query results as positions, paths and links to draw.

use zvf::{NumericColumn, QueryResult};

use crate::{
    column::numbers,
    error::RenderError,
    paint::{ColorEncoder, Source},
    view::Vector,
};

/// The geometry that a scene is drawn as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Points,
    Paths,
    Edges,
    Faces,
}

/// Vertices, the lines or faces between them, and their colour codes.
#[derive(Debug, Default)]
pub(crate) struct Scene {
    pub(crate) form: Form,
    /// Positions relative to the scene's origin; NaN where a vertex has no finite position.
    pub(crate) positions: Vec<Vector>,
    /// Colour code of each vertex, interpreted by [`Paint`](crate::paint::Paint); empty if colours
    /// need no codes.
    pub(crate) color_codes: Vec<u64>,
    /// Start of each path, and the end of the last.
    pub(crate) starts: Vec<usize>,
    /// Vertices of edges and faces, `ends` per link.
    pub(crate) links: Vec<u32>,
    pub(crate) ends: usize,
    /// Colour code of each link, if links have the colours.
    pub(crate) link_color_codes: Vec<u64>,
}

/// The drawn axes and the origin of positions.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// The store's axes that point right, up and toward the viewer.
    pub(crate) axes: [Option<usize>; 3],
    origin: Option<[f64; 3]>,
}

impl Space {
    pub(crate) fn new(axes: [Option<usize>; 3]) -> Self {
        Self { axes, origin: None }
    }

    /// Converts a position to f32 relative to the first finite position. This keeps digits that
    /// f32 would lose far from 0.
    fn place(&mut self, at: [f64; 3]) -> Vector {
        let finite = at.iter().all(|part| part.is_finite());
        if self.origin.is_none() && finite {
            self.origin = Some(at);
        }
        let origin = self.origin.unwrap_or_default();
        [0, 1, 2].map(|axis: usize| (at[axis] - origin[axis]) as f32)
    }
}

impl Scene {
    /// Appends the next batch of a query result.
    pub(crate) fn add(
        &mut self,
        result: &QueryResult,
        space: &mut Space,
        source: &Source,
        encoder: &mut ColorEncoder,
    ) -> Result<(), RenderError> {
        let base = self.positions.len();
        self.add_positions(&result.positions, space)?;
        let rows = self.positions.len() - base;
        if let Some(parts) = &result.parts {
            self.form = Form::Paths;
            let first = result.first_row;
            let starts = parts.offsets.iter().map(|at| {
                let at = at
                    .checked_sub(first)
                    .and_then(|at| usize::try_from(at).ok());
                let at = at.filter(|at| *at <= rows);
                at.map(|at| base + at).ok_or(RenderError::InvalidResult(
                    "a path refers to vertices that do not exist",
                ))
            });
            // The last offset of one batch equals the first offset of the next.
            if !parts.offsets.is_empty() {
                self.starts.pop();
            }
            for start in starts {
                self.starts.push(start?);
            }
        }
        if let Some(links) = &result.links {
            self.form = if links.width >= 3 {
                Form::Faces
            } else {
                Form::Edges
            };
            self.ends = usize::try_from(links.width).unwrap_or(usize::MAX).max(1);
            let ends = links.ends.iter().map(|end| {
                let end = u32::try_from(*end).ok();
                end.ok_or(RenderError::InvalidResult(
                    "a link refers to a vertex that does not exist",
                ))
            });
            for end in ends {
                self.links.push(end?);
            }
        }
        encoder.add(
            result,
            source,
            &mut self.color_codes,
            &mut self.link_color_codes,
        )
    }

    /// Removes all data and keeps the allocated memory.
    pub(crate) fn clear(&mut self) {
        self.positions.clear();
        self.color_codes.clear();
        self.starts.clear();
        self.links.clear();
        self.link_color_codes.clear();
    }

    fn add_positions(
        &mut self,
        rows: &NumericColumn,
        space: &mut Space,
    ) -> Result<(), RenderError> {
        let width = rows.row_len();
        let values =
            numbers(rows).ok_or(RenderError::InvalidResult("positions end inside a row"))?;
        self.positions.reserve(rows.len());
        for row in values.chunks_exact(width) {
            let part = |axis: Option<usize>| match axis {
                None => 0.0,
                Some(axis) => row.get(axis).copied().unwrap_or(0.0),
            };
            self.positions.push(space.place(space.axes.map(part)));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zvf::{Links, Parts, numeric::Kind};

    use super::*;

    fn result(positions: &[f32]) -> QueryResult {
        let mut result = QueryResult::default();
        result.positions = NumericColumn::new(Kind::Float32, 3);
        result.positions.bytes = positions
            .iter()
            .flat_map(|part| part.to_le_bytes())
            .collect();
        result
    }

    fn taken(results: &[QueryResult]) -> Result<Scene, RenderError> {
        let mut space = Space::new([Some(0), Some(1), Some(2)]);
        let (mut scene, mut encoder) = (Scene::default(), ColorEncoder::default());
        for result in results {
            scene.add(result, &mut space, &Source::Orientation, &mut encoder)?;
        }
        Ok(scene)
    }

    #[test]
    fn places_are_measured_from_the_first_that_is_one() {
        let scene = taken(&[result(&[
            f32::NAN,
            0.0,
            0.0,
            1e7,
            2.0,
            3.0,
            1e7,
            4.0,
            f32::INFINITY,
        ])]);
        let positions = scene.unwrap().positions;
        assert!(positions[0].iter().any(|part| part.is_nan()));
        assert_eq!(positions[1].map(f32::to_bits), [0; 3]);
        let third = [0.0, 2.0, f32::INFINITY];
        assert_eq!(positions[2].map(f32::to_bits), third.map(f32::to_bits));
    }

    #[test]
    fn paths_go_on_from_piece_to_piece() {
        let piece = |first_row: u64, offsets: &[u64]| {
            let mut piece = result(&[0.0; 6]);
            piece.first_row = first_row;
            let objects = vec![0; offsets.len().saturating_sub(1)];
            piece.parts = Some(Parts {
                offsets: offsets.to_vec(),
                objects,
            });
            piece
        };
        let scene = taken(&[piece(0, &[0, 2]), piece(2, &[2, 3, 4]), piece(4, &[])]).unwrap();
        assert_eq!(scene.starts, [0, 2, 3, 4]);
        for broken in [
            piece(0, &[0, 3]),
            piece(5, &[2, 3]),
            piece(0, &[0, u64::MAX]),
        ] {
            assert!(matches!(
                taken(&[broken]),
                Err(RenderError::InvalidResult(_))
            ));
        }
    }

    #[test]
    fn links_are_kept_as_they_are_and_not_followed() {
        let mut linked = result(&[0.0; 6]);
        linked.links = Some(Links {
            width: 3,
            ends: vec![0, 1, 4_000_000_000],
        });
        assert_eq!(taken(&[linked.clone()]).unwrap().form, Form::Faces);
        linked.links = Some(Links {
            width: 2,
            ends: vec![0, u64::MAX],
        });
        assert!(matches!(
            taken(&[linked]),
            Err(RenderError::InvalidResult(_))
        ));
    }
}
