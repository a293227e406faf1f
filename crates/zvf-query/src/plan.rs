//! Planning of queries: levels, budgets and explanations.

pub(crate) mod budget;
pub(crate) mod explain;
pub(crate) mod planner;
pub(crate) mod run;
