//! What is drawn, as it comes from a store.

use zvf::query::{Column, QueryResult, Rows, Values};

use crate::{
    error::RenderError,
    paint::{Source, Tints},
    view::Vector,
};

/// How vertices belong together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Points,
    Paths,
    Edges,
    Faces,
}

/// Vertices, what joins them, and what their colours are made of.
#[derive(Debug, Default)]
pub(crate) struct Scene {
    pub(crate) form: Form,
    /// From the origin of the picture; NaN where there is no place.
    pub(crate) positions: Vec<Vector>,
    /// A number for each vertex that [`Paint`](crate::paint::Paint) makes a colour of; empty
    /// when it needs none.
    pub(crate) tints: Vec<u32>,
    /// Of paths where each starts, and where the last ends.
    pub(crate) starts: Vec<usize>,
    /// Of edges and faces, rows of vertices, `ends` each.
    pub(crate) links: Vec<u32>,
    pub(crate) ends: usize,
    /// A number for each link, where links have the colours.
    pub(crate) link_tints: Vec<u32>,
}

/// The axes that are drawn, and the place that others are measured from.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// Which of the store's axes is right, up and toward who looks.
    pub(crate) axes: [Option<usize>; 3],
    origin: Option<[f64; 3]>,
}

impl Space {
    pub(crate) fn new(axes: [Option<usize>; 3]) -> Self {
        Self { axes, origin: None }
    }

    /// Floats near the first place tell apart what they cannot far from 0.
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
    /// Takes a piece of an answer, in order.
    pub(crate) fn add(
        &mut self,
        answer: &QueryResult,
        space: &mut Space,
        source: &Source,
        tints: &mut Tints,
    ) -> Result<(), RenderError> {
        let base = self.positions.len();
        self.add_positions(&answer.positions, space)?;
        let rows = self.positions.len() - base;
        if let Some(parts) = &answer.parts {
            self.form = Form::Paths;
            let first = answer.first_row;
            let starts = parts.offsets.iter().map(|at| {
                let at = at
                    .checked_sub(first)
                    .and_then(|at| usize::try_from(at).ok());
                let at = at.filter(|at| *at <= rows);
                at.map(|at| base + at)
                    .ok_or(RenderError::InvalidResult("a path leaves its vertices"))
            });
            // The last end of the piece before is the first start of this.
            if !parts.offsets.is_empty() {
                self.starts.pop();
            }
            for start in starts {
                self.starts.push(start?);
            }
        }
        if let Some(links) = &answer.links {
            self.form = if links.width >= 3 {
                Form::Faces
            } else {
                Form::Edges
            };
            self.ends = usize::try_from(links.width).unwrap_or(usize::MAX).max(1);
            let ends = links.ends.iter().map(|end| {
                let end = u32::try_from(*end).ok();
                end.ok_or(RenderError::InvalidResult(
                    "a link ends in a vertex not there",
                ))
            });
            for end in ends {
                self.links.push(end?);
            }
        }
        tints.add(answer, source, &mut self.tints, &mut self.link_tints)
    }

    /// Forgets what was taken, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.positions.clear();
        self.tints.clear();
        self.starts.clear();
        self.links.clear();
        self.link_tints.clear();
    }

    fn add_positions(&mut self, rows: &Rows, space: &mut Space) -> Result<(), RenderError> {
        let width = usize::try_from(rows.columns).unwrap_or(usize::MAX);
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

/// All numbers as floats, row by row.
pub(crate) fn numbers(rows: &Rows) -> Option<Vec<f64>> {
    use zvf::format::numeric::Kind;
    let view = rows.view()?;
    // The two that coordinates and values mostly are; the rest one by one.
    Some(match rows.kind {
        Kind::Float32 => view.elements::<f32>()?.iter().map(f64::from).collect(),
        Kind::Float64 => view.elements::<f64>()?.iter().collect(),
        _ => {
            let columns = view.columns().get();
            let rows = 0..view.rows();
            let values = rows.flat_map(|row| {
                (0..columns).map(move |column| view.value(row, column).map_or(f64::NAN, widened))
            });
            values.collect()
        }
    })
}

/// The column of a name.
pub(crate) fn column<'a>(columns: &'a [Column], name: &str) -> Option<&'a Column> {
    columns.iter().find(|column| column.name == name)
}

/// How many numbers a row of a column has.
pub(crate) fn channels(column: &Column) -> u32 {
    match &column.values {
        Values::Numbers(rows) => rows.columns,
        Values::Words { .. } => 1,
    }
}

/// A number as the nearest float; of a complex one its size.
fn widened(value: zvf::format::numeric::Value) -> f64 {
    use zvf::format::numeric::Value;
    match value {
        Value::Complex { re, im } => re.hypot(im),
        real => real.to_f64(),
    }
}

#[cfg(test)]
mod tests {
    use zvf::{
        format::numeric::Kind,
        query::{Links, Parts},
    };

    use super::*;

    fn answer(positions: &[f32]) -> QueryResult {
        let mut answer = QueryResult::default();
        answer.positions = Rows::new(Kind::Float32, 3);
        answer.positions.bytes = positions
            .iter()
            .flat_map(|part| part.to_le_bytes())
            .collect();
        answer
    }

    fn taken(answers: &[QueryResult]) -> Result<Scene, RenderError> {
        let mut space = Space::new([Some(0), Some(1), Some(2)]);
        let (mut scene, mut tints) = (Scene::default(), Tints::default());
        for answer in answers {
            scene.add(answer, &mut space, &Source::Orientation, &mut tints)?;
        }
        Ok(scene)
    }

    #[test]
    fn places_are_measured_from_the_first_that_is_one() {
        let scene = taken(&[answer(&[
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
            let mut piece = answer(&[0.0; 6]);
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
        let mut linked = answer(&[0.0; 6]);
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
