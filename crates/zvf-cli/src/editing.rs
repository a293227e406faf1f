//! Common parts of `zvf append`, `zvf edit`, `zvf delete` and `zvf compact`.

mod addition;
mod match_types;
mod output;
mod session;

pub(crate) use addition::AdditionArgs;
pub(crate) use output::{EditOutput, NoChange};
pub(crate) use session::{EditSession, EditTargetArgs};
