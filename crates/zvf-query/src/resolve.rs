//! Queries resolved against a level: names, region and predicate.

pub(crate) mod area;
pub(crate) mod axes;
pub(crate) mod choice;
pub(crate) mod filter;
pub(crate) mod query;
