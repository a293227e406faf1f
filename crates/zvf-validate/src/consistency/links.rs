//! Links of every delta, in every form, and their attributes.

use zvf_model::fetch::Fetch;

use super::{Counted, Scope};
use crate::context::Context;

pub(super) async fn check<F: Fetch>(
    _context: &Context<'_, F>,
    _scope: Scope<'_>,
    _counted: &mut Counted,
) {
}
