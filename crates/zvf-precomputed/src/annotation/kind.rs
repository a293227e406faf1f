//! Kinds of annotations.

/// The geometry of the annotations of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnnotationKind {
    /// A point.
    #[default]
    Point,
    /// Two ends.
    Line,
    /// Two opposite corners.
    BoundingBox,
    /// Centre and radii.
    Ellipsoid,
    /// Two points or more.
    Polyline,
}

impl AnnotationKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Point,
        Self::Line,
        Self::BoundingBox,
        Self::Ellipsoid,
        Self::Polyline,
    ];

    /// Returns the name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Self::Point => "point",
            Self::Line => "line",
            Self::BoundingBox => "axis_aligned_bounding_box",
            Self::Ellipsoid => "ellipsoid",
            Self::Polyline => "polyline",
        }
    }

    /// Returns the number of points of an annotation; `None` if it varies.
    pub fn points(self) -> Option<usize> {
        match self {
            Self::Point => Some(1),
            Self::Line | Self::BoundingBox | Self::Ellipsoid => Some(2),
            Self::Polyline => None,
        }
    }
}
