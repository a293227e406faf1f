//! What `zvf append`, `zvf edit`, `zvf delete` and `zvf compact` have in common.

mod addition;
mod fit;
mod report;
mod work;

pub(crate) use addition::Addition;
pub(crate) use report::{Report, Unchanged};
pub(crate) use work::{Opened, Work};
