//! L4: whether it is the geometry that the store says it is.

use zvf_model::fetch::Fetch;

use crate::{consistency::Counted, context::Context, store::Store};

/// Checks conventions of every kind of geometry.
pub(crate) async fn check<F: Fetch>(_context: &Context<'_, F>, _store: &Store, _counted: &Counted) {
}
