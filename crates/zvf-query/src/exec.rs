//! Operators of a physical plan: scans, filters, joins.

pub(crate) mod chunk;
pub(crate) mod clip;
pub(crate) mod composite;
pub(crate) mod level_jump;
pub(crate) mod link_join;
pub(crate) mod nearest;
pub(crate) mod paths;
pub(crate) mod points;
