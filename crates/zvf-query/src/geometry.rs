//! Exact selection and clipping of points, segments and faces by boxes and spheres.
//!
//! A position is a slice of f64 with one value per axis, 1 to [`MAX_AXES`] axes. Positions of
//! stores with narrower types are promoted exactly.
//!
//! ```
//! use zvf_query::geometry::{Bbox, Primitive};
//!
//! let bbox = Bbox::parse("0,0,0,1,1,1")?;
//! // No corner is in the box, but the face passes through it.
//! let corners: [&[f64]; 3] = [&[-9.0, 0.5, -9.0], &[9.0, 0.5, -9.0], &[0.0, 0.5, 9.0]];
//! assert!(bbox.touches(Primitive::Triangle(corners)));
//! assert!(!bbox.contains(Primitive::Triangle(corners)));
//! let clipped = bbox.clip_triangle(corners).ok_or("nothing left")?;
//! assert_eq!(clipped.vertices.len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Rules
//!
//! * Boxes and spheres include their boundary. Geometry that meets one in a single point touches
//!   it; geometry on the boundary is within it.
//! * A box with a NaN bound, or with a lower bound above the upper bound, selects nothing. Bounds
//!   may be infinite. A sphere with a NaN or a negative radius selects nothing.
//! * A position whose number of axes differs from that of the box or sphere is outside it.
//! * A point with an infinite coordinate is compared like any other point. A segment or face with
//!   a coordinate that is not finite has no geometry: it touches nothing and is within nothing.
//! * A segment with equal ends is a point; a face whose corners are on one line is a segment. A
//!   face of more than three corners is the fan of triangles around its first corner.
//!
//! # Exactness
//!
//! There is no epsilon. [`Bbox::touches`] and [`Bbox::contains`] decide without rounding: f64
//! arithmetic where its error cannot change the result, and exact sums of f64 where it could. The
//! result therefore does not depend on the order of vertices or axes. It is correct for every
//! float32 position and box, and for f64 while no product of three coordinate differences leaves
//! the range of f64; magnitudes between 1e-80 and 1e100 (or zero) ensure that. Beyond this range
//! an overflowing sign counts as a touch, so a query returns too much rather than too little.
//!
//! Spheres and distances use f64 arithmetic, without division where only a comparison is needed.
//! Results are exact while the products are integers below 2⁵³ and rounded in the last bits
//! otherwise. Squares must stay below 1.8e308.
//!
//! Clipping returns a part if and only if the geometry touches the box. Clipped positions are
//! rounded, but always inside the box.

mod bbox;
mod clip;
mod distance;
mod exact;
mod mode;
mod nearest;
mod position;
mod primitive;
mod rows;
mod sphere;

pub use bbox::{Bbox, BboxError};
pub use clip::{ClippedSegment, ClippedTriangle, ClippedVertex};
pub use distance::{
    squared_distance_to_bbox, squared_distance_to_point, squared_distance_to_segment,
    squared_distance_to_triangle,
};
pub use mode::Mode;
pub use nearest::KNearest;
pub use position::{AxesError, MAX_AXES, Position};
pub use primitive::Primitive;
pub use rows::{Coordinate, SelectRowsError};
pub use sphere::Sphere;
