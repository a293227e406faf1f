//! Planning of queries: levels, budgets and explanations.

pub(crate) mod budget;
pub(crate) mod explain;
mod gate;
pub(crate) mod partition;
pub(crate) mod planner;
pub(crate) mod run;
pub(crate) mod stream;
