//! Common parts of `zvf append`, `zvf edit`, `zvf delete` and `zvf compact`.

mod addition;
pub(crate) mod match_types;
mod output;
mod row_ids;
mod session;

pub(crate) use addition::AdditionArgs;
pub(crate) use output::{EditOutput, NoChange};
pub(crate) use row_ids::{RowIdError, row_ids};
pub(crate) use session::{EditSession, EditTargetArgs};
