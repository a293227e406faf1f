//! L2: what nodes say.

use zvf_model::fetch::Fetch;

use crate::{context::Context, store::Store};

/// Checks every field of every node. No I/O.
pub(crate) fn check<F: Fetch>(_context: &Context<'_, F>, _store: &Store) {}
