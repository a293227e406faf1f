//! Execution of queries: scans, selection, joins.

pub(crate) mod chunk;
pub(crate) mod cut;
pub(crate) mod drill;
pub(crate) mod linked;
pub(crate) mod nearest;
pub(crate) mod paths;
pub(crate) mod points;
