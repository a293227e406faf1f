//! The pieces that all geometry consists of.

/// One piece of geometry, by its positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Primitive<'a> {
    /// A vertex.
    Point(&'a [f64]),
    /// A straight line between two vertices.
    Segment([&'a [f64]; 2]),
    /// Three corners and what is between them.
    Triangle([&'a [f64]; 3]),
    /// A face: the fan of triangles around its first corner. One corner is a
    /// point, two are a segment, none is nothing.
    Polygon(&'a [&'a [f64]]),
}

impl Primitive<'_> {
    /// Whether `every` holds for all positions and there is one.
    pub(super) fn all(&self, every: impl FnMut(&&[f64]) -> bool) -> bool {
        let corners = self.corners();
        !corners.is_empty() && corners.iter().all(every)
    }

    /// Whether the corners span geometry: a point always, others when finite.
    pub(super) fn is_spanned(&self) -> bool {
        match self {
            Self::Point(_) => true,
            _ => self.all(|corner| corner.iter().all(|value| value.is_finite())),
        }
    }

    fn corners(&self) -> &[&[f64]] {
        match self {
            Self::Point(point) => std::slice::from_ref(point),
            Self::Segment(ends) => ends,
            Self::Triangle(corners) => corners,
            Self::Polygon(corners) => corners,
        }
    }
}

/// The triangles of a face, as the numbers of their corners; a face of one or
/// two corners is one triangle that repeats them.
pub(super) fn fan(corners: usize) -> impl Iterator<Item = [usize; 3]> {
    let last = corners.saturating_sub(1);
    let triangles = match corners {
        0 => 0..0,
        1 => 0..1,
        _ => 1..last.max(2),
    };
    triangles.map(move |at| [0, at.min(last), (at + 1).min(last)])
}
