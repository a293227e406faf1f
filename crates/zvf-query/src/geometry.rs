//! Which geometry a box or a sphere selects, and which part of it.
//!
//! Positions are slices of f64, one value an axis, of 1 to [`MAX_AXES`] axes.
//! Those of stores with narrower types are promoted exactly.
//!
//! ```
//! use zvf_query::geometry::{Bbox, Primitive};
//!
//! let bbox = Bbox::parse("0,0,0,1,1,1")?;
//! // No corner is in the box, the face is.
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
//! * Boundaries belong to boxes and spheres: what meets one in a single point
//!   touches it, what lies on its boundary is within it.
//! * A box with a NaN or with a lower bound above the upper one selects
//!   nothing. Bounds may be infinite. A sphere with a NaN or a negative radius
//!   selects nothing either.
//! * A position with another number of axes than the box or sphere is in none.
//! * A point with an infinite coordinate is compared as any other; a segment
//!   or face with a coordinate that is not finite has no geometry, and neither
//!   touches anything nor is within anything.
//! * A segment whose ends are one point is that point; a face whose corners
//!   are on one line is that segment. A face of more than three corners is the
//!   fan of triangles around its first.
//!
//! # How exact
//!
//! There is no epsilon. Touch and within of boxes are decided without rounding:
//! f64 arithmetic where its error cannot change the answer, and exact sums of
//! f64 where it could. So the answer does not depend on the order of vertices or
//! axes, and it holds for every float32 position and box, and for f64 as
//! long as no product of three coordinate differences leaves the range of
//! f64, which magnitudes between 1e-80 and 1e100 (or zero) ensure. Beyond, a
//! sign that overflows counts as a touch: rather too much than something lost.
//!
//! Spheres and distances are f64 arithmetic without division where only a
//! comparison is asked for: exact while the products are integers below
//! 2⁵³, rounded in the last bits otherwise, and with squares that must stay
//! below 1.8e308.
//!
//! Clipping gives something exactly when touch says so. The clipped positions
//! are rounded, but always in the box.

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
mod touch;

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
