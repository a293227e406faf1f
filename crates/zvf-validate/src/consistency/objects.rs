//! Objects, groups and their attributes.

use zvf_model::fetch::Fetch;

use super::{LevelCounts, Scope};
use crate::context::Context;

pub(super) async fn check<F: Fetch>(
    _context: &Context<'_, F>,
    _scope: Scope<'_>,
    _counts: &mut LevelCounts,
) {
}
