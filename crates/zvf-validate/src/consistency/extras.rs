//! What belongs to no level or to no chunk: parametric objects, further geometries.

use zvf_model::{fetch::Fetch, root::RootMetadata};

use super::Counted;
use crate::{context::Context, store::Store};

pub(super) async fn check<F: Fetch>(
    _context: &Context<'_, F>,
    _store: &Store,
    _root: &RootMetadata,
    _counted: &Counted,
) {
}
