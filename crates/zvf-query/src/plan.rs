//! Planning of queries: levels, budgets and explanations.

pub(crate) mod budget;
mod confirmation;
pub(crate) mod explain;
pub(crate) mod partition;
pub(crate) mod planner;
pub(crate) mod run;
pub(crate) mod stream;
