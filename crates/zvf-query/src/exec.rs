//! Plans of queries and the operators that they consist of, one file each.
//!
//! A plan is a type for each shape, such as [`PointsPlan`](points::PointsPlan) or
//! [`PathsPlan`](paths::PathsPlan), collected in a [`QueryPlan`](query_plan::QueryPlan). Its fields
//! are its operators, and its `execute` runs them: a scan or a join reads, and hands each batch to
//! [`RowFilter`](filter::RowFilter), [`BorderClip`](clip::BorderClip), [`Limit`](limit::Limit) and a
//! [gather], as far as the plan has them. The file of an operator also holds what `EXPLAIN` shows
//! of it ([`Operator`](operator::Operator)). The description of the query comes from the
//! [`LevelQuery`](crate::resolve::query::LevelQuery) of an [`ExecContext`](context::ExecContext).

pub(crate) mod chunk_scan;
pub(crate) mod clip;
pub(crate) mod composite;
pub(crate) mod context;
pub(crate) mod empty;
pub(crate) mod filter;
pub(crate) mod gather;
pub(crate) mod items_plan;
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
pub(crate) mod points;
pub(crate) mod query_plan;
pub(crate) mod selection_plan;
pub(crate) mod whole_paths;

#[cfg(test)]
mod tests;
