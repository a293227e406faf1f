//! Operators of a physical plan, one file each, and the sources that run them.
//!
//! A plan is a tree of [`PlanNode`](operator::PlanNode)s. [`execute`] cuts it into pipelines: a
//! source (a scan, a join or another operator that needs all of its input) and the operators
//! above it. The source hands each batch to [`Filter`](filter::Filter), [`BorderClip`](clip::BorderClip),
//! [`Limit`](limit::Limit) and a [gather], as far as the tree has them. These operators read
//! nothing by themselves. The description of the query comes from the [`LevelQuery`](crate::resolve::query::LevelQuery) of its
//! [`ExecContext`](context::ExecContext).

pub(crate) mod chunk_scan;
pub(crate) mod clip;
pub(crate) mod composite;
pub(crate) mod context;
pub(crate) mod execute;
pub(crate) mod filter;
pub(crate) mod gather;
pub(crate) mod level_jump;
pub(crate) mod limit;
pub(crate) mod link_join;
pub(crate) mod link_scan;
pub(crate) mod links;
pub(crate) mod nearest;
pub(crate) mod object_columns;
pub(crate) mod object_scan;
pub(crate) mod operator;
pub(crate) mod path;
pub(crate) mod paths;
pub(crate) mod pipeline;
pub(crate) mod whole_paths;

#[cfg(test)]
mod tests;
