//! Geometry in, the cells and metadata of a store out, without I/O.
//!
//! [`Geometry`] is what comes in, [`Design`] how it is to be stored.

mod design;
mod geometry;
mod refusal;

pub use design::{Axis, Compression, Design, OutOfBounds, Profile, Purpose, Sharding};
pub use geometry::{Attribute, Geometry, GeometryKind, Numbers, Values};
pub use refusal::Refusal;
