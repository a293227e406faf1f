//! Annotations: points, lines and polylines with properties and a spatial index.

pub(crate) mod info;
pub(crate) mod kind;
pub(crate) mod list;
pub(crate) mod property;
pub(crate) mod record;
pub(crate) mod sampler;
